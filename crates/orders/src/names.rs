//! Lists of names, places and words to pick from. They are as long as the original's, since their length determines how
//! likely two customers share a name; their entries are our own.

/// Length of the lists of first names and of last names.
pub const NAMES: usize = 1000;
/// Number of towns.
pub const TOWNS: usize = 515;
/// Number of counties.
pub const COUNTIES: usize = 90;
/// Number of countries in addresses.
pub const COUNTRIES: usize = 79;
/// Number of customer territories.
pub const TERRITORIES: usize = 80;

const BEGIN: [&str; 10] = ["al", "be", "cor", "da", "el", "fa", "gri", "ho", "jo", "ka"];
const MIDDLE: [&str; 10] = ["ba", "ce", "do", "li", "mo", "na", "ri", "sa", "te", "vi"];
const FIRST_END: [&str; 10] = ["", "an", "el", "ia", "na", "ne", "ra", "ron", "s", "tta"];
const LAST_END: [&str; 10] = ["berg", "by", "croft", "dale", "ford", "ham", "ley", "man", "son", "ton"];
const PLACE_END: [&str; 10] = ["burgh", "cester", "field", "haven", "mouth", "pool", "stead", "thorpe", "well", "wick"];

/// Mail providers.
pub const PROVIDERS: [&str; 15] = [
    "airpost", "bluemail", "cloudbox", "dayline", "everpost", "fastnote", "greymail", "homebox", "inkwell", "jotter",
    "kitemail", "letterly", "mailhub", "northbox", "openpost",
];
/// Hobbies of customers.
pub const HOBBIES: [&str; 13] = [
    "Books",
    "Chess",
    "Cooking",
    "Cycling",
    "Films",
    "Gardening",
    "Hiking",
    "Music",
    "Painting",
    "Running",
    "Sailing",
    "Theatre",
    "Travel",
];

/// Appends entry `at` of the list `BEGIN` x `MIDDLE` x `end`.
fn push(end: &[&str; 10], at: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(BEGIN[at / 100 % 10].as_bytes());
    out.extend_from_slice(MIDDLE[at / 10 % 10].as_bytes());
    out.extend_from_slice(end[at % 10].as_bytes());
}

fn word(end: &[&str; 10], at: usize) -> String {
    let mut bytes = Vec::with_capacity(16);
    push(end, at, &mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

fn titled(end: &[&str; 10], at: usize, of: usize, of_all: usize) -> String {
    let mut bytes = word(end, at * of_all / of).into_bytes();
    bytes[0] = bytes[0].to_ascii_uppercase();
    String::from_utf8(bytes).unwrap_or_default()
}

/// The lists, generated once.
#[derive(Debug)]
pub struct Lists {
    /// First names, lower case.
    pub first: Vec<String>,
    /// Last names, lower case.
    pub last: Vec<String>,
    /// Towns.
    pub towns: Vec<String>,
    /// Counties.
    pub counties: Vec<String>,
    /// Countries.
    pub countries: Vec<String>,
    /// Territories.
    pub territories: Vec<String>,
}

impl Default for Lists {
    fn default() -> Self {
        let places = |of: usize, suffix: &str| -> Vec<String> {
            let place = |at| titled(&PLACE_END, at, of, NAMES) + suffix;
            (0..of).map(place).collect()
        };
        Self {
            first: (0..NAMES).map(|at| word(&FIRST_END, at)).collect(),
            last: (0..NAMES).map(|at| word(&LAST_END, at)).collect(),
            towns: places(TOWNS, ""),
            counties: places(COUNTIES, "shire"),
            countries: places(COUNTRIES, "land"),
            territories: places(TERRITORIES, "ia"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_list_says_a_thing_twice_and_no_entry_needs_an_escape() {
        let lists = Lists::default();
        let all = [
            (&lists.first, NAMES),
            (&lists.last, NAMES),
            (&lists.towns, TOWNS),
            (&lists.counties, COUNTIES),
            (&lists.countries, COUNTRIES),
            (&lists.territories, TERRITORIES),
        ];
        for (list, of) in all {
            let one_each: BTreeSet<&String> = list.iter().collect();
            assert_eq!((list.len(), one_each.len()), (of, of));
            assert!(list.iter().all(|word| word.bytes().all(|b| b.is_ascii_alphabetic())));
        }
        assert!(lists.first.iter().all(|word| *word == word.to_lowercase()));
    }
}
