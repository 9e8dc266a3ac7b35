use super::render;
use crate::fixture;
use crate::record::build;

#[test]
fn the_report_of_the_frozen_run() {
    insta::assert_snapshot!(render(&build(&fixture::run())));
}
