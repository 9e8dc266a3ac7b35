//! Facts and limits of a server, queried once per command.

use super::conn::{Connection, told};
use super::product::Product;
use assay_run::engine::EngineError;

/// The first MySQL version that enforces check constraints.
const CHECKS_SINCE: [u32; 3] = [8, 0, 16];

/// Facts about a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) product: Product,
    /// As the server reports it: `10.11.19-MariaDB-0+deb12u1`, `9.7.4-2`
    pub(super) version: String,
    pub(super) page_bytes: u64,
    pub(super) read_only: bool,
    /// By the server's account name: `root@localhost`
    pub(super) user: String,
    pub(super) sessions_max: u64,
    pub(super) sessions: u64,
    /// Where it is, by itself.
    pub(super) place: String,
    /// Longest statement, bytes.
    pub(super) packet_bytes: u64,
    pub(super) pool_bytes: u64,
    /// Clients may send files for LOAD DATA LOCAL.
    pub(super) local_infile: bool,
}

impl Server {
    /// Queries the server.
    ///
    /// # Errors
    /// `Unusable`: the version is not supported, or InnoDB is missing.
    pub(super) fn ask(connection: &mut Connection) -> Result<Self, EngineError> {
        let doing = told("asking the server what it is");
        let version = connection.value("select version()").map_err(&doing)?;
        refuse_unknown(&version)?;
        let product = connection.product;
        let rows = connection
            .rows(&format!(
                "select @@innodb_page_size, @@read_only, current_user(), @@max_connections, @@max_allowed_packet, \
                 @@innodb_buffer_pool_size, (select variable_value from {} where variable_name = 'threads_connected'), \
                 @@local_infile, concat(@@hostname, ':', @@port, ' ', @@datadir)",
                product.status()
            ))
            .map_err(&doing)?;
        let row = rows.into_iter().next().unwrap_or_default();
        let text = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        let number = |at: usize| text(at).parse().unwrap_or(0);
        Ok(Self {
            product,
            version,
            page_bytes: number(0),
            read_only: number(1) != 0,
            user: text(2),
            sessions_max: number(3),
            packet_bytes: number(4),
            pool_bytes: number(5),
            sessions: number(6),
            local_infile: number(7) != 0,
            place: text(8),
        })
    }

    /// # Errors
    /// `Unusable`: it accepts check constraints but does not enforce them.
    pub(super) fn refuse_without_checks(&self) -> Result<(), EngineError> {
        let parts = self.version.split(['.', '-']);
        let is: Vec<u32> = parts.map_while(|part| part.parse().ok()).collect();
        if self.product == Product::MariaDb || is.as_slice() >= &CHECKS_SINCE[..] {
            return Ok(());
        }
        Err(EngineError::Unusable(format!(
            "the server is MySQL {}, which ignores the rules (CHECK) of order entry's tables: use 8.0.16 or later",
            self.version
        )))
    }

    /// # Errors
    /// `Unusable`: the server is read-only.
    pub(super) fn refuse_read_only(&self) -> Result<(), EngineError> {
        if self.read_only {
            Err(EngineError::Unusable(
                "the server is read-only (read_only is on, as on a replica): connect to the server that accepts writes"
                    .to_owned(),
            ))
        } else {
            Ok(())
        }
    }

    /// # Errors
    /// `Unusable`: so many sessions cannot connect in addition to the present ones; `why` names what needs them.
    pub(super) fn refuse_too_few_connections(&self, wanted: u64, why: &str) -> Result<(), EngineError> {
        if self.sessions_max.saturating_sub(self.sessions) >= wanted {
            return Ok(());
        }
        Err(EngineError::Unusable(format!(
            "{why} needs {wanted} connections, but the server allows {} and {} are in use: raise max_connections or \
             use fewer",
            self.sessions_max, self.sessions
        )))
    }
}

fn refuse_unknown(version: &str) -> Result<(), EngineError> {
    let product = Product::of(version);
    let [first, last] = product.known();
    let mut parts = version.split(['.', '-']).map(|part| part.parse::<u32>().ok());
    let is = (parts.next().flatten(), parts.next().flatten());
    let known = match is {
        (Some(major), Some(minor)) => (first..=last).contains(&(major, minor)),
        _ => false,
    };
    if known {
        return Ok(());
    }
    let told = |product: Product| {
        let [first, last] = product.known();
        format!("{} {}.{} to {}.{}", product.name(), first.0, first.1, last.0, last.1)
    };
    Err(EngineError::Unusable(format!(
        "the server is {} {version}, but assay supports {} and {}",
        product.name(),
        told(Product::MariaDb),
        told(Product::MySql)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_that_assay_knows_are_taken() {
        for known in [
            "10.6.1-MariaDB",
            "10.11.19-MariaDB-0+deb12u1",
            "11.8.3-MariaDB-log",
            "8.0.36",
            "8.4.0-0ubuntu0",
            "9.7.4-2",
        ] {
            assert!(refuse_unknown(known).is_ok(), "{known}");
        }
        for unknown in ["10.5.9-MariaDB", "12.0.1-MariaDB", "5.7.44-log", "10.11.2", "x"] {
            let text = refuse_unknown(unknown).unwrap_err().to_string();
            assert!(text.contains(unknown), "{text}");
        }
    }
}
