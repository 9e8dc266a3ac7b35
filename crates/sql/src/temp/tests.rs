//! The parts this crate's test harness plays, and what messages call a server in tests.

use super::{BECOME, Brand, KEEP, become_server, keep};

pub(super) const BRAND: Brand = Brand { temp: "server", called: "Server", user: "server", directory: "ITS_DIR" };

/// The harness, started once more by [`super::keeper`], plays the keeper or becomes the server here. By itself it is
/// an ordinary test that has nothing to do.
#[test]
fn plays_its_part() {
    match std::env::var("ASSAY_PLAYS").as_deref() {
        Ok(KEEP) => {
            keep();
            #[expect(clippy::exit, reason = "whoever reads what the harness would say of it is gone")]
            std::process::exit(0);
        }
        Ok(BECOME) => {
            let part = std::env::var("ASSAY_PART").expect("the keeper gives it");
            let command: Vec<_> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
            panic!("{}", become_server(&part, &command));
        }
        _ => {}
    }
}
