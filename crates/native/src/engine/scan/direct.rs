//! A scan past the cache: streams of multi-block reads into private memory.
//!
//! The table is cut into one range per stream; each stream keeps several requests in
//! flight, and whatever arrives is verified at once, in any order, so that the device
//! never waits for the session. A wait is charged only where nothing has arrived.

use crate::block_format::{self, HEADER_BYTES, Kind};
use crate::engine::context::{DirectRead, Shell};
use crate::engine::counters::{C, Event, Io};
use crate::engine::instance::failed;
use crate::engine::session::Session;
use assay_block::Buffer;
use assay_run::engine::OpError;
use std::rc::Rc;

/// One part of the table, read front to back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stream {
    next: u64,
    end: u64,
    in_flight: usize,
}

/// The blocks of one request.
#[derive(Clone, Copy, Debug)]
struct Piece {
    stream: usize,
    from: u64,
    blocks: u64,
}

/// Where a scan stands.
struct Progress {
    schema: u32,
    streams: Vec<Stream>,
    /// Requests in flight by the number in their tag.
    pieces: Vec<Option<Piece>>,
    in_flight: usize,
    /// The stream whose turn it is to begin a request.
    turn: usize,
    error: Option<OpError>,
}

/// Cuts `blocks` into ranges whose borders lie between requests of `request` blocks. Streams beyond the
/// number of requests get nothing.
fn ranges(blocks: u64, streams: u64, request: u64) -> Vec<Stream> {
    let requests = blocks.div_ceil(request);
    let border = |k: u64| (requests * k / streams * request).min(blocks);
    (0..streams)
        .map(|k| Stream { next: border(k), end: border(k + 1), in_flight: 0 })
        .filter(|stream| stream.next < stream.end)
        .collect()
}

impl Progress {
    fn new(schema: u32, streams: Vec<Stream>) -> Self {
        Self { schema, streams, pieces: Vec::new(), in_flight: 0, turn: 0, error: None }
    }

    /// The next stream that may begin a request, in turn; `None` once there is an error.
    fn stream_with_room(&mut self, depth: usize) -> Option<usize> {
        if self.error.is_some() {
            return None;
        }
        let n = self.streams.len();
        let found = (0..n).map(|i| (self.turn + i) % n).find(|i| {
            let stream = &self.streams[*i];
            stream.next < stream.end && stream.in_flight < depth
        })?;
        self.turn = found + 1;
        Some(found)
    }

    /// Notes a request and returns its number.
    fn begin(&mut self, piece: Piece) -> u32 {
        let stream = &mut self.streams[piece.stream];
        stream.next += piece.blocks;
        stream.in_flight += 1;
        self.in_flight += 1;
        let free = self.pieces.iter().position(Option::is_none);
        let number = free.unwrap_or_else(|| {
            self.pieces.push(None);
            self.pieces.len() - 1
        });
        self.pieces[number] = Some(piece);
        number as u32
    }

    fn end(&mut self, number: u32) -> Option<Piece> {
        let piece = self.pieces.get_mut(number as usize)?.take()?;
        self.streams[piece.stream].in_flight -= 1;
        self.in_flight -= 1;
        Some(piece)
    }
}

impl Session<'_> {
    /// Reads and verifies every block of the scan table without the cache.
    pub(super) async fn scan_direct(&mut self, schema: u32, blocks: u64) -> Result<(), OpError> {
        let shell = Rc::clone(&self.shell);
        let options = &shell.instance.options;
        let streams = ranges(blocks, options.scan_streams as u64, options.multiblock as u64);
        let mut progress = Progress::new(schema, streams);
        loop {
            self.top_up(&mut progress);
            let read = shell.slot(self.tag).direct.borrow_mut().pop_front();
            if let Some(read) = read {
                self.finish_piece(&mut progress, read);
            } else if progress.in_flight > 0 {
                let ns = shell.wait(self.tag, Event::DirectPathRead).await;
                shell.c.io_wait(Io::DirectReadData, ns);
            } else if progress.stream_with_room(options.scan_depth).is_some() {
                // Nothing under way and yet something to do: other sessions have all buffers.
                shell.buffer_queue.borrow_mut().push_back(self.tag);
                shell.wait(self.tag, Event::DirectPathRead).await;
            } else {
                return progress.error.map_or(Ok(()), Err);
            }
        }
    }

    /// Begins requests while streams have room and there are buffers. Beyond its first, a session takes no
    /// buffer that another waits for.
    fn top_up(&self, progress: &mut Progress) {
        let shell = &self.shell;
        let options = &shell.instance.options;
        loop {
            if progress.in_flight > 0 && !shell.buffer_queue.borrow().is_empty() {
                return;
            }
            let turn = progress.turn;
            let Some(stream) = progress.stream_with_room(options.scan_depth) else {
                return;
            };
            let Some(buffer) = shell.take_scan_buffer(self.tag) else {
                progress.turn = turn;
                return;
            };
            self.read_piece(progress, stream, buffer);
        }
    }

    fn read_piece(&self, progress: &mut Progress, stream: usize, buffer: Buffer) {
        let shell = &self.shell;
        let instance = shell.instance;
        let Stream { next, end, .. } = progress.streams[stream];
        let first = instance.map.scan_page(progress.schema, next);
        let most = (instance.options.multiblock as u64).min(end - next);
        let blocks = instance.adjacent(first, most);
        let bytes = blocks as usize * instance.geometry.block_bytes as usize;
        let number = progress.begin(Piece { stream, from: next, blocks });
        shell.c.add(C::ReadsDirect, blocks);
        shell.c.add(C::ConsistentGets, blocks);
        shell.c.add(C::ReadRequests, 1);
        shell.c.add(C::ReadMultiBlock, u64::from(blocks > 1));
        shell.c.read_request(Io::DirectReadData, bytes as u64);
        shell.read_direct((self.tag, number), first, buffer, bytes);
        // The device must not wait until this session has verified what it has: that takes longer than a push.
        shell.push_now();
    }

    fn finish_piece(&self, progress: &mut Progress, read: DirectRead) {
        let DirectRead { number, buffer, result } = read;
        let checked = match progress.end(number) {
            Some(piece) => check(&self.shell, &buffer, &result, progress.schema, piece),
            None => Err(failed("bug", format!("a direct read ended that the scan did not begin, number {number}"))),
        };
        self.shell.give_scan_buffer(buffer);
        if let Err(error) = checked {
            progress.error.get_or_insert(error);
        }
    }
}

/// Verifies each block of a request and touches c2 of its row.
fn check(
    shell: &Shell<'_>,
    buffer: &[u8],
    result: &std::io::Result<u32>,
    schema: u32,
    piece: Piece,
) -> Result<(), OpError> {
    let instance = shell.instance;
    let block_bytes = instance.geometry.block_bytes as usize;
    let bytes = piece.blocks as usize * block_bytes;
    match result {
        Ok(read) if *read as usize == bytes => {}
        Ok(read) => {
            return Err(failed("io", format!("a direct read of {bytes} bytes returned {read}")));
        }
        Err(error) => {
            return Err(failed("io", format!("direct read of {bytes} bytes: {error}")));
        }
    }
    for (n, block) in buffer[..bytes].chunks_exact(block_bytes).enumerate() {
        let next = (n + 1) * block_bytes..((n + 2) * block_bytes).min(bytes);
        assay_block::prefetch(buffer.get(next).unwrap_or_default());
        let i = piece.from + n as u64;
        let page = instance.map.scan_page(schema, i);
        block_format::verify(block, Kind::Scan, page, schema, instance.data_set, instance.verify_reads())
            .map_err(|mismatch| failed("corrupt", format!("page {}: {mismatch}", page.0)))?;
        super::check_row(block_format::get(block, block_format::word::KEY), i, page)?;
        std::hint::black_box(block[HEADER_BYTES]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_cover_every_block_once(
            blocks in 1..10_000_u64, streams in 1..70_u64, request in 1..200_u64,
        ) {
            let parts = ranges(blocks, streams, request);
            prop_assert!(parts.len() as u64 <= streams);
            let mut at = 0;
            for part in &parts {
                prop_assert_eq!(part.next, at);
                prop_assert!(part.next < part.end);
                prop_assert!(part.next % request == 0);
                at = part.end;
            }
            prop_assert_eq!(at, blocks);
            // No stream has more than one request more than another.
            let requests = |part: &Stream| (part.end - part.next).div_ceil(request);
            if parts.len() as u64 == streams {
                let most = parts.iter().map(requests).max().unwrap();
                let least = parts.iter().map(requests).min().unwrap();
                prop_assert!(most - least <= 1);
            }
        }
    }

    #[test]
    fn streams_take_turns_and_keep_their_depth() {
        let mut progress = Progress::new(1, ranges(100, 2, 10));
        let mut order = Vec::new();
        while let Some(stream) = progress.stream_with_room(2) {
            let from = progress.streams[stream].next;
            progress.begin(Piece { stream, from, blocks: 10 });
            order.push(from);
        }
        assert_eq!(order, [0, 50, 10, 60]);
        assert_eq!(progress.in_flight, 4);
        assert_eq!(progress.end(1).unwrap().from, 50);
        assert!(progress.end(1).is_none());
        assert_eq!(progress.stream_with_room(2), Some(1));
        progress.error = Some(failed("io", String::new()));
        assert_eq!(progress.stream_with_room(2), None);
    }
}
