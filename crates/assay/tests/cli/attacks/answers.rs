//! What a real server answers is harmed at a random byte of a random command: the command ends in time and in little memory, with
//! an answer or one clear error, and what it leaves can be gone on with or removed.

use super::Siege;
use crate::common::spoiler::{Attack, HARMS, Server as Behind, Speaker, Spoiler};
use crate::common::{Place, Ran, Started};
use crate::{mariadb, pg_server};
use std::process::{Command, Stdio};

/// Address space of the program.
const MEMORY: &str = "--as=4294967296";
const DATA: &[&str] = &["-s", "2", "--set", "SCALE=1000", "--set", "SCAN_TABLE_SZ=16"];
const RUN: &[&str] = &["run", "--time", "1", "--warmup", "0", "--set", "UPDATE_PCT=30"];

/// What is done with a data set.
const COMMANDS: [&[&str]; 4] = [&["prepare"], &["check"], RUN, &["destroy"]];

/// A real server and how it is reached.
struct Attacked<'a> {
    place: Place,
    behind: Behind,
    /// By its socket.
    direct: String,
    /// Through a port.
    through: &'a dyn Fn(u16) -> String,
    patience: &'a [&'a str],
}

impl Attacked<'_> {
    fn perform(&self, command: &[&str], url: &str) -> Ran {
        let words = [command, &["--target", url], DATA, self.patience].concat();
        let program = self.place.command(&words);
        let mut limited = Command::new("prlimit");
        limited.arg(MEMORY).arg(program.get_program()).args(program.get_args());
        limited.current_dir(self.place.path(".")).env_clear();
        limited.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        Started::new(limited.stdin(Stdio::null()).stdout(Stdio::piped())).ended()
    }

    fn directly(&self, command: &[&str]) -> Ran {
        self.perform(command, &self.direct)
    }

    fn spoilt(&self, command: &[&str], attack: Attack) -> (Ran, u64) {
        let spoiler = Spoiler::before(&self.behind, attack);
        let ran = self.perform(command, &(self.through)(spoiler.port));
        (ran, spoiler.said())
    }

    /// Makes the data set where it is not, whatever is there of it.
    fn whole(&self) {
        if self.directly(&["check"]).code == 0 {
            return;
        }
        let resumed = self.directly(&["prepare"]);
        if resumed.code != 0 {
            self.directly(&["destroy"]).code(0);
            self.directly(&["prepare"]).code(0);
        }
    }

    fn attack(&self, mut siege: Siege) {
        // How much the server says in each command that nothing happens to.
        let spans = COMMANDS.map(|command| {
            let (ran, said) = self.spoilt(command, Attack::none());
            ran.code(0);
            said
        });
        while let Some((seed, mut random)) = siege.next() {
            let which = random.below(COMMANDS.len() as u64) as usize;
            let (command, harm) = (COMMANDS[which], random.pick(&HARMS));
            let is_first = command[0] == "prepare";
            if is_first {
                drop(self.directly(&["destroy"]))
            } else {
                self.whole()
            }
            // More often where it is told who we are, what is there and what is laid.
            let end = random.pick(&[spans[which], spans[which].min(4000)]);
            let attack = Attack { harm, speaker: Speaker::Server, at: random.below(end), seed };
            siege.begins(format!("{command:?} with {harm:?} at byte {}", attack.at));
            let (ran, _) = self.spoilt(command, attack);
            siege.judge(&ran);
            siege.count(format!("{harm:?}").to_lowercase());
            // What changes no data set has left it whole, unless updates outgrew its pages, which is told with the cure.
            if command[0] == "check" || command[0] == "run" {
                let whole = self.directly(&["check"]);
                assert!(whole.code == 0 || whole.err.contains("VACUUM (FULL"), "{}", whole.err);
            }
        }
        self.whole();
        self.directly(&["destroy"]).code(0);
        siege.over();
    }
}

#[test]
#[ignore = "it takes long: ./test.sh --long has it"]
fn on_the_answers_of_postgres() {
    let Some(server) = pg_server::Server::shared("attacked") else { return };
    let attacked = Attacked {
        place: Place::new(),
        behind: Behind::Unix(server.socket()),
        direct: server.url(),
        through: &|port| format!("postgres://postgres@127.0.0.1:{port}/attacked?connect_timeout=3"),
        patience: &["--set", "PG_ANSWER_TIMEOUT=3", "--set", "PG_GRACE=8"],
    };
    attacked.attack(Siege::new("answers of PostgreSQL"));
    server.keeps_no_session();
}

#[test]
#[ignore = "it takes long: ./test.sh --long has it"]
fn on_the_answers_of_mariadb() {
    on_one_of_the_family(mariadb::Server::shared("attacked"), "answers of MariaDB");
}

#[test]
#[ignore = "it takes long: ./test.sh --long has it"]
fn on_the_answers_of_mysql() {
    on_one_of_the_family(mariadb::Server::mysql(), "answers of MySQL");
}

fn on_one_of_the_family(server: Option<mariadb::Server>, name: &'static str) {
    let Some(server) = server else { return };
    let url = server.url();
    let address = url.split('?').next().unwrap_or(&url);
    let database = address.rsplit('/').next().expect("its database").to_owned();
    let attacked = Attacked {
        place: Place::new(),
        behind: Behind::Unix(server.socket()),
        direct: url.clone(),
        through: &|port| format!("mysql://root@127.0.0.1:{port}/{database}"),
        patience: &["--set", "MYSQL_ANSWER_TIMEOUT=3", "--set", "MYSQL_GRACE=8"],
    };
    attacked.attack(Siege::new(name));
}
