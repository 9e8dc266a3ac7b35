//! The units of work: the data set, one operation, one driver thread's share of the sessions.

use assay_measure::class::{SCAN, SELECT, UPDATE};
use assay_measure::clock::Ns;

/// A loaded data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSet {
    /// Schemas loaded, 1..=schemas.
    pub schemas: u32,
    /// Rows (= blocks) of each schema's table.
    pub scale_blocks: u64,
    /// Blocks of each schema's scan table.
    pub scan_blocks: u64,
    /// Block size.
    pub block_bytes: u64,
    /// Free text: format version, created, clean or not.
    pub state: String,
    /// The goal, in schemas, of a prepare that did not finish; `None` if none was interrupted.
    pub unfinished: Option<u32>,
}

/// One operation as the workload decided it. Keys and schemas count from 1. Ranges lie
/// inside 1..=SCALE; only under [`Edge::Wrap`](crate::plan::Edge::Wrap) may a range run
/// past SCALE, and then key SCALE + k means key k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read keys `first_key .. first_key + width` of the schema's table through its index.
    Select {
        /// Schema, from 1.
        schema: u32,
        /// First key, from 1.
        first_key: u64,
        /// Keys.
        width: u32,
    },
    /// Change the same kind of range.
    Update {
        /// Schema, from 1.
        schema: u32,
        /// First key, from 1.
        first_key: u64,
        /// Keys.
        width: u32,
        /// Differs for every (session, operation, run): 16 hexadecimal digits of it
        /// lead each changed column.
        stamp: u64,
        /// Commit after this operation (COMMIT_EVERY).
        commit: bool,
    },
    /// Read the schema's scan table end to end.
    Scan {
        /// Schema, from 1.
        schema: u32,
    },
    /// An operation of a workload with kinds of its own.
    Call {
        /// Its place in the workload's list of kinds.
        kind: u8,
        /// What its inputs are drawn from.
        number: u64,
    },
}

impl Op {
    /// SLOB's kinds by name.
    pub const KINDS: &[&str] = &[SELECT, UPDATE, SCAN];

    /// What it does, in words; `kinds` is the workload's list.
    #[must_use]
    pub fn told(&self, kinds: &[&str]) -> String {
        let kind = kinds.get(self.kind()).unwrap_or(&"operation");
        match *self {
            Self::Select { schema, first_key, width } | Self::Update { schema, first_key, width, .. } => {
                format!("{kind} of {width} keys from {first_key} on in schema {schema}")
            }
            Self::Scan { schema } => format!("{kind} of schema {schema}"),
            Self::Call { number, .. } => format!("{kind} (inputs {number})"),
        }
    }

    /// The place of its kind in the workload's list; SLOB's is [`KINDS`](Self::KINDS).
    #[must_use]
    pub fn kind(&self) -> usize {
        match self {
            Self::Select { .. } => 0,
            Self::Update { .. } => 1,
            Self::Scan { .. } => 2,
            Self::Call { kind, .. } => usize::from(*kind),
        }
    }

    /// The schema it works on, from 1.
    #[must_use]
    pub fn schema(&self) -> u32 {
        match *self {
            Self::Select { schema, .. } | Self::Update { schema, .. } | Self::Scan { schema } => schema,
            Self::Call { .. } => 1,
        }
    }
}

/// What a session does next: perhaps a pause, then an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Pause before the operation, ns; `None` if no think time is due. Not used under a rate.
    pub think_ns: Option<Ns>,
    /// Under a rate: when it is due, ns after the gate, where the workload says so; `None`: evenly spaced.
    pub start_ns: Option<Ns>,
    /// The operation.
    pub op: Op,
    /// Its keys were drawn from the hot window.
    pub hot_spot: bool,
    /// It was redirected to schema 1.
    pub hot_schema: bool,
}

/// The arguments of a driver thread when it opens its driver.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// This thread, from 0.
    pub thread: usize,
    /// Driver threads in all.
    pub threads: usize,
    /// For each tag: (session number from 1, home schema from 1).
    pub sessions: Vec<(u32, u32)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_told_in_words() {
        let select = Op::Select { schema: 2, first_key: 17, width: 64 };
        let told = select.told(Op::KINDS);
        assert_eq!(told, "select of 64 keys from 17 on in schema 2");
        let call = Op::Call { kind: 1, number: 9 };
        assert_eq!(call.told(&["a", "order_products"]), "order_products (inputs 9)");
    }
}
