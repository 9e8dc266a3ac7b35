//! Cuts the plotting script out of the sources that its library hands out. They also set formulas, of which a report has
//! none: 2.1 MB that would be in the program.

use std::path::PathBuf;

fn main() {
    // The script is between the first pair of tags.
    let sources = plotly::Plot::offline_js_sources();
    let (_, rest) = sources.split_once('>').expect("a script begins");
    let (script, _) = rest.split_once("</script>").expect("a script ends");
    let place = std::env::var_os("OUT_DIR").expect("cargo names a directory");
    let path = PathBuf::from(place).join("plotly.min.js");
    std::fs::write(path, script).expect("the script is written");
}
