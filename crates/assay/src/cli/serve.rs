//! The command line of `serve`.

use clap::Args;
use std::path::PathBuf;

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
}
