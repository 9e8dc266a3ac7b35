//! Decides which commands may work on a data set at the same time. No other module claims one.
//!
//! A claim is a lock on a separate table, in a transaction that lives as long as the command: runs share it, every
//! other command holds it exclusively. It needs no privilege, and the server releases it when the session ends, however
//! it ends.

use super::address::{Address, Door};
use super::session::{OraError, Session, Way, told};
use super::sql;
use crate::claim::Purpose;
use assay_run::engine::EngineError;

/// How long to wait for another holder: an assay started right after another must not be refused.
const WAIT_S: u64 = 2;
/// Errors: the name exists, the table is missing, the lock is held.
const EXISTS: u32 = 955;
pub(super) const MISSING: u32 = 942;
const HELD: [u32; 2] = [54, 30_006];

/// The session that holds a claim; otherwise it only queries.
pub(super) type Claim = Box<dyn Session>;

/// Claims the data set; the claim ends with the returned session. The claim's table goes to `tablespace` if it has to
/// be created.
///
/// # Errors
/// `Unusable`: others hold a claim (the error names them as far as this user may see them), or the server does not answer.
pub(super) fn take(
    way: &dyn Way,
    address: &Address,
    purpose: Purpose,
    tablespace: Option<&str>,
) -> Result<Claim, EngineError> {
    let claimed = take_if_there(way, address, purpose, tablespace)?;
    claimed.ok_or_else(|| nothing_here(&address.data))
}

/// The same; `None` if the claim's table does not exist.
pub(super) fn take_if_there(
    way: &dyn Way,
    address: &Address,
    purpose: Purpose,
    tablespace: Option<&str>,
) -> Result<Option<Claim>, EngineError> {
    let mut session = way.open(&address.data, address.answer)?;
    let told = told("claiming the data set");
    if purpose == Purpose::Prepare {
        match session.run(&sql::create_claim(tablespace), &[]) {
            Err(error) if error.code != Some(EXISTS) => return Err(told(error)),
            _ => {}
        }
    }
    match session.run(&sql::lock_claim(purpose.shares(), WAIT_S), &[]) {
        Ok(_) => Ok(Some(session)),
        Err(error) if error.code.is_some_and(|code| HELD.contains(&code)) => Err(in_use(way, address)),
        Err(error) if error.code == Some(MISSING) => Ok(None),
        Err(error) => Err(told(error)),
    }
}

/// Drops the claim's table, the last step of a removal. A command waiting for the lock then finds no table, or creates a new one.
pub(super) fn remove(session: &mut dyn Session) -> Result<(), OraError> {
    match session.run(&sql::drop_table(sql::CLAIM), &[]) {
        Err(error) if !error.code.is_some_and(|code| code == MISSING || HELD.contains(&code)) => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn nothing_here(door: &Door) -> EngineError {
    EngineError::Unusable(format!("there is no data set of user {}; run `assay prepare` first", door.user))
}

/// Sessions that hold claims.
pub(super) fn holders(session: &mut dyn Session, owner: &str) -> Result<Vec<(u64, String)>, OraError> {
    let rows = session.rows(sql::HOLDERS, &[super::session::Bind::Text(owner)])?;
    let each = rows.into_iter().filter_map(|row| {
        let mut row = row.into_iter().flatten();
        let sid = row.next()?.parse().ok()?;
        Some((sid, row.nth(1).unwrap_or_default()))
    });
    Ok(each.collect())
}

/// The error for a data set that is in use.
fn in_use(way: &dyn Way, address: &Address) -> EngineError {
    let owner = &address.data.user;
    let asked = way
        .open(address.admin(), address.answer)
        .and_then(|mut session| holders(&mut *session, owner).map_err(told("asking who holds the claim")));
    let who: Vec<String> = match asked {
        Ok(holders) if !holders.is_empty() => {
            holders.into_iter().map(|(sid, who)| format!("another assay (server session {sid}, {who})")).collect()
        }
        _ => vec!["another assay (its session shows in V$LOCKED_OBJECT, which this user may not read)".to_owned()],
    };
    EngineError::Unusable(format!(
        "the data set of user {owner} is in use by {}; wait until it ends, then try again",
        who.join("; ")
    ))
}
