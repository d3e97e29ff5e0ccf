//! Settings as they stand in a file, in the environment, or on the command line, before they are checked.
//!
//! A variable that begins with `ENSUE_` but names no directive is not refused: platforms put variables of their own
//! beside ours (a service named `ensue` in Kubernetes makes `ENSUE_SERVICE_HOST`). It is told to the operator.

use super::directive::{self, Directive, Kind, PARAMETER};
use super::error::{ConfigError, Origin};
use super::{Config, words};
use crate::bounds::{CONFIG_BYTES_MAX, INCLUDE_DEPTH_MAX};
use crate::log;
use std::io::Read;
use std::path::{Path, PathBuf};

/// One line, variable or flag.
#[derive(Debug)]
pub(super) struct Setting {
    directive: &'static Directive,
    words: Vec<String>,
    origin: Origin,
}

/// What the command line says.
#[derive(Debug, Default)]
pub(super) struct Flags {
    pub(super) settings: Vec<Setting>,
    pub(super) file: Option<PathBuf>,
}

impl Setting {
    fn new(directive: &'static Directive, name: &str, mut words: Vec<String>, origin: Origin) -> Setting {
        if directive.name == PARAMETER.name {
            words.insert(0, name.to_owned());
        }
        Setting { directive, words, origin }
    }

    pub(super) fn is_for(&self, directive: &Directive) -> bool {
        self.directive.name == directive.name
    }

    pub(super) fn apply(&self, config: &mut Config) -> Result<(), ConfigError> {
        let invalid =
            |reason| ConfigError::Invalid { origin: self.origin.clone(), name: self.directive.name, reason };
        if self.words.is_empty() {
            return Err(invalid("a value is missing".into()));
        }
        if matches!(self.directive.kind, Kind::Word) && self.words.len() > 1 {
            return Err(invalid(format!("one value, not {}", self.words.len())));
        }
        (self.directive.set)(config, &self.words).map_err(invalid)
    }
}

pub(super) fn from_file(path: &Path) -> Result<Vec<Setting>, ConfigError> {
    let mut settings = Vec::new();
    read_file(path, 1, &mut settings)?;
    Ok(settings)
}

fn read_file(path: &Path, depth: usize, settings: &mut Vec<Setting>) -> Result<(), ConfigError> {
    let fails = |error| ConfigError::Read { path: path.into(), error };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(fails)?;
    file.take(CONFIG_BYTES_MAX + 1).read_to_string(&mut text).map_err(fails)?;
    if text.len() as u64 > CONFIG_BYTES_MAX {
        return Err(ConfigError::TooLong { path: path.into() });
    }
    for (index, line) in text.lines().enumerate() {
        let origin = Origin::File { path: path.into(), line: index + 1 };
        let mut words = match words::split(line) {
            Ok(words) => words,
            Err(reason) => return Err(ConfigError::Syntax { origin, reason }),
        };
        if words.is_empty() {
            continue;
        }
        let name = words.remove(0).to_ascii_lowercase();
        if name == "include" {
            if depth == INCLUDE_DEPTH_MAX {
                return Err(ConfigError::IncludedTooDeep { origin });
            }
            let folder = path.parent().unwrap_or(Path::new(""));
            for included in &words {
                read_file(&folder.join(included), depth + 1, settings)?;
            }
            continue;
        }
        let directive = find(&name, &origin)?;
        settings.push(Setting::new(directive, &name, words, origin));
    }
    Ok(())
}

pub(super) fn from_variables(
    variables: impl Iterator<Item = (String, String)>,
) -> Result<Vec<Setting>, ConfigError> {
    let mut settings = Vec::new();
    for (variable, value) in variables {
        let Some(name) = variable.strip_prefix("ENSUE_") else { continue };
        let name = name.to_ascii_lowercase().replace('_', "-");
        let Some(directive) = directive::by_name(&name) else {
            log::warning(format_args!("variable {variable} names no directive and is ignored"));
            continue;
        };
        let origin = Origin::Variable(variable);
        match directive.kind {
            Kind::Word => settings.push(Setting { directive, words: vec![value], origin }),
            Kind::Words => {
                let words = split(&value, &origin)?;
                settings.push(Setting::new(directive, &name, words, origin));
            }
            Kind::Lines => {
                for line in value.split(';').filter(|line| !line.trim().is_empty()) {
                    let words = split(line, &origin)?;
                    settings.push(Setting { directive, words, origin: origin.clone() });
                }
            }
        }
    }
    Ok(settings)
}

pub(super) fn from_flags(arguments: &[String]) -> Result<Flags, ConfigError> {
    let mut flags = Flags::default();
    let mut rest = arguments.iter().peekable();
    while let Some(argument) = rest.next() {
        let Some(flag) = argument.strip_prefix("--").filter(|flag| !flag.is_empty()) else {
            return Err(ConfigError::NoFlag { word: argument.clone() });
        };
        let (name, mut values) = match flag.split_once('=') {
            Some((name, value)) => (name, vec![value.to_string()]),
            None => (flag, Vec::new()),
        };
        while let Some(value) = rest.next_if(|next| !next.starts_with("--")) {
            values.push(value.clone());
        }
        let origin = Origin::Flag(name.into());
        if name == "config" {
            flags.file = values.first().map(PathBuf::from);
            continue;
        }
        let directive = find(name, &origin)?;
        let words = match (directive.kind, values.as_slice()) {
            // `--node "dc1 10.0.0.1:17001"` says the same as the words one by one.
            (Kind::Words | Kind::Lines, [line]) => split(line, &origin)?,
            _ => values,
        };
        flags.settings.push(Setting::new(directive, name, words, origin));
    }
    Ok(flags)
}

fn find(name: &str, origin: &Origin) -> Result<&'static Directive, ConfigError> {
    directive::by_name(name).ok_or_else(|| ConfigError::Unknown { origin: origin.clone(), name: name.into() })
}

fn split(line: &str, origin: &Origin) -> Result<Vec<String>, ConfigError> {
    words::split(line).map_err(|reason| ConfigError::Syntax { origin: origin.clone(), reason })
}
