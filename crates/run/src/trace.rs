//! The optional operation trace: one row per operation, handed in batches from the
//! driver threads to one writer. It exists for tests and for studies of access
//! patterns; it slows the run, and a full queue makes the driver threads wait.

use crate::engine::Op;
use assay_measure::clock::Ns;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Rows of one batch.
const BATCH_ROWS: usize = 4096;
/// Batches under way between the threads and the writer.
const BATCHES_MAX: usize = 16;

/// One operation that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Session, from 1.
    pub session: u32,
    /// Number of the operation within its session, from 0.
    pub i: u64,
    /// Start, ns after the gate.
    pub start_ns: Ns,
    /// What was asked.
    pub op: Op,
    /// Its kind by name.
    pub kind: &'static str,
    /// Rows touched; `None` if it failed.
    pub rows: Option<u64>,
    /// From start to end, ns.
    pub service_ns: Ns,
    /// From intended start to end, ns.
    pub response_ns: Ns,
    /// Keys drawn from the hot window.
    pub hot_spot: bool,
    /// Redirected to schema 1.
    pub hot_schema: bool,
    /// Pause taken before it, ns; `None` if none was due.
    pub think_ns: Option<Ns>,
}

/// Receives the rows, in batches, each session's in order.
pub trait Sink: Send {
    /// Takes a batch.
    ///
    /// # Errors
    /// When the rows could not be kept; the trace ends there, the run goes on.
    fn rows(&mut self, rows: &[Row]) -> io::Result<()>;

    /// No more rows will come.
    ///
    /// # Errors
    /// When the last rows could not be kept.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes comma-separated lines with a header.
#[derive(Debug)]
pub struct Csv<W: Write + Send> {
    out: io::BufWriter<W>,
}

impl<W: Write + Send> Csv<W> {
    /// Writes the header line.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(out: W) -> io::Result<Self> {
        let mut out = io::BufWriter::with_capacity(1 << 20, out);
        writeln!(
            out,
            "session,i,start_ns,kind,schema,first_key,width,rows,service_ns,response_ns,hot_spot,hot_schema,think_ns,stamp"
        )?;
        Ok(Self { out })
    }
}

impl<W: Write + Send> Sink for Csv<W> {
    fn rows(&mut self, rows: &[Row]) -> io::Result<()> {
        rows.iter().try_for_each(|row| write_row(&mut self.out, row))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Empty fields stand for what does not apply: keys of a scan, rows of a failed operation.
fn write_row(out: &mut impl Write, row: &Row) -> io::Result<()> {
    let (schema, range, stamp) = match row.op {
        Op::Select { schema, first_key, width } => (schema, Some((first_key, width)), None),
        Op::Update { schema, first_key, width, stamp, .. } => (schema, Some((first_key, width)), Some(stamp)),
        Op::Scan { schema } => (schema, None, None),
        Op::Call { number, .. } => (row.op.schema(), None, Some(number)),
    };
    let kind = row.kind;
    write!(out, "{},{},{},{kind},{schema},", row.session, row.i, row.start_ns)?;
    match range {
        Some((first_key, width)) => write!(out, "{first_key},{width},")?,
        None => write!(out, ",,")?,
    }
    match row.rows {
        Some(rows) => write!(out, "{rows},")?,
        None => write!(out, ",")?,
    }
    let (spot, schema) = (u8::from(row.hot_spot), u8::from(row.hot_schema));
    write!(out, "{},{},{spot},{schema},", row.service_ns, row.response_ns)?;
    match row.think_ns {
        Some(ns) => write!(out, "{ns},")?,
        None => write!(out, ",")?,
    }
    match stamp {
        Some(stamp) => writeln!(out, "{stamp:016x}"),
        None => writeln!(out),
    }
}

/// One driver thread's end of the trace.
#[derive(Debug)]
pub(crate) struct Buffer {
    rows: Vec<Row>,
    sender: SyncSender<Vec<Row>>,
}

impl Buffer {
    pub(crate) fn new(sender: SyncSender<Vec<Row>>) -> Self {
        Self { rows: Vec::with_capacity(BATCH_ROWS), sender }
    }

    pub(crate) fn push(&mut self, row: Row) {
        self.rows.push(row);
        if self.rows.len() == BATCH_ROWS {
            self.flush();
        }
    }

    /// Hands over what there is. A writer that is gone has said why; the rows are dropped.
    pub(crate) fn flush(&mut self) {
        let full = std::mem::replace(&mut self.rows, Vec::with_capacity(BATCH_ROWS));
        let _ = self.sender.send(full);
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.rows.is_empty() {
            self.flush();
        }
    }
}

/// The bounded queue between the driver threads and the writer.
pub(crate) fn queue() -> (SyncSender<Vec<Row>>, Receiver<Vec<Row>>) {
    sync_channel(BATCHES_MAX)
}

/// Writes until every sender is gone. After an error it keeps emptying the queue, so
/// that no driver thread waits for a writer that cannot write.
pub(crate) fn write_all(sink: &mut dyn Sink, queue: &Receiver<Vec<Row>>) -> io::Result<()> {
    let mut outcome = Ok(());
    while let Ok(rows) = queue.recv() {
        if outcome.is_ok() {
            outcome = sink.rows(&rows);
        }
    }
    outcome.and_then(|()| sink.finish())
}
