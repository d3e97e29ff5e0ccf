//! Scenarios as text: what clients say, what breaks when, and what must come of it. `docs/scripts.md` has the language.
//!
//! A script runs in a calm world. It fails at the first line whose answer is not the expected one. A line
//! `break RULE` promises that the same script fails when that rule is broken. A script that begins with `world` is no
//! list of steps but the world of a seed, with only some of its clients' steps and some of its faults.

pub mod parse;
pub mod play;

use crate::rules::Rules;
use crate::run::trial::Trial;
use crate::run::{caught, to_screen};
use crate::world::options::Options;
use ensue_types::Rule;
use parse::{Line, Step};
use std::path::{Path, PathBuf};

/// A parsed script.
#[derive(Debug)]
pub struct Script {
    pub options: Options,
    pub lines: Vec<Line>,
    /// The seed's world that this script is, instead of lines.
    pub trial: Option<Trial>,
    /// The protocols under which it holds.
    pub protocols: Vec<String>,
    /// The rules without which the script must fail.
    pub breaks: Vec<Break>,
}

/// A rule without which a script must fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    pub rule: Rule,
    /// The protocols that rest on it: all of the script's, if none is named.
    pub protocols: Vec<String>,
}

impl Script {
    /// Reads a script. The error names the line.
    pub fn parse(text: &str) -> Result<Script, String> {
        parse::script(text)
    }

    /// Plays it under each of its protocols with these rules. The error names the protocol and the line that did not
    /// hold.
    pub fn play(&self, rules: Rules, print: bool) -> Result<(), String> {
        self.protocols.iter().try_for_each(|protocol| self.play_under(protocol, rules, print))
    }

    fn play_under(&self, protocol: &str, rules: Rules, print: bool) -> Result<(), String> {
        self.play_one(protocol, rules, print).map_err(|why| match self.protocols.len() {
            1 => why,
            _ => format!("under {protocol}: {why}"),
        })
    }

    fn play_one(&self, protocol: &str, rules: Rules, print: bool) -> Result<(), String> {
        if let Some(trial) = &self.trial {
            let violation = trial.run(rules, print.then(to_screen)).violation;
            return violation.map_or(Ok(()), |violation| Err(violation.to_string()));
        }
        let mut options = self.options.clone();
        options.rules = rules;
        options.protocol = crate::protocols::find(protocol)?;
        let _breaking = rules.enter();
        let played = caught(|| play::play(options, &self.lines, print));
        played.unwrap_or_else(|words| Err(format!("a node broke an invariant of its own: {words}")))
    }

    /// Plays it as it is and, in a build that can, with each rule broken that it names.
    pub fn check(&self, print: bool) -> Result<(), String> {
        self.play(Rules::default(), print)?;
        for Break { rule, protocols } in self.breaks.iter().filter(|_| Rule::BREAKABLE) {
            let rests = |protocol: &&String| protocols.is_empty() || protocols.contains(protocol);
            for protocol in self.protocols.iter().filter(rests) {
                if self.play_under(protocol, Rules::breaking(*rule), false).is_ok() {
                    let name = rule.name();
                    return Err(format!("still holds under {protocol} when the rule {name} is broken"));
                }
            }
        }
        Ok(())
    }

    /// The script under this protocol only; nothing if it is not one of its protocols.
    pub fn only_under(mut self, protocol: &str) -> Option<Script> {
        self.protocols.retain(|name| name == protocol);
        (!self.protocols.is_empty()).then_some(self)
    }
}

/// All scripts at a path, a file or a directory, in the order of their names.
pub fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "txt") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Plays the scripts at a path and says how each went; with `rules`, only under these, and with `protocol`, only those
/// of that protocol. The exit code.
pub fn run_files(path: &Path, rules: Option<Rules>, protocol: Option<&str>, print: bool) -> i32 {
    let scripts = match files(path) {
        Ok(scripts) => scripts,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return 2;
        }
    };
    let mut failed = 0;
    for path in &scripts {
        let outcome = std::fs::read_to_string(path).map_err(|error| error.to_string()).and_then(|text| {
            let script = Script::parse(&text)?;
            let script = match protocol {
                Some(protocol) => script.only_under(protocol),
                None => Some(script),
            };
            let Some(script) = script else { return Ok(None) };
            match rules {
                Some(rules) => script.play(rules, print),
                None => script.check(print),
            }?;
            Ok(Some(script.protocols.join(", ")))
        });
        match outcome {
            Ok(None) => {}
            Ok(Some(protocols)) => println!("holds   {} ({protocols})", path.display()),
            Err(why) => {
                failed += 1;
                println!("FAILS   {}: {why}", path.display());
            }
        }
    }
    i32::from(failed > 0)
}

/// The steps of a script with their line numbers, for tests.
pub fn steps(script: &Script) -> impl Iterator<Item = &Step> {
    script.lines.iter().map(|line| &line.step)
}

#[cfg(test)]
mod tests;
