//! The rpm, of the files of the Debian package: `rpmbuild` packs them and finds which libraries the program asks for.

use super::{Asked, SUMMARY, VERSION, about, output};
use anyhow::Result;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the package holds; the places are those of the tree, but for zsh, which rpm's systems look for elsewhere.
const SPEC: &str = "
%description
@ABOUT@
%install
cp -a '@TREE@/.' '%{buildroot}'
mv '%{buildroot}/usr/share/zsh/vendor-completions' '%{buildroot}/usr/share/zsh/site-functions'
%files
/usr/bin/assay
/usr/lib/systemd/system/*
/usr/share/bash-completion/completions/assay
/usr/share/fish/vendor_completions.d/assay.fish
/usr/share/zsh/site-functions/_assay
/usr/share/man/man1/*
/usr/share/doc/assay
";

/// Packs the tree, before it has control files of Debian.
pub(super) fn rpm(asked: &Asked, stage: &Path, tree: &Path) -> Result<String> {
    let machine = asked.machine()?.rpm;
    let head = format!(
        "Name: assay\nVersion: {VERSION}\nRelease: 1\nSummary: {SUMMARY}\nLicense: MIT OR Apache-2.0\nGroup: Applications/Databases\n"
    );
    let body = SPEC.replace("@ABOUT@", &about("")).replace("@TREE@", &tree.display().to_string());
    let spec = stage.join("assay.spec");
    fs::write(&spec, head + &body)?;
    let name = format!("assay-{VERSION}-1.{machine}.rpm");
    let place = |what: &str, path: &Path| format!("{what} {}", path.display());
    // The program is packed as it is: not stripped, no links by build id; and what is packed again is the same.
    let defines = [
        place("_topdir", &stage.join("rpm")),
        place("_rpmdir", &asked.to),
        format!("_rpmfilename {name}"),
        "debug_package %{nil}".to_owned(),
        "__os_install_post %{nil}".to_owned(),
        "_build_id_links none".to_owned(),
        "_buildhost assay.invalid".to_owned(),
        "use_source_date_epoch_as_buildtime 1".to_owned(),
        "clamp_mtime_to_source_date_epoch 1".to_owned(),
        "_binary_payload w9.gzdio".to_owned(),
    ];
    let mut build = Command::new("rpmbuild");
    build.args(["-bb", "--quiet", "--target", &format!("{machine}-linux")]);
    for define in &defines {
        build.args(["--define", define]);
    }
    output(build.arg(spec).env("SOURCE_DATE_EPOCH", &asked.epoch))?;
    Ok(name)
}
