//! pgio's names in SLOB's terms.
//!
//! pgio.conf counts schemas and threads in the file and uses one thread count for loading and for running; everything
//! else already has SLOB's name. Its connection options for psql become a PostgreSQL target.

use super::layer::{Given, Layer};

/// Largest LOAD_PARALLEL_DEGREE; pgio's NUM_THREADS may be larger.
const MOST_LOADERS: u64 = 256;

pub(super) fn translate(path: &str, layer: &mut Layer) {
    let given = std::mem::take(&mut layer.given);
    if !given.iter().any(|given| given.name == "UPDATE_PCT") {
        layer.notice(path, "UPDATE_PCT is not in this pgio.conf: assay uses 10, while pgio would use 0");
    }
    if !given.iter().any(|given| given.name == "TARGET" || given.name == "ENGINE") {
        connect(&given, path, layer);
    }
    for given in given {
        match given.name.as_str() {
            "NUM_SCHEMAS" => layer.given.push(renamed(given, "SCHEMAS")),
            "NUM_THREADS" => {
                let mut loaders = renamed(given.clone(), "LOAD_PARALLEL_DEGREE");
                if loaders.text.parse::<u64>().is_ok_and(|n| n > MOST_LOADERS) {
                    loaders.text = MOST_LOADERS.to_string();
                    loaders.place.clone_from(&given.place);
                    layer.notice(&given.place, format!("loading uses at most {MOST_LOADERS} threads"));
                }
                layer.given.push(renamed(given, "THREADS_PER_SCHEMA"));
                layer.given.push(loaders);
            }
            "CREATE_BASE_TABLE" => {
                layer.notice(&given.place, "CREATE_BASE_TABLE has no effect here: assay needs no seed table")
            }
            "DBNAME" | "CONNECT_STRING" => {}
            _ => layer.given.push(given),
        }
    }
}

/// The target of CONNECT_STRING, else of DBNAME.
fn connect(given: &[Given], path: &str, layer: &mut Layer) {
    let last = |name: &str| {
        let mut named = given.iter().rev().filter(|given| given.name == name);
        named.find(|given| !given.text.is_empty())
    };
    let Some(place) = last("CONNECT_STRING").or_else(|| last("DBNAME")) else {
        return;
    };
    match target(&place.text) {
        Ok(text) => {
            let mut target = renamed(place.clone(), "TARGET");
            target.text = text;
            layer.given.push(target);
        }
        Err(why) => layer.error(&place.place, format!("{}: {why}", place.name)),
    }
    if let (Some(connect), Some(dbname)) = (last("CONNECT_STRING"), last("DBNAME"))
        && connect.text != dbname.text
    {
        layer.notice(path, "DBNAME has no effect here: assay reads the statistics of the database in CONNECT_STRING");
    }
}

/// The target psql would reach with these words: a URL, `name=value ...`, options, or a database and a user.
fn target(words: &str) -> Result<String, String> {
    let words = words.trim();
    if !words.starts_with('-') {
        if let Some((scheme, rest)) = words.split_once("://") {
            return match scheme {
                "postgres" | "postgresql" => Ok(format!("postgres://{rest}")),
                _ => Err("a URL for psql begins with postgres:// or postgresql://".to_owned()),
            };
        }
        if words.contains('=') {
            return Ok(format!("postgres:{words}"));
        }
    }
    let mut values = Vec::new();
    let mut bare = ["dbname", "user"].into_iter();
    let mut words = words.split_whitespace();
    while let Some(word) = words.next() {
        let known = OPTIONS.iter().find_map(|(short, long, name)| {
            let rest = word.strip_prefix(long).map(|rest| rest.strip_prefix('=').unwrap_or(rest));
            Some((*name, rest.or_else(|| word.strip_prefix(short))?))
        });
        let (name, value) = match known {
            Some((name, "")) => (name, words.next().ok_or(format!("{word} needs a value"))?),
            Some(found) => found,
            None if word.starts_with('-') => {
                return Err(format!("assay does not support psql's option {word} here; use -h, -p, -U, -d, or a URL"));
            }
            None => (bare.next().ok_or("there are more words than a database and a user")?, word),
        };
        values.push((name, value));
    }
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match values.as_slice() {
        [("dbname", name)] if plain(name) => Ok(format!("postgres:///{name}")),
        _ => {
            let pairs = values.iter().map(|(name, value)| {
                let value = value.replace('\\', "\\\\").replace('\'', "\\'");
                format!("{name}='{value}'")
            });
            Ok(format!("postgres:{}", pairs.collect::<Vec<_>>().join(" ")))
        }
    }
}

/// psql's options that say where and who.
const OPTIONS: &[(&str, &str, &str)] =
    &[("-h", "--host", "host"), ("-p", "--port", "port"), ("-U", "--username", "user"), ("-d", "--dbname", "dbname")];

fn renamed(mut given: Given, name: &str) -> Given {
    given.name = name.to_owned();
    given
}
