//! The data set's life: `prepare`, `check`, `destroy`.

use crate::cli::{DataArgs, DestroyArgs, Format, PrepareArgs, SetupArgs};
use crate::configure::{self, Configured, said};
use crate::exit::{Code, Failure};
use crate::{plan_text, progress, signals, ui};
use assay_measure::config::Origin;
use assay_run::engine::{Line, Presence};
use assay_run::stop::Stop;
use serde_json::json;

pub(super) fn setup(mut args: SetupArgs) -> Result<Code, Failure> {
    super::slob_conf_here(&mut args.prepare.settings.config);
    ui::say(&format!(
        "notice: tablespace {} has no meaning on this target; --target names the place",
        args.tablespace
    ));
    args.prepare.settings.schemas = Some(args.count);
    prepare(&args.prepare)
}

pub(super) fn prepare(args: &PrepareArgs) -> Result<Code, Failure> {
    let options = said("--seed", "SEED", args.seed.as_ref());
    let mut configured = configure::configure(&args.settings, options.into_iter().collect())?;
    configured.refuse_temporary("keep")?;
    configure::draw_seed(&mut configured.settings);
    configured.settings.allow_overwriting(args.destroy.clone());
    let location = &configured.location;
    let schemas = match configured.target.inspect(location, &configured.settings)? {
        Presence::Absent { .. } => {
            configure::schemas_asked(&configured.settings).unwrap_or(configure::DEFAULT_SCHEMAS)
        }
        Presence::Present(data) => {
            let asked = configure::schemas_asked(&configured.settings)
                .unwrap_or(configure::DEFAULT_SCHEMAS);
            if asked <= data.schemas {
                return Err(Failure::usage(format!(
                    "{} holds {} schemas of {} blocks already; more with -s {}, others after `assay destroy`",
                    configured.shown(),
                    data.schemas,
                    data.scale_blocks,
                    data.schemas + 1
                )));
            }
            configure::adopt(&mut configured.settings, &data);
            asked
        }
    };
    let plan =
        configured
            .target
            .plan_prepare(&configured.location, &configured.settings, schemas)?;
    if args.dry_run {
        return print(args.format, &[("plan", &plan)]);
    }
    ui::say(&format!("preparing {}", configured.shown()));
    ui::say(&plan_text::lines(&plan));
    let stop = Stop::new();
    signals::watch(&stop)?;
    let bar = progress::Bytes::new();
    let summary = configured.target.prepare(
        &configured.location,
        &configured.settings,
        schemas,
        &stop,
        &bar,
    );
    drop(bar);
    print(args.format, &[("plan", &plan), ("summary", &summary?)])
}

pub(super) fn check(args: &DataArgs) -> Result<Code, Failure> {
    let configured = existing(args)?;
    let stop = Stop::new();
    signals::watch(&stop)?;
    let bar = progress::Bytes::new();
    let checked = configured
        .target
        .check(&configured.location, &configured.settings, &stop, &bar);
    drop(bar);
    print(args.format, &[("check", &checked?)])
}

pub(super) fn destroy(args: &DestroyArgs) -> Result<Code, Failure> {
    let configured = configure::configure(&args.data.settings, Vec::new())?;
    configured.refuse_temporary("destroy")?;
    let plan = configured
        .target
        .plan_destroy(&configured.location, &configured.settings)?;
    if args.dry_run {
        return print(args.data.format, &[("plan", &plan)]);
    }
    let done = configured
        .target
        .destroy(&configured.location, &configured.settings)?;
    print(args.data.format, &[("destroyed", &done)])
}

/// Settings of a command that needs a data set to be there.
fn existing(args: &DataArgs) -> Result<Configured, Failure> {
    let configured = configure::configure(&args.settings, Vec::new())?;
    configured.refuse_temporary("check")?;
    let presence = configured
        .target
        .inspect(&configured.location, &configured.settings)?;
    if let Presence::Absent { .. } = presence {
        let hint = match configured.settings.get("TARGET").origin {
            Origin::Default => " (the default; --target names another)",
            _ => "",
        };
        return Err(Failure::new(
            Code::Unusable,
            format!(
                "{0}{hint} holds no data set; `assay prepare --target {0}` makes one",
                configured.shown()
            ),
        ));
    }
    Ok(configured)
}

/// The last part for people, all parts for programs.
fn print(format: Format, parts: &[(&str, &[Line])]) -> Result<Code, Failure> {
    let text = match format {
        Format::Text => {
            let (_, lines) = parts.last().copied().unwrap_or_default();
            plan_text::lines(lines) + "\n"
        }
        Format::Json => {
            let mut whole = json!({});
            for (name, lines) in parts {
                whole[*name] = plan_text::lines_json(lines);
            }
            plan_text::pretty(&whole)
        }
    };
    ui::product(&text)?;
    Ok(Code::Good)
}
