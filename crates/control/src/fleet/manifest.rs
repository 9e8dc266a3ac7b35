//! Envelopes around the same agent, for those who start it on many hosts.

use std::fmt::Write as _;

/// What starts an agent on every host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    /// A job of Kubernetes with a pod per host.
    K8s,
    /// A batch script of Slurm.
    Slurm,
    /// A unit of systemd.
    Systemd,
}

/// What an envelope names.
#[derive(Clone, Debug)]
pub struct Envelope<'a> {
    /// The fleet.
    pub fleet: &'a str,
    /// Where agents find the server, without a token: `nats://HOST:4222`.
    pub url: &'a str,
    /// Hosts.
    pub hosts: usize,
    /// The image of assay, for pods.
    pub image: &'a str,
}

/// The envelope, with how it is used in its first lines. No token is in it: each starter has a place for secrets.
#[must_use]
pub fn manifest(starter: Starter, of: &Envelope<'_>) -> String {
    let Envelope { fleet, url, hosts, image } = of;
    let mut text = String::new();
    let written = match starter {
        Starter::K8s => write!(
            text,
            "# kubectl create secret generic assay-{fleet} --from-file=NATS_URL=assay-fleet/agent.url\n\
             # (agent.url with the address that pods reach: {url}); then kubectl apply -f -\n\
             # Pods of one node are one machine to assay, so each node gets at most one.\n\
             apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: assay-{fleet}\nspec:\n  completions: {hosts}\n  parallelism: {hosts}\n  \
             completionMode: Indexed\n  backoffLimit: 0\n  template:\n    metadata:\n      labels: {{ app: assay-{fleet} }}\n    spec:\n      \
             restartPolicy: Never\n      topologySpreadConstraints:\n        - maxSkew: 1\n          topologyKey: kubernetes.io/hostname\n          \
             whenUnsatisfiable: DoNotSchedule\n          labelSelector: {{ matchLabels: {{ app: assay-{fleet} }} }}\n      containers:\n        \
             - name: agent\n          image: {image}\n          args: [fleet, agent, --fleet, {fleet}, --name, $(NODE)]\n          \
             workingDir: /data\n          env:\n            - name: NODE\n              valueFrom: {{ fieldRef: {{ fieldPath: spec.nodeName }} }}\n            \
             - name: NATS_URL\n              valueFrom: {{ secretKeyRef: {{ name: assay-{fleet}, key: NATS_URL }} }}\n          \
             volumeMounts:\n            - {{ name: data, mountPath: /data }}\n            \
             - {{ name: machine, mountPath: /etc/machine-id, readOnly: true }}\n      \
             volumes:\n        - {{ name: data, emptyDir: {{}} }}\n        - {{ name: machine, hostPath: {{ path: /etc/machine-id, type: File }} }}\n"
        ),
        Starter::Slurm => write!(
            text,
            "#!/bin/sh\n#SBATCH --job-name=assay-{fleet}\n#SBATCH --nodes={hosts}\n#SBATCH --ntasks-per-node=1\n#SBATCH --exclusive\n\
             # sbatch this file in a directory that all nodes share, with assay-fleet/agent.url in it\n\
             # (the URL of {url} with the agents' token); `scancel` ends the agents.\n\
             NATS_URL=$(cat assay-fleet/agent.url)\nexport NATS_URL\n\
             exec srun sh -c 'cd \"${{TMPDIR:-/tmp}}\" && exec assay fleet agent --fleet {fleet} --name \"$SLURMD_NODENAME\"'\n"
        ),
        Starter::Systemd => write!(
            text,
            "# /etc/systemd/system/assay-{fleet}.service on each of {hosts} hosts; /etc/assay-{fleet}.env (mode 600) has the line\n\
             # NATS_URL=... of {url} with the agents' token; then systemctl enable --now assay-{fleet}\n\
             [Unit]\nDescription=assay agent of fleet {fleet}\nAfter=network-online.target\nWants=network-online.target\n\n\
             [Service]\nEnvironmentFile=/etc/assay-{fleet}.env\nExecStart=/usr/bin/assay fleet agent --fleet {fleet}\n\
             StateDirectory=assay-{fleet}\nWorkingDirectory=/var/lib/assay-{fleet}\nRestart=always\nRestartSec=5\nTimeoutStopSec=20\n\n\
             [Install]\nWantedBy=multi-user.target\n"
        ),
    };
    // A text takes everything.
    let _ = written;
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_envelope_starts_the_same_agent_and_holds_no_token() {
        let of = Envelope { fleet: "f", url: "nats://bus:4222", hosts: 3, image: "assay" };
        for starter in [Starter::K8s, Starter::Slurm, Starter::Systemd] {
            let text = manifest(starter, &of);
            assert!(text.replace(", ", " ").contains("fleet agent --fleet f"), "{text}");
            assert!(text.contains("nats://bus:4222") && text.contains('3') && !text.contains('@'), "{text}");
        }
    }
}
