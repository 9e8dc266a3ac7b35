//! Trims, counted; what they do to a device is tested on loop devices with the whole program.

use super::*;

/// As in fio, N of `number_ios` are N of each.
#[test]
fn what_is_trimmed_is_written_next_and_the_amount_is_that_of_the_trims() {
    for mode in [Mode::TrimWrite, Mode::RandTrimWrite] {
        for (number_ios, each) in [(None, 256), (Some(10), 10)] {
            for depth in [1, 8] {
                let readings = run(vec![job(|options| {
                    options.files.size = Some(Amount::Bytes(1 << 20));
                    options.engine = IoEngine::Null;
                    options.pattern.mode = mode;
                    options.pattern.number_ios = number_ios;
                    options.pace.depth = depth;
                })])
                .unwrap();
                let ios = readings.clones[0].ways.each_ref().map(|way| way.ios);
                assert_eq!(ios, [0, each, each], "{mode:?} at depth {depth}");
            }
        }
    }
}
