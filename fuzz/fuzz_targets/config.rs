//! Any bytes as a configuration file: never a panic, and no secret in any message or copy.
#![no_main]

use assay_measure::config::{Tables, is_secret, parse, redact, resolve, setting_lines, slob_conf};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let tables = Tables { target: "native", params: &[], workload: &assay_slob::SETTINGS, concerns: &[], others: &[] };
    for path in ["any.conf", "any.toml"] {
        let resolved = resolve(&tables, &[parse(path, bytes)]);
        let _ = redact(path, bytes, &|name| is_secret(&tables, name));
        let _ = setting_lines(&resolved.settings);
        let printed = slob_conf(&resolved.settings);
        let again = resolve(&tables, &[parse("printed.conf", printed.as_bytes())]);
        assert!(resolved.has_errors() || !again.has_errors(), "{printed}");
    }
});
