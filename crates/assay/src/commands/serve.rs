//! `serve`: the runs of a directory in a browser. `run --live`: one run while it goes on.

use super::new_token;
use super::report::of_repeats;
use super::runs::index::{escaped, served, title};
use super::runs::missing;
use super::runs::trend::over_runs;
use super::serve_runs::Starter;
use crate::answer::{below, written};
use crate::before;
use crate::catalogue::{self, Catalogue, Found};
use crate::cli::format::{HTML, JSON};
use crate::cli::{CompareArgs, ServeArgs, TlsArgs, WhichArgs};
use crate::exit::{Code, Failure};
use crate::live::Course;
use crate::rundir::{self, RECORD, REPEAT};
use crate::{signals, stored, ui};
use assay_control::ControlError;
use assay_control::serve::server::{Server, ServerConfig, Serving};
use assay_control::serve::{self as http, Ask, LiveFrame, Reply, Site};
use assay_measure::locked::locked;
use assay_report::answer::Context;
use assay_report::formats::{Format, Input, find};
use assay_report::html::Live;
use assay_report::html::{self, Assets, BEHAVIOUR, Listed, SHARED};
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

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        let code = if matches!(error, ControlError::Refused(_)) { Code::Usage } else { Code::Unusable };
        Self::new(code, error.to_string())
    }
}

pub(super) fn serve(args: &ServeArgs) -> Result<Code, Failure> {
    if !args.dir.is_dir() {
        return Err(Failure::usage(format!("{}: is no directory of runs", args.dir.display())));
    }
    let has_begun = || [RECORD, REPEAT, rundir::SERIES].iter().any(|file| args.dir.join(file).is_file());
    let is_one = has_begun() || rundir::is_claimed(&args.dir);
    if is_one && args.allow_run {
        return Err(Failure::usage("--allow-run starts runs beside others: name the directory of the runs"));
    }
    let forms = args.allow_run.then(new_token).transpose()?;
    let starter = forms.map(|forms| Arc::new(Starter::new(&args.dir, forms)));
    let runs = if is_one { Runs::only(&args.dir)? } else { Runs::all(&args.dir) };
    let runs = Runs { starter: starter.clone(), ..runs };
    let token = args.token.as_deref().map(http::checked_token).transpose()?;
    let stop = signals::watch()?;
    let server = start(&args.listen, &args.tls, token, false, runs)?;
    ui::product(&format!("{}\n", server.url()))?;
    while !stop.requested() {
        std::thread::sleep(LOOK);
    }
    if let Some(starter) = starter {
        starter.end();
    }
    server.end();
    Ok(Code::Good)
}

/// Shows the run that will be in a directory, from now until [`Server::end`].
pub(super) fn live(listen: &str, tls: &TlsArgs, place: &Path, course: Arc<Course>) -> Result<Server, Failure> {
    let runs = Runs { course: Some(course), ..Runs::only(place)? };
    let server = start(listen, tls, None, true, runs)?;
    ui::say(&format!("live page: {}", server.url()));
    Ok(server)
}

fn start(listen: &str, tls: &TlsArgs, token: Option<String>, is_polite: bool, runs: Runs) -> Result<Server, Failure> {
    let bad = |why: String| Failure::usage(format!("{listen}: {why}; an address is ADDR:PORT, such as 127.0.0.1:8080"));
    let mut addresses = listen.to_socket_addrs().map_err(|error| bad(error.to_string()))?;
    let address: SocketAddr = addresses.next().ok_or_else(|| bad("names no address".to_owned()))?;
    let token = token.map_or_else(new_token, Ok)?;
    let tls = identity(tls)?.map(Arc::new);
    let is_open = tls.is_none() && !address.ip().is_loopback();
    let forms = runs.starter.as_ref().map(|starter| starter.form_token().to_owned());
    let server = Server::start(Serving { address, token, is_polite, tls, forms }, Arc::new(runs))?;
    if is_open {
        ui::say("notice: other hosts can reach this, and nothing is encrypted: who reads the network reads the token");
    }
    Ok(server)
}

/// What the files prove, if any are named; files that cannot be used are refused.
pub(super) fn identity(tls: &TlsArgs) -> Result<Option<ServerConfig>, Failure> {
    let of = |(certificate, key)| assay_sql::server_identity(certificate, key, ["--tls-cert", "--tls-key"]);
    tls.files().map(of).transpose().map_err(Failure::usage)
}

/// Runs of a directory: all of them, or one.
struct Runs {
    dir: PathBuf,
    only: Option<String>,
    /// What goes on in this process.
    course: Option<Arc<Course>>,
    /// What goes on in others, by place.
    live: Mutex<HashMap<String, Arc<Course>>>,
    /// What the index lists, of these places.
    listed: Mutex<(Vec<Found>, Vec<Listed>)>,
    /// Starts runs, where that is allowed.
    starter: Option<Arc<Starter>>,
}

impl Runs {
    fn all(dir: &Path) -> Self {
        let dir = dir.to_path_buf();
        Self { dir, only: None, course: None, live: Mutex::default(), listed: Mutex::default(), starter: None }
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
        // What this process measures is there, or will be.
        if let (Some(only), Some(_)) = (&self.only, &self.course)
            && is_it(only)
        {
            return Ok(self.dir.join(only));
        }
        let found = self.places()?.into_iter().find(|found| is_it(&found.name));
        found.map(|found| found.path).ok_or_else(|| match &self.only {
            Some(only) if is_it(only) => not_begun(),
            Some(_) => Failure::usage("this page shows another run"),
            None => Failure::usage("there is no such run here"),
        })
    }

    /// The run whose page is at a path.
    fn find_page(&self, page: &str) -> Result<PathBuf, Failure> {
        let run = page.strip_prefix("/run/").unwrap_or(page);
        self.find(|known| escaped(known) == run)
    }

    /// What goes on there; nothing where all of it is kept.
    fn going(&self, place: &Path) -> Option<Arc<Course>> {
        if let Some(course) = &self.course {
            return (!course.is_over()).then(|| Arc::clone(course));
        }
        let mut live = locked(&self.live);
        let key = place.display().to_string();
        // What lies above several runs has a record from the first of them on.
        let has = |file: &str| place.join(file).is_file();
        if !rundir::is_claimed(place) || has(rundir::SERIES) && has(RECORD) {
            live.remove(&key);
            return None;
        }
        Some(Arc::clone(live.entry(key).or_insert_with(|| Arc::new(Course::of(place)))))
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
                let newest = match &self.only {
                    Some(_) => self.find(|_| true)?,
                    None => {
                        self.places()?.into_iter().rfind(has_figures).map(|found| found.path).ok_or_else(no_runs)?
                    }
                };
                self.face(&newest, OPENMETRICS)
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
                    [RECORD] if place.join(RECORD).is_file() && self.going(&place).is_none() => {
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
        let mut listed = locked(&self.listed);
        if listed.0 != places {
            let mut entries = Catalogue::open(&self.dir)?.entries;
            entries.drain(..entries.len().saturating_sub(LISTED));
            *listed = (places, served(&self.dir, &entries));
        }
        let control = self.starter.as_ref().map(|starter| starter.control());
        Ok(html::served_index(&title(&self.dir), &listed.1, control))
    }

    fn comparison(&self, ask: &Ask) -> Result<String, Failure> {
        let side = |name: &str| {
            let page = ask.query.get(name).map_or("", String::as_str);
            self.find_page(page).map(|place| place.display().to_string())
        };
        let args = CompareArgs { runs: vec![side("a")?, side("b")?], dir: self.dir.clone(), ..CompareArgs::default() };
        Ok(html::comparison(&super::compare::comparison(&args, &[])?, &Assets::Served))
    }

    /// A run in a format: what is kept of it, or, while it goes on, what it has so far.
    fn face(&self, place: &Path, format: &str) -> Result<Reply, Failure> {
        let format = find(format).unwrap_or_default();
        let text = match self.going(place) {
            None => kept(place, format)?,
            Some(course) if format.name == HTML => match course.page() {
                Some(page) => page,
                None => kept(place, format).map_err(|_| not_begun())?,
            },
            Some(course) => match course.look() {
                Some(look) => written(format, &Input::of(&[&look.whole]), place)?,
                None => kept(place, format).map_err(|_| not_begun())?,
            },
        };
        Ok(Reply::of(format.media_type, text))
    }
}

fn no_runs() -> Failure {
    Failure::usage("there are no runs yet")
}

fn not_begun() -> Failure {
    Failure::new(Code::Unusable, "the run has not begun yet")
}

/// What is kept of a run, in a format.
fn kept(place: &Path, format: &'static Format) -> Result<String, Failure> {
    if place.join(REPEAT).is_file()
        && let Some(text) = of_repeats(format, &stored::read_repeats(&place.join(REPEAT))?, &Assets::Served)
    {
        return Ok(text);
    }
    if !place.join(RECORD).is_file() {
        return Err(missing(place, || format!("{}: has no record", place.display())));
    }
    let record = &stored::read(&place.join(RECORD))?;
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
        if let (Some(starter), Some(form)) = (&self.starter, &ask.form) {
            return starter.act(ask, form, |page| self.find_page(page));
        }
        let status = |failure: &Failure| if failure.code == Code::Unusable { 503 } else { 404 };
        self.page(ask).unwrap_or_else(|failure| Reply::refused(status(&failure), &failure.lines.join("\n")))
    }

    fn frame(&self, run: &str) -> Option<LiveFrame> {
        let place = self.find(|known| known == run).ok()?;
        let live = match self.going(&place) {
            Some(course) => course.frame()?,
            None => last(&place)?,
        };
        let text = serde_json::to_string(&live).ok()?;
        Some(LiveFrame { text, is_last: live.is_final })
    }
}

/// The last frame of what has ended: of what is kept.
fn last(place: &Path) -> Option<Live> {
    let page = kept(place, find(HTML)?).ok();
    let live = match stored::read_repeats(&place.join(REPEAT)) {
        Ok(repeats) => Live {
            is_final: true,
            title: format!("Repeats {}", repeats.id),
            now: format!("the repeats have ended: {}", repeats.verdict),
            ..Live::default()
        },
        Err(_) => Live::of(&stored::read(&place.join(RECORD)).ok()?, None),
    };
    Some(Live { page, ..live })
}
