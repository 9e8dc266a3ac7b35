//! `config show`: effective values and where they came from.

use crate::cli::ConfigCommand;
use crate::cli::format::{JSON, SLOB_CONF};
use crate::configure;
use crate::exit::{Code, Failure};
use crate::{plan_text, run_plan, ui};
use assay_measure::config;

pub(super) fn config(command: &ConfigCommand) -> Result<Code, Failure> {
    let ConfigCommand::Show { settings, more } = command;
    let configured = configure::configure(settings, more.flags.said.clone())?;
    let settings = &configured.settings;
    let text = match more.format {
        JSON => plan_text::pretty(&run_plan::settings_json(&configured)),
        SLOB_CONF => config::slob_conf(settings),
        _ if more.all => {
            let help = |name: &str| Some(settings.get(name).def.help);
            run_plan::settings_table(&config::setting_lines(settings), help)
        }
        _ => {
            ui::say("parameters that are not listed have their defaults; --all lists every parameter");
            run_plan::settings_table(&config::given_lines(settings), |_| None)
        }
    };
    ui::product(&text)?;
    Ok(Code::Good)
}
