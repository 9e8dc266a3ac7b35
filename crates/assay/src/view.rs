//! `--live=tty`: the figures of the live page on the whole screen, until its user leaves it or the run ends.
//!
//! The terminal is opened by its own name and never waited for. What is changed of it is put back when the view is left, on a
//! panic, and before a signal ends or stops this process. Keys that send signals do so as ever.

use crate::exit::{Code, Failure};
use crate::live::Course;
use crate::ui;
use assay_measure::locked::locked;
use assay_measure::plain::plain;
use assay_report::html::{COLUMNS_LEAST, Live};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{getpgrp, setpriority_process};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};
use signal_hook::consts::{SIGQUIT, SIGTSTP};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The other screen, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const BOLD: &str = "\x1b[1m";
const FAINT: &str = "\x1b[2m";
const AS_BEFORE: &str = "\x1b[0m";
/// Between two frames.
const FRAME: Duration = Duration::from_secs(1);
/// Between two looks at the size of the screen.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// Priority of the thread that draws: it gives way to those that measure.
const POLITE: i32 = 10;
const KEYS: &str = "q leaves this view, and the run goes on; Ctrl-C stops the run and saves";
/// Lines that were said which are shown, at most.
const SAID: usize = 4;

/// A terminal as it was found.
struct Taken {
    terminal: File,
    before: Termios,
}

/// The terminal while a view has it.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);

/// The thread that draws.
pub(crate) struct View(Option<JoinHandle<()>>);

/// The terminal of this process.
///
/// # Errors
/// There is none, it cannot show a view, or others have it.
pub(crate) fn terminal() -> Result<File, Failure> {
    let refused = |why: &str| Failure::usage(format!("--live=tty: {why}; --live shows the run in a browser"));
    if ui::is_dumb() {
        return Err(refused("TERM is dumb"));
    }
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = open("/dev/tty", flags, Mode::empty()).map_err(|_| refused("there is no terminal"))?;
    let terminal = File::from(terminal);
    if is_in_front(&terminal) { Ok(terminal) } else { Err(refused("this process is in the background")) }
}

/// Whether the terminal is this process's now.
fn is_in_front(terminal: &File) -> bool {
    tcgetpgrp(terminal) == Ok(getpgrp())
}

impl View {
    /// Takes the terminal and draws on it what goes on.
    pub(crate) fn begin(terminal: File, course: Arc<Course>) -> Result<Self, Failure> {
        let unfit = |why: &dyn std::fmt::Display| Failure::new(Code::Unusable, format!("--live=tty: {why}"));
        let before = tcgetattr(&terminal).map_err(|error| unfit(&error))?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        // A screen that is held (Ctrl-S) would not be seen to be.
        keys.input_modes.remove(InputModes::IXON);
        let mut signals = Signals::new([SIGQUIT, SIGTSTP]).map_err(|error| unfit(&error))?;
        let watch = move || {
            for signal in signals.forever() {
                leave();
                let _ = emulate_default_handler(signal);
            }
        };
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        thread("view-signals").spawn(watch).map_err(|error| unfit(&error))?;
        tcsetattr(&terminal, OptionalActions::Now, &keys).map_err(|error| unfit(&error))?;
        let mut to_draw_on = &terminal;
        let _ = to_draw_on.write_all(ENTER.as_bytes());
        *locked(&TAKEN) = Some(Taken { terminal, before });
        ui::hold();
        let drawn = thread("view").spawn(move || draw(&course));
        Ok(Self(Some(drawn.inspect_err(|_| leave()).map_err(|error| unfit(&error))?)))
    }
}

impl Drop for View {
    fn drop(&mut self) {
        leave();
        let _ = self.0.take().map(JoinHandle::join);
    }
}

/// Gives the terminal back, if a view has it.
pub(crate) fn leave() {
    let Some(Taken { mut terminal, before }) = locked(&TAKEN).take() else { return };
    let _ = terminal.write_all(LEAVE.as_bytes());
    // Who is in the background would be stopped for it, and the shell has set the terminal up for itself.
    if is_in_front(&terminal) {
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
    }
    ui::release();
}

/// Something with the terminal; `None` once nobody has it.
fn taken<T>(of: impl FnOnce(&File) -> T) -> Option<T> {
    locked(&TAKEN).as_ref().map(|taken| of(&taken.terminal))
}

fn draw(course: &Course) {
    // Of this thread alone. Where it is forbidden, the thread is as the others.
    let _ = setpriority_process(None, POLITE);
    let mut drawn: Option<(Instant, (usize, usize))> = None;
    let Some(Ok(terminal)) = taken(File::try_clone) else { return };
    let mut frame = None;
    loop {
        let size = tcgetwinsize(&terminal).map_or((0, 0), |size| (size.ws_col.into(), size.ws_row.into()));
        let is_new = drawn.is_none_or(|(at, _)| at.elapsed() >= FRAME);
        if is_new {
            frame = course.frame();
            drawn = Some((Instant::now(), size));
        }
        if is_new || drawn.is_some_and(|(_, before)| before != size) {
            drawn = drawn.map(|(at, _)| (at, size));
            let text = screen(frame.as_ref(), size, ui::is_coloured());
            // What a terminal does not take at once is not waited for: the next frame is whole again.
            if taken(|mut terminal| drop(terminal.write(text.as_bytes()))).is_none() {
                return;
            }
        }
        let mut asked = [PollFd::new(&terminal, PollFlags::IN)];
        let _ = poll(&mut asked, Some(&LOOK));
        // What is typed after the end is for the shell, and who reads in the background would be stopped for it.
        if taken(|_| ()).is_none() || !is_in_front(&terminal) {
            return leave();
        }
        let mut keys = [0; 64];
        let is_left = match (&terminal).read(&mut keys) {
            Ok(0) => true,
            Ok(read) => keys[..read].iter().any(|key| b"qQ".contains(key)),
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        };
        if is_left {
            leave();
            ui::say("the run goes on; Ctrl-C stops it and saves");
            return;
        }
    }
}

/// A frame of so many columns and rows.
fn screen(live: Option<&Live>, (columns, rows): (usize, usize), is_coloured: bool) -> String {
    // A terminal that does not tell its size has the usual one.
    let (columns, rows) = (if columns == 0 { 80 } else { columns }, if rows == 0 { 24 } else { rows });
    let (said, progress) = ui::held(|held| (held.lines.clone(), held.progress.clone())).unwrap_or_default();
    let mut lines = vec![(BOLD, live.map_or("assay", |live| &live.title).to_owned())];
    lines.push(("", live.map_or("the run has not begun yet", |live| &live.now).to_owned()));
    lines.push(("", progress));
    lines.push(("", String::new()));
    if let Some(live) = live {
        lines.extend(live.lines(columns.max(COLUMNS_LEAST)).into_iter().map(|line| ("", line)));
        lines.push(("", String::new()));
    }
    lines.extend(said.into_iter().rev().take(SAID).rev().map(|line| (FAINT, line)));
    lines.truncate(rows.saturating_sub(1));
    lines.push((FAINT, KEYS.to_owned()));
    let mut out = "\x1b[H".to_owned();
    for (number, (style, line)) in lines.iter().enumerate() {
        let cut: String = plain(line).replace(['\n', '\t'], " ").chars().take(columns).collect();
        let (style, after) = if is_coloured && !style.is_empty() { (*style, AS_BEFORE) } else { ("", "") };
        // Cleared first: behind a line of the whole width its last letter would go.
        let (clear, end) = if number + 1 == lines.len() { ("\x1b[J", "") } else { ("\x1b[K", "\r\n") };
        out.push_str(&format!("{clear}{style}{cut}{after}{end}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_report::html::{LiveTile, RECENT, WHOLE};

    fn live() -> Live {
        let tile = |of, value: &str| LiveTile {
            name: "Operations".to_owned(),
            of,
            value: value.to_owned(),
            unit: "1/s".to_owned(),
            ..LiveTile::default()
        };
        let title = format!("1234abcd: slob on native{}", " and on".repeat(20));
        Live { title, tiles: vec![tile(RECENT, "1,234"), tile(WHOLE, "1,300")], ..Live::default() }
    }

    /// The rows of a frame, without what moves the cursor.
    fn rows(text: &str) -> Vec<String> {
        text.split("\r\n").map(|row| row.replace("\x1b[H", "").replace("\x1b[K", "").replace("\x1b[J", "")).collect()
    }

    #[test]
    fn a_frame_fits_its_screen_and_its_last_row_says_how_to_leave() {
        let live = live();
        for size in [(80, 24), (40, 6), (20, 2), (1, 1), (200, 60)] {
            let shown = rows(&screen(Some(&live), size, false));
            assert!(shown.len() <= size.1, "{size:?}: {shown:?}");
            assert!(shown.iter().all(|row| row.chars().count() <= size.0), "{size:?}: {shown:?}");
            let last = shown.last().expect("a row");
            assert!(KEYS.starts_with(last.as_str()), "{last}");
        }
        let shown = rows(&screen(Some(&live), (80, 24), false));
        assert!(shown[0].starts_with("1234abcd: slob"), "{shown:?}");
        assert!(shown.iter().any(|row| row.starts_with("Operations") && row.ends_with("1,300 1/s")), "{shown:?}");
    }

    #[test]
    fn nothing_is_bold_without_colours() {
        let live = live();
        assert!(screen(Some(&live), (80, 24), true).contains(BOLD));
        assert!(!screen(Some(&live), (80, 24), false).contains(BOLD));
        assert!(screen(None, (0, 0), false).contains("not begun yet"));
    }
}
