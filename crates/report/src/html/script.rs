//! The plotting script: in the page, or once beside many pages.

use std::sync::LazyLock;

/// What a shared script is called.
pub const SHARED: &str = "assay-plotly.js";

/// Where a page has its plotting script from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assets {
    /// In the page, which then needs nothing else.
    Embedded,
    /// From a file, by a path relative to the page; see [`script`] for what it holds.
    Shared(String),
}

/// The plotting script, about 4.7 MB of JavaScript.
///
/// The library keeps it between the first pair of script tags of its sources; what follows there sets formulas, of
/// which a report has none.
#[must_use]
pub fn script() -> &'static str {
    static SCRIPT: LazyLock<String> = LazyLock::new(|| {
        let sources = plotly::Plot::offline_js_sources();
        let (_, rest) = sources.split_once('>').unwrap_or(("", ""));
        let (script, _) = rest.split_once("</script>").unwrap_or((rest, ""));
        script.to_owned()
    });
    &SCRIPT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_the_plotting_library_alone_and_ends_no_element() {
        let script = script();
        assert!(script.len() > 1_000_000, "{} bytes", script.len());
        assert!(script.contains("plotly.js v"));
        assert!(!script.contains("MathJax.loader"));
        assert!(!script.contains("</script"));
        assert!(!script.contains("<!--"));
    }
}
