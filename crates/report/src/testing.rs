//! What tests share.

use assay_measure::kind::Kind;

/// Kinds to read records with.
pub(crate) fn kinds() -> Vec<&'static dyn Kind> {
    let mut kinds = assay_awr::KINDS.to_vec();
    kinds.push(&assay_storage::record::Storage);
    kinds
}
