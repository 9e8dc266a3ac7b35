//! `--push`: what cannot be sent is told before anything is made.

use crate::common::{BRIEF, Place, with};

#[test]
fn a_receiver_that_cannot_be_had_ends_the_command_before_anything_is_made() {
    let place = Place::new();
    let refused = place.assay(&with(BRIEF, &["--push", "http://u:secret@127.0.0.1:1/"])).code(2);
    assert!(refused.err.contains("--push-authorization") && !refused.err.contains("secret"), "{}", refused.err);
    place.write("empty", "\n");
    let url = "http://127.0.0.1:1/api/v1/write";
    place.assay(&with(BRIEF, &["--push", url, "--push-authorization", "empty"])).code(2);
    let gone = place.assay(&with(BRIEF, &["--push", url])).code(3);
    assert!(gone.err.contains(url), "{}", gone.err);
    assert_eq!(place.files(), ["empty"]);
}
