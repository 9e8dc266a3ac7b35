//! Pages over HTTP: who may ask ([`guard`]), how much at once and for how long ([`server`]), and the frames of what goes on.
//!
//! What is shown is a [`Site`]'s, which is asked on threads that may block. Nothing is taken from who asks but a path and a
//! query, and nothing is changed by it; a site that takes forms is told of those that its own pages sent.
//!
//! A stream of frames is made once for all who look at it, each second, and not at all while nobody does. Who does not keep up
//! misses frames: the kernel's buffer and two frames are all that is kept for each.

pub mod guard;
pub mod server;

/// The field of a form that holds the forms' token.
pub const FORM_TOKEN: &str = "form_token";

use crate::ControlError;
use std::collections::BTreeMap;

/// What somebody asks for.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// The path without its first slash, decoded.
    pub path: String,
    /// The query, decoded.
    pub query: BTreeMap<String, String>,
    /// The fields of a form of ours that was sent.
    pub form: Option<BTreeMap<String, String>>,
}

/// What is sent back.
#[derive(Clone, Debug)]
pub struct Reply {
    /// 200, 404, ...
    pub status: u16,
    /// The media type.
    pub media_type: &'static str,
    /// The content.
    pub body: Vec<u8>,
    /// Whether it is the same for as long as this program runs.
    pub is_fixed: bool,
    /// The path where it is instead.
    pub location: Option<String>,
}

impl Reply {
    /// A text of this type.
    pub fn of(media_type: &'static str, text: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, media_type, body: text.into(), is_fixed: false, location: None }
    }

    /// It is at this path.
    #[must_use]
    pub fn elsewhere(path: String) -> Self {
        Self { status: 303, location: Some(path), ..Self::of("text/plain", "") }
    }

    /// Why there is nothing, in a sentence. A browser asks again after 503.
    pub fn refused(status: u16, why: &str) -> Self {
        Self { status, ..Self::of("text/plain", format!("{why}\n")) }
    }
}

/// One second of what goes on.
#[derive(Clone, Debug)]
pub struct LiveFrame {
    /// A line of JSON.
    pub text: String,
    /// Whether nothing follows.
    pub is_last: bool,
}

/// What is shown. Its functions are called on threads of the server, several at once.
pub trait Site: Send + Sync + 'static {
    /// What is at a path.
    fn reply(&self, ask: &Ask) -> Reply;
    /// What goes on in the run of this name, now; `None` where nothing does.
    fn frame(&self, run: &str) -> Option<LiveFrame>;
}

/// Characters of a token that a user chooses, at least.
const TOKEN_CHARACTERS_MIN: usize = 16;

/// A token that a user chose.
///
/// # Errors
/// It is easily guessed, or does not stand in a URL.
pub fn checked_token(token: &str) -> Result<String, ControlError> {
    let is_plain = token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
    if is_plain && token.len() >= TOKEN_CHARACTERS_MIN {
        return Ok(token.to_owned());
    }
    Err(ControlError::Refused(format!(
        "--token: needs at least {TOKEN_CHARACTERS_MIN} characters, letters, digits and -._~ only; without it assay makes one"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::new_token;

    #[test]
    fn tokens_differ_and_a_short_one_is_refused() {
        let (one, other) = (new_token().expect("random bits"), new_token().expect("random bits"));
        assert_ne!(one, other);
        assert_eq!(checked_token(&one).expect("long enough"), one);
        for bad in ["", "secret", "sixteen letters & a sign"] {
            assert!(checked_token(bad).is_err(), "{bad}");
        }
    }
}
