//! `serve`: the runs of a directory in a browser. `run --live`: one run while it goes on.

use super::report::of_repeats;
use super::runs::index::{escaped, served};
use super::runs::missing;
use super::runs::trend::over_runs;
use crate::answer::{below, written};
use crate::before;
use crate::catalogue::{self, Catalogue, Found};
use crate::cli::format::{HTML, JSON};
use crate::cli::{CompareArgs, ServeArgs, WhichArgs};
use crate::exit::{Code, Failure};
use crate::live::LiveRun;
use crate::rundir::{self, RECORD, REPEAT};
use crate::{signals, stored, ui};
use assay_control::serve::server::Server;
use assay_control::serve::{self as http, Ask, LiveFrame, Reply, ServeError, Site};
use assay_measure::locked::locked;
use assay_measure::record::Record;
use assay_report::answer::Context;
use assay_report::formats::{Format, Input, find};
use assay_report::html::{self, Assets, BEHAVIOUR, Live, SHARED};
use assay_run::bounded;
use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often a request to stop is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Newest runs of the index.
const LISTED: usize = 500;
/// Where the metrics of a run are, for a scraper.
const METRICS: &str = "metrics";
const OPENMETRICS: &str = "openmetrics";
const MEDIA_JSON: &str = "application/json";
const SCRIPT: &str = "text/javascript";

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        let code = if matches!(error, ServeError::Refused(_)) { Code::Usage } else { Code::Unusable };
        Self::new(code, error.to_string())
    }
}

pub(super) fn serve(args: &ServeArgs) -> Result<Code, Failure> {
    if !args.dir.is_dir() {
        return Err(Failure::usage(format!("{}: is no directory of runs", args.dir.display())));
    }
    let is_one = [RECORD, REPEAT, rundir::SERIES].iter().any(|file| args.dir.join(file).is_file());
    let runs = if is_one { Runs::only(&args.dir)? } else { Runs::all(&args.dir) };
    let token = args.token.as_deref().map(http::checked_token).transpose()?;
    let stop = signals::watch()?;
    let server = start(&args.listen, token, false, runs)?;
    ui::product(&format!("{}\n", server.url()))?;
    while !stop.requested() {
        std::thread::sleep(LOOK);
    }
    server.end();
    Ok(Code::Good)
}

/// Shows the run that will be in a directory, from now until [`Server::end`].
pub(super) fn live(listen: &str, place: &Path) -> Result<Server, Failure> {
    let server = start(listen, None, true, Runs::only(place)?)?;
    ui::say(&format!("live page: {}", server.url()));
    Ok(server)
}

fn start(listen: &str, token: Option<String>, is_polite: bool, runs: Runs) -> Result<Server, Failure> {
    let bad = |why: String| Failure::usage(format!("{listen}: {why}; an address is ADDR:PORT, such as 127.0.0.1:8080"));
    let mut addresses = listen.to_socket_addrs().map_err(|error| bad(error.to_string()))?;
    let address: SocketAddr = addresses.next().ok_or_else(|| bad("names no address".to_owned()))?;
    let token = match token {
        Some(token) => token,
        None => assay_control::new_token()
            .map_err(|error| Failure::new(Code::Unusable, format!("/dev/urandom: {error}")))?,
    };
    let server = Server::start(address, token, is_polite, Arc::new(runs))?;
    if !address.ip().is_loopback() {
        ui::say("notice: other hosts can reach this, and nothing is encrypted: who reads the network reads the token");
    }
    Ok(server)
}

/// Runs of a directory: all of them, or one.
struct Runs {
    dir: PathBuf,
    only: Option<String>,
    live: Mutex<HashMap<String, Arc<LiveRun>>>,
    /// The index as it was made, of these places.
    index: Mutex<(Vec<Found>, String)>,
}

impl Runs {
    fn all(dir: &Path) -> Self {
        Self { dir: dir.to_path_buf(), only: None, live: Mutex::default(), index: Mutex::default() }
    }

    fn only(run: &Path) -> Result<Self, Failure> {
        let run = std::path::absolute(run).map_err(|error| rundir::cannot(run, &error))?;
        let name = run.file_name().and_then(|name| name.to_str());
        let (Some(name), Some(above)) = (name, run.parent()) else {
            return Err(Failure::usage(format!("{}: has no name that a URL can hold", run.display())));
        };
        Ok(Self { only: Some(name.to_owned()), ..Self::all(above) })
    }

    /// The runs, by name: no other path is ever read.
    fn places(&self) -> Result<Vec<Found>, Failure> {
        match &self.only {
            Some(name) => Ok(catalogue::look_at(self.dir.join(name)).into_iter().collect()),
            None => catalogue::places(&self.dir),
        }
    }

    fn find(&self, is_it: impl Fn(&str) -> bool) -> Result<PathBuf, Failure> {
        let found = self.places()?.into_iter().find(|found| is_it(&found.name));
        found.map(|found| found.path).ok_or_else(|| match &self.only {
            Some(only) if is_it(only) => not_begun(),
            Some(_) => Failure::usage("this page shows another run"),
            None => Failure::usage("there is no such run here"),
        })
    }

    fn live(&self, place: &Path) -> Arc<LiveRun> {
        let mut live = locked(&self.live);
        let key = place.display().to_string();
        Arc::clone(live.entry(key).or_insert_with(|| Arc::new(LiveRun::in_dir(place))))
    }

    fn page(&self, ask: &Ask) -> Result<Reply, Failure> {
        let parts: Vec<&str> = ask.path.split('/').collect();
        let html = |text: String| Ok(Reply::of("text/html", text));
        let fixed = |text: &str| Ok(Reply { is_fixed: true, ..Reply::of(SCRIPT, text) });
        match parts.as_slice() {
            [""] => match &self.only {
                Some(name) => self.find(|_| true).map(|_| Reply::elsewhere(format!("/run/{}", escaped(name)))),
                None => html(self.index()?),
            },
            [SHARED] => fixed(html::script()),
            [BEHAVIOUR] => fixed(html::behaviour()),
            [METRICS] => {
                let has_figures = |found: &Found| found.path.join(RECORD).is_file() || rundir::is_claimed(&found.path);
                let newest = self.places()?.into_iter().rfind(has_figures);
                let newest = newest.ok_or_else(|| Failure::usage("there are no runs yet"))?;
                self.face(&newest.path, OPENMETRICS)
            }
            ["compare"] => html(self.comparison(ask)?),
            ["trend"] => {
                let key = ask.query.get("metric").map_or("ops_per_s", String::as_str);
                let which = WhichArgs { dir: self.dir.clone(), ..WhichArgs::default() };
                html(html::trend(&over_runs(key, &which)?, &Assets::Served))
            }
            ["run", name, rest @ ..] => {
                let place = self.find(|known| escaped(known) == *name)?;
                match rest {
                    [] => self.face(&place, HTML),
                    [RECORD] if place.join(RECORD).is_file() => {
                        let text = bounded::read(&place.join(RECORD), bounded::RECORD);
                        Ok(Reply::of(MEDIA_JSON, text.map_err(|error| rundir::cannot(&place, &error))?))
                    }
                    [RECORD] => self.face(&place, JSON),
                    [METRICS] => self.face(&place, OPENMETRICS),
                    _ => Ok(nothing()),
                }
            }
            _ => Ok(nothing()),
        }
    }

    /// The page over the runs.
    fn index(&self) -> Result<String, Failure> {
        let places = self.places()?;
        let mut index = locked(&self.index);
        if index.1.is_empty() || index.0 != places {
            let mut entries = Catalogue::open(&self.dir)?.entries;
            entries.drain(..entries.len().saturating_sub(LISTED));
            *index = (places, served(&self.dir, &entries));
        }
        Ok(index.1.clone())
    }

    fn comparison(&self, ask: &Ask) -> Result<String, Failure> {
        let side = |name: &str| {
            let page = ask.query.get(name).map_or("", String::as_str);
            let run = page.strip_prefix("/run/").unwrap_or(page);
            self.find(|known| escaped(known) == run).map(|place| place.display().to_string())
        };
        let args = CompareArgs { runs: vec![side("a")?, side("b")?], dir: self.dir.clone(), ..CompareArgs::default() };
        Ok(html::comparison(&super::compare::comparison(&args, &[])?, &Assets::Served))
    }

    /// A run in a format: what is kept of it, or, while it goes on, what it has so far.
    fn face(&self, place: &Path, format: &str) -> Result<Reply, Failure> {
        let format = find(format).unwrap_or_default();
        if place.join(REPEAT).is_file()
            && let Some(text) = of_repeats(format, &stored::read_repeats(&place.join(REPEAT))?, &Assets::Served)
        {
            return Ok(Reply::of(format.media_type, text));
        }
        if place.join(RECORD).is_file() {
            let record = stored::read(&place.join(RECORD))?;
            locked(&self.live).remove(&place.display().to_string());
            return kept(&record, place, format).map(|text| Reply::of(format.media_type, text));
        }
        let none = || missing(place, || format!("{}: has no record", place.display()));
        if !rundir::is_claimed(place) {
            return Err(none());
        }
        let live = self.live(place);
        let text = match format.name {
            HTML => live.page(),
            _ => live.look().map(|look| written(format, &Input::of(&[&look.whole]), place)).transpose()?,
        };
        text.map(|text| Reply::of(format.media_type, text)).ok_or_else(not_begun)
    }
}

fn not_begun() -> Failure {
    Failure::new(Code::Unusable, "the run has not begun yet")
}

/// The format of a kept record.
fn kept(record: &Record, place: &Path, format: &Format) -> Result<String, Failure> {
    let records = [record];
    let below = || below(record, place);
    let context = Context { previous: before::previous(record, place), ..Context::default() };
    written(format, &Input { below: &below, assets: Assets::Served, context, ..Input::of(&records) }, place)
}

fn nothing() -> Reply {
    Reply::refused(404, "there is nothing here; the list of runs is at /")
}

impl Site for Runs {
    fn reply(&self, ask: &Ask) -> Reply {
        let status = |failure: &Failure| if failure.code == Code::Unusable { 503 } else { 404 };
        self.page(ask).unwrap_or_else(|failure| Reply::refused(status(&failure), &failure.lines.join("\n")))
    }

    fn frame(&self, run: &str) -> Option<LiveFrame> {
        let place = self.find(|known| known == run).ok()?;
        let live = if place.join(RECORD).is_file() {
            let record = stored::read(&place.join(RECORD)).ok()?;
            let page = kept(&record, &place, find(HTML)?).ok();
            Live { page, ..Live::of(&record, None) }
        } else if rundir::is_claimed(&place) {
            let look = self.live(&place).look()?;
            Live::of(&look.whole, Some(&look.recent))
        } else {
            return None;
        };
        let text = serde_json::to_string(&live).ok()?;
        Some(LiveFrame { text, is_last: live.is_final })
    }
}
