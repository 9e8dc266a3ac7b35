//! `assay serve` and `run --live`: who may look, what is shown, and that the run ends whoever looks.

use crate::common::{LONG, Place, Started, json, with};
use rustix::process::Signal;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A server as its URL says it is.
struct Page {
    address: String,
    token: String,
}

impl Page {
    /// Of the line with its URL.
    fn of(line: &str) -> Self {
        let (_, url) = line.split_once("http://").unwrap_or_else(|| panic!("no URL: {line}"));
        let (address, token) = url.trim().split_once("/?token=").expect("a token");
        Self { address: address.to_owned(), token: token.to_owned() }
    }

    fn ask(&self, path: &str, headers: &[&str]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{lines}\r\n", self.address);
        stream.write_all(head.as_bytes()).expect("sent");
        stream
    }

    /// Status, head and content of what is sent to who says these lines.
    fn said(&self, path: &str, headers: &[&str]) -> (u16, String, String) {
        let mut text = String::new();
        let headers = [headers, &["Connection: close"]].concat();
        self.ask(path, &headers).read_to_string(&mut text).expect("an answer");
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

    /// The lines of a stream of events.
    fn events(&self, path: &str) -> impl Iterator<Item = serde_json::Value> {
        let lines = BufReader::new(self.ask(path, &[&self.bearer()])).lines().map_while(Result::ok);
        lines.filter_map(|line| line.strip_prefix("data: ").map(json))
    }
}

fn served(place: &Place, dir: &str) -> (Started, Page) {
    let mut server = place.start(&["serve", dir]);
    let mut line = String::new();
    let out = server.child().stdout.take().expect("piped");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let page = Page::of(&line);
    (server, page)
}

/// Starts a run with its page; the rest of what it says is read, so that it never waits for a reader.
fn live(place: &Place, args: &[&str]) -> (Started, Page) {
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
    assert_eq!(last["final"], true, "{last}");
    assert_eq!(run.ended().code, 130);
    drop(idle);
    let kept = place.record("run");
    assert!(kept.get("final").is_none());
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
