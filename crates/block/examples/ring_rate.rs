//! What the ring itself can do on this host: `ring_rate DIRECTORY [reads|nops|durable|frames] [name=value]...`
//!
//! - `reads`: random 8 KiB reads into pool frames from a file it makes and removes; reads/s and CPU per read.
//!   `depth=32` requests in flight, `batch=1` completions waited for at least, `seconds=5`, `mib=1024` size of
//!   the file, `chunk=DEPTH` requests queued before they are submitted at the latest, `registered=1` (0: buffers the kernel does not know), `backend=uring|helpers`, `waker=0` (1: as an engine
//!   with wake-ups waits).
//! - `nops`: requests that do nothing, through the same code: the floor. `depth`, `seconds`.
//! - `durable`: one 4 KiB write after the other, made durable in four ways; median latency and CPU per write.
//! - `frames`: looks at random frames of a pool of `mib` MiB in memory: one header word and one row word each, by
//!   optimistic reads, by optimistic reads with the frames ahead prefetched, and with pins; millions of looks/s of
//!   `threads`. `one=1`: all threads look at one frame.
//!
//! The CPU is the process's, so that work the kernel does in its own threads for the ring counts, too.

#![expect(clippy::print_stdout, reason = "an example is a program: printing is its purpose")]
#![expect(unsafe_code, reason = "requests that do nothing go to the bare ring")]

use assay_block::{Backend, CompletionLease, DirectFile, OpenMode, Pool, PoolOptions, Ring, RingOptions};
use io_uring::{IoUring, opcode, squeue, types};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const BLOCK: usize = 8192;
const LOG_BLOCK: usize = 4096;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(
        arguments.next().ok_or("usage: ring_rate DIRECTORY [reads|nops|durable|frames] [name=value]...")?,
    );
    let what = arguments.next().unwrap_or_else(|| "reads".to_owned());
    let options = Options { given: arguments.collect() };
    let path = directory.join(format!("ring_rate.{}", std::process::id()));
    let outcome = match what.as_str() {
        "reads" => reads(&path, &options),
        "nops" => nops(&path, &options),
        "durable" => durable(&path, &options),
        "frames" => frames(&options),
        other => Err(format!("no measurement is called {other}").into()),
    };
    // The file may not have come into being.
    let _ = std::fs::remove_file(&path);
    outcome
}

struct Options {
    given: Vec<String>,
}

impl Options {
    fn number(&self, name: &str, default: u64) -> Outcome<u64> {
        match self.text(name) {
            Some(value) => Ok(value.parse()?),
            None => Ok(default),
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.given.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='))
    }
}

/// CPU time of the process so far.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

/// A small generator (xorshift64*), enough to spread offsets.
struct Spread(u64);

impl Spread {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * u128::from(bound)) >> 64) as u64
    }
}

fn ring_options(files: Vec<Arc<DirectFile>>, entries: u32, pool: Option<Arc<Pool>>, backend: Backend) -> RingOptions {
    RingOptions { entries, buffers: 16, buffer_bytes: 1 << 20, pool, files, backend, helpers: 16 }
}

/// Makes the file and writes all of it, so that no read is answered from what was never written.
fn written_file(path: &Path, bytes: u64) -> Outcome<Arc<DirectFile>> {
    let file = Arc::new(DirectFile::create_new(path, true)?);
    file.allocate(bytes)?;
    let mut ring = Ring::open(ring_options(vec![Arc::clone(&file)], 16, None, Backend::Auto))?;
    let mut spread = Spread(0x9e37_79b9_7f4a_7c15);
    let mut at = 0;
    while at < bytes || ring.in_flight() > 0 {
        while at < bytes
            && let Some(mut buffer) = ring.take_buffer()
        {
            for chunk in buffer.chunks_exact_mut(8) {
                chunk.copy_from_slice(&spread.below(u64::MAX).to_ne_bytes());
            }
            let len = buffer.len().min((bytes - at) as usize);
            ring.write_buffer(0, at, buffer, len, false, 0)
                .map_err(|_| "the ring is full although it has 16 entries")?;
            at += len as u64;
        }
        ring.submit(1, Duration::from_secs(10))?;
        while let Some(completion) = ring.pop() {
            completion.result?;
        }
    }
    file.sync_data()?;
    Ok(file)
}

fn reads(path: &Path, options: &Options) -> Outcome<()> {
    let depth = options.number("depth", 32)?;
    let batch = options.number("batch", 1)?;
    let seconds = options.number("seconds", 5)?;
    let blocks = options.number("mib", 1024)? * (1 << 20) / BLOCK as u64;
    let backend = if options.text("backend") == Some("helpers") { Backend::Helpers } else { Backend::Uring };
    let file = written_file(path, blocks * BLOCK as u64)?;
    let pool = Pool::new(&PoolOptions { frames: depth as usize, frame_bytes: BLOCK, huge_pages: false })?;
    let registered = options.number("registered", 1)? != 0;
    if !registered {
        // Without the capability and with this limit the rings fit but registration does not, as for an ordinary user.
        let limit = rustix::process::Rlimit { current: Some(128 << 10), maximum: Some(128 << 10) };
        rustix::process::setrlimit(rustix::process::Resource::Memlock, limit)?;
        drop_lock_capability()?;
    }
    let mut ring = Ring::open(ring_options(vec![file], depth as u32, Some(Arc::clone(&pool)), backend))?;
    let _waker = (options.number("waker", 0)? != 0).then(|| ring.waker());
    println!("{:?}", ring.features());
    let mut spread = Spread(42);
    let chunk = options.number("chunk", depth)?;
    let mut queued = 0;
    let mut start = |ring: &mut Ring, frame| -> Outcome<()> {
        let offset = spread.below(blocks) * BLOCK as u64;
        ring.read_frame(0, offset, frame, 0).map_err(|_| "the ring is full although a request has just finished")?;
        queued += 1;
        if queued % chunk == 0 {
            ring.submit(0, Duration::ZERO)?;
        }
        Ok(())
    };
    for frame in 0..depth as u32 {
        start(&mut ring, pool.try_exclusive(frame).ok_or("a new pool has free frames")?)?;
    }
    let (begun, cpu_begun) = (Instant::now(), cpu());
    let end = begun + Duration::from_secs(seconds);
    while Instant::now() < end {
        ring.submit(batch as u32, Duration::from_secs(10))?;
        while let Some(completion) = ring.pop() {
            completion.result?;
            if let CompletionLease::Frame(frame) = completion.lease {
                start(&mut ring, frame)?;
            }
        }
    }
    let (elapsed, used) = (begun.elapsed(), cpu() - cpu_begun);
    let counters = ring.counters();
    let count = counters.read_requests as f64;
    println!(
        "reads depth {depth} batch {batch}: {:.0}/s, {:.2} us CPU per read, {:.2} submits per read, {:.0} % of a CPU",
        count / elapsed.as_secs_f64(),
        used.as_secs_f64() * 1e6 / count,
        counters.submits as f64 / count,
        used.as_secs_f64() / elapsed.as_secs_f64() * 100.0
    );
    Ok(())
}

fn drop_lock_capability() -> Outcome<()> {
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    let mut sets = capabilities(None)?;
    sets.effective.remove(CapabilitySet::IPC_LOCK);
    sets.permitted.remove(CapabilitySet::IPC_LOCK);
    Ok(set_capabilities(None, sets)?)
}

fn nops(path: &Path, options: &Options) -> Outcome<()> {
    let depth = options.number("depth", 32)?;
    let seconds = options.number("seconds", 3)?;
    let file = Arc::new(DirectFile::create_new(path, false)?);
    let mut ring = Ring::open(ring_options(vec![file], depth as u32, None, Backend::Uring))?;
    let begun = Instant::now();
    let end = begun + Duration::from_secs(seconds);
    while Instant::now() < end {
        for _ in 0..16 {
            while ring.in_flight() < depth as usize {
                ring.nop(0).map_err(|()| "the ring is full below its depth")?;
            }
            ring.submit(depth as u32, Duration::from_secs(10))?;
            while let Some(completion) = ring.pop() {
                completion.result?;
            }
        }
    }
    let count = ring.counters().nops as f64;
    println!("nops depth {depth}: {:.2} million/s", count / begun.elapsed().as_secs_f64() / 1e6);
    Ok(())
}

/// How a frame is looked at.
#[derive(Debug, Clone, Copy)]
enum Look {
    Optimistic,
    Prefetched,
    Pinned,
}

fn frames(options: &Options) -> Outcome<()> {
    let count = (options.number("mib", 64)? << 20) as usize / BLOCK;
    let threads = options.number("threads", 1)?;
    let seconds = options.number("seconds", 2)?;
    let reach = if options.number("one", 0)? != 0 { 1 } else { count as u64 };
    let pool = Pool::new(&PoolOptions { frames: count, frame_bytes: BLOCK, huge_pages: true })?;
    println!("{count} frames, {:?} bytes in huge pages", pool.huge_pages_bytes());
    for look in [Look::Optimistic, Look::Prefetched, Look::Pinned] {
        let (begun, cpu_begun) = (Instant::now(), cpu());
        let end = begun + Duration::from_secs(seconds);
        let looks: u64 = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|seed| {
                    scope.spawn({
                        let pool = &pool;
                        move || look_until(pool, look, reach, seed + 1, end)
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap_or(0)).sum()
        });
        println!(
            "{look:?}, {threads} threads: {:.1} million/s, {:.1} million per CPU second",
            looks as f64 / begun.elapsed().as_secs_f64() / 1e6,
            looks as f64 / (cpu() - cpu_begun).as_secs_f64() / 1e6
        );
    }
    Ok(())
}

fn look_until(pool: &Pool, look: Look, reach: u64, seed: u64, end: Instant) -> u64 {
    const GROUP: usize = 64;
    let mut spread = Spread(seed);
    let mut coming = [0_u32; GROUP];
    let (mut looks, mut sum) = (0, 0_u64);
    while Instant::now() < end {
        for _ in 0..64 {
            for frame in &mut coming {
                *frame = spread.below(reach) as u32;
                if matches!(look, Look::Prefetched) {
                    pool.prefetch_state(*frame);
                    pool.prefetch(*frame, 0);
                    pool.prefetch(*frame, 2048);
                }
            }
            for &frame in &coming {
                let pin = matches!(look, Look::Pinned).then(|| pool.try_shared(frame)).flatten();
                if let Some(version) = pool.version(frame) {
                    let seen = pool.word(frame, 0).wrapping_add(pool.word(frame, 256));
                    if pool.validate(frame, version) {
                        sum = sum.wrapping_add(seen);
                        looks += 1;
                    }
                }
                if let Some(pin) = pin {
                    pool.unpin(pin);
                }
            }
        }
    }
    std::hint::black_box(sum);
    looks
}

fn durable(path: &Path, options: &Options) -> Outcome<()> {
    let count = options.number("count", 4000)? as usize;
    let log_bytes = options.number("mib", 64)? << 20;
    let file = written_file(path, log_bytes)?;
    let write_only = OpenMode { read: true, write: true, direct: true };
    let mut positions = (0..log_bytes).step_by(LOG_BLOCK).cycle();
    let mut next = move || positions.next().unwrap_or(0);
    for _ in 0..2 {
        let mut ring = Ring::open(ring_options(vec![Arc::clone(&file)], 8, None, Backend::Uring))?;
        time("ring: write_buffer(durable), RWF_DSYNC ", count, || {
            let buffer = ring.take_buffer().ok_or("no buffer")?;
            ring.write_buffer(0, next(), buffer, LOG_BLOCK, true, 0).map_err(|_| "the ring is full")?;
            finish(&mut ring)
        })?;
        let mut linked = Linked::new(&file)?;
        time("io_uring: write linked to fdatasync       ", count, || linked.write(next()))?;
        time("ring: write_buffer, then sync_file        ", count, || {
            let buffer = ring.take_buffer().ok_or("no buffer")?;
            ring.write_buffer(0, next(), buffer, LOG_BLOCK, false, 0).map_err(|_| "the ring is full")?;
            finish(&mut ring)?;
            ring.sync_file(0, 0).map_err(|()| "the ring is full")?;
            finish(&mut ring)
        })?;
        let blocking = DirectFile::open(path, write_only)?;
        let memory = Pool::new(&PoolOptions { frames: 1, frame_bytes: LOG_BLOCK, huge_pages: false })?;
        let pin = memory.try_shared(0).ok_or("a new pool has free frames")?;
        let data = memory.bytes(&pin);
        time("blocking: pwritev2 RWF_DSYNC              ", count, || {
            let flags = rustix::io::ReadWriteFlags::DSYNC;
            rustix::io::pwritev2(&blocking, &[std::io::IoSlice::new(data)], next(), flags)?;
            Ok(())
        })?;
        time("blocking: pwrite, fdatasync               ", count, || {
            rustix::io::pwrite(&blocking, data, next())?;
            rustix::fs::fdatasync(&blocking)?;
            Ok(())
        })?;
        memory.unpin(pin);
        time("ring: write_buffer, not durable           ", count, || {
            let buffer = ring.take_buffer().ok_or("no buffer")?;
            ring.write_buffer(0, next(), buffer, LOG_BLOCK, false, 0).map_err(|_| "the ring is full")?;
            finish(&mut ring)
        })?;
    }
    Ok(())
}

fn finish(ring: &mut Ring) -> Outcome<()> {
    loop {
        if let Some(completion) = ring.pop() {
            completion.result?;
            return Ok(());
        }
        ring.submit(1, Duration::from_secs(10))?;
    }
}

fn time(name: &str, count: usize, mut write: impl FnMut() -> Outcome<()>) -> Outcome<()> {
    let mut latencies = Vec::with_capacity(count);
    let cpu_begun = cpu();
    for _ in 0..count {
        let begun = Instant::now();
        write()?;
        latencies.push(begun.elapsed());
    }
    let used = cpu() - cpu_begun;
    latencies.sort_unstable();
    println!(
        "{name} p50 {:>6.1} us  p99 {:>6.1} us  CPU {:>5.1} us",
        latencies[count / 2].as_secs_f64() * 1e6,
        latencies[count * 99 / 100].as_secs_f64() * 1e6,
        used.as_secs_f64() * 1e6 / count as f64
    );
    Ok(())
}

/// A write with a linked fdatasync, which the ring does not offer: to compare.
struct Linked {
    ring: IoUring,
    file: Arc<DirectFile>,
    memory: Arc<Pool>,
}

impl Linked {
    fn new(file: &Arc<DirectFile>) -> Outcome<Self> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun();
        let memory = Pool::new(&PoolOptions { frames: 1, frame_bytes: LOG_BLOCK, huge_pages: false })?;
        Ok(Self { ring: builder.build(8)?, file: Arc::clone(file), memory })
    }

    fn write(&mut self, offset: u64) -> Outcome<()> {
        let descriptor = types::Fd(self.file.as_fd().as_raw_fd());
        let pin = self.memory.try_shared(0).ok_or("the frame is only read")?;
        let data = self.memory.bytes(&pin).as_ptr();
        let write = opcode::Write::new(descriptor, data, LOG_BLOCK as u32).offset(offset).build();
        let sync = opcode::Fsync::new(descriptor).flags(types::FsyncFlags::DATASYNC).build();
        let entries = [write.flags(squeue::Flags::IO_LINK), sync];
        // SAFETY: the frame is only read by the kernel, and `self.memory` outlives both requests, which are waited for below.
        unsafe { self.ring.submission().push_multiple(&entries)? };
        self.ring.submit_and_wait(2)?;
        self.memory.unpin(pin);
        for entry in self.ring.completion() {
            if entry.result() < 0 {
                return Err(std::io::Error::from_raw_os_error(-entry.result()).into());
            }
        }
        Ok(())
    }
}
