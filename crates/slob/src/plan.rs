//! Turns settings into a plan. Makes every cross-check of slob-method 2.6 and 5.2 that concerns more than one
//! parameter, or a parameter and the loaded data. Finds all mistakes in one pass; each message names the values and the
//! remedy.

#[cfg(test)]
mod tests;

use crate::params::SCHEMAS_MAX;
use crate::rules::LEAST_SCALE_BLOCKS;
use assay_measure::clock::NS_PER_S;
use assay_measure::config::{Origin, Problem, Settings, place_of};
use assay_run::life::schemas_asked;
use assay_run::plan::{Compat, Edge, HotSpot, Mix, Plan, RedoStress, SESSIONS_MAX, Think};
use assay_run::work::DataSet;

/// Resolves settings against a loaded data set. `run_stamp` must differ between runs.
///
/// # Errors
/// All contradictions found, each with the parameter it concerns.
pub fn from_settings(settings: &Settings, data: &DataSet, run_stamp: u32) -> Result<Plan, Vec<Problem>> {
    let mut check = Check { settings, problems: Vec::new() };
    let schemas = schemas_asked(settings).unwrap_or(data.schemas);
    let threads = settings.int("THREADS_PER_SCHEMA") as u32;
    let mut plan = Plan {
        block_bytes: data.block_bytes,
        scan_blocks: data.scan_blocks,
        // The caller draws a seed if none was given, and prints it.
        seed: settings.whole("SEED").unwrap_or(0),
        run_stamp,
        obfuscate: settings.bool("OBFUSCATE_COLUMNS"),
        ..Plan::plain(schemas.max(1), threads, data.scale_blocks)
    };
    check.size(&mut plan, data, schemas, threads);
    check.rules(&mut plan);
    check.mix(&mut plan);
    check.time(&mut plan);
    check.hot_spot(&mut plan);
    check.update_hot_spot(&mut plan);
    check.think(&mut plan);
    check.compat(&plan);
    if check.problems.is_empty() { Ok(plan) } else { Err(check.problems) }
}

/// Collects the problems while it fills in the plan.
struct Check<'a> {
    settings: &'a Settings,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn problem(&mut self, name: &str, text: String) {
        let place = place_of(&self.settings.get(name).origin);
        self.problems.push(Problem { error: true, place, text });
    }

    fn size(&mut self, plan: &mut Plan, data: &DataSet, schemas: u32, threads: u32) {
        if schemas == 0 {
            self.problem("SCHEMAS", format!("{schemas} schemas: the range is 1 to {SCHEMAS_MAX}"));
        } else if schemas > data.schemas {
            self.problem(
                "SCHEMAS",
                format!(
                    "{schemas} schemas requested, but schemas 1 to {} are loaded: use -s {} or prepare more",
                    data.schemas, data.schemas
                ),
            );
        }
        let sessions = u64::from(schemas) * u64::from(threads);
        if sessions > SESSIONS_MAX {
            self.problem(
                "THREADS_PER_SCHEMA",
                format!("{schemas} schemas x {threads} threads: a run takes 1 to {SESSIONS_MAX} sessions"),
            );
        }
        let asked = self.settings.int("BLOCK_SZ");
        if self.settings.is_given("BLOCK_SZ") && asked != data.block_bytes {
            self.problem(
                "BLOCK_SZ",
                format!(
                    "BLOCK_SZ={asked}, but the data set has blocks of {} bytes: leave BLOCK_SZ out",
                    data.block_bytes
                ),
            );
        }
        self.sessions(plan);
        self.scale(plan, data);
    }

    /// Applies SESSIONS, the total instead of a number per schema. Surplus schemas are not used.
    fn sessions(&mut self, plan: &mut Plan) {
        let Some(sessions) = self.settings.whole("SESSIONS") else {
            return;
        };
        let sessions = sessions as u32;
        let by_both =
            ["SESSIONS", "THREADS_PER_SCHEMA"].map(|name| self.settings.get(name).origin == Origin::CommandLine);
        if by_both == [true, true] {
            self.problem(
                "SESSIONS",
                format!(
                    "SESSIONS={sessions} and {} threads per schema: give the total number of sessions or the \
                     sessions per schema, not both",
                    plan.threads_per_schema
                ),
            );
        }
        plan.sessions_asked = Some(sessions);
        plan.schemas = plan.schemas.min(sessions);
        plan.threads_per_schema = sessions.div_ceil(plan.schemas);
    }

    fn scale(&mut self, plan: &mut Plan, data: &DataSet) {
        let asked = self.settings.blocks("SCALE", data.block_bytes);
        if let (true, Some(asked)) = (self.settings.is_given("SCALE"), asked) {
            plan.scale = asked;
        }
        if plan.scale > data.scale_blocks {
            self.problem(
                "SCALE",
                format!(
                    "SCALE asks for {} blocks, but schema 1 was loaded with {}: lower SCALE or prepare the data set \
                     again",
                    plan.scale, data.scale_blocks
                ),
            );
        }
        plan.work_unit = self.settings.int("WORK_UNIT") as u32;
        plan.update_work_unit = self.settings.int("UPDATE_WORK_UNIT") as u32;
        let minimum = LEAST_SCALE_BLOCKS.max(u64::from(plan.work_unit));
        if plan.scale < minimum && plan.scale < data.scale_blocks {
            self.problem(
                "SCALE",
                format!(
                    "SCALE is {} blocks: at least {minimum} are needed (1000, and no less than WORK_UNIT)",
                    plan.scale
                ),
            );
        }
        for (name, width) in [("WORK_UNIT", plan.work_unit), ("UPDATE_WORK_UNIT", plan.update_work_unit)] {
            if u64::from(width) > plan.scale || width == 0 {
                self.problem(
                    name,
                    format!("{name}={width} does not fit SCALE of {} blocks: the range is 1 to SCALE", plan.scale),
                );
            }
        }
    }

    fn rules(&mut self, plan: &mut Plan) {
        let settings = self.settings;
        if settings.text("COMPAT") == "slob253" {
            plan.compat = Compat::Slob253;
        }
        plan.mix = match settings.text("MIX") {
            "bernoulli" => Mix::Bernoulli,
            "slob253" => Mix::Slob253,
            _ if plan.compat == Compat::Slob253 && !self.settings.is_given("MIX") => Mix::Slob253,
            _ => Mix::Exact,
        };
        if settings.text("EDGE") == "wrap" {
            plan.edge = Edge::Wrap;
        }
        if settings.text("REDO_STRESS") == "HEAVY" {
            plan.redo_stress = RedoStress::Heavy;
        }
        plan.commit_every = settings.int("COMMIT_EVERY");
        plan.hot_schema_frequency = settings.int("HOT_SCHEMA_FREQUENCY");
    }

    fn mix(&mut self, plan: &mut Plan) {
        plan.update_pct = self.settings.int("UPDATE_PCT") as u32;
        plan.scan_pct = self.settings.int("SCAN_PCT") as u32;
        if plan.mix == Mix::Slob253 {
            for (name, pct) in [("UPDATE_PCT", plan.update_pct), ("SCAN_PCT", plan.scan_pct)] {
                if (51..=99).contains(&pct) {
                    self.problem(
                        name,
                        format!(
                            "{name}={pct}: the quota window of SLOB 2.5.3 cannot do 51 to 99; use 0-50 or 100, or \
                             MIX=exact"
                        ),
                    );
                }
            }
        }
        let no_scan_table = plan.scan_blocks == 0
            || self.settings.is_given("SCAN_TABLE_SZ")
                && self.settings.blocks("SCAN_TABLE_SZ", plan.block_bytes) == Some(0);
        if plan.scan_pct > 0 && no_scan_table {
            self.problem(
                "SCAN_PCT",
                format!(
                    "SCAN_PCT={} needs a scan table, but none was loaded: set SCAN_PCT=0 or prepare with SCAN_TABLE_SZ above 0",
                    plan.scan_pct
                ),
            );
        }
    }

    fn time(&mut self, plan: &mut Plan) {
        plan.run_time_ns = self.settings.ns("RUN_TIME");
        plan.work_loop = self.settings.int("WORK_LOOP");
        let cap = self.settings.ns("MAX_RUN_TIME");
        if plan.work_loop > 0 {
            // With a fixed number of iterations nothing else ends the run (slob-method 2.2) but the time cap.
            plan.run_time_ns = 0;
            plan.warmup_ns = 0;
            plan.max_run_time_ns = (cap > 0).then_some(cap);
        } else {
            plan.warmup_ns = self.settings.ns("WARMUP");
        }
        plan.rate_per_s = self.settings.int("RATE");
    }

    fn hot_spot(&mut self, plan: &mut Plan) {
        if !self.settings.bool("DO_HOTSPOT") {
            return;
        }
        let blocks = |bytes: u64| bytes / plan.block_bytes;
        let hot = HotSpot {
            offset_blocks: blocks(self.settings.bytes("HOTSPOT_OFFSET_MB")),
            size_blocks: blocks(self.settings.bytes("HOTSPOT_MB")),
            frequency: self.settings.int("HOTSPOT_FREQUENCY"),
        };
        plan.hot_spot = Some(hot);
        if hot.frequency == 0 {
            self.problem(
                "HOTSPOT_FREQUENCY",
                "HOTSPOT_FREQUENCY=0 with DO_HOTSPOT=TRUE: give 1 or more (one operation in N), or DO_HOTSPOT=FALSE"
                    .to_owned(),
            );
        }
        let width = u64::from(plan.work_unit.max(plan.update_work_unit));
        if hot.size_blocks < width {
            self.problem(
                "HOTSPOT_MB",
                format!(
                    "the hot window of {} blocks is smaller than an operation of {width} blocks: raise HOTSPOT_MB or lower WORK_UNIT",
                    hot.size_blocks
                ),
            );
        }
        if hot.offset_blocks + hot.size_blocks > plan.scale {
            self.problem(
                "HOTSPOT_OFFSET_MB",
                format!(
                    "the hot window ends at block {} (offset {} + size {}), beyond SCALE of {} blocks: lower HOTSPOT_OFFSET_MB or HOTSPOT_MB",
                    hot.offset_blocks + hot.size_blocks,
                    hot.offset_blocks,
                    hot.size_blocks,
                    plan.scale
                ),
            );
        }
    }

    /// SLOB 2.2's own hot spot: for updates only, at the low end of the keys.
    fn update_hot_spot(&mut self, plan: &mut Plan) {
        plan.update_keys = plan.scale;
        if !self.settings.bool("UPDATE_HOTSPOT") {
            return;
        }
        let percent = self.settings.int("HOTSPOT_PCT");
        plan.update_keys = plan.scale * percent / 100;
        if plan.update_keys < u64::from(plan.update_work_unit) {
            self.problem(
                "HOTSPOT_PCT",
                format!(
                    "HOTSPOT_PCT={percent} leaves {} keys to updates of {} blocks: raise it or lower UPDATE_WORK_UNIT",
                    plan.update_keys, plan.update_work_unit
                ),
            );
        }
        if plan.hot_spot.is_some() || plan.compat == Compat::Slob253 {
            self.problem(
                "UPDATE_HOTSPOT",
                "UPDATE_HOTSPOT=TRUE excludes DO_HOTSPOT=TRUE and COMPAT=slob253: choose one of them".to_owned(),
            );
        }
    }

    fn think(&mut self, plan: &mut Plan) {
        let think = Think {
            frequency: self.settings.int("THINK_TM_FREQUENCY"),
            min_ns: self.settings.ns("THINK_TM_MIN"),
            max_ns: self.settings.ns("THINK_TM_MAX"),
        };
        if think.min_ns > think.max_ns {
            self.problem(
                "THINK_TM_MIN",
                format!(
                    "THINK_TM_MIN of {} s is above THINK_TM_MAX of {} s: swap them",
                    think.min_ns as f64 / NS_PER_S as f64,
                    think.max_ns as f64 / NS_PER_S as f64
                ),
            );
        }
        if think.frequency == 0 {
            return;
        }
        plan.think = Some(think);
        if plan.rate_per_s > 0 {
            self.problem(
                "RATE",
                format!(
                    "RATE={} fixes the start times of operations, so THINK_TM_FREQUENCY={} cannot apply: set one of \
                     them to 0",
                    plan.rate_per_s, think.frequency
                ),
            );
        }
    }

    fn compat(&mut self, plan: &Plan) {
        if plan.compat != Compat::Slob253 {
            return;
        }
        for (name, width) in [("WORK_UNIT", plan.work_unit), ("UPDATE_WORK_UNIT", plan.update_work_unit)] {
            // The original touches w-1 rows below an upper key in [w+1, SCALE-w].
            if !(3..=1024).contains(&width) || 2 * u64::from(width) + 1 > plan.scale {
                self.problem(
                    name,
                    format!(
                        "{name}={width} under COMPAT=slob253: the range is 3 to 1024, and SCALE ({}) must be more \
                         than twice this value",
                        plan.scale
                    ),
                );
            }
        }
        if plan.edge == Edge::Wrap {
            self.problem("EDGE", "EDGE=wrap and COMPAT=slob253 exclude each other: remove one".to_owned());
        }
    }
}
