//! Decides which commands may work on a data set at the same time; nothing else claims one.
//!
//! A claim is a lock on a table of its own, in a transaction that lives as long as the command: runs share it, every
//! other command has it alone. It needs no privilege, and the server gives it back when the session ends, however it ends.

use super::address::{Address, Door};
use super::session::{OraError, Session, Way, told};
use super::sql;
use crate::claim::Purpose;
use assay_run::engine::EngineError;

/// How long a claim waits for its holder: an assay that follows another at once is not to be refused for that.
const WAIT_S: u64 = 2;
/// A name that is taken, a table that is not there, a lock that is held.
const EXISTS: u32 = 955;
pub(super) const MISSING: u32 = 942;
const HELD: [u32; 2] = [54, 30_006];

/// The session that holds a claim; it does nothing else but look.
pub(super) type Claim = Box<dyn Session>;

/// Claims the data set; the claim ends with the session that is returned. `tablespace` is where its table comes to be, if
/// it has to be made.
///
/// # Errors
/// `Unusable`: somebody else has it, who is named as far as this user may know; the server does not answer.
pub(super) fn take(
    way: &dyn Way,
    address: &Address,
    purpose: Purpose,
    tablespace: Option<&str>,
) -> Result<Claim, EngineError> {
    let claimed = take_if_there(way, address, purpose, tablespace)?;
    claimed.ok_or_else(|| nothing_here(&address.data))
}

/// The same; `None` where nobody has made what is claimed.
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

/// Removes what is claimed, the last of a data set. Who waits for the lock finds no table, or takes it for a data set to come.
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

/// The refusal of a data set that somebody uses.
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
