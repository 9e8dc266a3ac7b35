//! Commands on a data set that are killed at a random instant of a random stage: the next command says what is the matter, the one
//! that it names mends it, and `destroy` leaves nothing.

use super::Siege;
use crate::common::{Place, with};
use crate::killed_loads::{LAYOUTS, SIZES, again, named_command};
use crate::pg_server::Server;
use assay_measure::prng::SplitMix64;
use std::time::{Duration, Instant};

/// What is done with a data set, each with how many schemas there are before; none: nothing at all.
const STAGES: [(&[&str], u32); 5] = [
    (&["prepare", "-s", "3"], 0),
    (&["prepare", "-s", "4"], 2),
    (&["run", "--time", "1", "--warmup", "0", "--set", "UPDATE_PCT=100"], 2),
    (&["check"], 2),
    (&["destroy"], 2),
];

/// Kills each stage at a random instant of the time that it takes undisturbed.
fn besiege(siege: &mut Siege, place: &Place, layout: &[&str], sizes: &[&str], random: &mut SplitMix64) {
    let (command, schemas) = random.pick(&STAGES);
    if schemas > 0 {
        let number = schemas.to_string();
        place.assay(&with(&with(&["prepare", "-s", &number], sizes), layout)).code(0);
    }
    let args = with(&with(command, if schemas == 0 { sizes } else { &[] }), layout);
    let longest = random.pick(&[40, 400, 1600]);
    let instant = Duration::from_micros(random.below(longest * 1000));
    siege.begins(format!("{args:?} killed after {instant:?}"));
    let begun = Instant::now();
    let started = place.start(&args);
    std::thread::sleep(instant.saturating_sub(begun.elapsed()));
    started.kill();
    let checked = place.assay(&with(&["check"], layout));
    siege.judge(&checked);
    siege.count(format!("{} of {schemas} killed", command[0]));
    let said = format!("{}{}", checked.out, checked.err);
    if said.contains("`assay prepare") {
        let mut mending = named_command(&said);
        if checked.code != 0 {
            // It is made anew, with the same settings as before.
            mending.extend(with(sizes, &layout[2..]).into_iter().map(str::to_owned));
        }
        let mended = again(place, &mending);
        assert_eq!(mended.code, 0, "{mending:?}: {}", mended.err);
        let whole = place.assay(&with(&["check"], layout));
        assert_eq!(whole.code, 0, "{said}\n{mending:?}: {}", whole.err);
        siege.count("mended by the command named");
    }
    let removed = place.assay(&with(&["destroy"], layout));
    siege.judge(&removed);
    let gone = place.assay(&with(&["check"], layout));
    assert_eq!(gone.code, 3, "it is still there: {}", gone.out);
}

#[test]
#[ignore = "it takes long: ./test.sh --long has it"]
fn at_every_stage_of_a_native_data_set() {
    let mut siege = Siege::new("every stage of a native data set");
    while let Some((_, mut random)) = siege.next() {
        let place = Place::new();
        let layout = random.pick(&LAYOUTS);
        besiege(&mut siege, &place, layout, SIZES, &mut random);
        let left: Vec<_> = place.files().into_iter().filter(|file| !file.starts_with("assay-runs")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
    siege.over();
}

#[test]
#[ignore = "it takes long: ./test.sh --long has it"]
fn at_every_stage_of_a_data_set_on_postgres() {
    let Some(server) = Server::shared("besieged") else { return };
    let url = server.url();
    let mut siege = Siege::new("every stage of a data set on PostgreSQL");
    while let Some((_, mut random)) = siege.next() {
        let place = Place::new();
        besiege(&mut siege, &place, &["--target", &url], &["--set", "SCALE=2000"], &mut random);
        server.keeps_no_session();
    }
    siege.over();
}
