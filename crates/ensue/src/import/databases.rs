//! Which keyspace of the target each database of the source goes to.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// A database is left as it is numbered, unless something else is said of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Databases {
    /// Nothing where it is left out.
    named: BTreeMap<u64, Option<u8>>,
    only: Option<u64>,
}

/// Why a database has no keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmapped {
    /// It was said to be left out.
    LeftOut,
    /// Ensue has no keyspace of its number.
    TooHigh,
}

const KEYSPACES: u64 = 16;

impl Databases {
    /// With this database only.
    pub(crate) fn only(mut self, database: Option<u64>) -> Databases {
        self.only = database;
        self
    }

    /// Refuses two databases in one keyspace: their keys would be mixed, and what empties one of them empties both.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut sources = BTreeMap::new();
        for database in (0..KEYSPACES).chain(self.named.keys().copied().filter(|named| *named >= KEYSPACES)) {
            let Ok(keyspace) = self.keyspace(database) else { continue };
            if let Some(other) = sources.insert(keyspace, database) {
                return Err(format!(
                    "databases {other} and {database} would both go to keyspace {keyspace}: leave one out, as by \
                     --db-map {database}:-, or name another keyspace for it"
                ));
            }
        }
        Ok(())
    }

    pub(crate) fn keyspace(&self, database: u64) -> Result<u8, Unmapped> {
        if self.only.is_some_and(|only| only != database) {
            return Err(Unmapped::LeftOut);
        }
        match self.named.get(&database) {
            Some(Some(keyspace)) => Ok(*keyspace),
            Some(None) => Err(Unmapped::LeftOut),
            None if database < KEYSPACES => Ok(database as u8),
            None => Err(Unmapped::TooHigh),
        }
    }
}

/// As it is typed.
impl fmt::Display for Databases {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (source, target)) in self.named.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            match target {
                Some(target) => write!(out, "{comma}{source}:{target}")?,
                None => write!(out, "{comma}{source}:-")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Databases {
    type Err = String;

    fn from_str(text: &str) -> Result<Databases, String> {
        let mut named = BTreeMap::new();
        for pair in text.split(',') {
            let wrong =
                || format!("`{pair}` is not SOURCE:TARGET, such as 3:0, or SOURCE:- to leave one out");
            let (source, target) = pair.split_once(':').ok_or_else(wrong)?;
            let target = match target {
                "-" => None,
                number => Some(
                    number.parse::<u8>().ok().filter(|one| u64::from(*one) < KEYSPACES).ok_or_else(wrong)?,
                ),
            };
            if named.insert(source.parse().map_err(|_| wrong())?, target).is_some() {
                return Err(format!("database {source} is named twice"));
            }
        }
        Ok(Databases { named, only: None })
    }
}

#[cfg(test)]
mod tests;
