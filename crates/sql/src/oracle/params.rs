//! The Oracle target's own parameters; SLOB's are in `assay_measure::config`.

use assay_measure::config::Effect::Work;
use assay_measure::config::ParamDef;
use assay_measure::config::ParamKind::{Bool, Choice, Seconds, Secret, Text};
use assay_measure::params;

/// Every parameter of the Oracle target.
pub(super) const PARAMS: &[ParamDef] = params! {
    "READ_MODE", Choice(&["single", "batched"]), "single", "single: one row at a time, by the index; batched: rows of an \
     index block together (TABLE ACCESS BY INDEX ROWID BATCHED)" => Work("prefetch");
    "ORACLE_PASSWORD", Secret, "", "password of the URL's user if the URL has none: from a file or \
     ASSAY_ORACLE_PASSWORD, never on the command line";
    "ORACLE_TABLESPACE", Text, "", "tablespace of the tables and indexes; default: the user's own";
    "ORACLE_WALLET", Text, "", "directory with ewallet.pem, for connections by tcps";
    "ORACLE_WALLET_PASSWORD", Secret, "", "password of the wallet's private key";
    "ORACLE_ANSWER_TIMEOUT", Seconds, "60", "seconds (at least 1) for a login or an answer: after half of them assay \
     interrupts the statement, and then gives up a silent server";
    "ORACLE_STATEMENT_TIMEOUT", Seconds, "14400", "seconds until assay interrupts a statement that reads or builds a whole \
     table (index, check); meanwhile it asks for a sign of life on another connection";
    "ORACLE_GRACE", Seconds, "60", "seconds (at least 1) that a timed run waits after its end for operations in \
     progress; after two thirds assay cancels them";
    "CHECK", Choice(&["full", "sampled"]), "full", "what `assay check` reads: every row, or only the dictionary and \
        the index";
    "LICENSED_DIAGNOSTICS", Bool, "FALSE", "you have a licence for the Diagnostics Pack: allows \
     DATABASE_STATISTICS_TYPE=awr and activity from ASH";
};
