//! The NATS server: connecting, subjects, and what is kept in JetStream.

use super::FleetError;
use super::message::{KeptPart, hex};
use assay_run::bounded;
use async_nats::jetstream::{self, stream};
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, ServerError, rustls};
use futures_util::StreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long the first connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// Until what the server said has reached who listens for it.
const EVENT: Duration = Duration::from_millis(10);
/// Room of a message beside its payload, bytes.
const HEADER: usize = 4096;
/// The least that a server must take in a message, bytes: what was measured goes in pieces, orders do not.
const LEAST_PAYLOAD: usize = 16 << 10;
/// A piece at most, bytes: many hosts keep theirs at the same time.
const PIECE: usize = 512 << 10;
/// What is kept and not taken goes after so long.
const KEPT: Duration = Duration::from_hours(24 * 7);

/// How to reach a fleet's server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// `nats://[USER:PASSWORD@ or TOKEN@]HOST[:PORT]`.
    pub url: String,
    /// The fleet's name: the first token of its subjects.
    pub fleet: String,
    /// Certificates of who vouches for the server, PEM; `None`: those that the system trusts.
    pub ca: Option<PathBuf>,
}

impl Address {
    /// Its URL without what lets somebody in.
    #[must_use]
    pub fn shown(&self) -> String {
        match self.parts() {
            (scheme, Some(_), host) => format!("{scheme}://***@{host}"),
            _ => self.url.clone(),
        }
    }

    /// Host and port of the server.
    #[must_use]
    pub fn server(&self) -> &str {
        self.parts().2
    }

    /// Scheme, who asks to be let in, and the server.
    fn parts(&self) -> (&str, Option<&str>, &str) {
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("nats", &self.url));
        match rest.rsplit_once('@') {
            Some((who, host)) => (scheme, Some(who), host),
            None => (scheme, None, rest),
        }
    }

    /// How the server is asked to let us in; its address.
    fn options(&self) -> Result<(ConnectOptions, String), FleetError> {
        let (scheme, who, host) = self.parts();
        let options = match who.map(|who| who.split_once(':').ok_or(who)) {
            None => ConnectOptions::new(),
            Some(Ok((user, password))) => ConnectOptions::with_user_and_password(user.to_owned(), password.to_owned()),
            Some(Err(token)) => ConnectOptions::with_token(token.to_owned()),
        };
        let server = format!("{scheme}://{host}");
        let Some(ca) = &self.ca else {
            return Ok((options, server));
        };
        let refused = |why: &str| FleetError::Refused(format!("--tls-ca {}: {why}", ca.display()));
        let found = bounded::text(ca, bounded::CERTIFICATES).map_err(|error| refused(&error.to_string()))?;
        if !found.contains("BEGIN CERTIFICATE") {
            return Err(refused("there is no certificate in it (PEM)"));
        }
        Ok((options.add_root_certificates(ca.clone()), server))
    }
}

/// Why the server cannot be used, and what to do about it.
fn why_not(error: &ConnectError) -> String {
    let told = error.to_string();
    if told.contains("certificate") {
        return format!(
            "its certificate is not accepted ({told}); name who signed it with --tls-ca FILE (or NATS_CA), and the server as its \
             certificate does"
        );
    }
    if told.contains("corrupt message") {
        return format!("it does not speak TLS ({told}): nats:// is for a server without");
    }
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            "the server refuses this token; use the URL that `assay fleet up` printed".to_owned()
        }
        ConnectErrorKind::Io | ConnectErrorKind::TimedOut | ConnectErrorKind::Dns => {
            format!("nobody answers ({told}); is `assay fleet up` running, and may this host reach it?")
        }
        _ => told,
    }
}

/// A connection to the server of one fleet.
#[derive(Clone, Debug)]
pub struct Bus {
    client: Client,
    fleet: String,
    shown: String,
    /// What the server did not let us do first.
    denied: Arc<OnceLock<String>>,
}

impl Bus {
    /// Connects; afterwards a lost connection is dialled again for as long as it takes.
    ///
    /// # Errors
    /// There is nobody, or the server does not let us in.
    pub async fn connect(address: &Address, name: &str) -> Result<Self, FleetError> {
        let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if address.fleet.is_empty() || !address.fleet.chars().all(is_legal) {
            let fleet = &address.fleet;
            return Err(FleetError::Refused(format!("a fleet's name has letters, digits, - and _ alone: {fleet:?}")));
        }
        let shown = address.shown();
        // A build with every driver has two, and a connection by TLS would not know which to take; an earlier choice stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (options, server) = address.options()?;
        let denied = Arc::new(OnceLock::new());
        let heard = Arc::clone(&denied);
        let options = options
            .event_callback(move |event| {
                if let Event::ServerError(ServerError::Other(text)) = event {
                    // The first says why, the others follow from it.
                    let _ = heard.set(text);
                }
                std::future::ready(())
            })
            .name(format!("assay {name}"))
            .connection_timeout(CONNECT)
            .request_timeout(Some(CONNECT))
            .subscription_capacity(1 << 16)
            .max_reconnects(None)
            .ping_interval(Duration::from_secs(5))
            .reconnect_delay_callback(|attempts| Duration::from_millis(100 * attempts.min(10) as u64));
        let client = options
            .connect(&server)
            .await
            .map_err(|error| FleetError::Unusable(format!("{shown}: {}", why_not(&error))))?;
        let bus = Self { client, fleet: address.fleet.clone(), shown, denied };
        let most = bus.client.max_payload();
        if most < LEAST_PAYLOAD {
            return Err(bus.failed(&format!(
                "it takes messages of {most} bytes at most, and a fleet needs {LEAST_PAYLOAD}: raise max_payload of its configuration"
            )));
        }
        bus.is_let_in().await?;
        Ok(bus)
    }

    /// Makes sure that this token is of this fleet: who is not let in would wait forever.
    async fn is_let_in(&self) -> Result<(), FleetError> {
        let inbox = self.client.new_inbox();
        // What the server says of the first stands before the message in what it sends.
        let asked = async {
            let _of_fleet = self.subscribe("all.hello").await?;
            let mut own = self.client.subscribe(inbox.clone()).await.map_err(|error| self.failed(&error))?;
            self.client.publish(inbox.clone(), "".into()).await.map_err(|error| self.failed(&error))?;
            own.next().await;
            tokio::time::sleep(EVENT).await;
            Ok(())
        };
        tokio::time::timeout(CONNECT, asked).await.map_err(|_| self.failed(&"it answers nothing"))??;
        match self.denied.get() {
            None => Ok(()),
            Some(why) => Err(self.failed(&format!(
                "this token is not of fleet {} ({why}); use the URL that `assay fleet up --fleet {0}` printed",
                self.fleet
            ))),
        }
    }

    /// The connection.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A subject of this fleet.
    #[must_use]
    pub fn subject(&self, rest: &str) -> String {
        format!("{}.{rest}", self.fleet)
    }

    /// Whether the server can be reached now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// Subscribes.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn subscribe(&self, rest: &str) -> Result<async_nats::Subscriber, FleetError> {
        let subscribed = self.client.subscribe(self.subject(rest)).await;
        subscribed.map_err(|error| self.failed(&error))
    }

    /// Says something to whoever listens; nothing while the server is gone, so that nothing old is said when it is back.
    pub async fn say(&self, rest: &str, what: &impl Serialize) {
        if let (true, Ok(bytes)) = (self.is_connected(), serde_json::to_vec(what)) {
            // Who does not hear it asks by the next beat.
            let _ = self.client.publish(self.subject(rest), bytes.into()).await;
        }
    }

    /// Answers a request.
    pub async fn answer(&self, to: Option<async_nats::Subject>, what: &impl Serialize) {
        if let (Some(to), Ok(bytes)) = (to, serde_json::to_vec(what)) {
            let _ = self.client.publish(to, bytes.into()).await;
        }
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// None came, or not one of ours.
    pub async fn ask<T: DeserializeOwned>(&self, rest: &str, what: &impl Serialize) -> Result<T, FleetError> {
        let bytes = serde_json::to_vec(what).map_err(|error| self.failed(&error))?;
        self.fits(&bytes)?;
        let reply = self.client.request(self.subject(rest), bytes.into()).await.map_err(|error| self.failed(&error))?;
        serde_json::from_slice(&reply.payload).map_err(|error| self.failed(&error))
    }

    /// Refuses what the server would.
    fn fits(&self, bytes: &[u8]) -> Result<(), FleetError> {
        let (size, most) = (bytes.len(), self.client.max_payload());
        if size <= most {
            return Ok(());
        }
        Err(FleetError::Refused(format!(
            "{}: it takes messages of {most} bytes at most, and {size} are needed for so many hosts: raise max_payload of its \
             configuration",
            self.shown
        )))
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> FleetError {
        FleetError::Unusable(format!("{}: {error}", self.shown))
    }

    fn stream_name(&self) -> String {
        format!("assay_{}", self.fleet)
    }

    /// What is kept of this fleet's runs.
    ///
    /// # Errors
    /// The server has no JetStream, or does not let us use it.
    pub async fn kept(&self) -> Result<KeptRuns, FleetError> {
        let context = jetstream::new(self.client.clone());
        let config = stream::Config {
            name: self.stream_name(),
            subjects: vec![self.subject("kept.>")],
            max_age: KEPT,
            max_messages_per_subject: 1,
            // What is taken comes as it was kept, without a coat of JSON.
            allow_direct: true,
            ..stream::Config::default()
        };
        let refused = |error: &dyn std::fmt::Display| {
            let shown = &self.shown;
            FleetError::Unusable(format!(
                "{shown}: results cannot be kept there ({error}); start the server with JetStream (`nats-server -js`), or use `assay fleet up`"
            ))
        };
        let stream = context.get_or_create_stream(config.clone()).await.map_err(|error| refused(&error))?;
        if !stream.cached_info().config.allow_direct {
            context.update_stream(config).await.map_err(|error| refused(&error))?;
        }
        Ok(KeptRuns { stream, bus: self.clone() })
    }

    /// Keeps one message.
    ///
    /// # Errors
    /// The server did not confirm that it has it.
    pub async fn keep(&self, rest: &str, bytes: Vec<u8>) -> Result<(), FleetError> {
        self.fits(&bytes)?;
        let context = jetstream::new(self.client.clone());
        let sent = context.publish(self.subject(rest), bytes.into()).await.map_err(|error| self.failed(&error))?;
        sent.await.map_err(|error| self.failed(&error)).map(drop)
    }

    /// Keeps a part in pieces that the server takes.
    ///
    /// # Errors
    /// The server did not confirm one.
    pub async fn keep_part(&self, place: &str, name: &str, bytes: &[u8]) -> Result<KeptPart, FleetError> {
        let most = self.client.max_payload().saturating_sub(HEADER).min(PIECE);
        let mut pieces = 0;
        for piece in bytes.chunks(most) {
            self.keep(&format!("kept.{place}.{name}.{pieces}"), piece.to_vec()).await?;
            pieces += 1;
        }
        Ok(KeptPart { name: name.to_owned(), pieces, hash: hex(bytes) })
    }
}

/// What JetStream keeps of a fleet's runs.
#[derive(Debug)]
pub struct KeptRuns {
    stream: stream::Stream,
    bus: Bus,
}

impl KeptRuns {
    /// A message that was kept; `None` if there is none.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn get(&self, rest: &str) -> Result<Option<Vec<u8>>, FleetError> {
        match self.stream.direct_get_last_for_subject(self.bus.subject(&format!("kept.{rest}"))).await {
            Ok(message) => Ok(Some(message.payload.to_vec())),
            Err(error) if error.kind() == stream::DirectGetErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.bus.failed(&error)),
        }
    }

    /// A part, put together; `first` is its first piece, where that is known.
    ///
    /// # Errors
    /// A piece is missing.
    pub async fn part(&self, place: &str, part: &KeptPart, first: Option<Vec<u8>>) -> Result<Vec<u8>, FleetError> {
        let from = u64::from(first.is_some());
        let mut whole = first.unwrap_or_default();
        for piece in from..part.pieces {
            let found = self.get(&format!("{place}.{}.{piece}", part.name)).await?;
            let found =
                found.ok_or_else(|| FleetError::Unusable(format!("piece {piece} of {} is missing", part.name)))?;
            whole.extend(found);
        }
        Ok(whole)
    }

    /// Runs that nobody has taken.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn untaken(&self) -> Result<Vec<String>, FleetError> {
        let filter = self.bus.subject("kept.*.plan");
        let info =
            self.stream.info_builder().subjects(filter).fetch().await.map_err(|error| self.bus.failed(&error))?;
        let mut runs = Vec::new();
        let mut subjects = info;
        while let Some(subject) = subjects.next().await {
            let (subject, _) = subject.map_err(|error| self.bus.failed(&error))?;
            runs.extend(subject.split('.').nth(2).map(str::to_owned));
        }
        runs.sort();
        Ok(runs)
    }

    /// Forgets a run that was taken.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn forget(&self, run: &str) -> Result<(), FleetError> {
        let filter = self.bus.subject(&format!("kept.{run}.>"));
        self.stream.purge().filter(filter).await.map_err(|error| self.bus.failed(&error)).map(drop)
    }
}
