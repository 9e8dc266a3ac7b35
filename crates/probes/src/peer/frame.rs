//! JSON in frames: parameters one way, readiness and results the other.
//!
//! A frame is its length (u32, little-endian) and that many bytes of JSON.

use super::line::{Line, PeerError};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of parameters at most: what a server takes of a client.
pub(crate) const PARAMETERS_MAX: usize = 64 << 10;

impl Line {
    /// Sends one value.
    pub(crate) fn tell<T: Serialize>(&mut self, value: &T, what: &str) -> Result<(), PeerError> {
        let text = serde_json::to_vec(value).map_err(|error| PeerError::Foreign(format!("{what}: {error}")))?;
        let mut frame = (text.len() as u32).to_le_bytes().to_vec();
        frame.extend_from_slice(&text);
        self.write(&frame, what)
    }

    /// Takes one value of at most `most` bytes.
    pub(crate) fn hear<T: DeserializeOwned>(&mut self, most: usize, what: &str) -> Result<T, PeerError> {
        let mut length = [0; 4];
        self.read(&mut length, what)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > most {
            return Err(PeerError::Foreign(format!(
                "it announces {length} bytes {what}, more than the allowed {most}"
            )));
        }
        let mut text = vec![0; length];
        self.read(&mut text, what)?;
        serde_json::from_slice(&text)
            .map_err(|error| PeerError::Foreign(format!("its message {what} cannot be read: {error}")))
    }
}
