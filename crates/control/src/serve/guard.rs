//! Who may ask. A page of another site that a viewer has open must neither read nor reach this server, and a name that
//! somebody else resolves to this address must not pass for it.
//!
//! - `Host` is an address, `localhost` or this host's own name: only a name can be made to lead here by others.
//! - `Origin`, where a browser sends one, is that host; `Sec-Fetch-Site` is not another site, unless somebody follows a link.
//! - The token comes in the URL once, then in a cookie of this port, or in `Authorization: Bearer`.
//! - A form, where they are taken at all, comes from a page of this server (`Origin` says so) that holds the forms' own token.

use axum::http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HOST, HeaderMap, ORIGIN, TRANSFER_ENCODING,
};
use axum::http::{Method, Uri};
use std::net::IpAddr;

/// What a page of ours may load: what this server sends. Styles are within the page, and the plotting script makes some.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data: blob:; \
                          connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Bytes of a form, at most.
pub const FORM_BYTES: usize = 16 << 10;
const FORM: &str = "application/x-www-form-urlencoded";

/// Decides about requests by what they say.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Who may ask has it.
    pub token: String,
    /// The server's.
    pub port: u16,
    /// Name of this host.
    pub own_name: String,
    /// Whether what is sent is encrypted.
    pub is_encrypted: bool,
    /// The token of forms, where they are taken.
    pub forms: Option<String>,
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is answered.
    Admitted,
    /// The browser keeps the token in this cookie and comes again at this place, so that the token stays in no history.
    Keep {
        /// The cookie.
        cookie: String,
        /// Path and query.
        place: String,
    },
    /// It is not answered, and why.
    Refused(u16, &'static str),
}

impl Guard {
    /// What becomes of a request.
    #[must_use]
    pub fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Verdict {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let is_form = method == Method::POST && self.forms.is_some();
        if !is_form && method != Method::GET && method != Method::HEAD {
            return Verdict::Refused(405, "only GET and HEAD are answered");
        }
        let length = text(CONTENT_LENGTH).map_or(Some(0), |length| length.parse().ok());
        let most = if is_form { FORM_BYTES } else { 0 };
        if headers.contains_key(TRANSFER_ENCODING) || length.is_none_or(|length| length > most) {
            return Verdict::Refused(413, if is_form { "the form is too long" } else { "no content is taken" });
        }
        let host = text(HOST).unwrap_or_default();
        if !self.is_ours(host) {
            return Verdict::Refused(403, "this name is not of this server: use the URL that assay printed");
        }
        let origin = headers.contains_key(ORIGIN).then(|| text(ORIGIN).unwrap_or_default());
        let is_foreign = origin.is_some_and(|origin| origin.split_once("://").is_none_or(|(_, from)| from != host));
        let from_outside = ["cross-site", "same-site"].contains(&text_of(headers, "sec-fetch-site"));
        if is_foreign || from_outside && text_of(headers, "sec-fetch-mode") != "navigate" {
            return Verdict::Refused(403, "a page of another site asked for this");
        }
        match self.token(uri, headers) {
            Verdict::Keep { .. } if is_form => Verdict::Refused(403, "a form brings its token in the cookie"),
            Verdict::Admitted if is_form && origin.is_none() => {
                Verdict::Refused(403, "a form comes from a page of this server: Origin is missing")
            }
            Verdict::Admitted if is_form && text_of(headers, CONTENT_TYPE.as_str()) != FORM => {
                Verdict::Refused(415, "this is no form")
            }
            verdict => verdict,
        }
    }

    /// Whether a form holds the forms' own token: one that another site had made does not.
    #[must_use]
    pub fn is_ours_by(&self, token: &str) -> bool {
        self.forms.as_ref().is_some_and(|forms| is_same(token, forms))
    }

    fn token(&self, uri: &Uri, headers: &HeaderMap) -> Verdict {
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let name = format!("assay-{}", self.port);
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut kept = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        if bearer.is_some_and(|token| self.is_token(token))
            || kept.any(|(key, value)| key == name && self.is_token(value))
        {
            return Verdict::Admitted;
        }
        let query = uri.query().unwrap_or_default();
        let (given, others): (Vec<&str>, Vec<&str>) = query.split('&').partition(|pair| pair.starts_with("token="));
        if !given.iter().filter_map(|pair| pair.strip_prefix("token=")).any(|token| self.is_token(token)) {
            return Verdict::Refused(403, "the token is missing or wrong: use the URL that assay printed");
        }
        // Two slashes would lead to another host.
        let path = format!("/{}", uri.path().trim_start_matches(['/', '\\']));
        let others = others.join("&");
        Verdict::Keep {
            cookie: format!(
                "{name}={}; Path=/; HttpOnly; SameSite=Lax{}",
                self.token,
                if self.is_encrypted { "; Secure" } else { "" }
            ),
            place: if others.is_empty() { path } else { format!("{path}?{others}") },
        }
    }

    fn is_token(&self, given: &str) -> bool {
        is_same(given, &self.token)
    }

    fn is_ours(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => host.split_once(':').map_or(host, |(name, _)| name),
        };
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || !self.own_name.is_empty() && name.eq_ignore_ascii_case(&self.own_name)
    }
}

/// Whether they are the same; how long that takes does not tell how much of it was.
fn is_same(given: &str, token: &str) -> bool {
    let differences = given.bytes().zip(token.bytes()).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && differences == 0
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn guard(forms: Option<&str>) -> Guard {
        let (token, own_name) = (TOKEN.to_owned(), "db1".to_owned());
        Guard { token, port: 4321, own_name, is_encrypted: false, forms: forms.map(str::to_owned) }
    }

    fn judged(uri: &str, headers: &[(&'static str, &str)]) -> Verdict {
        guard(None).judge(&Method::GET, &uri.parse().expect("a path"), &said(headers))
    }

    fn said(headers: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a value"));
        }
        map.entry(HOST).or_insert("127.0.0.1:4321".parse().expect("a value"));
        map
    }

    fn status(verdict: &Verdict) -> u16 {
        match verdict {
            Verdict::Admitted => 200,
            Verdict::Keep { .. } => 303,
            Verdict::Refused(status, _) => *status,
        }
    }

    const BEARER: (&str, &str) = ("authorization", "Bearer 0123456789abcdef");

    #[test]
    fn the_token_comes_in_the_url_once_and_then_in_a_cookie_of_the_port() {
        let kept = judged("/run/a%20b?x=1&token=0123456789abcdef", &[]);
        let Verdict::Keep { cookie, place } = kept else { panic!("{kept:?}") };
        assert_eq!(place, "/run/a%20b?x=1");
        assert!(cookie.starts_with("assay-4321=0123456789abcdef;") && cookie.contains("HttpOnly"), "{cookie}");
        assert_eq!(judged("/", &[("cookie", "other=1; assay-4321=0123456789abcdef")]), Verdict::Admitted);
        assert_eq!(judged("/", &[BEARER]), Verdict::Admitted);
        for bad in
            ["/", "/?token=", "/?token=0123456789abcdee", "/?token=0123456789abcdef0", "/?tokens=0123456789abcdef"]
        {
            assert_eq!(status(&judged(bad, &[])), 403, "{bad}");
        }
        assert_eq!(status(&judged("/", &[("cookie", "assay-4322=0123456789abcdef")])), 403);
        let kept = judged("//evil.example/?token=0123456789abcdef", &[]);
        assert!(matches!(kept, Verdict::Keep { ref place, .. } if place == "/evil.example/"), "{kept:?}");
    }

    #[test]
    fn a_name_that_others_resolve_is_not_this_host() {
        for ours in ["127.0.0.1:4321", "localhost:9", "[::1]:4321", "10.0.0.7", "DB1:4321"] {
            assert_eq!(judged("/", &[("host", ours), BEARER]), Verdict::Admitted, "{ours}");
        }
        for foreign in ["rebind.example:4321", "localhost.example", "127.0.0.1.example:4321", ""] {
            assert_eq!(status(&judged("/", &[("host", foreign), BEARER])), 403, "{foreign}");
        }
    }

    #[test]
    fn a_page_of_another_site_gets_nothing_even_with_the_token() {
        let asked = |more: &[(&'static str, &str)]| judged("/", &[&[BEARER], more].concat());
        assert_eq!(asked(&[("origin", "http://127.0.0.1:4321")]), Verdict::Admitted);
        for foreign in ["http://evil.example", "http://127.0.0.1:80", "null", "http://127.0.0.1:4321.evil.example"] {
            assert_eq!(status(&asked(&[("origin", foreign)])), 403, "{foreign}");
        }
        assert_eq!(status(&asked(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")])), 403);
        assert_eq!(asked(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]), Verdict::Admitted);
    }

    #[test]
    fn nothing_is_written_and_no_content_is_taken() {
        let posted = guard(None).judge(&Method::POST, &Uri::from_static("/"), &said(&[BEARER]));
        assert_eq!(status(&posted), 405);
        assert_eq!(status(&judged("/", &[BEARER, ("content-length", "5")])), 413);
    }

    #[test]
    fn a_form_comes_from_a_page_of_this_server_with_both_tokens() {
        let guard = guard(Some("fedcba9876543210"));
        let own = [BEARER, ("origin", "http://127.0.0.1:4321"), ("content-type", FORM), ("content-length", "5")];
        let posted = |uri: &str, headers: &[(&'static str, &str)]| {
            status(&guard.judge(&Method::POST, &uri.parse().expect("a path"), &said(headers)))
        };
        assert_eq!(posted("/start", &own), 200);
        let without = |name: &str| own.into_iter().filter(|(key, _)| *key != name).collect::<Vec<_>>();
        assert_eq!(posted("/start", &without("origin")), 403);
        assert_eq!(posted("/start", &without("authorization")), 403);
        assert_eq!(posted("/start?token=0123456789abcdef", &without("authorization")), 403);
        assert_eq!(posted("/start", &without("content-type")), 415);
        let with = |name: &'static str, value: &'static str| [without(name), vec![(name, value)]].concat();
        for foreign in ["http://evil.example", "null", "http://127.0.0.1:80"] {
            assert_eq!(posted("/start", &with("origin", foreign)), 403, "{foreign}");
        }
        for long in ["16385", "-1", "much", "99999999999999999999999"] {
            assert_eq!(posted("/start", &with("content-length", long)), 413, "{long}");
        }
        assert_eq!(posted("/start", &with("transfer-encoding", "chunked")), 413);
        assert_eq!(status(&guard.judge(&Method::PUT, &Uri::from_static("/"), &said(&own))), 405);
        assert!(
            guard.is_ours_by("fedcba9876543210") && !guard.is_ours_by("fedcba987654321") && !guard.is_ours_by(TOKEN)
        );
        assert!(!super::tests::guard(None).is_ours_by(""));
    }
}
