//! `run`: plan, prepare where that harms nothing, run, record, report.

use super::shown::Shown;
use crate::cli::format::is_json;
use crate::cli::{RunArgs, RunitArgs};
use crate::configure::{self, Configured};
use crate::exit::{Code, Failure};
use crate::perform;
use crate::{answer, hooks, plan_text, push, run_plan, rundir, signals, ui};
use assay_measure::record::Record;
use assay_run::engine::{DataSet, Line};
use assay_run::plan::Plan;
use assay_run::stop::Stop;

pub(super) fn runit(mut args: RunitArgs) -> Result<Code, Failure> {
    super::slob_conf_here(&mut args.run.settings.config);
    if args.count.is_some() {
        args.run.settings.schemas = args.count;
    }
    run(&args.run)
}

pub(super) fn run(args: &RunArgs) -> Result<Code, Failure> {
    let mut configured = configure::configure(&args.settings, args.more.flags.said.clone())?;
    configured.commands = hooks::planned(&args.more.at)?;
    hooks::script(&configured)?;
    configure::draw_seed(&mut configured.settings);
    if args.more.repeat > 1 && args.more.push.push.is_some() {
        return Err(Failure::usage("--push sends the figures of one run: leave out --repeat"));
    }
    if args.more.repeat > 1 {
        super::repeat::refuse(&configured, args.more.format)?;
    }
    let id = rundir::new_id();
    let place = rundir::place(args.more.output.as_deref(), configured.workload, &id);
    if args.more.output.is_some() {
        rundir::refuse_used(&place)?;
    }
    let stop = Stop::of_process();
    let mut shown = if args.more.dry_run { Shown::default() } else { Shown::ready(&args.more.live, &place)? };
    let push = if args.more.dry_run { None } else { push::start(&args.more.push, &id, &place)? };
    let (data, plan) = if let Some(data) = perform::data_set(&configured)? {
        let plan = perform::plan(&mut configured, &data)?;
        hooks::check(&configured.commands, &plan)?;
        if args.more.dry_run {
            return dry_run(args, &configured, &plan, &data, None);
        }
        signals::watch()?;
        configured.start(&stop)?;
        (data, plan)
    } else {
        let imagined = configure::imagined(&configured.settings);
        // A plan that cannot run is refused before anything is loaded.
        let plan_ahead = configure::plan(configured.target, &configured.settings, &imagined, 1)
            .map_err(|problems| Failure::problems(&problems))?;
        hooks::check(&configured.commands, &plan_ahead)?;
        perform::check_memory(&configured)?;
        let load = perform::plan_prepare(&configured)?;
        if args.more.dry_run {
            return dry_run(args, &configured, &plan_ahead, &imagined, Some(&load.plan));
        }
        signals::watch()?;
        configured.start(&stop)?;
        let data = perform::prepare(&configured, &load, &stop)?;
        let plan = perform::plan(&mut configured, &data)?;
        (data, plan)
    };
    ui::say(&run_plan::one_line(&configured, &plan, &data));
    let ended = if args.more.repeat > 1 {
        super::repeat::run(args, &configured, &plan, &stop, id, place, &mut shown)
    } else {
        shown.goes_on(&place, "")?;
        let kept = place.clone();
        let mut deliver = |record: &Record| {
            shown.give_way();
            answer::product(record, args.more.format, &kept)
        };
        perform::perform(&configured, &plan, &stop, id, place, &mut deliver)
    };
    if let Some(push) = push {
        push.end();
    }
    shown.end();
    ended
}

fn dry_run(
    args: &RunArgs,
    configured: &Configured,
    plan: &Plan,
    data: &DataSet,
    prepare: Option<&[Line]>,
) -> Result<Code, Failure> {
    let text = if is_json(args.more.format) {
        plan_text::pretty(&run_plan::json(configured, plan, data, prepare))
    } else {
        run_plan::whole(configured, plan, data, prepare)
    };
    ui::product(&text)?;
    Ok(Code::Good)
}
