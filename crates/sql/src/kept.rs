//! The connection on which a collector reads a server's counters, opened again after it was lost.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Longest wait for a reading or a login, so that it does not delay the collector; a healthy server has answered by then.
pub(crate) const READING_MAX: Duration = Duration::from_secs(7);
/// Pause before connecting again after that failed.
const RETRY: Duration = Duration::from_secs(1);

/// A connection, and what its readings took.
#[derive(Debug)]
pub(crate) struct Kept<C> {
    connection: Option<C>,
    /// Why there are no readings, and since when.
    lost: Option<(String, Instant)>,
    /// Duration of the last reading.
    pub(crate) last: Duration,
    /// Duration of the longest.
    pub(crate) longest: Duration,
}

impl<C> Kept<C> {
    /// Keeps a connection that was just opened.
    pub(crate) fn new(connection: C) -> Self {
        Self { connection: Some(connection), lost: None, last: Duration::ZERO, longest: Duration::ZERO }
    }

    /// Takes one reading; opens a lost connection once more, unless the command `hurries`. An error that is not fatal
    /// leaves the connection usable.
    pub(crate) fn read<T, E: Display, O: Display>(
        &mut self,
        hurries: bool,
        open: impl Fn() -> Result<C, O>,
        read: impl FnMut(&mut C) -> Result<T, E>,
        is_fatal: fn(&E) -> bool,
    ) -> Result<T, String> {
        let begun = Instant::now();
        let found = self.attempt(hurries, open, read, is_fatal);
        self.last = begun.elapsed();
        self.longest = self.longest.max(self.last);
        found
    }

    fn attempt<T, E: Display, O: Display>(
        &mut self,
        hurries: bool,
        open: impl Fn() -> Result<C, O>,
        mut read: impl FnMut(&mut C) -> Result<T, E>,
        is_fatal: fn(&E) -> bool,
    ) -> Result<T, String> {
        let begun = Instant::now();
        let mut again = !hurries && self.lost.is_none();
        loop {
            let mut connection = match self.connection.take() {
                Some(connection) => connection,
                None => {
                    if let Some((why, since)) = &self.lost
                        && (hurries || since.elapsed() < RETRY)
                    {
                        return Err(why.clone());
                    }
                    open().map_err(|error| self.lost(&error))?
                }
            };
            let error = match read(&mut connection) {
                Ok(found) => {
                    (self.connection, self.lost) = (Some(connection), None);
                    return Ok(found);
                }
                Err(error) => error,
            };
            if !is_fatal(&error) {
                self.connection = Some(connection);
                return Err(error.to_string());
            }
            // A server that was silent for so long would not accept a login either.
            if !again || begun.elapsed() >= READING_MAX {
                return Err(self.lost(&error));
            }
            again = false;
        }
    }

    /// Notes why there is no connection.
    fn lost(&mut self, why: &dyn Display) -> String {
        let reason = format!("statistics connection lost ({why})");
        self.lost = Some((reason.clone(), Instant::now()));
        reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_is_opened_once_more_and_a_refused_reading_keeps_it() {
        let (opened, mut readings) = (std::cell::Cell::new(0), vec!["fatal", "refused", "fatal", "fatal"]);
        let mut kept = Kept::new(());
        let mut read = |kept: &mut Kept<()>| {
            let open = || {
                opened.set(opened.get() + 1);
                Ok::<_, String>(())
            };
            let answer = |_: &mut ()| readings.pop().map_or(Ok("read"), Err);
            kept.read(false, open, answer, |error| *error == "fatal")
        };
        // Opened once more, and lost again; then there is a pause.
        let lost = Err("statistics connection lost (fatal)".to_owned());
        assert_eq!(read(&mut kept), lost);
        assert_eq!(read(&mut kept), lost);
        kept.lost = None;
        assert_eq!(read(&mut kept), Err("refused".to_owned()));
        // The reading after a loss is as good as any.
        assert_eq!(read(&mut kept), Ok("read"));
        assert_eq!(opened.get(), 3);
    }
}
