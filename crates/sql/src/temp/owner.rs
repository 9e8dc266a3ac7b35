//! Which user owns the processes and files of a throw-away server: never root.

use super::Brand;
use assay_run::engine::EngineError;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The conventional user without privileges.
const FALLBACK: &str = "nobody";

/// Mode bit of a directory, such as `/tmp`, in which only owners may rename entries.
const STICKY: u32 = 0o1000;

/// A user of this host.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Owner {
    /// Name for messages.
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// The user that runs the server: another user if we are root, else ourselves (`None`).
pub(crate) fn of_server(brand: Brand) -> Result<Option<Owner>, EngineError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = std::fs::read_to_string("/etc/passwd")
        .map_err(|source| EngineError::Io { what: "reading /etc/passwd".to_owned(), source })?;
    [brand.user, FALLBACK].iter().find_map(|name| find(&users, name)).map(Some).ok_or_else(|| {
        EngineError::Unusable(format!(
            "temp:{}: a {} server refuses to run as root, and this host has no user {} or {FALLBACK}; run assay as \
                 another user",
            brand.temp, brand.called, brand.user
        ))
    })
}

/// Finds a user in the text of `/etc/passwd`.
fn find(users: &str, wanted: &str) -> Option<Owner> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        (name == wanted && uid != 0).then(|| Owner { name: name.to_owned(), uid, gid })
    })
}

/// Checks that every directory above a place lets the server's user through; `what` names the place in messages.
pub(crate) fn reaches(brand: Brand, owner: Option<&Owner>, place: &Path, what: &str) -> Result<(), EngineError> {
    let Some(owner) = owner else {
        return Ok(());
    };
    let real = place
        .canonicalize()
        .map_err(|source| EngineError::Io { what: format!("{what} {}", place.display()), source })?;
    for part in real.ancestors() {
        let about = std::fs::metadata(part)
            .map_err(|source| EngineError::Io { what: format!("{what} {}", part.display()), source })?;
        let may_pass = match about.mode() {
            mode if about.uid() == owner.uid => mode & 0o100 != 0,
            mode if about.gid() == owner.gid => mode & 0o010 != 0,
            mode => mode & 0o001 != 0,
        };
        if !may_pass {
            return Err(EngineError::Unusable(format!(
                "user {}, who owns a {} server started by root, cannot reach {what} {}: {} does not let that user \
                 pass; name another place, or run chmod o+x on it",
                owner.name,
                brand.called,
                place.display(),
                part.display()
            )));
        }
    }
    Ok(())
}

/// The place with links resolved, after checking that only root and the server's user can replace it: programs started
/// there trust the files they find, with the rights of the server's user. Nothing to check if we are not root.
pub(super) fn trusted(owner: Option<&Owner>, place: PathBuf, what: &str) -> Result<PathBuf, EngineError> {
    let Some(owner) = owner else {
        return Ok(place);
    };
    let cannot = |source| EngineError::Io { what: format!("{what} {}", place.display()), source };
    let real = place.canonicalize().map_err(cannot)?;
    for part in real.ancestors() {
        let about = std::fs::metadata(part).map_err(cannot)?;
        let others = about.mode() & 0o022 != 0 && about.mode() & STICKY == 0;
        if others || ![0, owner.uid].contains(&about.uid()) {
            return Err(EngineError::Unusable(format!(
                "{what} {}: users other than root and {} may rename entries of {} (user {}, mode {:o}) and could so \
                 make the server start elsewhere; name another place, or give the directory to root and run chmod \
                 go-w on it",
                place.display(),
                owner.name,
                part.display(),
                about.uid(),
                about.mode() & 0o7777
            )));
        }
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::super::tests::BRAND;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn users_are_found_by_name_and_root_is_nobodys_choice() {
        let users = "root:x:0:0:root:/root:/bin/sh\nserver:x:101:104:,,,:/var/lib/server:/bin/bash\nevil:x:0:0::/:\n";
        let found = find(users, "server").unwrap();
        assert_eq!((found.uid, found.gid), (101, 104));
        assert_eq!(find(users, "evil"), None);
        assert_eq!(find(users, "nobody"), None);
    }

    #[test]
    fn a_closed_directory_above_is_named() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        let stranger = Owner { name: "stranger".to_owned(), uid: 4_000_000, gid: 4_000_000 };
        let mode = |mode| std::fs::set_permissions(place.path(), PermissionsExt::from_mode(mode));
        mode(0o700).unwrap();
        let text = reaches(BRAND, Some(&stranger), &inner, "ITS_DIR").unwrap_err().to_string();
        assert!(text.contains(&place.path().display().to_string()), "{text}");
        assert!(reaches(BRAND, None, &inner, "ITS_DIR").is_ok());
        mode(0o711).unwrap();
        std::fs::set_permissions(&inner, PermissionsExt::from_mode(0o755)).unwrap();
        assert!(reaches(BRAND, Some(&stranger), &inner, "ITS_DIR").is_ok());
    }

    #[test]
    fn a_place_where_others_rename_is_refused_to_root() {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let own = rustix::process::geteuid().as_raw();
        let owner = Owner { name: "server".to_owned(), uid: own, gid: own };
        let look = |mode, owner: &Owner| {
            std::fs::set_permissions(place.path(), PermissionsExt::from_mode(mode)).unwrap();
            trusted(Some(owner), place.path().to_path_buf(), "ITS_DIR")
        };
        assert_eq!(look(0o755, &owner).unwrap(), place.path());
        assert!(look(0o1777, &owner).is_ok());
        for mode in [0o777, 0o775] {
            let text = look(mode, &owner).unwrap_err().to_string();
            assert!(text.contains("chmod go-w"), "{text}");
        }
        assert!(trusted(None, place.path().to_path_buf(), "ITS_DIR").is_ok());
        if own != 0 {
            let stranger = Owner { uid: own + 1, ..owner };
            assert!(look(0o755, &stranger).is_err());
        }
    }
}
