//! pgio's names in SLOB's terms.
//!
//! pgio.conf counts schemas and threads in the file and uses one thread count
//! for loading and for running; everything else has SLOB's name already.

use super::layer::{Given, Layer};

/// Largest LOAD_PARALLEL_DEGREE; pgio's NUM_THREADS may be larger.
const MOST_LOADERS: u64 = 256;

pub(super) fn translate(path: &str, layer: &mut Layer) {
    let given = std::mem::take(&mut layer.given);
    if !given.iter().any(|given| given.name == "UPDATE_PCT") {
        layer.notice(
            path,
            "UPDATE_PCT is not in this pgio.conf: 10 is used, where pgio would take 0",
        );
    }
    for given in given {
        match given.name.as_str() {
            "NUM_SCHEMAS" => layer.given.push(renamed(given, "SCHEMAS")),
            "NUM_THREADS" => {
                let mut loaders = renamed(given.clone(), "LOAD_PARALLEL_DEGREE");
                if loaders.text.parse::<u64>().is_ok_and(|n| n > MOST_LOADERS) {
                    loaders.text = MOST_LOADERS.to_string();
                    loaders.place.clone_from(&given.place);
                    layer.notice(
                        &given.place,
                        format!("loading uses {MOST_LOADERS} threads at most"),
                    );
                }
                layer.given.push(renamed(given, "THREADS_PER_SCHEMA"));
                layer.given.push(loaders);
            }
            "CREATE_BASE_TABLE" => layer.notice(
                &given.place,
                "CREATE_BASE_TABLE does nothing here: no seed table is needed",
            ),
            "DBNAME" => layer.notice(
                &given.place,
                "DBNAME does nothing here: it follows from the target",
            ),
            "CONNECT_STRING" => layer.notice(
                &given.place,
                "CONNECT_STRING does nothing here: name the server with TARGET or --target",
            ),
            _ => layer.given.push(given),
        }
    }
}

fn renamed(mut given: Given, name: &str) -> Given {
    given.name = name.to_owned();
    given
}
