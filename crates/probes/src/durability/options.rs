//! The probe's own options.

use assay_run::engine::EngineError;
use assay_run::probe::Request;
use assay_run::probe_options;

/// Of the witness.
const PORT_USUAL: &str = "5558";

probe_options! {
    /// All of them.
    pub(super) OPTIONS:
    WITNESS: "witness" ["HOST[:PORT]"], "Write stamps, each acknowledged by this witness before the next, for --time or until a cut";
    RESUME: "resume", "After a cut: read the stamps back and count what was lost, torn and reordered";
    CUT: "cut" ["power|reset|process"], "With --resume: what the end was [default: reset where this system restarted, after silence]";
    PATIENCE: "patience" ["DURATION"] = "10s", "How long the witness may be silent";
    PORT: "port" ["N"] = "5558", "Witness: port to listen on";
    BIND: "bind" ["ADDR"] = "127.0.0.1", "Witness: address to listen on; 0.0.0.0 for all addresses of this host";
    JOURNAL: "journal" ["DIR"] = ".", "Witness: directory of its journals";
    SECRET_FILE: "secret-file" ["FILE"], "File with the secret that writer and witness share";
}

/// Host and port of the witness, if one is named.
pub(super) fn witness(request: &Request) -> Result<Option<(String, u16)>, EngineError> {
    request.read(&WITNESS, |text| {
        // A bare address of IPv6 has colons of its own.
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
            _ => (text, PORT_USUAL),
        };
        let host = host.trim_matches(['[', ']']);
        let port = port.parse().ok().filter(|port| *port > 0 && !host.is_empty());
        port.map(|port| (host.to_owned(), port)).ok_or("HOST or HOST:PORT is taken")
    })
}
