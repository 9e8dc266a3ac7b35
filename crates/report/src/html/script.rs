//! The plotting script: in the page, or once beside many pages.

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

/// The plotting script, about 4.7 MB of JavaScript, which `build.rs` cut out of its library's sources.
#[must_use]
pub fn script() -> &'static str {
    include_str!(concat!(env!("OUT_DIR"), "/plotly.min.js"))
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
