//! Figures of a run that goes on, sent to a monitoring system: Prometheus' remote write, which Prometheus, Mimir, Thanos and
//! VictoriaMetrics take.
//!
//! A receiver that is slow or gone costs the run nothing: a thread of its own sends, each request has a deadline, and what could
//! not be sent is not kept, since the next request has newer totals. The first is sent before the run, so that a wrong URL ends the
//! command and not the evening.

mod remote_write;

use crate::ControlError;
use remote_write::body;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use ureq::config::Config;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, http};

/// Between two requests.
pub const EVERY: Duration = Duration::from_secs(10);
/// A request that takes longer has failed.
const DEADLINE: Duration = Duration::from_secs(5);
/// Bytes of an answer that are shown.
const SHOWN: usize = 300;

/// A value.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// The whole name.
    pub name: String,
    /// Names and values of its labels; none is empty.
    pub labels: Vec<(String, String)>,
    /// The value.
    pub value: f64,
}

/// Values of one instant.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// The instant, ms since 1970.
    pub at_ms: i64,
    /// The values, each of a series of its own.
    pub all: Vec<Sample>,
}

/// Where the samples come from, and where what happened is told.
pub struct Pushed {
    /// The samples now; `None` while there are none.
    pub samples: Box<dyn Fn() -> Option<Samples> + Send>,
    /// Tells a line.
    pub say: Box<dyn Fn(&str) + Send>,
}

/// A receiver.
#[derive(Clone)]
pub struct Receiver {
    agent: Agent,
    url: String,
    authorization: Option<String>,
}

/// Without the header, which is a secret.
impl std::fmt::Debug for Receiver {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Receiver").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Receiver {
    /// The receiver at a URL, which is sent an `Authorization` header where one is given. Nothing is sent yet.
    ///
    /// # Errors
    /// `Refused` where the URL is not one of HTTP, or holds a password.
    pub fn new(url: &str, authorization: Option<String>) -> Result<Self, ControlError> {
        // Before anything of the URL is shown.
        if url.contains('@') {
            let message = "--push: a password has no place in a URL, which others see in the list of processes: --push-authorization names a file with the header's value";
            return Err(ControlError::Refused(message.to_owned()));
        }
        let refused =
            |why: &str| ControlError::Refused(format!("{url}: {why}, such as http://127.0.0.1:9090/api/v1/write"));
        let parsed: http::Uri = url.parse().map_err(|_| refused("is no URL of a receiver of remote write"))?;
        parsed.authority().ok_or_else(|| refused("names no receiver of remote write"))?;
        if !matches!(parsed.scheme_str(), Some("http" | "https")) {
            return Err(refused("is neither http:// nor https://"));
        }
        let roots = rustls_native_certs::load_native_certs().certs;
        let roots = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect::<Vec<_>>();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::from(roots))
            .unversioned_rustls_crypto_provider(std::sync::Arc::new(rustls::crypto::ring::default_provider()))
            .build();
        let config = Config::builder()
            .timeout_global(Some(DEADLINE))
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("assay/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build();
        Ok(Self { agent: config.new_agent(), url: url.to_owned(), authorization })
    }

    /// Sends samples.
    ///
    /// # Errors
    /// `Unusable` with what the receiver says.
    pub fn send(&self, samples: &Samples) -> Result<(), ControlError> {
        let failed = |why: String| ControlError::Unusable(format!("{}: {why}", self.url));
        let mut request = self
            .agent
            .post(&self.url)
            .header("Content-Type", "application/x-protobuf")
            .header("Content-Encoding", "snappy")
            .header("X-Prometheus-Remote-Write-Version", "0.1.0");
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let body = body(samples).map_err(|error| failed(error.to_string()))?;
        let mut answer = request.send(&body[..]).map_err(|error| failed(error.to_string()))?;
        if answer.status().is_success() {
            return Ok(());
        }
        let said = answer.body_mut().with_config().limit(64 << 10).read_to_string().unwrap_or_default();
        let said: String = said.trim().chars().take(SHOWN).collect();
        Err(failed(format!("answers {}{}{said}", answer.status(), if said.is_empty() { "" } else { ": " })))
    }
}

/// Sends until it is ended.
#[derive(Debug)]
pub struct Push {
    end: Sender<()>,
    sends: JoinHandle<()>,
}

impl Push {
    /// Sends `first`, and from now on what there is, every ten seconds.
    ///
    /// # Errors
    /// `Unusable` if the first is not taken, or no thread can be had.
    pub fn start(receiver: Receiver, first: &Samples, pushed: Pushed) -> Result<Self, ControlError> {
        receiver.send(first)?;
        let (end, ended) = channel();
        let sends = move || {
            let mut has_failed = false;
            loop {
                let is_last = !matches!(ended.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout));
                if let Some(samples) = (pushed.samples)() {
                    // Told once, and again only after it went well.
                    let outcome = receiver.send(&samples);
                    if let Err(error) = outcome.as_ref().map_err(ToString::to_string)
                        && (!has_failed || is_last)
                    {
                        (pushed.say)(&format!("notice: figures could not be sent: {error}"));
                    }
                    has_failed = outcome.is_err();
                }
                if is_last {
                    return;
                }
            }
        };
        let named = std::thread::Builder::new().name("assay-push".to_owned());
        let sends =
            named.spawn(sends).map_err(|error| ControlError::Unusable(format!("no thread to send by: {error}")))?;
        Ok(Self { end, sends })
    }

    /// Sends what there is once more, which takes 5 s at most, and ends.
    pub fn end(self) {
        drop(self.end);
        let _ = self.sends.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::Mutex;
    use std::sync::mpsc::Receiver as Heard;

    /// A receiver that gives each request one of the answers in turn, and tells the heads of the requests.
    fn receiver(answers: &'static [&'static str]) -> (String, Heard<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/write", listener.local_addr().expect("bound"));
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().expect("a request");
                let mut request = Vec::new();
                let mut part = [0; 4096];
                let is_whole = |request: &[u8]| {
                    let text = String::from_utf8_lossy(request).to_lowercase();
                    let (head, _) = text.split_once("\r\n\r\n")?;
                    let length: usize = head.split_once("content-length: ")?.1.lines().next()?.parse().ok()?;
                    (request.len() >= head.len() + 4 + length).then(|| head.to_owned())
                };
                let head = loop {
                    if let Some(head) = is_whole(&request) {
                        break head;
                    }
                    let read = stream.read(&mut part).expect("its bytes");
                    request.extend_from_slice(&part[..read]);
                };
                let text = format!("HTTP/1.1 {answer}\r\nContent-Length: 4\r\nConnection: close\r\n\r\nwhy\n");
                stream.write_all(text.as_bytes()).expect("answered");
                tell.send(head).expect("heard");
            }
        });
        (url, heard)
    }

    fn samples() -> Samples {
        Samples { at_ms: 1, all: vec![Sample { name: "up".to_owned(), value: 1.0, ..Sample::default() }] }
    }

    #[test]
    fn the_first_and_the_last_are_sent_and_a_failure_is_told_once() {
        let (url, heard) = receiver(&["204 No Content", "500 Internal Server Error"]);
        let told = std::sync::Arc::new(Mutex::new(Vec::new()));
        let say = std::sync::Arc::clone(&told);
        let pushed = Pushed {
            samples: Box::new(|| Some(samples())),
            say: Box::new(move |line| say.lock().expect("whole").push(line.to_owned())),
        };
        let receiver = Receiver::new(&url, Some("Bearer t".to_owned())).expect("a URL");
        let push = Push::start(receiver, &samples(), pushed).expect("taken");
        push.end();
        let heads: Vec<String> = heard.iter().collect();
        assert_eq!(heads.len(), 2);
        for header in
            ["content-encoding: snappy", "x-prometheus-remote-write-version: 0.1.0", "authorization: bearer t"]
        {
            assert!(heads.iter().all(|head| head.contains(header)), "{header}: {heads:?}");
        }
        let told = told.lock().expect("whole");
        assert!(told.len() == 1 && told[0].contains("answers 500") && told[0].ends_with("why"), "{told:?}");
    }

    #[test]
    fn what_no_receiver_takes_is_refused_before_the_run() {
        for (url, why) in
            [("ftp://h/", "neither http"), ("/write", "names no receiver"), ("http://u:pw@h/", "authorization")]
        {
            let error = Receiver::new(url, None).expect_err("refused").to_string();
            assert!(error.contains(why) && !error.contains("pw@"), "{error}");
        }
        let (url, _heard) = receiver(&["404 Not Found"]);
        let nothing = Pushed { samples: Box::new(|| None), say: Box::new(|_| {}) };
        let receiver = Receiver::new(&url, None).expect("a URL");
        let error = Push::start(receiver, &samples(), nothing).expect_err("not taken").to_string();
        assert!(error.contains("answers 404 Not Found: why"), "{error}");
    }
}
