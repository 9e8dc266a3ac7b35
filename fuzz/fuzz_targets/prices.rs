//! Any text as a price file: never a panic, every error with a line of it, and what is taken adds up and can be shown.
#![no_main]

use assay_report::cost;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match cost::parse("prices.toml", &text) {
        Ok(prices) => {
            assert!(!prices.platforms.is_empty());
            let costs: Vec<cost::Cost> =
                prices.platforms.iter().map(|platform| cost::priced(&prices, platform)).collect();
            for cost in &costs {
                let sum: f64 = cost.items.iter().map(|item| item.monthly).sum();
                assert!(cost.total_monthly >= 0.0 && (sum - cost.total_monthly).abs() <= 1e-6 * sum);
            }
            let costs: Vec<&cost::Cost> = costs.iter().collect();
            let _ = cost::render(&costs);
            let _ = cost::json(&costs);
        }
        Err(error) => {
            assert!(error.line >= 1 && error.line <= text.split('\n').count());
            assert!(!error.text.is_empty());
        }
    }
});
