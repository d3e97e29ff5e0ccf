//! A seed's world with less in it, or with some settings changed: what a shrinker leaves, written as a script.
//!
//! `Display` shows it as the lines of a script, and the script language reads them. Everything that is not said is what
//! the seed draws.

use crate::faults::text::show_us;
use crate::faults::{Plan, Planned};
use crate::rules::Rules;
use crate::run::{Report, Sink, run_plan};
use crate::world::options::{Kept, Options};
use crate::world::shape::Shape;
use std::fmt;

/// One world to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    pub seed: u64,
    settings: Vec<String>,
    /// The only steps that clients take; nothing if they take all.
    pub kept: Option<Kept>,
    pub plan: Plan,
}

impl Trial {
    /// The whole world of a seed, but without faults.
    pub fn new(seed: u64) -> Trial {
        Trial { seed, settings: Vec::new(), kept: None, plan: Plan::default() }
    }

    /// The whole world of these options, but without faults.
    pub fn of(options: &Options) -> Trial {
        let mut settings = vec![format!("protocol={}", options.protocol.name)];
        if options.says_wild_clocks() {
            settings.push(format!("datacenters={}", options.shape.datacenters));
            settings.push("wild_clocks=yes".to_owned());
        }
        if options.says_losing() {
            settings.push(format!("datacenters={}", options.shape.datacenters));
            settings.push("loses_datacenter=yes".to_owned());
        }
        if options.says_losing_directories() {
            settings.retain(|setting| !setting.starts_with("datacenters="));
            settings.push(format!("datacenters={}", options.shape.datacenters));
            settings.push("loses_directories=yes".to_owned());
        }
        if options.says_joining() {
            settings.retain(|setting| !setting.starts_with("datacenters="));
            settings.push(format!("datacenters={}", options.shape.datacenters));
            settings.push("joins=yes".to_owned());
        }
        if options.says_retiring() {
            settings.retain(|setting| !setting.starts_with("datacenters="));
            settings.push(format!("datacenters={}", options.shape.datacenters));
            settings.push("retires=yes".to_owned());
        }
        if options.says_moving_homes() {
            settings.retain(|setting| !setting.starts_with("datacenters="));
            settings.push(format!("datacenters={}", options.shape.datacenters));
            settings.push("moves_homes=yes".to_owned());
        }
        if options.says_replicated() {
            settings.push("replicas=3".to_owned());
        }
        Trial { settings, ..Trial::new(options.seed) }
    }

    /// Changes a setting of the world, and leaves out the faults that the changed world does not know.
    pub fn set(&mut self, setting: &str) -> Result<(), String> {
        self.options(Rules::default()).set(setting)?;
        self.settings.retain(|other| name_of(other) != name_of(setting));
        self.settings.push(setting.to_owned());
        let shape = self.shape();
        let known = |planned: &Planned| Planned::parse(&planned.to_string(), shape).is_ok();
        self.plan.faults.retain(known);
        Ok(())
    }

    /// Whether the script says something about what this setting sets.
    pub fn sets(&self, setting: &str) -> bool {
        self.settings.iter().any(|other| name_of(other) == name_of(setting))
    }

    pub fn options(&self, rules: Rules) -> Options {
        // What is drawn depends on the protocol.
        let protocol = self.settings.iter().find_map(|setting| setting.strip_prefix("protocol="));
        let mut options = match protocol {
            Some(protocol) => Options::draw_with(self.seed, rules, protocol),
            None => Options::draw(self.seed, rules),
        };
        for setting in &self.settings {
            options.set(setting).expect("a setting was tried when it was added");
        }
        options.workload.kept.clone_from(&self.kept);
        options
    }

    pub fn shape(&self) -> Shape {
        self.options(Rules::default()).shape
    }

    /// The line that names the world, and what no other line says.
    pub fn head(&self) -> String {
        let settings: String = self.settings.iter().map(|setting| format!(" {setting}")).collect();
        let nobody = if self.kept.as_ref().is_some_and(Kept::is_empty) { "\nnobody acts" } else { "" };
        format!("world seed={}{settings}{nobody}", self.seed)
    }

    /// The steps and the faults in the order of their times, each with its step.
    pub fn lines(&self) -> Vec<(Option<(usize, u64)>, String)> {
        let steps = self.kept.iter().flatten().map(|(&(client, step), &at_us)| {
            let line = format!("at {} client {client} step {step}", show_us(at_us));
            (at_us, Some((client, step)), line)
        });
        let faults = self.plan.faults.iter().map(|planned| (planned.at_us, None, planned.to_string()));
        let mut lines: Vec<_> = steps.chain(faults).collect();
        lines.sort_by_key(|(at_us, ..)| *at_us);
        lines.into_iter().map(|(_, step, line)| (step, line)).collect()
    }

    pub fn run(&self, rules: Rules, trace: Option<Sink>) -> Report {
        run_plan(self.options(rules), self.plan.clone(), trace)
    }
}

fn name_of(setting: &str) -> &str {
    setting.split('=').next().unwrap_or_default()
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.head())?;
        self.lines().into_iter().try_for_each(|(_, line)| writeln!(f, "{line}"))
    }
}
