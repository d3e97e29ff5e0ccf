//! What must be equal on both sides of a link, by name, with the values that people wrote.
//!
//! One line a setting, so that the same text goes through the handshake and stands in the file `shape` of a data
//! directory: `cluster` or `datacenter` (how far it must be equal), a tab, the name, a tab, the value.

use super::HandshakeError;
use std::fmt;

/// All lines together. A configuration file is no longer than this.
pub const SETTINGS_BYTES_MAX: usize = 1 << 20;
const NAME_BYTES_MAX: usize = 100;
/// Differences that are told one by one; each is a line of a log and of `INFO`.
const TOLD_MAX: usize = 4;
/// Of a value that is told. The rest is in the configuration.
const SHOWN_CHARS_MAX: usize = 160;

/// The setting with the names of all datacenters in order, separated by spaces. A side may know some more at the end.
pub const DATACENTERS: &str = "datacenters";
/// What settings of one datacenter begin with; its name follows. A side that does not know it has none of them.
pub const OF_A_DATACENTER: [&str; 3] = ["cores of the nodes of ", "cores of each node of ", "replicas in "];

/// Between whom a setting must be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Cluster,
    /// Only between nodes of one datacenter.
    Datacenter,
}

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub scope: Scope,
    pub name: String,
    pub value: String,
}

/// All of them, each name once, in an order that does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    list: Vec<Setting>,
}

/// A setting that two sides have differently; nothing where a side does not have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub name: String,
    pub ours: Option<String>,
    pub theirs: Option<String>,
}

/// Several of them, as a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differences(pub Vec<Difference>);

impl Settings {
    /// Adds one. What would break its line is written as an escape; two different values stay different.
    pub fn add(&mut self, scope: Scope, name: impl Into<String>, value: impl AsRef<str>) {
        let name = name.into();
        debug_assert!(!name.contains(char::is_control) && self.value(&name).is_none(), "a name: {name}");
        self.list.push(Setting { scope, name, value: escaped(value.as_ref()) });
    }

    /// Adds all of another list; no name is in both.
    pub fn extend(&mut self, other: &Settings) {
        debug_assert!(other.list.iter().all(|setting| self.value(&setting.name).is_none()));
        self.list.extend_from_slice(&other.list);
    }

    pub fn value(&self, name: &str) -> Option<&str> {
        self.list.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.list.iter()
    }

    /// One line a setting.
    pub fn text(&self) -> String {
        let line = |setting: &Setting| {
            let scope = match setting.scope {
                Scope::Cluster => "cluster",
                Scope::Datacenter => "datacenter",
            };
            format!("{scope}\t{}\t{}\n", setting.name, setting.value)
        };
        self.list.iter().map(line).collect()
    }

    /// What [`Settings::text`] wrote; nothing if that is not what it is.
    pub fn parse(text: &str) -> Option<Settings> {
        if text.len() > SETTINGS_BYTES_MAX {
            return None;
        }
        let mut settings = Settings::default();
        for line in text.lines() {
            let mut parts = line.split('\t');
            let (scope, name, value) = (parts.next()?, parts.next()?, parts.next()?);
            let scope = match scope {
                "cluster" => Scope::Cluster,
                "datacenter" => Scope::Datacenter,
                _ => return None,
            };
            if parts.next().is_some()
                || name.len() > NAME_BYTES_MAX
                || line.contains(|c: char| c.is_control() && c != '\t')
            {
                return None;
            }
            settings.list.push(Setting { scope, name: name.into(), value: value.into() });
        }
        let mut names: Vec<&str> = settings.list.iter().map(|setting| setting.name.as_str()).collect();
        names.sort_unstable();
        names.windows(2).all(|pair| pair[0] != pair[1]).then_some(settings)
    }

    /// What differs and must not. While the nodes of a cluster are restarted with one datacenter more, some know it and
    /// others do not.
    pub fn differences(&self, theirs: &Settings, same_datacenter: bool) -> Vec<Difference> {
        let counts = |setting: &&Setting| same_datacenter || setting.scope == Scope::Cluster;
        let ours = self.list.iter().filter(counts).filter(|setting| !theirs.lacks(&setting.name));
        let ours = ours.filter_map(|setting| {
            let other = theirs.value(&setting.name);
            let extends = |other| setting.name == DATACENTERS && extends(&setting.value, other);
            (other != Some(&setting.value) && !other.is_some_and(extends)).then(|| Difference {
                name: setting.name.clone(),
                ours: Some(setting.value.clone()),
                theirs: other.map(str::to_owned),
            })
        });
        let only_theirs = theirs.list.iter().filter(counts).filter(|s| self.value(&s.name).is_none());
        let only_theirs = only_theirs.filter(|setting| !self.lacks(&setting.name));
        let only_theirs = only_theirs.map(|setting| Difference {
            name: setting.name.clone(),
            ours: None,
            theirs: Some(setting.value.clone()),
        });
        ours.chain(only_theirs).collect()
    }

    /// Whether a setting is of a datacenter that is not among those that these settings name.
    fn lacks(&self, name: &str) -> bool {
        let of = OF_A_DATACENTER.iter().find_map(|prefix| name.strip_prefix(prefix));
        let known = self.value(DATACENTERS);
        of.is_some_and(|datacenter| known.is_some_and(|known| known.split(' ').all(|one| one != datacenter)))
    }

    pub(super) fn compare(&self, theirs: &Settings, same_datacenter: bool) -> Result<(), HandshakeError> {
        match self.differences(theirs, same_datacenter) {
            differences if differences.is_empty() => Ok(()),
            differences => Err(HandshakeError::OtherSettings(Differences(differences))),
        }
    }
}

/// Whether one of two lists of words begins with the whole other one.
fn extends(one: &str, other: &str) -> bool {
    one.split(' ').zip(other.split(' ')).all(|(one, other)| one == other)
}

fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        if letter.is_control() || letter == '\\' {
            text.extend(letter.escape_default());
        } else {
            text.push(letter);
        }
    }
    text
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Difference { name, ours, theirs }) in self.0.iter().take(TOLD_MAX).enumerate() {
            let separator = if number == 0 { "" } else { "; " };
            write!(f, "{separator}{name}: {} here, {} there", shown(ours), shown(theirs))?;
        }
        match self.0.len().saturating_sub(TOLD_MAX) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// A peer's text in a log: short, and without what a terminal could take for a command.
fn shown(value: &Option<String>) -> String {
    let Some(value) = value else { return "nothing".into() };
    if value.is_empty() {
        return "none".into();
    }
    let mut text: String = value.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    if let Some((end, _)) = text.char_indices().nth(SHOWN_CHARS_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}
