//! `--live`: the runs of a command while they go on, in a browser or on the terminal.

use crate::cli::LiveArgs;
use crate::exit::Failure;
use crate::live::Course;
use crate::view::{self, View};
use assay_control::serve::server::Server;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// What stands in the place of an address for the terminal.
const TERMINAL: &str = "tty";

/// How the runs of a command are shown.
#[derive(Default)]
pub(super) struct Shown {
    course: Arc<Course>,
    how: How,
}

#[derive(Default)]
enum How {
    #[default]
    Nowhere,
    Page(Server),
    /// On this terminal, once the first run begins.
    Terminal(File),
    View(View),
}

impl Shown {
    /// As `--live` says, of what will be in a directory; what cannot be had ends the command before anything is loaded.
    pub(super) fn ready(args: &LiveArgs, place: &Path) -> Result<Self, Failure> {
        if args.tls.files().is_some() && args.live.as_deref().is_none_or(|live| live == TERMINAL) {
            return Err(Failure::usage("--tls-cert encrypts a live page: give --live or --live=ADDR:PORT with it"));
        }
        let course = Arc::new(Course::default());
        let how = match args.live.as_deref() {
            None => How::Nowhere,
            Some(TERMINAL) => How::Terminal(view::terminal()?),
            Some(listen) => How::Page(super::serve::live(listen, &args.tls, place, Arc::clone(&course))?),
        };
        Ok(Self { course, how })
    }

    /// From now on it is the run in this directory; `which` tells it from the others.
    pub(super) fn goes_on(&mut self, dir: &Path, which: &str) -> Result<(), Failure> {
        self.course.goes_on(dir, which);
        self.how = match std::mem::take(&mut self.how) {
            How::Terminal(terminal) => How::View(View::begin(terminal, Arc::clone(&self.course))?),
            how => how,
        };
        Ok(())
    }

    /// The terminal is needed for the answer.
    pub(super) fn give_way(&mut self) {
        self.how = match std::mem::take(&mut self.how) {
            How::View(view) => {
                drop(view);
                How::Nowhere
            }
            how => how,
        };
    }

    /// All of it is kept.
    pub(super) fn end(self) {
        self.course.end();
        if let How::Page(server) = self.how {
            server.end();
        }
    }
}
