//! Any text as a file of options of MariaDB's clients: never a panic, errors of one line that do nothing to a terminal, and
//! no password in either.
#![no_main]

use assay_sql::mariadb::read_text;
use libfuzzer_sys::fuzz_target;

const PASSWORD: &str = "Kq9hunter2";

fuzz_target!(|text: &str| {
    // Wherever a fuzzer leaves it, a password is a value.
    let text = format!("[client]\npassword={PASSWORD}\n{text}");
    let said = match read_text(&text) {
        Ok(said) => said,
        Err(why) => {
            assert!(!why.contains(char::is_control), "{why:?}");
            why
        }
    };
    assert!(!said.contains(PASSWORD), "{said}");
});
