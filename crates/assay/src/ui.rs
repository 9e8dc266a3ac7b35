//! The two streams: stdout is the product, stderr everything else.

use crate::exit::{Code, Failure};
use assay_measure::config::Problem;
use assay_measure::locked::locked;
use assay_measure::plain::plain;
use assay_report::answer::Screen;
use assay_run::left;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PIPE_BUF;
use rustix::termios::Winsize;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

/// Prints the product; what a terminal would obey in it is replaced. A reader that went away ends it quietly.
pub(crate) fn product(text: &str) -> Result<(), Failure> {
    // A page is for a browser, and its script has every character there is. No other product begins like one.
    let page = text.starts_with("<!DOCTYPE html>");
    let printed = if page { Cow::Borrowed(text) } else { plain(text) };
    terminal(&printed)
}

/// Prints an answer, whose colours are a terminal's own; what it holds of a record was cleaned before.
pub(crate) fn terminal(text: &str) -> Result<(), Failure> {
    if let Some((path, mut file)) = LOG.get().map(|log| (&log.0, &log.1)) {
        let written = file.write_all(text.as_bytes());
        return written.map_err(|error| Failure::output(format!("{}: {error}", path.display())));
    }
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::output(format!("standard output: {error}"))),
    }
}

/// Where products go in place of standard output.
static LOG: OnceLock<(PathBuf, File)> = OnceLock::new();

/// From now on products are appended to this file.
///
/// # Errors
/// It cannot be opened for that.
pub(crate) fn log_to(path: &Path) -> Result<(), Failure> {
    let file = File::options().append(true).create(true).open(path);
    let file = file.map_err(|error| Failure::usage(format!("--logfile {}: {error}", path.display())))?;
    // A second would be a mistake of this program; the first stays.
    let _ = LOG.set((path.to_path_buf(), file));
    Ok(())
}

/// Whether somebody may look at what is printed.
pub(crate) fn is_watched() -> bool {
    LOG.get().is_none() && io::stdout().is_terminal()
}

/// Whether a terminal is to have colours and bold letters.
pub(crate) fn is_coloured() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && !is_dumb()
}

/// Whether the terminal knows nothing but lines.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// What an answer is shown on; no terminal where nobody looks at it.
pub(crate) fn screen() -> Screen {
    if !is_watched() {
        return Screen::default();
    }
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let of = |length: fn(Winsize) -> u16| size.map(length).filter(|length| *length > 0).map(usize::from);
    Screen { is_coloured: is_coloured(), columns: of(|size| size.ws_col), rows: of(|size| size.ws_row) }
}

/// Whether nothing is said but what [`PASS`] lets through.
static QUIET: AtomicBool = AtomicBool::new(false);
/// How lines begin that are said all the same.
const PASS: [&str; 4] = ["error", "warning", "notice", "invalid"];

/// From now on only warnings, notices and errors are said.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether nobody reads what is said: a pipe that stays full would hold whoever says something, a server's clients among them.
static IS_UNHEARD: AtomicBool = AtomicBool::new(false);

/// Puts it on stderr; where that takes nothing within a second, the rest is left out, and so is what follows until it does.
fn heard(text: &str) {
    let mut stderr = io::stderr().lock();
    // A pipe that takes anything takes so much of it at once.
    for part in text.as_bytes().chunks(PIPE_BUF) {
        let patience = Timespec { tv_sec: i64::from(!IS_UNHEARD.load(Ordering::Relaxed)), tv_nsec: 0 };
        let is_full = poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], Some(&patience)) == Ok(0);
        IS_UNHEARD.store(is_full, Ordering::Relaxed);
        // Nothing can be done about one that is closed.
        if is_full || stderr.write_all(part).is_err() {
            return;
        }
    }
}

/// What is said while a view has the terminal of stderr.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Lines for when the view is over.
    pub(crate) lines: VecDeque<String>,
    /// The line that would be redrawn.
    pub(crate) progress: String,
}

static HELD: Mutex<Option<Held>> = Mutex::new(None);
/// Lines of [`Held`], at most: older ones are left out.
const LINES_HELD: usize = 1000;

/// From now on what is said is held.
pub(crate) fn hold() {
    if io::stderr().is_terminal() {
        *locked(&HELD) = Some(Held::default());
    }
}

/// Says what was held.
pub(crate) fn release() {
    let held = locked(&HELD).take();
    held.into_iter().flat_map(|held| held.lines).for_each(|line| heard(&format!("{line}\n")));
}

/// Something of what is held; `None` while nothing has to be.
pub(crate) fn held<T>(of: impl FnOnce(&mut Held) -> T) -> Option<T> {
    locked(&HELD).as_mut().map(of)
}

/// One line on stderr.
pub(crate) fn say(line: &str) {
    if QUIET.load(Ordering::Relaxed) && !PASS.iter().any(|word| line.starts_with(word)) {
        return;
    }
    let line = plain(line);
    let is_held = held(|held| {
        if held.lines.len() == LINES_HELD {
            held.lines.pop_front();
        }
        held.lines.push_back(line.clone().into_owned());
    });
    if is_held.is_none() {
        heard(&format!("{line}\n"));
    }
}

/// Says what will be removed and asks for a yes, where somebody sits at a terminal; without one nobody is asked.
///
/// # Errors
/// Those of finding out what will be removed.
pub(crate) fn agreed(going: impl FnOnce() -> Result<String, Failure>) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(true);
    }
    heard(&format!("This removes:\n{}\nGo on? [y/N] ", plain(&going()?)));
    let mut answer = String::new();
    let agreed = io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes");
    if !agreed {
        say("notice: nothing was removed");
    }
    Ok(agreed)
}

/// A line that the next one overwrites, where nobody may be looking (`--eta=always`).
pub(crate) fn redraw(line: &str) {
    heard(&format!("{}\r", plain(line)));
}

/// An error, or a notice that does not stop anything.
pub(crate) fn problem(problem: &Problem) {
    let kind = if problem.error { "error" } else { "notice" };
    if problem.place.is_empty() {
        say(&format!("{kind}: {}", problem.text));
    } else {
        say(&format!("{kind}: {}: {}", problem.place, problem.text));
    }
}

/// The notices among problems.
pub(crate) fn notices(problems: &[Problem]) {
    for found in problems.iter().filter(|problem| !problem.error) {
        problem(found);
    }
}

/// Tells why a command failed.
pub(crate) fn failure(failure: &Failure) -> Code {
    for line in &failure.lines {
        say(&format!("error: {line}"));
    }
    failure.code
}

/// Tells what else went wrong, where another error decides the exit code.
pub(crate) fn aside(failure: &Failure) {
    for line in &failure.lines {
        say(&format!("notice: {line}"));
    }
}

/// Names what killed ones left in a directory, with the command that removes it.
pub(crate) fn left_in(directory: &Path) {
    tell_left(&left::found(directory));
}

/// The same in each directory of one.
pub(crate) fn left_below(directory: &Path) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let all: Vec<_> = entries.flat_map(|entry| left::found(&entry.path())).collect();
    tell_left(&all);
}

fn tell_left(left: &[left::Left]) {
    if let Some(command) = left::command(left) {
        say(&format!("notice: left by a killed command; remove with: {command}"));
    }
}

/// Whether progress may redraw its line.
pub(crate) fn is_live() -> bool {
    !QUIET.load(Ordering::Relaxed) && io::stderr().is_terminal() && !is_dumb()
}
