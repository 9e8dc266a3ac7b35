//! The plotting script: in the page, or once beside many pages.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use miniz_oxide::inflate::decompress_to_vec_zlib;
use std::sync::LazyLock;

/// File name of a shared script.
pub const SHARED: &str = "assay-plotly.js";

/// Where a page has its plotting script from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assets {
    /// In the page, which then needs nothing else.
    Embedded,
    /// From a file, by a path relative to the page; see [`script`] for what it holds.
    Shared(String),
    /// From the server of the page, at its root; the page may then go on by itself, see [`behaviour`].
    Served,
}

/// What a server calls the script of the page itself.
pub const BEHAVIOUR: &str = "behaviour.js";

/// The script of the page itself, which is in every page that is not served.
#[must_use]
pub fn behaviour() -> &'static str {
    include_str!("../../templates/behaviour.js")
}

/// The script as `build.rs` cut it out of its library's sources and compressed it: 0.8 MB.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plotly.min.js.zlib"));

/// The plotting script, about 2.5 MB of JavaScript.
#[must_use]
pub fn script() -> &'static str {
    static SCRIPT: LazyLock<String> = LazyLock::new(|| {
        let script = decompress_to_vec_zlib(PACKED).expect("the build compressed it");
        String::from_utf8(script).expect("the build compressed a text")
    });
    &SCRIPT
}

/// The compressed script as text, for a page; `behaviour.js` unpacks it.
pub(super) fn packed() -> String {
    BASE64_STANDARD.encode(PACKED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_the_part_of_the_plotting_library_that_reports_need() {
        let script = script();
        assert!(
            (1_000_000..3_000_000).contains(&script.len()),
            "{} bytes: build.rs leaves maps and scenes out",
            script.len()
        );
        assert!(script.contains("plotly.js v"));
        assert!(!script.contains("MathJax.loader"));
    }
}
