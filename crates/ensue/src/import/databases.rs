//! Which keyspace of the target each database of the source goes to.

use std::collections::BTreeMap;
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
