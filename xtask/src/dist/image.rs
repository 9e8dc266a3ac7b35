//! An image for podman, docker and Kubernetes: the static program and nothing below it, as the tar file of an OCI layout
//! (image-spec 1.0), with the list by which older dockers load it.

use super::{Asked, VERSION, output, packer};
use anyhow::Result;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Whom the program runs as: the number that images without a distribution have for nobody in particular.
const USER: u32 = 65532;

/// The layout while it is filled.
struct Layout {
    place: PathBuf,
}

impl Layout {
    /// Takes a file in under its digest, and describes it.
    fn take(&self, file: &Path, media_type: &str) -> Result<Value> {
        let sha256 = sha256(file)?;
        let size = fs::metadata(file)?.len();
        fs::rename(file, self.place.join("blobs/sha256").join(&sha256))?;
        Ok(json!({"mediaType": media_type, "digest": format!("sha256:{sha256}"), "size": size}))
    }

    fn take_json(&self, value: &Value, media_type: &str) -> Result<Value> {
        let file = self.place.join("blob");
        fs::write(&file, value.to_string())?;
        self.take(&file, media_type)
    }
}

/// The image, of a static program and the files that its licence asks for.
pub(super) fn image(asked: &Asked, stage: &Path, tree: &Path) -> Result<String> {
    let machine = asked.machine()?.debian;
    let layout = Layout { place: stage.join("oci") };
    fs::create_dir_all(layout.place.join("blobs/sha256"))?;
    let tar = stage.join("layer.tar");
    layer(asked, stage, tree, &tar)?;
    let diff_id = format!("sha256:{}", sha256(&tar)?);
    output(Command::new("gzip").arg("-9n").arg(&tar))?;
    let layer = layout.take(&stage.join("layer.tar.gz"), "application/vnd.oci.image.layer.v1.tar+gzip")?;
    let created = output(Command::new("date").args(["-u", "+%FT%TZ", "-d", &format!("@{}", asked.epoch)]))?;
    let config = json!({
        "created": created.trim(), "architecture": machine, "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"), "Entrypoint": ["/usr/bin/assay"], "Cmd": ["--help"], "WorkingDir": "/data",
            "Env": ["PATH=/usr/bin", "HOME=/data"], "Volumes": {"/data": {}},
            "Labels": {"org.opencontainers.image.version": VERSION, "org.opencontainers.image.licenses": "MIT OR Apache-2.0"},
        },
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        "history": [{"created": created.trim(), "created_by": "cargo xtask dist"}],
    });
    let config = layout.take_json(&config, "application/vnd.oci.image.config.v1+json")?;
    let tag = format!("assay:{VERSION}");
    let blob = |of: &Value| of["digest"].as_str().unwrap_or_default().replace("sha256:", "blobs/sha256/");
    let docker = json!([{"Config": blob(&config), "RepoTags": [tag], "Layers": [blob(&layer)]}]);
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [layer]});
    let mut manifest = layout.take_json(&manifest, media_type)?;
    manifest["annotations"] = json!({
        "org.opencontainers.image.ref.name": VERSION,
        "io.containerd.image.name": format!("docker.io/library/{tag}"),
    });
    let files = [
        ("oci-layout", json!({"imageLayoutVersion": "1.0.0"})),
        ("index.json", json!({"schemaVersion": 2, "manifests": [manifest]})),
        ("manifest.json", docker),
    ];
    for (name, value) in files {
        fs::write(layout.place.join(name), value.to_string())?;
    }
    let name = format!("assay-{VERSION}-{machine}.oci.tar");
    let mut tar = packer(asked, "--create", &asked.to.join(&name));
    output(tar.args(["--owner=0", "--group=0"]).arg("-C").arg(&layout.place).arg("."))?;
    Ok(name)
}

/// What the image holds: the program, a place for data and a temporary one, and the names of its one user.
fn layer(asked: &Asked, stage: &Path, tree: &Path, to: &Path) -> Result<()> {
    let root = stage.join("root");
    for dir in ["etc", "data", "tmp", "usr/bin", "usr/share/doc/assay"] {
        fs::create_dir_all(root.join(dir))?;
    }
    for file in ["usr/bin/assay", "usr/share/doc/assay/copyright", "usr/share/doc/assay/third-party.gz"] {
        fs::copy(tree.join(file), root.join(file))?;
    }
    fs::write(root.join("etc/passwd"), format!("assay:x:{USER}:{USER}::/data:/usr/bin/assay\n"))?;
    fs::write(root.join("etc/group"), format!("assay:x:{USER}:\n"))?;
    output(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&root))?;
    output(Command::new("chmod").arg("1777").arg(root.join("tmp")))?;
    // A volume takes its owner from the directory; all else belongs to root, and nobody changes it.
    output(
        packer(asked, "--create", to).args(["--owner=0", "--group=0", "--exclude=./data", "-C"]).arg(&root).arg("."),
    )?;
    let owner = [format!("--owner={USER}"), format!("--group={USER}")];
    output(packer(asked, "--append", to).args(owner).arg("-C").arg(root).arg("./data"))?;
    Ok(())
}

fn sha256(file: &Path) -> Result<String> {
    let said = output(Command::new("sha256sum").arg("--").arg(file))?;
    Ok(said.split_whitespace().next().unwrap_or_default().to_owned())
}
