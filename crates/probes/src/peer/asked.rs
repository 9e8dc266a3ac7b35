//! Options that all tests against another host share: which host, by which addresses, with which secret.

use super::secret::Secret;
use crate::dial::Family;
use assay_run::engine::EngineError;
use assay_run::probe::{ProbeOption, Request};
use assay_run::probe_options;
use std::net::IpAddr;
use std::path::PathBuf;

probe_options! {
    pub(crate) OPTIONS:
    V4: "version4" | "4", "IPv4 only";
    V6: "version6" | "6", "IPv6 only";
    PATIENCE: "patience" ["DURATION"] = "10s", "How long the other end may be silent";
}

/// A port.
pub(crate) fn port(request: &Request, option: &ProbeOption) -> Result<u16, EngineError> {
    Ok(request.number(option, 1..=u16::MAX)?.unwrap_or_default())
}

/// A directory that is there already.
pub(crate) fn directory(request: &Request, option: &ProbeOption) -> Result<Option<PathBuf>, EngineError> {
    request.read(option, |dir| {
        let dir = Some(PathBuf::from(dir)).filter(|dir| dir.is_dir());
        dir.ok_or("no such directory; make it first")
    })
}

/// The host, without the brackets of an IPv6 address.
pub(crate) fn host(request: &Request) -> Result<String, EngineError> {
    let place = request.place.to_string_lossy();
    if place.starts_with('-') || place.is_empty() {
        Err(EngineError::Usage(format!("{place}: this is not a host")))
    } else {
        Ok(place.trim_matches(['[', ']']).to_owned())
    }
}

/// The addresses that are wanted.
pub(crate) fn family(request: &Request) -> Result<Family, EngineError> {
    match (request.is_on(&V4), request.is_on(&V6)) {
        (true, true) => Err(exclusive("-4 and -6")),
        (true, false) => Ok(Family::V4),
        (false, true) => Ok(Family::V6),
        (false, false) => Ok(Family::Any),
    }
}

/// The word of a request that asks for these addresses.
pub(crate) fn word_of(family: Family) -> Option<&'static str> {
    match family {
        Family::Any => None,
        Family::V4 => Some(V4.name),
        Family::V6 => Some(V6.name),
    }
}

/// The local address.
pub(crate) fn local_address(request: &Request, option: &ProbeOption) -> Result<Option<IpAddr>, EngineError> {
    const NEEDED: &str = "give an address of this host, such as 127.0.0.1 or ::1, or 0.0.0.0 for all";
    request.read(option, |text| text.parse().map_err(|_| NEEDED))
}

/// The secret of a file.
pub(crate) fn secret(request: &Request, option: &ProbeOption) -> Result<Option<Secret>, EngineError> {
    let read = |path: &str| Secret::of_file(path.as_ref());
    request.said(option).map(read).transpose()
}

/// Options of which only one can be meant.
pub(crate) fn exclusive(which: &str) -> EngineError {
    EngineError::Usage(format!("{which} exclude each other"))
}
