//! The server: connections with limits, replies with the headers that a page of ours needs, streams of frames.

use super::guard::{FORM_BYTES, Guard, POLICY, Verdict};
use super::{Ask, FORM_TOKEN, LiveFrame, Reply, Site};
use crate::ControlError;
use assay_measure::locked::locked;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

pub use tokio_rustls::rustls::ServerConfig;

/// Connections at a time: two for each of 200 viewers, and some.
const CONNECTIONS: usize = 512;
/// Threads that make pages.
const MAKERS: usize = 2;
/// A request whose head is not whole after so long, and a connection that asks nothing, is closed.
const HEAD: Duration = Duration::from_secs(10);
/// Who takes nothing of what was sent for so long is cut off by the kernel.
const UNREAD_MS: u32 = 30_000;
/// Bytes of a request's head, and its lines.
const HEAD_BYTES: usize = 16 << 10;
const HEAD_LINES: usize = 64;
/// Between two frames.
const FRAME: Duration = Duration::from_secs(1);
/// Frames kept for a viewer who is behind.
const FRAMES_KEPT: usize = 2;
/// How long the end waits for the last frames to be made, on a host that leaves few CPUs to them, and then to be sent.
const LAST_FRAMES: Duration = Duration::from_secs(10);
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Priority of threads that give way: beside one that computes they have a tenth of its CPU.
const POLITE: i32 = 10;
/// After an error of accepting, such as no descriptor left, and between two looks at what ends.
const BREATH: Duration = Duration::from_millis(100);

/// What who comes when all connections are taken is told.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 24\r\n\r\ntoo many connections now";

/// How a site is served.
#[derive(Clone, Debug)]
pub struct Serving {
    /// Where it listens.
    pub address: SocketAddr,
    /// Who may ask has it.
    pub token: String,
    /// Its threads give way to all others.
    pub is_polite: bool,
    /// What encrypts it; nothing does otherwise.
    pub tls: Option<Arc<ServerConfig>>,
    /// The token of forms, where they are taken.
    pub forms: Option<String>,
}

/// A server on a thread of its own.
#[derive(Debug)]
pub struct Server {
    thread: JoinHandle<()>,
    stop: watch::Sender<bool>,
    url: String,
}

impl Server {
    /// Listens at an address, and shows a site to who has the token.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn start(serving: Serving, site: Arc<dyn Site>) -> Result<Self, ControlError> {
        let Serving { address, token, is_polite, tls, forms } = serving;
        let cannot = |error: std::io::Error| ControlError::Unusable(format!("cannot listen on {address}: {error}"));
        let listener = StdListener::bind(address).map_err(cannot)?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        let (stop, stopped) = watch::channel(false);
        let own_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let (scheme, is_encrypted) = if tls.is_some() { ("https", true) } else { ("http", false) };
        let url = format!("{scheme}://{bound}/?token={token}");
        let guard = Guard { token, port: bound.port(), own_name, is_encrypted, forms };
        let looks = Arc::new(Semaphore::new(MAKERS));
        let shared = Arc::new(Shared { site, guard, looks, streams: Mutex::default() });
        let give_way = move || {
            if is_polite {
                // Of this thread alone. Where it is forbidden, the thread is as the others.
                let _ = rustix::process::setpriority_process(None, POLITE);
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(MAKERS)
            .thread_name("serve")
            .on_thread_start(give_way)
            .build()
            .map_err(cannot)?;
        let serve = move || {
            give_way();
            runtime.block_on(accept(listener, tls.map(TlsAcceptor::from), shared, stopped));
            // A page that is still made is for nobody.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("serve".to_owned()).spawn(serve).map_err(cannot)?;
        Ok(Self { thread, stop, url })
    }

    /// Where it is, with the token.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends it: streams send their last frame, for a time that is bounded; whoever does not take it goes without.
    pub fn end(self) {
        let _ = self.stop.send(true);
        let _ = self.thread.join();
    }
}

struct Shared {
    site: Arc<dyn Site>,
    guard: Guard,
    looks: Arc<Semaphore>,
    /// Runs that somebody looks at.
    streams: Mutex<HashMap<String, broadcast::Sender<Arc<str>>>>,
}

async fn accept(
    listener: StdListener,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let app = Router::new()
        .route("/run/{name}/events", get(events))
        .fallback(page)
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), admit))
        .with_state(Arc::clone(&shared));
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(_) => {
                    sleep(BREATH).await;
                    continue;
                }
            },
            _ = stopped.changed() => break,
        };
        match Arc::clone(&slots).try_acquire_owned() {
            Ok(slot) => {
                let (tls, app, stopped) = (tls.clone(), app.clone(), stopped.clone());
                tokio::spawn(async move {
                    connection(stream, tls, app, stopped).await;
                    drop(slot);
                });
            }
            Err(_) if tls.is_some() => {}
            Err(_) => drop(stream.try_write(FULL)),
        }
    }
    drop(listener);
    let made = async {
        while !locked(&shared.streams).is_empty() {
            sleep(BREATH).await;
        }
    };
    let _ = timeout(LAST_FRAMES, made).await;
    let _ = timeout(LAST_WORDS, slots.acquire_many(CONNECTIONS as u32)).await;
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, app: Router, stopped: watch::Receiver<bool>) {
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, UNREAD_MS);
    match tls {
        None => requests(stream, app, stopped).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(HEAD, tls.accept(stream)).await {
                requests(stream, app, stopped).await;
            }
        }
    }
}

async fn requests(stream: impl AsyncRead + AsyncWrite + Unpin, app: Router, mut stopped: watch::Receiver<bool>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_headers(HEAD_LINES).max_buf_size(HEAD_BYTES);
    let mut served = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app)));
    tokio::select! {
        _ = served.as_mut() => {}
        () = async { drop(stopped.wait_for(|is_over| *is_over).await) } => {
            served.as_mut().graceful_shutdown();
            let _ = served.await;
        }
    }
}

/// Lets in who may ask, and gives every reply the headers of ours.
async fn admit(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let mut response = match shared.guard.judge(request.method(), request.uri(), request.headers()) {
        Verdict::Admitted => next.run(request).await,
        Verdict::Keep { cookie, place } => {
            (StatusCode::SEE_OTHER, [(header::SET_COOKIE, cookie), (header::LOCATION, place)]).into_response()
        }
        Verdict::Refused(status, why) => {
            let mut refused = response_of(Reply::refused(status, why));
            refused.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            refused
        }
    };
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        // Without one a browser does not say which page a form is of.
        ("referrer-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

fn response_of(reply: Reply) -> Response {
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let charset = if reply.media_type.contains(';') { "" } else { "; charset=utf-8" };
    if let Ok(value) = HeaderValue::from_str(&format!("{}{charset}", reply.media_type)) {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    if let Some(value) = reply.location.and_then(|path| HeaderValue::try_from(path).ok()) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    if reply.status == 503 {
        response.headers_mut().insert(header::REFRESH, HeaderValue::from_static("2"));
    }
    if reply.is_fixed {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600"));
    }
    response
}

async fn page(
    State(shared): State<Arc<Shared>>,
    Query(query): Query<BTreeMap<String, String>>,
    request: Request,
) -> Response {
    // Names of runs and files are ours; one with other signs is written by its numbers and is not found.
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let form = match *request.method() {
        Method::POST => match form(request.into_body(), &shared.guard).await {
            Ok(form) => Some(form),
            Err(why) => return response_of(Reply::refused(403, why)),
        },
        _ => None,
    };
    let ask = Ask { path, query, form };
    let made = shared.made(move |site| site.reply(&ask)).await;
    response_of(made.unwrap_or_else(|| Reply::refused(500, "this page cannot be made: a bug in assay")))
}

/// The fields of a form of ours, without its token.
async fn form(body: Body, guard: &Guard) -> Result<BTreeMap<String, String>, &'static str> {
    let body =
        timeout(HEAD, to_bytes(body, FORM_BYTES)).await.ok().and_then(Result::ok).ok_or("the form did not come")?;
    // It is written as a query is.
    let uri = str::from_utf8(&body).ok().and_then(|body| format!("/?{body}").parse().ok()).ok_or("this is no form")?;
    let Query(mut fields): Query<BTreeMap<String, String>> =
        Query::try_from_uri(&uri).map_err(|_| "this is no form")?;
    let token = fields.remove(FORM_TOKEN).unwrap_or_default();
    if guard.is_ours_by(&token) { Ok(fields) } else { Err("this form is not of a page of this server: load it again") }
}

async fn events(State(shared): State<Arc<Shared>>, Path(run): Path<String>) -> Response {
    let receiver = Arc::clone(&shared).join(&run);
    let frames = stream::unfold(receiver, |mut receiver| async {
        loop {
            match receiver.recv().await {
                Ok(text) => return Some((Ok::<_, Infallible>(Event::default().data(text)), receiver)),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    });
    Sse::new(frames).into_response()
}

impl Shared {
    /// What the site makes, on a thread that may block; few at a time. `None` if it panicked.
    async fn made<T: Send + 'static>(&self, make: impl FnOnce(&dyn Site) -> T + Send + 'static) -> Option<T> {
        let _look = self.looks.acquire().await.ok()?;
        let site = Arc::clone(&self.site);
        spawn_blocking(move || make(&*site)).await.ok()
    }

    /// The frames of a run from now on; who comes first has them made.
    fn join(self: Arc<Self>, run: &str) -> broadcast::Receiver<Arc<str>> {
        let mut streams = locked(&self.streams);
        if let Some(sender) = streams.get(run) {
            return sender.subscribe();
        }
        let (sender, receiver) = broadcast::channel(FRAMES_KEPT);
        streams.insert(run.to_owned(), sender.clone());
        drop(streams);
        tokio::spawn(tell(self, run.to_owned(), sender));
        receiver
    }
}

/// Makes frames until the last one, or until nobody looks.
async fn tell(shared: Arc<Shared>, run: String, sender: broadcast::Sender<Arc<str>>) {
    loop {
        let name = run.clone();
        let frame = shared.made(move |site| site.frame(&name)).await.flatten();
        let is_last = frame.as_ref().is_none_or(|frame| frame.is_last);
        if let Some(LiveFrame { text, .. }) = frame {
            let _ = sender.send(text.into());
        }
        if !is_last {
            sleep(FRAME).await;
        }
        // Nobody joins between this look and the end.
        let mut streams = locked(&shared.streams);
        if is_last || sender.receiver_count() == 0 {
            streams.remove(&run);
            return;
        }
    }
}
