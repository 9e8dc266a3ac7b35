//! `assay serve` and `run --live`: who may look, what is shown, and that the run ends whoever looks.

use crate::common::{LONG, Place, Started, json, skipped, with};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A server as its URL says it is.
pub(crate) struct Page {
    address: String,
    token: String,
}

impl Page {
    /// Of the line with its URL.
    fn of(line: &str) -> Self {
        let (_, url) = line.split_once("://").unwrap_or_else(|| panic!("no URL: {line}"));
        let (address, token) = url.trim().split_once("/?token=").expect("a token");
        Self { address: address.to_owned(), token: token.to_owned() }
    }

    fn ask(&self, path: &str, headers: &[&str]) -> TcpStream {
        self.sent("GET", path, headers, "")
    }

    fn sent(&self, method: &str, path: &str, headers: &[&str], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{lines}\r\n{body}", self.address);
        stream.write_all(head.as_bytes()).expect("sent");
        stream
    }

    /// Status, head and content of what is sent to who says these lines.
    fn said(&self, path: &str, headers: &[&str]) -> (u16, String, String) {
        Self::heard(self.ask(path, &[headers, &["Connection: close"]].concat()))
    }

    fn heard(mut stream: TcpStream) -> (u16, String, String) {
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
        (status, head.to_lowercase(), body.to_owned())
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    /// The same to who has the token.
    fn get(&self, path: &str) -> (u16, String, String) {
        self.said(path, &[&self.bearer()])
    }

    /// Sends a form as a browser does from a page of this server; `without` leaves out the header that begins so.
    fn form(&self, path: &str, fields: &[(&str, &str)], without: &str) -> (u16, String, String) {
        let escaped = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        let body = body.join("&");
        let (bearer, length) = (self.bearer(), format!("Content-Length: {}", body.len()));
        let origin = format!("Origin: http://{}", self.address);
        let kind = "Content-Type: application/x-www-form-urlencoded";
        let headers = [&bearer, &origin, kind, &length, "Connection: close"];
        let headers: Vec<&str> =
            headers.into_iter().filter(|line| without.is_empty() || !line.starts_with(without)).collect();
        Self::heard(self.sent("POST", path, &headers, &body))
    }

    /// The lines of a stream of events.
    pub(crate) fn events(&self, path: &str) -> impl Iterator<Item = serde_json::Value> {
        let lines = BufReader::new(self.ask(path, &[&self.bearer()])).lines().map_while(Result::ok);
        lines.filter_map(|line| line.strip_prefix("data: ").map(json))
    }
}

pub(crate) fn served(place: &Place, dir: &str) -> (Started, Page) {
    serving(place.start(&["serve", dir]))
}

fn serving(mut server: Started) -> (Started, Page) {
    let mut line = String::new();
    let out = server.child().stdout.take().expect("piped");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let page = Page::of(&line);
    (server, page)
}

/// Starts a run with its page; the rest of what it says is read, so that it never waits for a reader.
pub(crate) fn live(place: &Place, args: &[&str]) -> (Started, Page) {
    let mut run = place.start(args);
    let mut err = BufReader::new(run.child().stderr.take().expect("piped"));
    let mut line = String::new();
    while !line.starts_with("live page: ") {
        line.clear();
        assert_ne!(err.read_line(&mut line).expect("read"), 0, "it said no URL");
    }
    std::thread::spawn(move || std::io::copy(&mut err, &mut std::io::sink()));
    (run, Page::of(&line))
}

/// The place with two stored runs.
fn stored() -> Place {
    let place = Place::new();
    let frozen = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/frozen");
    for name in ["native-updates", "native-updates-2"] {
        std::fs::create_dir_all(place.path(&format!("runs/{name}"))).expect("made");
        let record = std::fs::read_to_string(format!("{frozen}/{name}/record.json")).expect("frozen");
        place.write(&format!("runs/{name}/record.json"), &record);
    }
    place
}

#[test]
fn stored_runs_are_shown_to_who_has_the_token_and_nothing_else_is() {
    let place = stored();
    place.write("secret", "not for pages");
    // What a killed run left is no newest run.
    std::fs::create_dir_all(place.path("runs/zz-killed")).expect("made");
    place.write("runs/zz-killed/series.jsonl", "");
    let (server, page) = served(&place, "runs");
    let (status, head, index) = page.get("/");
    assert_eq!(status, 200, "{index}");
    assert!(head.contains("script-src 'self'") && head.contains("nosniff"), "{head}");
    assert!(index.contains("href=\"/run/native-updates\"") && index.contains("action=\"/compare\""), "{index}");
    let (_, _, run) = page.get("/run/native-updates");
    // Every script of a served page is a file: nothing in the page runs.
    assert!(run.contains("<h2 id=\"judgement-h\">") && run.contains("src=\"/behaviour.js\""));
    assert!(!run.contains("<script>") && !run.contains("unsafe-inline"));
    let (_, _, record) = page.get("/run/native-updates/record.json");
    assert!(record == place.read("runs/native-updates/record.json"), "the record is not the file");
    let (_, _, both) = page.get("/compare?a=/run/native-updates&b=/run/native-updates-2");
    assert!(both.contains("<title>Comparison: "), "{both}");
    assert!(page.get("/trend?metric=ops_per_s").2.contains("<title>Trend: "));
    let (_, head, metrics) = page.get("/metrics");
    assert!(head.contains("openmetrics-text") && metrics.ends_with("# EOF\n"), "{head}\n{metrics}");
    let (status, _, why) = page.get("/run/zz-killed");
    assert!(status == 404 && why.contains("assay runs recover"), "{why}");
    for none in
        ["/run/native-updates/../../secret", "/run/..%2F..%2Fsecret", "/run/%2e%2e/record.json", "//secret", "/secret"]
    {
        let (status, _, body) = page.get(none);
        assert_eq!(status, 404, "{none}: {body}");
        assert!(!body.contains("not for pages"));
    }
    for escaped in ["/trend?metric=%3Cscript%3Ealert(1)%3C/script%3E", "/compare?a=%3Cscript%3E&b="] {
        let (_, head, body) = page.get(escaped);
        assert!(head.contains("text/plain") || !body.contains("<script>alert"), "{head}\n{body}");
    }
    assert_eq!(server.stopped().code, 0);
}

#[test]
fn who_has_no_token_or_comes_from_another_site_gets_nothing() {
    let place = stored();
    let (server, page) = served(&place, "runs");
    let bearer = page.bearer();
    let refused = |path: &str, headers: &[&str]| {
        let (status, head, body) = page.said(path, headers);
        assert_eq!(status, 403, "{path} {headers:?}");
        assert!(head.contains("connection: close") && body.lines().count() == 1, "{head}\n{body}");
    };
    refused("/", &[]);
    refused("/run/native-updates", &["Authorization: Bearer 00000000000000000000000000000000"]);
    refused("/?token=00000000000000000000000000000000", &[]);
    refused("/run/native-updates/events", &["Origin: http://evil.example", &bearer]);
    let mut rebound = TcpStream::connect(&page.address).expect("it listens");
    write!(rebound, "GET / HTTP/1.1\r\nHost: evil.example\r\n{bearer}\r\n\r\n").expect("sent");
    let mut line = String::new();
    BufReader::new(rebound).read_line(&mut line).expect("an answer");
    assert!(line.contains("403"), "{line}");
    let (status, head, _) = page.said(&format!("/?token={}", page.token), &[]);
    assert_eq!(status, 303);
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    assert!(head.contains("location: /\r") || head.ends_with("location: /"), "{head}");
    assert_eq!(page.said("/", &[&format!("Cookie: {cookie}")]).0, 200);
    assert_eq!(server.stopped().code, 0);
}

/// Runs a command that ends with this code and one error that says so much.
fn refused(place: &Place, args: &[&str], code: i32, why: &str) {
    let ran = place.assay(args).code(code);
    assert!(matches!(ran.errors().as_slice(), [only] if only.contains(why)), "{}", ran.err);
}

#[test]
fn a_port_in_use_a_short_token_and_a_directory_without_runs_are_one_error_each() {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    refused(&place, &["serve", ".", "--listen", &address], 3, "cannot listen on");
    refused(&place, &with(LONG, &[&format!("--live={address}")]), 3, "cannot listen on");
    assert!(!place.path("assay-runs").exists(), "a run was begun all the same");
    refused(&place, &["serve", ".", "--token", "short"], 2, "--token");
    refused(&place, &["serve", "nowhere"], 2, "no directory of runs");
}

#[test]
fn a_run_is_shown_while_it_goes_on_and_its_last_frame_is_its_record() {
    let place = Place::new();
    let (run, page) = live(&place, &with(LONG, &["-o", "run", "--live"]));
    let run = run.until("its begin", || place.measures("run"));
    let mut frames = page.events("/run/run/events");
    let first = frames.next().expect("a frame");
    assert_eq!(first["final"], false, "{first}");
    assert_eq!(page.get("/run/run").2.matches("id=\"live\"").count(), 1);
    let record = json(&page.get("/run/run/record.json").2);
    assert_eq!((&record["final"], &record["schema"]), (&serde_json::json!(false), &serde_json::json!("assay/2")));
    assert!(page.get("/metrics").2.ends_with("# EOF\n"));
    // Another process shows the same run from its directory.
    let (other, elsewhere) = served(&place, "run");
    assert_eq!(elsewhere.events("/run/run/events").next().expect("a frame")["final"], false);
    other.stopped();
    // A viewer that never reads.
    let idle = page.ask("/run/run/events", &[&page.bearer()]);
    run.signal(Signal::INT);
    let last = frames.last().expect("a last frame");
    assert_eq!(run.ended().code, 130);
    drop(idle);
    is_of(&last, &place.record("run"));
}

/// The last frame is of what is kept.
pub(crate) fn is_of(last: &serde_json::Value, kept: &serde_json::Value) {
    assert!(last["final"] == true && kept.get("final").is_none(), "{last}");
    let figures = last["tiles"].as_array().expect("tiles").iter().filter(|tile| tile.get("key").is_some());
    let mut compared = 0;
    for tile in figures {
        let metric = kept["metrics"].as_array().expect("metrics").iter().find(|metric| metric["key"] == tile["key"]);
        assert_eq!(metric.expect("its metric")["value"], tile["figure"], "{tile}");
        compared += 1;
    }
    assert!(compared >= 3, "{last}");
    assert!(last["page"].as_str().expect("its page").contains("<h2 id=\"judgement-h\">"));
}

#[test]
fn the_live_page_follows_repeats_and_the_steps_of_a_sweep_in_this_process_and_another() {
    let brief = ["--target", "null:", "--time", "3", "--warmup", "0", "--set", "RATE=100", "-o", "all", "--live"];
    for (command, whole, which, second) in [
        (vec!["run", "--repeat", "2"], "repeat.json", ["repeat 1 of 2: ", "repeat 2 of 2: "], "repeat-2: "),
        (
            vec!["sweep", "--sessions", "1,2"],
            "record.json",
            ["step 1 of 2, ", "step 2 of 2, "],
            "step-002-sessions-2: ",
        ),
    ] {
        let place = Place::new();
        let (run, page) = live(&place, &with(&command, &brief));
        let run = run.until("its begin", || place.has_mark("begin"));
        let (other, elsewhere) = served(&place, "all");
        let of_other = std::thread::spawn(move || elsewhere.events("/run/all/events").collect::<Vec<_>>());
        let frames: Vec<_> = page.events("/run/all/events").collect();
        let now = |frame: &serde_json::Value| frame["now"].as_str().expect("words").to_owned();
        let of_other = of_other.join().expect("no panic");
        other.stopped();
        // Above it is a record of the first by then.
        assert!(of_other.iter().any(|frame| now(frame).starts_with(second)), "{second}: {of_other:?}");
        assert!(of_other.last().expect("a frame")["final"] == true, "{of_other:?}");
        for which in which {
            assert!(frames.iter().any(|frame| now(frame).starts_with(which)), "{which}: {frames:?}");
        }
        let last = frames.last().expect("a frame");
        assert!(last["final"] == true && last["page"].as_str().is_some_and(|page| page.contains("<main")), "{last}");
        assert_eq!(run.ended().code, 0, "{command:?}");
        assert!(place.path("all").join(whole).is_file());
    }
}

/// Raises this process's limit of descriptors as far as it may; how many sockets a test may open.
fn room_for_sockets() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(most / 2).unwrap_or(usize::MAX)
}

#[test]
fn thousands_who_send_a_byte_a_second_do_not_hold_up_the_run_nor_honest_viewers_for_long() {
    let place = Place::new();
    let (run, page) = live(&place, &with(LONG, &["-o", "run", "--live"]));
    let run = run.until("its begin", || place.measures("run"));
    // Many more than there are places for.
    let wanted = room_for_sockets().min(2000);
    let mut slow: Vec<TcpStream> = Vec::new();
    let begun = Instant::now();
    while slow.len() < wanted && begun.elapsed() < Duration::from_secs(60) {
        let address = page.address.parse().expect("an address");
        slow.extend(TcpStream::connect_timeout(&address, Duration::from_secs(5)));
    }
    assert!(slow.len() > 600, "{} sockets", slow.len());
    // Who was told that there is no room, or was cut off, goes; the others send a byte a second for ever.
    let mut is_seen = false;
    while !is_seen {
        assert!(begun.elapsed() < Duration::from_secs(180), "no honest viewer got in beside {} slow ones", slow.len());
        slow.retain_mut(|stream| stream.set_nonblocking(true).is_ok() && stream.write(b"G").is_ok());
        std::thread::sleep(Duration::from_secs(1));
        let text = {
            let mut stream = page.ask("/run/run/record.json", &[&page.bearer(), "Connection: close"]);
            let mut text = String::new();
            let _ = stream.read_to_string(&mut text);
            text
        };
        is_seen = text.starts_with("HTTP/1.1 200");
    }
    run.signal(Signal::INT);
    assert_eq!(run.ended().code, 130);
    let record = place.record("run");
    let ops = record["metrics"].as_array().expect("metrics").iter().find(|metric| metric["key"] == "ops_per_s");
    let rate = ops.and_then(|metric| metric["value"].as_f64()).expect("a rate");
    assert!(rate > 0.0, "{rate}");
}

#[test]
fn many_who_send_nothing_do_not_hold_up_the_run() {
    let place = Place::new();
    let (run, page) = live(&place, &with(LONG, &["-o", "run", "--live"]));
    let run = run.until("its begin", || place.measures("run"));
    // More than there are places for.
    let idle: Vec<_> = (0..600).filter_map(|_| TcpStream::connect(&page.address).ok()).collect();
    run.signal(Signal::INT);
    assert_eq!(run.ended().code, 130);
    assert!(!idle.is_empty());
    place.record("run");
}

/// A certificate of this name for 127.0.0.1, and its key.
fn certificate(place: &Place, name: &str) {
    let (cert, key) = (place.path(&format!("{name}.pem")), place.path(&format!("{name}.key")));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=assay", "-addext", "subjectAltName=IP:127.0.0.1", "-out"])
        .arg(cert)
        .arg("-keyout")
        .arg(key)
        .output()
        .expect("openssl runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn pages_are_encrypted_by_a_certificate_and_its_key() {
    let place = stored();
    certificate(&place, "own");
    certificate(&place, "other");
    place.write("not.pem", "no certificate");
    for (cert, key, why) in [
        ("none.pem", "own.key", "--tls-cert none.pem"),
        ("own.pem", "none.key", "--tls-key none.key"),
        ("not.pem", "own.key", "no certificate"),
        ("own.pem", "other.key", "cannot be used together"),
    ] {
        refused(&place, &["serve", "runs", "--tls-cert", cert, "--tls-key", key], 2, why);
        refused(&place, &with(LONG, &["--live", "--tls-cert", cert, "--tls-key", key]), 2, why);
    }
    assert!(!place.path("assay-runs").exists(), "a run was begun all the same");
    refused(&place, &with(LONG, &["--tls-cert", "own.pem", "--tls-key", "own.key"]), 2, "--live");
    let (server, page) = serving(place.start(&["serve", "runs", "--tls-cert", "own.pem", "--tls-key", "own.key"]));
    let asked = |path: &str| {
        let mut client = Command::new("openssl");
        client.args(["s_client", "-quiet", "-verify_return_error", "-verify_ip", "127.0.0.1", "-CAfile"]);
        client.arg(place.path("own.pem")).args(["-connect", &page.address]);
        let mut client =
            client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", page.address);
        let mut input = client.stdin.take().expect("piped");
        input.write_all(head.as_bytes()).expect("sent");
        let mut text = String::new();
        let _ = client.stdout.take().expect("piped").read_to_string(&mut text);
        drop(input);
        client.wait().expect("it ends");
        text.to_lowercase()
    };
    let entered = asked(&format!("/?token={}", page.token));
    assert!(entered.contains("303 see other") && entered.contains("; secure"), "{entered}");
    assert!(asked("/").contains("403 forbidden"));
    // Who speaks no TLS gets nothing.
    let mut plain = String::new();
    let _ = page.ask("/", &[&page.bearer()]).read_to_string(&mut plain);
    assert!(!plain.contains("200 OK"), "{plain}");
    assert_eq!(server.stopped().code, 0);
}

/// The token of the forms of a page.
fn form_token(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"form_token\" value=\"").expect("a form");
    rest.split('"').next().expect("a value").to_owned()
}

#[test]
fn a_form_is_taken_where_runs_are_allowed_from_a_page_of_the_server_alone() {
    let place = stored();
    let (server, page) = served(&place, "runs");
    assert_eq!(page.form("/start", &[("test", "run")], "").0, 405, "it was not allowed");
    assert!(!page.get("/").2.contains("method=\"post\""));
    server.stopped();
    refused(&place, &["serve", "runs/native-updates", "--allow-run"], 2, "--allow-run");
    let (server, page) = serving(place.start(&["serve", "runs", "--allow-run"]));
    let token = form_token(&page.get("/").2);
    let fields = [("form_token", token.as_str()), ("test", "run"), ("settings", "RUN_TIME=1"), ("label", "")];
    for (without, status) in [("Origin", 403), ("Authorization", 403), ("Content-Type", 415)] {
        assert_eq!(page.form("/start", &fields, without).0, status, "{without}");
    }
    for wrong in ["", "0123", &page.token] {
        let fields = [("form_token", wrong), ("test", "run")];
        assert_eq!(page.form("/start", &fields, "").0, 403, "{wrong}");
    }
    assert_eq!(page.form("/start", &fields[1..], "").0, 403, "without the forms' token");
    let bearer = page.bearer();
    let kind = "Content-Type: application/x-www-form-urlencoded";
    let foreign = ["Origin: http://evil.example", &bearer, kind, "Content-Length: 0", "Connection: close"];
    assert_eq!(Page::heard(page.sent("POST", "/start", &foreign, "")).0, 403);
    assert_eq!(page.form("/remove", &fields, "").0, 404);
    let runs = std::fs::read_dir(place.path("runs")).expect("there").filter_map(Result::ok);
    assert_eq!(runs.filter(|entry| entry.path().is_dir()).count(), 2, "something was started");
    assert_eq!(server.stopped().code, 0);
}

#[test]
fn a_form_starts_stops_and_tags_runs_and_says_what_is_wrong_with_it() {
    let place = stored();
    let mut serve = place.command(&["serve", "runs", "--allow-run"]);
    serve.env("ASSAY_TARGET", "null:");
    let (server, page) = serving(Started::new(serve.stdout(Stdio::piped())));
    let token = form_token(&page.get("/").2);
    let sent = |path: &str, fields: &[(&str, &str)]| {
        let fields = [&[("form_token", token.as_str())], fields].concat();
        let (status, head, body) = page.form(path, &fields, "");
        assert_eq!(status, 303, "{head}\n{body}");
        page.get("/").2
    };
    for (settings, why) in [
        ("RUN_TIME=soon", "RUN_TIME"),
        ("TARGET=native:/etc", "TARGET is not for a form"),
        ("EXTERNAL_SCRIPT=/bin/sh", "EXTERNAL_SCRIPT is not for a form"),
        ("<script>alert(1)</script>=2", "there is no setting &#60;script&#62;"),
    ] {
        let told = sent("/start", &[("test", "run"), ("settings", settings), ("label", "<b>")]);
        let alert = told.split("role=\"alert\">").nth(1).expect("what is wrong").split("</p>").next().expect("its end");
        assert!(alert.contains(why) && !alert.contains('<'), "{alert}");
        assert!(!told.contains("<script>alert") && !told.contains("value=\"<b>"), "it is not escaped");
    }
    let told = sent("/start", &[("test", "io"), ("settings", "filename=/dev/sda"), ("label", "")]);
    assert!(told.contains("filename is not for this form"), "{told}");
    let long = [("test", "run"), ("settings", "RUN_TIME=600\nRATE=100\nWARMUP=0"), ("label", "from <the> form")];
    let told = sent("/start", &long);
    let (_, rest) = told.split_once("<a href=\"/run/").expect("a run goes on");
    let name = rest.split('"').next().expect("its name").to_owned();
    let server = server.until("the run's begin", || place.measures(&format!("runs/{name}")));
    assert!(sent("/start", &long).contains("a run goes on: stop it"));
    assert_eq!(page.events(&format!("/run/{name}/events")).next().expect("a frame")["final"], false);
    sent("/stop", &[]);
    let server = server.until("its record", || place.path(&format!("runs/{name}/record.json")).is_file());
    let record = place.record(&format!("runs/{name}"));
    assert_eq!(record["run"]["label"], "from <the> form");
    let tagged = sent("/tag", &[("run", &format!("/run/{name}")), ("change", "disk=<nvme>")]);
    assert!(tagged.contains("disk=&#60;nvme&#62;") && !tagged.contains("disk=<nvme>"), "{tagged}");
    assert_eq!(place.read(&format!("runs/{name}/tags")), "disk=<nvme>\n");
    assert!(sent("/tag", &[("run", "/run/../secret"), ("change", "+x")]).contains("there is no such run"));
    // The server's end stops a run that a page started, and saves it.
    crate::common::until("the end of the first", || !page.get("/").2.contains("action=\"/stop\""));
    let told = sent("/start", &long);
    let (_, rest) = told.split_once("<a href=\"/run/").expect("a run goes on");
    let second = format!("runs/{}", rest.split('"').next().expect("its name"));
    let server = server.until("the run's begin", || place.measures(&second));
    assert_eq!(server.stopped().code, 0);
    assert_eq!(place.record(&second)["run"]["verdict"], "incomplete");
}

#[test]
fn every_test_of_the_form_runs_to_its_record() {
    let place = Place::new();
    std::fs::create_dir_all(place.path("runs")).expect("made");
    let prepared = place.assay(&["orders", "prepare", "--target", "sqlite:orders.db", "--scale", ".001"]);
    let has_sqlite = prepared.code == 0;
    if !has_sqlite {
        assert!(prepared.err.contains("without"), "{}", prepared.err);
        skipped(&prepared.err);
    }
    let mut serve = place.command(&["serve", "runs", "--allow-run"]);
    serve.env("ASSAY_TARGET", "sqlite:orders.db");
    let (mut server, page) = serving(Started::new(serve.stdout(Stdio::piped())));
    let token = form_token(&page.get("/").2);
    for (test, settings, kind) in [
        ("io", "rw=randread\nbs=8k\nsize=1m\nruntime=1\ntime_based=1", "storage"),
        ("sync", "time=1s\ncommits=1", "sync"),
        ("orders run", "RUN_TIME=1\nWARMUP=0\nSESSIONS=1", "orders"),
    ] {
        if test == "orders run" && !has_sqlite {
            continue;
        }
        let fields = [("form_token", token.as_str()), ("test", test), ("settings", settings), ("label", "of a form")];
        assert_eq!(page.form("/start", &fields, "").0, 303);
        let told = page.get("/").2;
        assert!(!told.contains("role=\"alert\""), "{test}: {told}");
        let (_, rest) = told.split_once("<a href=\"/run/").expect("it goes on");
        let name = rest.split('"').next().expect("its name").to_owned();
        server = server.until("the end of the run", || !page.get("/").2.contains("action=\"/stop\""));
        let told = page.get("/").2;
        assert!(!told.contains("role=\"alert\""), "{test}: {told}");
        let record = place.record(&format!("runs/{name}"));
        assert_eq!((&record["kind"], &record["run"]["label"]), (&kind.into(), &"of a form".into()), "{test}");
        assert_eq!(page.get(&format!("/run/{name}")).0, 200);
    }
    assert_eq!(server.stopped().code, 0);
}

#[test]
fn the_dashboard_asks_for_what_a_run_has_and_takes_quantiles_from_buckets() {
    let place = stored();
    let text = place.assay(&["report", "runs/native-updates", "--format", "openmetrics"]).code(0).out;
    let samples: BTreeSet<&str> = text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/grafana-dashboard.json");
    let dashboard = json(&std::fs::read_to_string(path).expect("there"));
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let mut asked = 0;
    for expr in targets.map(|target| target["expr"].as_str().expect("an expression")) {
        let is_sign = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        for name in expr.split(is_sign).filter(|word| word.starts_with("assay_")) {
            // A run without errors has none.
            assert!(samples.contains(name) || name == "assay_operation_errors_total", "{name}: {expr}");
            asked += 1;
        }
        // The mean of quantiles is none.
        assert!(!expr.contains("avg") && !expr.contains("quantile_over_time"), "{expr}");
        let is_quantile = expr.contains("quantile");
        assert!(
            !is_quantile
                || expr.starts_with("histogram_quantile(") && expr.contains("_bucket") && expr.contains("le) ("),
            "{expr}"
        );
    }
    assert!(asked >= 12, "{asked}");
}
