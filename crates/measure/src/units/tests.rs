use super::*;
use proptest::prelude::*;

#[test]
fn sizes_are_binary() {
    for (text, bytes) in [
        ("0", 0),
        ("8192", 8192),
        ("512b", 512),
        ("8K", 8 * KIB),
        ("8 KiB", 8 * KIB),
        ("80m", 80 * MIB),
        ("1GB", GIB),
        ("1.5G", GIB + GIB / 2),
        (".5M", MIB / 2),
        ("2.", 2),
        ("2T", 2 * TIB),
        ("1P", 1024 * TIB),
        (" 256 MiB ", 256 * MIB),
        ("0.1K", 102),
        ("1.000489M", MIB + 512),
        ("1.0000000000000000000000000000001K", KIB),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(parse_size_bytes(text), Ok(bytes), "{text}");
    }
}

#[test]
fn durations_name_their_units_or_are_seconds() {
    for (text, ns) in [
        ("0", 0),
        ("30", 30 * NS_PER_S),
        ("0.5", NS_PER_S / 2),
        (".1", NS_PER_S / 10),
        ("30s", 30 * NS_PER_S),
        ("5m", 300 * NS_PER_S),
        ("5 min", 300 * NS_PER_S),
        ("1h", 3_600 * NS_PER_S),
        ("1.5H", 5_400 * NS_PER_S),
        ("1d", 86_400 * NS_PER_S),
        ("250ms", 250_000_000),
        ("10us", 10_000),
        ("7ns", 7),
        ("1h30m", 5_400 * NS_PER_S),
        ("1 h 30 min 5 s", 5_405 * NS_PER_S),
        ("0.1ns", 0),
    ] {
        assert_eq!(parse_duration_ns(text), Ok(ns), "{text}");
    }
}

#[test]
fn bad_sizes_and_durations_say_what_is_wrong() {
    let size = |text| parse_size_bytes(text).unwrap_err().to_string();
    let duration = |text| parse_duration_ns(text).unwrap_err().to_string();
    assert_eq!(size(""), "empty value");
    assert_eq!(duration("  "), "empty value");
    assert_eq!(size("-1K"), "`-1K` is not a number with a unit");
    assert_eq!(size("1.2.3"), "`1.2.3` is not a number with a unit");
    assert_eq!(size("."), "`.` is not a number with a unit");
    assert_eq!(size("1K5"), "`1K5` is not a number with a unit");
    assert_eq!(size("K"), "`K` is not a number with a unit");
    assert_eq!(
        size("10 parsecs"),
        "unknown unit `parsecs` in `10 parsecs`, known are B, K, M, G, T and P \
         (base 2; KiB and KB mean the same)"
    );
    assert_eq!(size("16777216T"), "`16777216T` is too large");
    assert_eq!(duration("1h30"), "unknown unit `` in `1h30`, known are ns, us, ms, s, m (or min), h and d");
    assert_eq!(duration("600y"), "unknown unit `y` in `600y`, known are ns, us, ms, s, m (or min), h and d");
    assert_eq!(duration("20000000000s"), "`20000000000s` is too large");
    assert_eq!(duration("213503d23h59m"), "`213503d23h59m` is too large");
}

#[test]
fn whole_numbers_are_grouped_by_three() {
    for (n, text) in
        [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567"), (u64::MAX, "18,446,744,073,709,551,615")]
    {
        assert_eq!(thousands(n), text);
    }
}

#[test]
fn one_is_not_many() {
    assert_eq!(many(0, "schema"), "0 schemas");
    assert_eq!(many(1, "schema"), "1 schema");
    assert_eq!(many(1000, "session"), "1,000 sessions");
}

#[test]
fn decimals_are_rounded_once_half_away_from_zero() {
    for (value, decimals, text) in [
        (0.5, 0, "1"),
        (1.5, 0, "2"),
        (2.5, 0, "3"),
        (-2.5, 0, "-3"),
        (0.125, 2, "0.13"),
        (15.846, 1, "15.8"),
        (999.95, 1, "1,000.0"),
        (9.999, 2, "10.00"),
        (999_999.5, 0, "1,000,000"),
        // Nearer to 0.1 than to 0.2 in binary, and so it is printed.
        (0.15, 1, "0.1"),
        (1_234_567.891, 2, "1,234,567.89"),
        (-1_234.5, 1, "-1,234.5"),
        (0.0, 1, "0.0"),
        (-0.0, 1, "0.0"),
        (7.1e18, 0, "7,100,000,000,000,000,000"),
    ] {
        assert_eq!(fixed(value, decimals), text, "{value} with {decimals}");
    }
    assert_eq!(fixed(f64::NAN, 1), "n/a");
    assert_eq!(fixed(f64::INFINITY, 1), "n/a");
}

#[test]
fn what_is_not_zero_never_prints_as_zero() {
    assert_eq!(fixed(0.031, 1), "0.031");
    assert_eq!(fixed(0.000_123_4, 1), "0.00012");
    assert_eq!(fixed(-0.004, 2), "-0.0040");
    assert_eq!(fixed(0.06, 1), "0.1");
    assert_eq!(ratio(1, 3_000, 1).unwrap(), "0.00033");
}

#[test]
fn quotients_are_exact() {
    assert_eq!(ratio(15, 100, 1).unwrap(), "0.2");
    assert_eq!(ratio(25, 1000, 2).unwrap(), "0.03");
    assert_eq!(ratio(0, 7, 2).unwrap(), "0.00");
    assert_eq!(ratio(269_826_100 * 128, 128, 1).unwrap(), "269,826,100.0");
    assert_eq!(ratio(1, 3, 0).unwrap(), "0.33");
    assert_eq!(ratio(7, 2, 0).unwrap(), "4");
    assert_eq!(ratio(1, 0, 1), None);
    assert_eq!(ratio(u128::MAX, u128::MAX, 1).unwrap(), "1.0");
}

#[test]
fn significant_digits_keep_all_whole_digits() {
    for (value, digits, text) in [
        (0.0, 3, "0"),
        (1234.4, 3, "1,234"),
        (1.254, 3, "1.25"),
        (9.996, 3, "10.0"),
        (99.96, 3, "100"),
        (0.009_996, 3, "0.0100"),
        (5e-324, 2, "0.00"),
    ] {
        let got = significant(value, digits);
        match value {
            5e-324 => assert!(got.starts_with("0.000") && got.ends_with("49"), "{got}"),
            _ => assert_eq!(got, text, "{value}"),
        }
    }
}

#[test]
fn sizes_and_counts_shorten_to_three_digits() {
    for (bytes, text, suffix) in [
        (0, "0 B", "0"),
        (512, "512 B", "512"),
        (1023, "1,023 B", "1,023"),
        (1024, "1 KiB", "1K"),
        (1536, "1.5 KiB", "1.5K"),
        (256 * MIB, "256 MiB", "256M"),
        (GIB + GIB / 2, "1.5 GiB", "1.5G"),
        (GIB - 1, "1 GiB", "1G"),
        (10 * TIB + TIB / 4, "10.3 TiB", "10.3T"),
        (u64::MAX, "16 EiB", "16E"),
    ] {
        assert_eq!(size(bytes), text, "{bytes}");
        assert_eq!(size_suffix(bytes), suffix, "{bytes}");
    }
    for (n, text) in [(0, "0"), (999, "999"), (1_000, "1K"), (24_133, "24.1K"), (999_999, "1M"), (36_452_722, "36.5M")]
    {
        assert_eq!(count_suffix(n), text, "{n}");
    }
}

#[test]
fn durations_read_well_at_every_magnitude() {
    for (ns, text) in [
        (0, "0 ns"),
        (250, "250 ns"),
        (1_250, "1.25 us"),
        (999_900, "1 ms"),
        (3_400_000, "3.4 ms"),
        (NS_PER_S, "1 s"),
        (30 * NS_PER_S, "30 s"),
        (59_940_000_000, "59.9 s"),
        (59_999_999_999, "1 min"),
        (303 * NS_PER_S, "5 min 3 s"),
        (7_799 * NS_PER_S, "2 h 9 min"),
        (3_600 * NS_PER_S, "1 h"),
    ] {
        assert_eq!(duration(ns), text, "{ns}");
    }
}

#[test]
fn long_texts_end_in_a_tilde() {
    assert_eq!(shorten("db file sequential read", 10), "db file s~");
    assert_eq!(shorten("log file sync", 13), "log file sync");
    assert_eq!(shorten("abc", 1), "~");
    assert_eq!(shorten("abc", 0), "");
}

fn value_of(text: &str) -> f64 {
    text.replace(',', "").parse().unwrap()
}

proptest! {
    #[test]
    fn printed_numbers_are_near_and_plain(value in -1e15_f64..1e15, decimals in 0_usize..6) {
        let text = fixed(value, decimals);
        let error = (value_of(&text) - value).abs();
        let allowed = 0.500_001 / 10_f64.powi(decimals as i32) + value.abs() * 1e-15;
        prop_assert!(error <= allowed, "{value} printed as {text}");
        prop_assert!(!text.contains(['e', 'E']));
    }

    #[test]
    fn small_numbers_print_two_true_digits(exponent in -300_i32..0, mantissa in 1.0_f64..9.9) {
        let value = mantissa * 10_f64.powi(exponent);
        let text = fixed(value, 1);
        prop_assert!(value_of(&text) > 0.0, "{text}");
        if value < 0.05 {
            prop_assert!((value_of(&text) / value - 1.0).abs() < 0.051, "{value} as {text}");
        }
    }

    #[test]
    fn exact_and_floating_quotients_agree(n in 0_u64..1 << 50, d in 1_u64..1 << 40, decimals in 0_usize..4) {
        let exact = value_of(&ratio(n.into(), d.into(), decimals).unwrap());
        let float = n as f64 / d as f64;
        let allowed = 0.500_001 / 10_f64.powi(decimals as i32) + float * 1e-15;
        prop_assert!((exact - float).abs() <= allowed);
        prop_assert!(n == 0 || exact > 0.0);
    }

    #[test]
    fn grouping_only_adds_commas(n in any::<u64>()) {
        let text = thousands(n);
        prop_assert_eq!(text.replace(',', ""), n.to_string());
        let groups: Vec<&str> = text.split(',').collect();
        prop_assert!(groups[1..].iter().all(|group| group.len() == 3));
        prop_assert!((1..=3).contains(&groups[0].len()));
    }

    #[test]
    fn printed_sizes_parse_back(bits in 0_u32..59, raw in any::<u64>()) {
        let bytes = raw % (1 << bits);
        let text = size(bytes).replace(',', "");
        let back = parse_size_bytes(&text).unwrap() as f64;
        prop_assert!((back - bytes as f64).abs() <= bytes as f64 * 0.005 + 0.5);
    }

    #[test]
    fn printed_durations_parse_back(ns in 0_u64..1 << 58) {
        let back = parse_duration_ns(&duration(ns).replace(',', "")).unwrap();
        // From a minute on to the second, from an hour on to the minute.
        let allowed = match ns {
            0..59_950_000_000 => ns as f64 * 0.0051 + 0.5,
            59_950_000_000..3_599_500_000_000 => 0.5e9,
            _ => 60.5e9,
        };
        prop_assert!((back as f64 - ns as f64).abs() <= allowed, "{ns} as {}", duration(ns));
    }

    #[test]
    fn whole_units_parse_exactly(n in 0_u64..1 << 20) {
        prop_assert_eq!(parse_size_bytes(&format!("{n}M")), Ok(n * MIB));
        prop_assert_eq!(parse_duration_ns(&format!("{n}ms")), Ok(n * 1_000_000));
    }

    #[test]
    fn garbage_never_panics(text in ".{0,40}") {
        let _ = (parse_size_bytes(&text), parse_duration_ns(&text), shorten(&text, 7));
    }
}

#[test]
fn a_figure_in_a_sentence_stands_in_the_unit_that_reads_best() {
    let told = |value: f64, words: &str| {
        let (factor, words) = readable(value, words);
        format!("{} {words}", short(value / factor))
    };
    for (value, words, text) in [
        (1_535_115.0, "us per operation", "1.54 s per operation"),
        (48_210.0, "us p99", "48.2 ms p99"),
        (9_999.0, "us", "9,999 us"),
        (9_257_021_363.1, "bits/s", "9.26 Gbit/s"),
        (25_325_268_992.0, "bytes", "23.6 GiB"),
        (12_000.0, "bytes/s", "12,000 bytes/s"),
        (2e9, "usual things", "2,000,000,000 usual things"),
    ] {
        assert_eq!(told(value, words), text);
    }
    assert_eq!(with_unit(1_500_000.0, "us"), "1.5 s");
    assert_eq!([24_338.0, 144.3].map(|us| super::told(us, "us", 0)), ["24.3 ms", "144 us"]);
}
