//! Which update each row contains: a crash test compares this with the acknowledged updates.

use super::block_format::{Kind, column_range};
use super::bulk::{Job, Piece, Pieces, Span, Watch, transfer};
use super::content::Content;
use super::control_file::ControlFile;
use super::device;
use super::files::Files;
use super::layout::Page;
use super::load_plan::nothing_here;
use super::paths::Asked;
use super::recovery::ensure_clean;
use super::survey::{Found, survey};
use assay_measure::config::Settings;
use assay_run::engine::{EngineError, RowStamps};

/// Hexadecimal digits of a stamp at the front of each changed column.
const STAMP_DIGITS: usize = 16;

/// Reads every row of a data set that is not in use and tells its stamp.
///
/// # Errors
/// `Unusable` when there is none or it is in use; I/O errors, `Interrupted`; as [`ensure_clean`].
pub(super) fn audit(
    asked: &Asked,
    settings: &Settings,
    watch: Watch<'_>,
    rows: RowStamps<'_>,
) -> Result<(), EngineError> {
    let Found::Ours(ours) = survey(asked, &[])? else {
        return Err(nothing_here(asked.first()));
    };
    let places = ours.places;
    let mut lock = ControlFile::open_locked(places.home())?;
    let _claims = device::claim(&places)?;
    ensure_clean(&places, &mut lock, settings, watch)?;
    let control = lock.control();
    let files = Files::open(&places, control, true)?;
    let geometry = control.geometry;
    let map = geometry.map();
    let content = Content::new(control, 1..=geometry.schemas);
    let spans = (1..=control.loaded_schemas)
        .map(move |schema| Span::Pages { first: map.data_page(schema, 0), count: geometry.scale });
    let block_bytes = geometry.block_bytes as usize;
    let visit = |piece: &Piece, bytes: &[u8]| {
        let first = piece.first.expect("only pages are read");
        let pages = (first.0..).map(Page);
        for (page, block) in pages.zip(bytes.chunks_exact(block_bytes)) {
            let schema = map.schema_of(page);
            rows(schema, content.row_key(Kind::Data, schema, page), stamp(block));
        }
        Ok(())
    };
    let total = geometry.scale * u64::from(control.loaded_schemas) * block_bytes as u64;
    transfer(
        &files,
        settings.int("LOAD_PARALLEL_DEGREE") as usize,
        Pieces::new(map, spans),
        Job::Read { visit: &visit },
        ("audit", total),
        watch,
    )
}

/// The stamp of the last update, which changes c2 whatever else it changes; `None` where the row is as it was loaded.
fn stamp(block: &[u8]) -> Option<u64> {
    let column = &block[column_range(2)];
    let digits = std::str::from_utf8(&column[..STAMP_DIGITS]).ok()?;
    u64::from_str_radix(digits, 16).ok()
}
