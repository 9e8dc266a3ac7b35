//! `cargo xtask dist`: what is handed on, made the same from the same commit: a tarball, a Debian package and an rpm of the
//! program with its manual and completions, an image where the program is static, and their checksums.
//!
//! Debian's own tools pack (`dpkg-deb`, `rpmbuild`, `tar`, `gzip`, `objdump`); nothing is fetched but what cargo fetches.

mod image;
mod rpm;

use crate::notices;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How it is called.
pub(crate) const USAGE: &str = "\
usage: cargo xtask dist [--target TRIPLE] [--binary FILE] [--to DIR]

  --target TRIPLE   build for it, such as x86_64-unknown-linux-musl (its standard library comes by
                    `rustup target add`, its C compiler is musl-gcc of the package musl-tools) or
                    aarch64-unknown-linux-musl (packages gcc-aarch64-linux-gnu to link it, and
                    qemu-user-static for the completions and man pages that it prints) [default: this machine's]
  --binary FILE     pack this program and build none; it was built for --target
  --to DIR          where to write [default: target/dist/packages/TRIPLE]";

const VERSION: &str = env!("CARGO_PKG_VERSION");
const SUMMARY: &str = "assays the platform a database will live on";
/// The lines that packages describe it by.
const ABOUT: [&str; 3] = [
    "What it can do for a database, where it stops, why there, and how steady it is:",
    "a database's I/O with no database installed (the SLOB method), the same on database",
    "servers, durable writes, bare storage, CPUs, comparisons and reports.",
];
/// The other end of a probe, and a host of a fleet, as services.
const UNITS: [&str; 2] = ["assay-server@.service", "assay-fleet-agent.service"];
/// The shells that look for completions in a place of the system, each with that place.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/assay"),
    ("zsh", "usr/share/zsh/vendor-completions/_assay"),
    ("fish", "usr/share/fish/vendor_completions.d/assay.fish"),
];

/// What was asked for.
struct Asked {
    root: PathBuf,
    triple: String,
    /// Whether the triple was named: cargo builds elsewhere then.
    named: bool,
    binary: Option<PathBuf>,
    to: PathBuf,
    /// Of all files, s since 1970: the time of the commit.
    epoch: String,
}

/// What packages call a processor.
struct Machine {
    debian: &'static str,
    rpm: &'static str,
}

impl Asked {
    /// The processor of the program, where this machine has another.
    fn foreign(&self) -> Option<&str> {
        self.triple.split('-').next().filter(|processor| *processor != std::env::consts::ARCH)
    }

    /// The program as a command that runs here.
    fn command(&self, program: &Path) -> Command {
        match self.foreign() {
            Some(processor) => {
                let mut emulated = Command::new(format!("qemu-{processor}-static"));
                emulated.arg(program);
                emulated
            }
            None => Command::new(program),
        }
    }

    /// A static program resolves its own addresses: as a list of bits those take 0.7 MB less. glibc reads such a list since 2.36 only.
    fn linking(&self) -> &'static str {
        if self.triple.ends_with("-musl") { " -Clink-arg=-Wl,-z,pack-relative-relocs" } else { "" }
    }

    fn machine(&self) -> Result<Machine> {
        match self.triple.split('-').next() {
            Some("x86_64") => Ok(Machine { debian: "amd64", rpm: "x86_64" }),
            Some("aarch64") => Ok(Machine { debian: "arm64", rpm: "aarch64" }),
            _ => bail!("{}: what packages call it is not known here", self.triple),
        }
    }
}

/// Builds, packs and writes checksums.
///
/// # Errors
/// When the command line is wrong, a tool is missing, or one of them fails.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    let asked = asked(root, words)?;
    let binary = match &asked.binary {
        Some(binary) => binary.clone(),
        None => build(&asked)?,
    };
    fs::create_dir_all(&asked.to)?;
    let stage = asked.to.join("stage");
    if stage.exists() {
        fs::remove_dir_all(&stage)?;
    }
    let tree = stage.join("deb");
    lay(&asked, &binary, &tree)?;
    let libraries = needs(&output(Command::new("objdump").arg("-p").arg(&binary))?)?;
    let mut packed = vec![tarball(&asked, &tree)?];
    if Command::new("rpmbuild").arg("--version").output().is_ok() {
        packed.push(rpm::rpm(&asked, &stage, &tree)?);
    } else {
        println!("no rpm: there is no rpmbuild (package rpm)");
    }
    if libraries.is_empty() {
        packed.push(image::image(&asked, &stage, &tree)?);
    } else {
        println!("no image: one from scratch needs a static program (--target x86_64-unknown-linux-musl)");
    }
    packed.push(deb(&asked, &libraries, &tree)?);
    let sums = output(Command::new("sha256sum").args(&packed).current_dir(&asked.to))?;
    fs::write(asked.to.join("SHA256SUMS"), sums)?;
    fs::remove_dir_all(&stage)?;
    println!("{} bytes: the program", fs::metadata(&binary)?.len());
    for name in &packed {
        let path = asked.to.join(name);
        println!("{} bytes: {}", fs::metadata(&path)?.len(), path.display());
    }
    Ok(())
}

fn asked(root: &Path, words: &[&str]) -> Result<Asked> {
    let (mut triple, mut binary, mut to) = (None, None, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word}?\n{USAGE}"))?;
        match *word {
            "--target" => triple = Some((*value).to_owned()),
            "--binary" => binary = Some(fs::canonicalize(value).with_context(|| (*value).to_owned())?),
            "--to" => to = Some(std::path::absolute(value)?),
            _ => bail!("{word}?\n{USAGE}"),
        }
    }
    let named = triple.is_some();
    let host = || {
        let about = output(Command::new("rustc").arg("-vV"))?;
        let line = about.lines().find_map(|line| line.strip_prefix("host: "));
        line.map(str::to_owned).context("rustc -vV names no host")
    };
    let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(epoch) => epoch,
        Err(_) => output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root))
            .context("no commit tells the time of the files: set SOURCE_DATE_EPOCH")?,
    };
    let triple = triple.map_or_else(host, Ok)?;
    // A place for each: Debian's name of a package does not tell musl from glibc.
    let usual = root.join("target/dist/packages").join(&triple);
    Ok(Asked {
        root: root.to_path_buf(),
        triple,
        named,
        binary,
        to: to.unwrap_or(usual),
        epoch: epoch.trim().to_owned(),
    })
}

/// The program, without the paths of this machine in its messages.
fn build(asked: &Asked) -> Result<PathBuf> {
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| home + "/.cargo"))?;
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(&asked.root)
        .args(["build", "--locked", "--profile", "dist", "--package", "assay", "--features", "full"])
        .env("RUSTFLAGS", format!("--remap-path-prefix={home}=/cargo{}", asked.linking()));
    if let Some(processor) = asked.foreign() {
        // Of another processor Debian's compiler links and compiles, for musl too, whose own parts rustc has. What glibc's headers
        // add to check lengths is not in musl, nor are its second names of calls with 64 bits, which SQLite asks for.
        let (compiler, of) = (format!("{processor}-linux-gnu-gcc"), asked.triple.replace('-', "_"));
        let settings = [
            (format!("CARGO_TARGET_{}_LINKER", of.to_uppercase()), compiler.as_str()),
            (format!("CC_{of}"), compiler.as_str()),
            (format!("CFLAGS_{of}"), "-U_FORTIFY_SOURCE -DSQLITE_DISABLE_LFS"),
        ];
        for (name, value) in settings.iter().filter(|(name, _)| std::env::var_os(name).is_none()) {
            cargo.env(name, value);
        }
    }
    let mut place = asked.root.join("target");
    if asked.named {
        cargo.args(["--target", &asked.triple]);
        place.push(&asked.triple);
    }
    ensure!(cargo.status().context("cargo")?.success(), "the build failed");
    Ok(place.join("dist/assay"))
}

/// The tree of the Debian package but for its control files.
fn lay(asked: &Asked, binary: &Path, tree: &Path) -> Result<()> {
    let put = |name: &str, bytes: &[u8]| -> Result<PathBuf> {
        let path = tree.join(name);
        fs::create_dir_all(path.parent().unwrap_or(tree))?;
        fs::write(&path, bytes)?;
        Ok(path)
    };
    let program = tree.join("usr/bin/assay");
    fs::create_dir_all(tree.join("usr/bin"))?;
    fs::copy(binary, &program).with_context(|| binary.display().to_string())?;
    for (shell, name) in SHELLS {
        put(name, output(asked.command(&program).args(["completions", shell]))?.as_bytes())?;
    }
    let man = tree.join("usr/share/man/man1");
    output(asked.command(&program).arg("-q").arg("man").arg(&man))?;
    let doc = "usr/share/doc/assay";
    for (from, to) in [("README.md", "README.md"), ("docs/examples/assay.toml", "examples/assay.toml")] {
        put(&format!("{doc}/{to}"), &fs::read(asked.root.join(from)).context(from)?)?;
    }
    for name in UNITS {
        let unit = asked.root.join("xtask/packaging").join(name);
        put(&format!("usr/lib/systemd/system/{name}"), &fs::read(&unit).with_context(|| unit.display().to_string())?)?;
    }
    let changes = put(&format!("{doc}/changelog"), &fs::read(asked.root.join("CHANGELOG.md"))?)?;
    let mit = fs::read_to_string(asked.root.join("LICENSE-MIT"))?;
    put(&format!("{doc}/copyright"), copyright(&mit).as_bytes())?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&asked.root);
    cargo.args(["metadata", "--locked", "--all-features", "--format-version", "1", "--filter-platform", &asked.triple]);
    let notices = notices::of(&output(&mut cargo)?)?;
    let notices = put(&format!("{doc}/third-party"), notices.as_bytes())?;
    let pages = files(&man)?;
    output(Command::new("gzip").arg("-9n").args(pages).args([changes, notices]))?;
    output(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(tree))?;
    output(Command::new("chmod").arg("755").arg(program))?;
    Ok(())
}

fn copyright(mit: &str) -> String {
    format!(
        "assay is licensed under the MIT licence or the Apache Licence, version 2.0, at your choice. The second is in\n\
         /usr/share/common-licenses/Apache-2.0 on Debian; the first follows. third-party.gz has those of the crates in it.\n\n{mit}"
    )
}

/// Everything in one directory, for any system: no place of Debian's.
fn tarball(asked: &Asked, tree: &Path) -> Result<String> {
    let name = format!("assay-{VERSION}-{}", asked.triple);
    let plain = asked.to.join(format!("{name}.tar"));
    let mut tar = packer(asked, "--create", &plain);
    tar.args(["--owner=0", "--group=0", "--mode=u=rwX,go=rX"])
        .args([
            "--transform=s,^usr/share/bash-completion/.*,completions/assay.bash,",
            "--transform=s,^usr/.*/vendor.completions[^/]*,completions,",
        ])
        .args(["--transform=s,^usr/share/man/man1,man,", "--transform=s,^usr/.*/,,"])
        .arg(format!("--transform=s,^,{name}/,"))
        .args(["-C".as_ref(), tree.as_os_str()])
        .args(["usr/bin/assay", "usr/share/man/man1"])
        .args(["usr/share/doc/assay/examples/assay.toml", "usr/share/doc/assay/third-party.gz"])
        .args(SHELLS.map(|(_, place)| place))
        .args(["-C".as_ref(), asked.root.as_os_str()])
        .args(["README.md", "LICENSE-MIT", "LICENSE-APACHE"]);
    output(&mut tar)?;
    output(Command::new("gzip").arg("-9nf").arg(plain))?;
    Ok(format!("{name}.tar.gz"))
}

/// `tar` that writes the same of the same files; the operation is `--create` or `--append`.
fn packer(asked: &Asked, operation: &str, to: &Path) -> Command {
    let mut tar = Command::new("tar");
    tar.args([operation, "--sort=name", "--numeric-owner", "--format=gnu"]);
    tar.arg(format!("--mtime=@{}", asked.epoch)).arg("--file").arg(to);
    tar
}

/// The description, each line behind a mark.
fn about(mark: &str) -> String {
    ABOUT.map(|line| format!("{mark}{line}\n")).concat()
}

fn deb(asked: &Asked, needs: &[String], tree: &Path) -> Result<String> {
    let architecture = asked.machine()?.debian;
    let kib = output(Command::new("du").args(["-sk", "--apparent-size"]).arg(tree))?;
    let kib = kib.split_whitespace().next().unwrap_or("0").to_owned();
    let needs = if needs.is_empty() { String::new() } else { format!("Depends: {}\n", needs.join(", ")) };
    let control = format!(
        "Package: assay\nVersion: {VERSION}\nArchitecture: {architecture}\n\
         Maintainer: The assay authors <assay@assay.invalid>\nInstalled-Size: {kib}\n{needs}\
         Section: database\nPriority: optional\n\
         Description: {SUMMARY}\n{}",
        about(" ")
    );
    let place = tree.join("DEBIAN");
    fs::create_dir(&place)?;
    fs::write(place.join("control"), control)?;
    let name = format!("assay_{VERSION}_{architecture}.deb");
    let mut build = Command::new("dpkg-deb");
    build
        .args(["--build", "--root-owner-group"])
        .args([tree.as_os_str(), asked.to.join(&name).as_os_str()])
        .env("SOURCE_DATE_EPOCH", &asked.epoch);
    output(&mut build)?;
    Ok(name)
}

/// The Debian packages that hold the shared libraries a program names, by what `objdump -p` says of it; none of a
/// static one. Of glibc it needs at least the highest version that a symbol of it asks for.
fn needs(objdump: &str) -> Result<Vec<String>> {
    let mut needs = Vec::new();
    for line in objdump.lines() {
        let Some(library) = line.trim().strip_prefix("NEEDED") else {
            continue;
        };
        let library = library.trim();
        let package = match library {
            "libgcc_s.so.1" => "libgcc-s1".to_owned(),
            _ if library.starts_with("ld-linux") || ["libc.so.6", "libm.so.6"].contains(&library) => {
                let asked = objdump.split_whitespace().filter_map(|word| word.strip_prefix("GLIBC_"));
                let parts = |version: &str| -> Option<(u32, u32)> {
                    let (major, minor) = version.split_once('.')?;
                    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
                };
                let (major, minor) = asked.filter_map(parts).max().context("no version of glibc")?;
                format!("libc6 (>= {major}.{minor})")
            }
            _ => bail!("the program needs {library}, and which package has it is not known here"),
        };
        if !needs.contains(&package) {
            needs.push(package);
        }
    }
    Ok(needs)
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        found.push(entry?.path());
    }
    found.sort();
    Ok(found)
}

/// What a command prints, of one that must succeed.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().display().to_string();
    let done = command.output().with_context(|| name.clone())?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "{name}: {}", said.trim());
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_depends_on_the_highest_glibc_that_a_symbol_asks_for() {
        let dynamic = "  NEEDED               libgcc_s.so.1\n  NEEDED               libm.so.6\n  NEEDED               libc.so.6\n\
                       Version References:\n    0x1 0x00 05 GLIBC_2.9\n    0x2 0x00 04 GLIBC_2.34\n    0x3 0x00 03 GLIBC_2.2.5\n";
        assert_eq!(needs(dynamic).expect("known"), ["libgcc-s1", "libc6 (>= 2.34)"]);
        assert!(needs("file format elf64-x86-64\n").expect("static").is_empty());
        assert!(needs("  NEEDED  libssl.so.3\n").is_err());
    }
}
