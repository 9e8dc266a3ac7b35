//! The command line of `serve`.

use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArgs {
    /// Directory of run directories, or one of them
    #[arg(value_name = "DIR", default_value = "assay-runs")]
    pub(crate) dir: PathBuf,
    /// Address and port to listen on; port 0 is any free one, which the printed URL names. Other hosts need more than the default
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: String,
    /// What the URL must hold, at least 16 characters [default: a new random one]
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// Who has the token may start and stop `run`, `orders run`, `io` and `sync` here, one at a time, and tag runs
    ///
    /// Settings that are numbers, times or choices come from the form; places, targets and scripts only from this command's own
    /// environment (ASSAY_TARGET, ...).
    #[arg(long)]
    pub(crate) allow_run: bool,
}

/// What a server of this program proves itself with, and encrypts what it sends.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TlsArgs {
    /// PEM file of this server's certificate and those above it: nothing is sent in clear
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// PEM file of its private key, not encrypted
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

impl TlsArgs {
    /// The certificate and its key.
    pub(crate) fn files(&self) -> Option<(&Path, &Path)> {
        self.tls_cert.as_deref().zip(self.tls_key.as_deref())
    }
}

/// How something is shown while it goes on.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LiveArgs {
    /// Show it while it goes on: in a browser [default address: 127.0.0.1 and a free port], or on this terminal
    ///
    /// stderr has the URL with its token. The page ends with the run, whoever looks at it. `tty` shows the same figures on the whole
    /// screen; the key q leaves it, and the run goes on.
    #[arg(
        long,
        value_name = "ADDR:PORT|tty",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:0"
    )]
    pub(crate) live: Option<String>,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
}
