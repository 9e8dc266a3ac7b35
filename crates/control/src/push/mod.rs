//! Figures of a run that goes on, sent to a monitoring system: by Prometheus' remote write, which Prometheus, Mimir, Thanos and
//! VictoriaMetrics take, or by OTLP, which collectors of OpenTelemetry take. Both encode the same families.
//!
//! A receiver that is slow or gone costs the run nothing: a thread of its own sends, each request has a deadline, and what could
//! not be sent is not kept, since the next request has newer totals. The first is sent before the run, so that a wrong URL ends the
//! command and not the evening.

mod otlp;
mod remote_write;

use crate::ControlError;
use assay_measure::families::Exposition;
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
/// Characters of an answer that are shown.
const SHOWN: usize = 300;

/// What a receiver speaks.
struct Protocol {
    headers: &'static [(&'static str, &'static str)],
    body: fn(&Exposition) -> Result<Vec<u8>, String>,
    /// What it did not take, by the text of an answer that is a success.
    rejected: fn(&str) -> Option<String>,
}

/// Where the figures come from, and where what happened is told.
pub struct Pushed {
    /// The figures now; `None` while there are none.
    pub figures: Box<dyn Fn() -> Option<Exposition> + Send>,
    /// Tells a line.
    pub say: Box<dyn Fn(&str) + Send>,
}

/// A receiver.
#[derive(Clone)]
pub struct Receiver {
    agent: Agent,
    url: String,
    protocol: &'static Protocol,
    authorization: Option<String>,
}

/// Without the header, which is a secret.
impl std::fmt::Debug for Receiver {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Receiver").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Receiver {
    /// The receiver at a URL, which is sent an `Authorization` header where one is given. It speaks OTLP where the path is that of
    /// OTLP's metrics, as it is by default, else remote write. Nothing is sent yet.
    ///
    /// # Errors
    /// `Refused` where the URL is not one of HTTP, has no path, or holds a password.
    pub fn new(url: &str, authorization: Option<String>) -> Result<Self, ControlError> {
        // Before anything of the URL is shown.
        if url.contains('@') {
            let message = "--push: a password has no place in a URL, which others see in the list of processes: --push-authorization names a file with the header's value";
            return Err(ControlError::Refused(message.to_owned()));
        }
        let refused = |why: &str| {
            let such = "http://127.0.0.1:9090/api/v1/write for remote write, http://127.0.0.1:4318/v1/metrics for OTLP";
            ControlError::Refused(format!("{url}: {why}, such as {such}"))
        };
        let parsed: http::Uri = url.parse().map_err(|_| refused("is no URL of a receiver"))?;
        parsed.authority().ok_or_else(|| refused("names no receiver"))?;
        if !matches!(parsed.scheme_str(), Some("http" | "https")) {
            return Err(refused("is neither http:// nor https://"));
        }
        let protocol = match parsed.path() {
            "" | "/" => return Err(refused("has no path")),
            path if path.ends_with("/v1/metrics") => &otlp::PROTOCOL,
            _ => &remote_write::PROTOCOL,
        };
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
        Ok(Self { agent: config.new_agent(), url: url.to_owned(), protocol, authorization })
    }

    /// Sends figures.
    ///
    /// # Errors
    /// `Unusable` with what the receiver says.
    pub fn send(&self, figures: &Exposition) -> Result<(), ControlError> {
        let failed = |why: String| ControlError::Unusable(format!("{}: {why}", self.url));
        let Protocol { headers, body, rejected } = self.protocol;
        let mut request = self.agent.post(&self.url);
        let authorization = self.authorization.as_deref().map(|value| ("Authorization", value));
        for (name, value) in headers.iter().copied().chain(authorization) {
            request = request.header(name, value);
        }
        let body = body(figures).map_err(failed)?;
        let mut answer = request.send(&body[..]).map_err(|error| failed(error.to_string()))?;
        let said = answer.body_mut().with_config().limit(64 << 10).read_to_string().unwrap_or_default();
        let (status, said) = (answer.status(), said.trim());
        let why = match said {
            _ if status.is_success() => rejected(said),
            "" => Some(format!("answers {status}")),
            _ => Some(format!("answers {status}: {said}")),
        };
        why.map_or(Ok(()), |why| Err(failed(why.chars().take(SHOWN).collect())))
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
    pub fn start(receiver: Receiver, first: &Exposition, pushed: Pushed) -> Result<Self, ControlError> {
        receiver.send(first)?;
        let (end, ended) = channel();
        let sends = move || {
            let mut has_failed = false;
            loop {
                let is_last = !matches!(ended.recv_timeout(EVERY), Err(RecvTimeoutError::Timeout));
                if let Some(figures) = (pushed.figures)() {
                    // Told once, and again only after it went well.
                    let outcome = receiver.send(&figures);
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
    fn receiver(path: &str, answers: &'static [(&'static str, &'static str)]) -> (String, Heard<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}{path}", listener.local_addr().expect("bound"));
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            for (answer, said) in answers {
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
                let length = said.len();
                let text = format!("HTTP/1.1 {answer}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{said}");
                stream.write_all(text.as_bytes()).expect("answered");
                tell.send(head).expect("heard");
            }
        });
        (url, heard)
    }

    fn figures() -> Exposition {
        Exposition { begin_s: 0.0, end_s: 0.001, families: Vec::new() }
    }

    /// A request to a receiver that gives this answer.
    fn sent(path: &str, answers: &'static [(&'static str, &'static str)]) -> (Result<(), ControlError>, String) {
        let (url, heard) = receiver(path, answers);
        let sent = Receiver::new(&url, None).expect("a URL").send(&figures());
        (sent, heard.recv().expect("a request"))
    }

    #[test]
    fn the_first_and_the_last_are_sent_and_a_failure_is_told_once() {
        let (url, heard) = receiver("/write", &[("204 No Content", ""), ("500 Internal Server Error", "why\n")]);
        let told = std::sync::Arc::new(Mutex::new(Vec::new()));
        let say = std::sync::Arc::clone(&told);
        let pushed = Pushed {
            figures: Box::new(|| Some(figures())),
            say: Box::new(move |line| say.lock().expect("whole").push(line.to_owned())),
        };
        let receiver = Receiver::new(&url, Some("Bearer t".to_owned())).expect("a URL");
        let push = Push::start(receiver, &figures(), pushed).expect("taken");
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
        for (url, why) in [
            ("ftp://h/", "neither http"),
            ("/write", "names no receiver"),
            ("http://h:4318", "v1/metrics for OTLP"),
            ("http://u:pw@h/", "authorization"),
        ] {
            let error = Receiver::new(url, None).expect_err("refused").to_string();
            assert!(error.contains(why) && !error.contains("pw@"), "{error}");
        }
        let (url, _heard) = receiver("/write", &[("404 Not Found", "why\n")]);
        let nothing = Pushed { figures: Box::new(|| None), say: Box::new(|_| {}) };
        let receiver = Receiver::new(&url, None).expect("a URL");
        let error = Push::start(receiver, &figures(), nothing).expect_err("not taken").to_string();
        assert!(error.contains("answers 404 Not Found: why"), "{error}");
    }

    #[test]
    fn a_receiver_of_otlp_is_known_by_its_path_and_what_it_does_not_take_is_told() {
        let (taken, head) = sent("/otlp/v1/metrics", &[("200 OK", r#"{"partialSuccess":{}}"#)]);
        assert!(taken.is_ok() && head.contains("content-type: application/json"), "{taken:?} {head}");
        let (sent, _) = sent(
            "/v1/metrics",
            &[("200 OK", r#"{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too old"}}"#)],
        );
        let error = sent.expect_err("not all").to_string();
        assert!(error.contains("rejects 3 points: too old"), "{error}");
    }
}
