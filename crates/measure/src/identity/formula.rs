//! An identity as a line of text: `transactions_per_s = transactions_count / .elapsed_s ~ 0.02 if 0 < .elapsed_s`.
//!
//! Two sides that must be equal (`=`), or of which the first is at most the second (`<=`); behind `~` the share of the larger
//! side that they may be apart beyond the rounding of what was printed, behind `+-` what they may be apart in their own unit; behind `if`
//! when that can be asked at all.
//!
//! | term | what it is |
//! |---|---|
//! | `lat_us_avg` | the figure of this key, of the scope in which the line is judged: each that has its first term |
//! | `.elapsed_s` | of the source as a whole |
//! | `after:hits_count` | of the scope of that name |
//! | `*_us_avg` | of each stem for which the first term is there; the same stem in all terms |
//! | `retries_count?` | 0 where it was not printed |
//! | `sum(key)`, `most(key)`, `mean(key)` | of the steps of a series; the mean by their lengths |
//! | `all(key)` | the sum over all scopes |
//! | `cut(key)` | a figure whose last digit was cut, not rounded |
//! | `whole`, `power` | right of `=`: the nearest whole number, the nearest power of two of the left side |

use super::Rounded as Num;

/// The value of a term, or why it is unknown; the first word is its function, or empty.
pub type Terms<'a> = dyn Fn(&str, &str) -> Worth + 'a;

/// A figure, or why there is none.
pub type Worth = Result<Num, String>;

/// A line, taken apart.
#[derive(Clone, Copy, Debug)]
pub struct Formula<'a> {
    left: &'a str,
    right: &'a str,
    /// Whether the left side may be below the right one.
    pub is_at_most: bool,
    share: &'a str,
    apart: &'a str,
    condition: Option<(&'a str, &'a str)>,
}

/// Both sides, and what they may be apart.
#[derive(Clone, Copy, Debug)]
pub struct Sides {
    /// Left of the sign.
    pub left: Num,
    /// Right of it.
    pub right: Num,
    /// Of the larger.
    pub share: f64,
    /// And in their unit.
    pub apart: f64,
}

impl<'a> Formula<'a> {
    /// Parses a line; `None` if it does not have two sides.
    #[must_use]
    pub fn of(text: &'a str) -> Option<Self> {
        let (text, condition) = text.split_once(" if ").unwrap_or((text, ""));
        let (text, apart) = text.split_once(" +- ").unwrap_or((text, "0"));
        let (sides, share) = text.split_once(" ~ ").unwrap_or((text, "0"));
        let (left, right, is_at_most) = match sides.split_once(" <= ") {
            Some((left, right)) => (left, right, true),
            None => sides.split_once(" = ").map(|(left, right)| (left, right, false))?,
        };
        Some(Self { left, right, is_at_most, share, apart, condition: condition.split_once(" < ") })
    }

    /// The term that determines the scope of the line.
    #[must_use]
    pub fn first(&self) -> &'a str {
        let left = self.left.trim_start_matches('(');
        left.split([' ', ')']).next().unwrap_or_default()
    }

    /// Its sides, each by itself.
    pub fn each(&self, terms: &Terms<'_>) -> (Worth, Worth) {
        let value = |text: &'a str| Reader { rest: text, terms }.sum();
        let left = value(self.left);
        let near = |near: fn(f64) -> f64| left.clone().map(|left| Num::exact(near(left.value)));
        let right = match self.right {
            "whole" => near(|left| left.round().max(1.0)),
            "power" => near(|left| 2_f64.powf(left.log2().round())),
            right => value(right),
        };
        (left, right)
    }

    /// Its result for these terms; `None` if one of them is absent.
    #[must_use]
    pub fn sides(&self, terms: &Terms<'_>) -> Option<Sides> {
        let value = |text: &'a str| Reader { rest: text, terms }.sum().ok();
        if let Some((low, high)) = self.condition {
            (value(low)?.value < value(high)?.value).then_some(())?;
        }
        let (left, right) = self.each(terms);
        let (share, apart) = (value(self.share)?.value, value(self.apart)?.value);
        Some(Sides { left: left.ok()?, right: right.ok()?, share, apart })
    }
}

struct Reader<'a> {
    rest: &'a str,
    terms: &'a Terms<'a>,
}

impl<'a> Reader<'a> {
    /// Whether this comes next; then it is behind us.
    fn has(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn sum(&mut self) -> Worth {
        let mut sum = self.product()?;
        loop {
            if self.has("+ ") {
                sum = sum.plus(self.product()?);
            } else if self.has("- ") {
                sum = sum.plus(self.product()?.times(-1.0));
            } else {
                return Ok(sum);
            }
        }
    }

    fn product(&mut self) -> Worth {
        let mut product = self.factor()?;
        loop {
            if self.has("* ") {
                product = product.by(self.factor()?);
            } else if self.has("/ ") {
                let by = self.factor()?;
                if by.value == 0.0 {
                    return Err("divided by 0".to_owned());
                }
                product = product.over(by);
            } else {
                return Ok(product);
            }
        }
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let is_of_it = |c: char| c.is_ascii_alphanumeric() || "_.:*?".contains(c);
        // The sign of `2e-6` is of the number.
        let is_exponent = |at: usize| rest.starts_with(|c: char| c.is_ascii_digit()) && rest[..at].ends_with('e');
        let end = rest.char_indices().find(|(at, c)| !(is_of_it(*c) || *c == '-' && is_exponent(*at)));
        let end = end.map_or(rest.len(), |(at, _)| at);
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        word
    }

    fn factor(&mut self) -> Worth {
        if self.has("(") {
            let inner = self.sum()?;
            return self.closed(inner);
        }
        let word = self.word();
        if let Ok(value) = word.parse() {
            return Ok(Num::exact(value));
        }
        if self.has("(") {
            let found = (self.terms)(word, self.word())?;
            return self.closed(found);
        }
        match word.strip_suffix('?') {
            Some(word) => Ok((self.terms)("", word).unwrap_or(Num::exact(0.0))),
            None => (self.terms)("", word),
        }
    }

    fn closed(&mut self, found: Num) -> Worth {
        if self.has(")") { Ok(found) } else { Err("a bracket is open".to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Sides> {
        let terms = |function: &str, name: &str| {
            let value = match (function, name) {
                ("", "a") => 2.0,
                ("", ".b") => 8.0,
                ("sum", "c_us") => 3.0,
                ("", "after:d") => 0.0,
                _ => return Err("not there".to_owned()),
            };
            Ok(Num { value, off: 0.5 })
        };
        Formula::of(text)?.sides(&terms)
    }

    #[test]
    fn a_line_is_read_by_the_rules_of_arithmetic() {
        for (text, left, right, share) in [
            ("a + .b * a = 18", 18.0, 18.0, 0.0),
            ("(a + .b) * a - 1 <= sum(c_us) ~ 0.1 * a", 19.0, 3.0, 0.2),
            (".b / a = whole", 4.0, 4.0, 0.0),
            (".b - sum(c_us) = power", 5.0, 4.0, 0.0),
            ("a = after:d + gone? if 1 < .b", 2.0, 0.0, 0.0),
            ("a * 1e-3 = 0.002", 0.002, 0.002, 0.0),
        ] {
            let sides = of(text).unwrap_or_else(|| panic!("{text}"));
            assert!((sides.left.value - left).abs() < 1e-12, "{text}: {sides:?}");
            assert_eq!((sides.right.value, sides.share), (right, share), "{text}");
            assert_eq!(Formula::of(text).unwrap().is_at_most, text.contains("<="));
        }
        let apart = of("a = .b ~ 0.01 +- 2 * a if a < .b").unwrap();
        assert_eq!((apart.share, apart.apart), (0.01, 4.0));
        // The rounding of both.
        assert_eq!(of("a * .b = 1").unwrap().left.off, 5.25);
    }

    #[test]
    fn what_is_not_there_or_cannot_be_is_not_judged() {
        for text in ["gone = a", "a = a / after:d", "a = a if 9 < .b", "a", "(a = a", "a = most(c_us)"] {
            assert!(of(text).is_none(), "{text}");
        }
        assert_eq!(Formula::of("(.b + a) = 1").unwrap().first(), ".b");
    }
}
