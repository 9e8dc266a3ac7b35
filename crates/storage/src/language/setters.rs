//! Setters of options whose values take more than a line to parse.

use super::draft::Draft;
use super::number::Read;
use super::value::{self, Value, halves};
use crate::readings::DIRECTIONS;
use crate::spec::{Amount, Distribution, FileService, IoEngine, Mode, PassErrors, SteadyMetric, SteadyOptions, Verify};
use assay_measure::clock::Ns;
use assay_run::bounded;
use std::path::{Path, PathBuf};

/// Replaces the values that are given; a missing one keeps the old value.
pub(super) fn merge<T: Copy>(into: &mut [Option<T>; DIRECTIONS], from: [Option<T>; DIRECTIONS]) {
    for (old, new) in into.iter_mut().zip(from) {
        *old = new.or(*old);
    }
}

pub(super) fn small(number: i64) -> Read<i32> {
    i32::try_from(number).map_err(|_| "is too large".into())
}

/// Splits a list of paths at colons; `\:` is a colon within a path.
pub(super) fn paths(text: &str) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let mut path = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&':') => {
                path.push(':');
                letters.next();
            }
            ':' => paths.push(std::mem::take(&mut path)),
            _ => path.push(letter),
        }
    }
    paths.push(path);
    paths.into_iter().filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

/// A size of 0 counts as no size.
pub(super) fn some_size(amount: Amount) -> Option<Amount> {
    Some(amount).filter(|amount| !matches!(amount, Amount::Bytes(0) | Amount::Percent(0)))
}

/// The amount to move; if it is a percentage of the region, at most the region.
pub(super) fn io_size(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let percent = value.text()?.trim().strip_suffix('%');
    if let Some(percent) = percent
        && value::number(percent, value.decimal)? > 100
    {
        return Err("is above 100 percent; use loops".into());
    }
    draft.options.pattern.io_size = some_size(value.amount()?);
    Ok(())
}

pub(super) fn size_range(value: &Value<'_>) -> Read<(u64, u64)> {
    let (low, high) = halves(value.text()?, '-');
    let low = value::number(low, value.decimal)?;
    let high = high.map_or(Ok(low), |high| value::number(high, value.decimal))?;
    if low.min(high) == 0 {
        return Err("is below 1".into());
    }
    Ok((low.min(high), low.max(high)))
}

pub(super) fn start_delay(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let (low, high) = halves(value.text()?, '-');
    let low = value::time(low, 1_000_000_000)?;
    let high = high.map_or(Ok(low), |high| value::time(high, 1_000_000_000))?;
    draft.options.pace.start_delay_ns = (low.min(high), low.max(high));
    Ok(())
}

/// Refuses sampling windows below a millisecond, which would sample nothing.
pub(super) fn window(ns: Ns) -> Read<Ns> {
    if ns == 0 {
        return Err("is below 1".into());
    }
    Ok(ns)
}

pub(super) fn cpu_mask(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let mask = value.int()?;
    draft.options.placement.cpus = Some((0..64).filter(|bit| mask >> bit & 1 == 1).collect());
    Ok(())
}

/// More CPUs than any kernel supports.
const MOST_CPUS: u32 = 8192;

pub(super) fn cpu_list(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let mut cpus = Vec::new();
    for part in value.text()?.split([',', ':', ' ']) {
        if part.is_empty() {
            continue;
        }
        let (first, last) = halves(part, '-');
        let cpu = |text: &str| match text.trim().parse::<u32>() {
            Ok(cpu) if cpu < MOST_CPUS => Ok(cpu),
            _ => Err(format!("{text:?} is not a CPU")),
        };
        let first = cpu(first)?;
        let last = last.map_or(Ok(first), cpu)?;
        cpus.extend(first.min(last)..=first.max(last));
    }
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.is_empty() {
        return Err("names no CPU".into());
    }
    draft.options.placement.cpus = Some(cpus);
    Ok(())
}

/// fio's engines, including those that assay has under another name.
const OTHER_ENGINES: &str = "\
    cpuio dev-dax e4defrag exec external falloc filecreate filedelete filestat ftruncate gfapi \
    gfapi_async http ime_aio ime_psync ime_psyncv io_uring_cmd libblkio libcufile libhdfs libiscsi \
    libpmem mmap mtd nbd net netsplice pmemblk posixaio rados rbd rdma sg splice windowsaio xnvme";

pub(super) fn engine(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let text = value.text()?;
    let name = text.split(':').next().unwrap_or(text);
    draft.options.engine = match name {
        "psync" | "sync" | "vsync" | "pvsync" => IoEngine::Psync,
        "pvsync2" => IoEngine::Pvsync2,
        "io_uring" => IoEngine::IoUring,
        "libaio" => IoEngine::Libaio,
        "null" => IoEngine::Null,
        "nop" => IoEngine::Nop,
        other if OTHER_ENGINES.split(' ').any(|known| known == other) => {
            return Err(format!(
                "not supported: ioengine={other}; the engines are io_uring, libaio, psync, pvsync2, null, nop"
            ));
        }
        _ => {
            return Err("is not an engine; the engines are io_uring, libaio, psync, pvsync2, null, nop".into());
        }
    };
    draft.options.engine_name = name.to_owned();
    draft.own_engine = true;
    Ok(())
}

pub(super) fn mode(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let text = value.text()?;
    let (name, argument) = halves(text, ':');
    let mode = match name {
        "read" => Mode::Read,
        "write" => Mode::Write,
        "randread" => Mode::RandRead,
        "randwrite" => Mode::RandWrite,
        "rw" | "readwrite" => Mode::ReadWrite,
        "randrw" => Mode::RandRw,
        "trim" => Mode::Trim,
        "randtrim" => Mode::RandTrim,
        "trimwrite" => Mode::TrimWrite,
        "randtrimwrite" => Mode::RandTrimWrite,
        _ => {
            return Err(
                "is none of read, write, randread, randwrite, rw, randrw, trim, randtrim, trimwrite, randtrimwrite"
                    .into(),
            );
        }
    };
    let argument = match argument {
        None => None,
        Some(argument) if mode.is_random() => {
            let every = value::number(argument, value.decimal)?;
            Some(i64::try_from(every).map_err(|_| "is too large")?)
        }
        Some(argument) => Some(value::signed(argument, value.decimal)?),
    };
    draft.options.pattern.mode = mode;
    draft.options.pattern.mode_argument = argument;
    Ok(())
}

/// Maximum block size: offsets and lengths are stored separately, and buffers are real memory.
const LARGEST_BLOCK: u64 = 1 << 31;

pub(super) fn block_ranges(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let ranges = value.ranges()?;
    for (low, high) in ranges.iter().flatten() {
        if *low == 0 || *high > LARGEST_BLOCK {
            return Err(format!("is not within 1 to {LARGEST_BLOCK}"));
        }
    }
    merge(&mut draft.ranges, ranges);
    Ok(())
}

/// Maximum number of sizes in a `bssplit`, as in fio; every job has a copy of those in the options for all jobs. The
/// syntax is `4k/60:8k/40`, for each direction after a comma; entries without a percentage share the rest.
const MOST_SPLITS: usize = 64;

pub(super) fn block_split(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let parts: Vec<&str> = value.text()?.split(',').collect();
    if parts.len() > DIRECTIONS {
        return Err("has more values than read,write,trim".into());
    }
    for direction in 0..DIRECTIONS {
        let part = parts.get(direction).or(parts.last()).copied().unwrap_or("");
        if part.is_empty() {
            continue;
        }
        let mut split = Vec::new();
        for entry in part.split(':') {
            let (bytes, percent) = match entry.split_once('/') {
                Some((bytes, percent)) => (bytes, percent.trim()),
                None => (entry, ""),
            };
            let bytes = value::number(bytes, value.decimal)?;
            if bytes == 0 || bytes > LARGEST_BLOCK {
                return Err(format!("is not within 1 to {LARGEST_BLOCK}"));
            }
            let percent = match percent {
                "" => None,
                percent => match percent.parse::<u32>() {
                    Ok(percent) if percent <= 100 => Some(percent),
                    _ => return Err(format!("has {percent:?} as a percentage")),
                },
            };
            split.push((bytes, percent));
            if split.len() > MOST_SPLITS {
                return Err(format!("has more than {MOST_SPLITS} sizes"));
            }
        }
        draft.splits[direction] = split;
    }
    Ok(())
}

pub(super) fn distribution(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let text = value.text()?;
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or("");
    draft.options.pattern.distribution = match name {
        "random" => Distribution::Random,
        "zipf" | "pareto" | "normal" => skewed(name, &parts.collect::<Vec<_>>())?,
        "zoned" => Distribution::Zoned(zones(&parts.collect::<Vec<_>>())?),
        "zoned_abs" => {
            return Err("not supported: zoned_abs; give the zones in percent with zoned".into());
        }
        _ => return Err("is none of random, zipf, pareto, normal, zoned".into()),
    };
    Ok(())
}

fn skewed(name: &str, arguments: &[&str]) -> Read<Distribution> {
    if arguments.len() > 2 {
        return Err("has too many arguments".into());
    }
    let first = arguments.first().map(|text| value::float(text)).transpose()?;
    let center = arguments.get(1).map(|text| value::float(text)).transpose()?;
    if center.is_some_and(|center| !(0.0..=1.0).contains(&center)) {
        return Err("has its centre outside 0 to 1".into());
    }
    match name {
        "zipf" => {
            let theta = first.unwrap_or(DEFAULT_THETA);
            if theta <= 0.0 || (theta - 1.0).abs() < f64::EPSILON {
                return Err("has a theta that is not positive, or is 1".into());
            }
            Ok(Distribution::Zipf(theta, center))
        }
        "pareto" => {
            let power = first.unwrap_or(DEFAULT_POWER);
            if power <= 0.0 || power >= 1.0 {
                return Err("is not between 0 and 1".into());
            }
            Ok(Distribution::Pareto(power, center))
        }
        _ => {
            let deviation = first.unwrap_or(0.0);
            if !(0.0..100.0).contains(&deviation) {
                return Err("has a deviation outside 0 to 100 percent".into());
            }
            Ok(Distribution::Normal(deviation, center))
        }
    }
}

/// fio(1), `random_distribution`: without an argument zipf takes 1.1 and pareto 0.2.
const DEFAULT_THETA: f64 = 1.1;
const DEFAULT_POWER: f64 = 0.2;

/// Maximum number of zones, as in fio.
const MOST_ZONES: usize = 256;

fn zones(parts: &[&str]) -> Read<Vec<(u32, u32)>> {
    let mut zones = Vec::new();
    for part in parts {
        let numbers = part.split_once('/').and_then(|(share, size)| Some((share.parse().ok()?, size.parse().ok()?)));
        let Some((share, size)) = numbers.filter(|(share, size)| *share <= 100 && *size <= 100) else {
            return Err(format!("has a zone {part:?}, not percent/percent"));
        };
        zones.push((share, size));
        if zones.len() > MOST_ZONES {
            return Err(format!("has more than {MOST_ZONES} zones"));
        }
    }
    let total = |pick: fn(&(u32, u32)) -> u32| zones.iter().map(pick).sum::<u32>();
    let (shares, sizes) = (total(|zone| zone.0), total(|zone| zone.1));
    if shares != 100 || sizes != 100 {
        return Err(format!(
            "adds up to {shares} percent of the I/Os over {sizes} percent of the region, not 100 and 100"
        ));
    }
    Ok(zones)
}

pub(super) fn random_percent(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    for (old, new) in draft.options.pattern.random_percent.iter_mut().zip(value.ints()?) {
        if let Some(new) = new {
            *old = u32::try_from(new).map_err(|_| "is above 100")?;
        }
    }
    Ok(())
}

pub(super) fn file_service(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let text = value.text()?;
    let (name, argument) = halves(text, ':');
    let service = match name {
        "roundrobin" => FileService::RoundRobin,
        "random" => FileService::Random,
        "sequential" => FileService::Sequential,
        "zipf" | "pareto" | "normal" | "gauss" => {
            return Err(format!("not supported: file_service_type={name}; use roundrobin, random or sequential"));
        }
        _ => return Err("is none of roundrobin, random, sequential".into()),
    };
    let every = match argument {
        None => 1,
        Some(argument) => u32::try_from(value::number(argument, value.decimal)?).map_err(|_| "is too large")?.max(1),
    };
    draft.options.files.service = (service, every);
    Ok(())
}

pub(super) fn verify(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let name = value.text()?;
    draft.options.payload.verify = match name {
        "0" => Verify::None,
        "crc32c" | "crc32c-intel" => Verify::Crc32c,
        "pattern" => Verify::Pattern,
        "md5" | "crc64" | "crc32" | "crc16" | "crc7" | "sha1" | "sha256" | "sha512" | "sha3-224" | "sha3-256"
        | "sha3-384" | "sha3-512" | "xxhash" | "meta" | "null" => {
            return Err(format!("not supported: verify={name}; use crc32c or pattern"));
        }
        _ => return Err("is neither crc32c nor pattern".into()),
    };
    Ok(())
}

pub(super) fn verify_pattern(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let (bytes, offsets) = pattern_with_offsets(value.text()?)?;
    draft.options.payload.verify_pattern = Some(bytes);
    draft.options.payload.verify_pattern_offsets = offsets;
    Ok(())
}

/// Content in fio's syntax: `"text"`, `0x` and hexadecimal digits, decimal numbers (in as few bytes as possible,
/// little-endian), or `'FILE'` for the first bytes of a file, in any sequence.
pub(super) fn pattern(text: &str) -> Read<Vec<u8>> {
    let (bytes, offsets) = pattern_with_offsets(text)?;
    if offsets.is_empty() { Ok(bytes) } else { Err("has a %o, which is possible only in verify_pattern".into()) }
}

/// As [`pattern`], plus `%o` for eight bytes of the I/O's offset; also returns where these are.
pub(super) fn pattern_with_offsets(text: &str) -> Read<(Vec<u8>, Vec<u32>)> {
    let mut bytes = Vec::new();
    let mut offsets = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        rest = if let Some(string) = rest.strip_prefix('"') {
            quoted(string, &mut bytes)?
        } else if let Some(name) = rest.strip_prefix('\'') {
            content_of(name, &mut bytes)?
        } else if let Some(behind) = rest.strip_prefix("%o") {
            offsets.push(bytes.len() as u32);
            bytes.extend_from_slice(&[0; 8]);
            behind
        } else if let Some(digits) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
            hexadecimal(digits, &mut bytes)?
        } else {
            decimal(rest, &mut bytes)?
        };
        if bytes.len() > LONGEST_PATTERN {
            return Err(format!("is longer than {LONGEST_PATTERN} bytes"));
        }
        rest = rest.trim_start();
    }
    if bytes.is_empty() {
        return Err("has no bytes".into());
    }
    Ok((bytes, offsets))
}

/// Reads as much of a file as a pattern can hold.
fn content_of<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Read<&'a str> {
    use std::io::Read as _;
    let Some((name, rest)) = text.split_once('\'') else {
        return Err("has an apostrophe without its counterpart".into());
    };
    let room = LONGEST_PATTERN.saturating_sub(bytes.len()) as u64;
    bounded::open(Path::new(name), bounded::CONTENT)
        .and_then(|file| file.take(room).read_to_end(bytes))
        .map_err(|error| format!("names {name}, which cannot be read: {error}"))?;
    Ok(rest)
}

/// Maximum length of a pattern, as in fio.
const LONGEST_PATTERN: usize = 512;

fn quoted<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Read<&'a str> {
    match text.split_once('"') {
        Some((string, rest)) => {
            bytes.extend_from_slice(string.as_bytes());
            Ok(rest)
        }
        None => Err("has a quotation mark without its counterpart".into()),
    }
}

fn hexadecimal<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Read<&'a str> {
    let end = text.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return Err("has no hexadecimal digits after 0x".into());
    }
    let even = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
    for place in (0..even.len()).step_by(2) {
        bytes.push(u8::from_str_radix(&even[place..place + 2], 16).map_err(|_| "is not hexadecimal")?);
    }
    Ok(rest)
}

fn decimal<'a>(text: &'a str, bytes: &mut Vec<u8>) -> Read<&'a str> {
    let digits_at = usize::from(text.starts_with(['-', '+']));
    let mut end =
        text[digits_at..].find(|letter: char| !letter.is_ascii_digit()).map_or(text.len(), |end| end + digits_at);
    // In `-120xdeadface` the hexadecimal number starts with the last 0.
    if end > digits_at + 1 && text[end..].starts_with(['x', 'X']) && text[..end].ends_with('0') {
        end -= 1;
    }
    if end == digits_at {
        return Err(format!("cannot be read from {text:?} on; use \"text\", 0xhex or a number"));
    }
    let number: i32 = text[..end].parse().map_err(|_| "is too large")?;
    let whole = number.to_le_bytes();
    // Four bytes for a negative number, otherwise as few as possible.
    let fewest =
        if number < 0 { whole.len() } else { whole.iter().rposition(|byte| *byte != 0).map_or(1, |last| last + 1) };
    bytes.extend_from_slice(&whole[..fewest]);
    Ok(&text[end..])
}

pub(super) fn pass_errors(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let (read, write, verify) = match value.choice()?.0 {
        "read" => (true, false, false),
        "write" => (false, true, false),
        "io" => (true, true, false),
        "verify" => (false, false, true),
        "all" | "1" => (true, true, true),
        _ => (false, false, false),
    };
    draft.options.pace.pass_errors = PassErrors { read, write, verify };
    Ok(())
}

pub(super) fn steady(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let text = value.text()?;
    let (name, limit) = halves(text, ':');
    let (metric, slope) = match name {
        "iops" => (SteadyMetric::Iops, false),
        "iops_slope" => (SteadyMetric::Iops, true),
        "bw" => (SteadyMetric::Bandwidth, false),
        "bw_slope" => (SteadyMetric::Bandwidth, true),
        "lat" => (SteadyMetric::Latency, false),
        "lat_slope" => (SteadyMetric::Latency, true),
        _ => {
            return Err("is none of iops, iops_slope, bw, bw_slope, lat, lat_slope".into());
        }
    };
    let Some(limit) = limit else {
        return Err("needs a limit after a colon, such as iops:2%".into());
    };
    let (limit, percent) = match limit.strip_suffix('%') {
        Some(percent) => (value::float(percent)?, true),
        None if metric == SteadyMetric::Bandwidth => {
            let bytes = value::number(limit, value.decimal)?;
            (bytes as f64, false)
        }
        None if metric == SteadyMetric::Latency && value::float(limit).is_err() => {
            (value::time(limit, 1)? as f64, false)
        }
        None => (value::float(limit)?, false),
    };
    if limit < 0.0 {
        return Err("has a negative limit".into());
    }
    draft.options.pace.steady = Some(SteadyOptions { metric, slope, limit, percent, text: text.to_owned() });
    Ok(())
}

/// Maximum number of percentiles, as in fio.
const MOST_PERCENTILES: usize = 20;

pub(super) fn percentiles(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let mut list = value.floats()?;
    if list.len() > MOST_PERCENTILES {
        return Err(format!("has more than {MOST_PERCENTILES} numbers"));
    }
    if list.contains(&0.0) {
        return Err("has a 0; percentiles are above 0 and up to 100".into());
    }
    list.sort_by(f64::total_cmp);
    draft.options.measure.percentiles = list;
    Ok(())
}

pub(super) fn fewer_clock_reads(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    if value.on()? {
        let measure = &mut draft.options.measure;
        measure.no_lat = true;
        measure.no_clat = true;
        measure.no_slat = true;
        measure.no_bw = true;
    }
    Ok(())
}

pub(super) fn log_window(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let (mean, max) = match value.choice()?.0 {
        "max" => (false, true),
        "both" => (true, true),
        _ => (true, false),
    };
    draft.options.measure.log_mean = mean;
    draft.options.measure.log_max = max;
    Ok(())
}

pub(super) fn log_maximum(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    let max = value.on()?;
    draft.options.measure.log_mean = !max;
    draft.options.measure.log_max = max;
    Ok(())
}

/// `latency_percentile`: a single number.
pub(super) fn latency_percentile(draft: &mut Draft, value: &Value<'_>) -> Read<()> {
    match value.floats()?[..] {
        [percent] => draft.options.pace.latency.percentile = percent,
        _ => return Err("takes one number".into()),
    }
    Ok(())
}
