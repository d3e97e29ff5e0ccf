//! Writes the entries of a snapshot to the target, a window of them at a time.

use super::databases::{Databases, Unmapped};
use super::pieces;
use super::report::{shown, shown_command};
use super::state::State;
use super::target::{Taken, Target, Words, words};
use anyhow::bail;
use ensue_client::Reply;
use ensue_rdb::{Content, Entry, Item};
use std::time::{SystemTime, UNIX_EPOCH};

/// Entries of a window, and bytes of them; the last may be longer.
const WINDOW_ENTRIES: usize = 500;
const WINDOW_BYTES: usize = 4 << 20;

/// What happens to keys that the target has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// They are left as they are, and reported.
    Keep,
    /// They are deleted first.
    Replace,
    /// A keyspace that has keys is not written to at all.
    Refuse,
}

pub(crate) struct Loader<'a> {
    pub(crate) target: &'a mut Target,
    pub(crate) databases: &'a Databases,
    pub(crate) state: &'a mut State,
    existing: Existing,
    keyspace: u8,
    window: Vec<(Entry, u64)>,
    window_bytes: usize,
    /// Keyspaces that were seen to be empty, or that an interrupted import has written to.
    begun: Vec<u8>,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(
        target: &'a mut Target,
        databases: &'a Databases,
        state: &'a mut State,
        existing: Existing,
    ) -> Loader<'a> {
        let (window, begun) = (Vec::new(), Vec::new());
        Loader { target, databases, state, existing, keyspace: 0, window, window_bytes: 0, begun }
    }

    /// Takes the next item, which ends at this offset.
    pub(crate) fn take(&mut self, item: Item, offset: u64) -> anyhow::Result<()> {
        match item {
            Item::Entry(entry) => self.entry(entry, offset),
            _ if offset <= self.state.done => Ok(()),
            Item::Aux { name, value } => {
                if &name[..] == b"keydb-subexpire-when" {
                    self.state.report.lose("deadlines of members, as KeyDB has them", shown(&value));
                }
                Ok(())
            }
            Item::ModuleAux { name } => {
                self.state.report.lose(format!("what the module {name} keeps beside the keys"), "(no key)");
                Ok(())
            }
            Item::Library(text) => {
                self.flush()?;
                load_library(self.target, self.state, text)?;
                self.state.done = offset;
                Ok(())
            }
        }
    }

    fn entry(&mut self, entry: Entry, offset: u64) -> anyhow::Result<()> {
        let keyspace = match self.databases.keyspace(entry.database) {
            Ok(keyspace) => keyspace,
            Err(reason) => {
                if offset > self.state.done && reason == Unmapped::TooHigh {
                    let what =
                        format!("keys of database {}, for which --db-map names no keyspace", entry.database);
                    self.state.report.lose(what, shown(&entry.key));
                }
                return Ok(());
            }
        };
        if offset <= self.state.done {
            // What is there is this import's own.
            self.note_begun(keyspace);
            return Ok(());
        }
        if keyspace != self.keyspace {
            self.flush()?;
            self.keyspace = keyspace;
        }
        self.window_bytes += entry.key.len() + entry.content.bytes();
        self.window.push((entry, offset));
        if self.window.len() >= WINDOW_ENTRIES || self.window_bytes >= WINDOW_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn note_begun(&mut self, keyspace: u8) {
        if !self.begun.contains(&keyspace) {
            self.begun.push(keyspace);
        }
        self.state.keyspaces.insert(keyspace);
    }

    /// Writes what has been taken.
    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        let window = std::mem::take(&mut self.window);
        self.window_bytes = 0;
        let Some((_, end)) = window.last() else { return Ok(()) };
        let end = *end;
        self.check_empty(&window)?;
        let exists = self.which_exist(&window)?;
        let existed_before = std::mem::take(&mut self.state.existing);
        self.state.existing = window
            .iter()
            .zip(&exists)
            .filter(|(_, exists)| **exists)
            .map(|((entry, _), _)| entry.key.to_vec())
            .collect();
        let interrupted_end = self.state.window_end;
        // What was interrupted reached further: of its keys beyond this window it stays known which had existed.
        if interrupted_end > end {
            self.state.existing.extend(existed_before);
        }
        self.state.window_end = interrupted_end.max(end);
        self.state.save()?;
        self.write(&window, &exists, interrupted_end)?;
        self.state.done = end;
        Ok(())
    }

    /// Where it was asked for, refuses a keyspace that has keys of others.
    fn check_empty(&mut self, window: &[(Entry, u64)]) -> anyhow::Result<()> {
        let is_continued = window.iter().any(|(_, offset)| *offset <= self.state.window_end);
        if self.existing == Existing::Refuse && !is_continued && !self.begun.contains(&self.keyspace) {
            if let [Reply::Integer(count @ 1..)] = self.target.run(self.keyspace, &[words!["DBSIZE"]])?[..] {
                bail!(
                    "keyspace {} of the target has {count} keys: empty it, or give --replace to overwrite those that \
                     the source has, too",
                    self.keyspace
                );
            }
        }
        self.note_begun(self.keyspace);
        Ok(())
    }

    /// Which keys of the window are to be left as they are.
    fn which_exist(&mut self, window: &[(Entry, u64)]) -> anyhow::Result<Vec<bool>> {
        if self.existing != Existing::Keep {
            return Ok(vec![false; window.len()]);
        }
        let asked: Vec<Words> = window.iter().map(|(entry, _)| words!["EXISTS", entry.key.clone()]).collect();
        let replies = self.target.run(self.keyspace, &asked)?;
        let is_kept = |((entry, offset), reply): (&(Entry, u64), &Reply)| {
            let was_there =
                *offset > self.state.window_end || self.state.existing.iter().any(|key| key[..] == entry.key);
            was_there && *reply != Reply::Integer(0)
        };
        Ok(window.iter().zip(&replies).map(is_kept).collect())
    }

    fn write(
        &mut self,
        window: &[(Entry, u64)],
        exists: &[bool],
        interrupted_end: u64,
    ) -> anyhow::Result<()> {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64);
        let mut commands: Vec<Words> = Vec::new();
        let mut parts = Vec::new();
        for ((entry, offset), exists) in window.iter().zip(exists) {
            let begin = commands.len();
            let report = &mut self.state.report;
            if let Content::Module { name } = &entry.content {
                report.lose(format!("values of the module {name}"), shown(&entry.key));
            } else if *exists {
                report.lose("keys that the target has already, left as they are", shown(&entry.key));
            } else if entry.deadline_ms.is_some_and(|ms| ms <= now_ms) {
                report.count("keys had expired", 1);
            } else {
                if self.existing == Existing::Replace || *offset <= interrupted_end {
                    commands.push(words!["DEL", entry.key.clone()]);
                }
                commands.extend(pieces::commands(&entry.key, &entry.content, entry.deadline_ms, now_ms));
            }
            parts.push(begin..commands.len());
        }
        let Taken { mut replies, places } = self.target.take(self.keyspace, &commands)?;
        for ((entry, _), part) in window.iter().zip(parts) {
            if part.is_empty() {
                continue;
            }
            let of_key = &commands[part.clone()];
            if !places[part.clone()].is_sorted() {
                let anew = self.target.run_value_anew(self.keyspace, &entry.key, of_key)?;
                replies[part.clone()].clone_from_slice(&anew);
            }
            self.judge(entry, of_key, &replies[part]);
        }
        Ok(())
    }

    /// Counts a key by the answers to its commands.
    fn judge(&mut self, entry: &Entry, commands: &[Words], replies: &[Reply]) {
        let report = &mut self.state.report;
        let mut is_there = true;
        for (command, reply) in commands.iter().zip(replies) {
            let Reply::Error(answer) = reply else { continue };
            match &command[0][..] {
                b"HPEXPIREAT" => {
                    report.lose("deadlines of fields of hashes", format!("{}: {answer}", shown(&entry.key)))
                }
                b"XGROUP" | b"XCLAIM" | b"XSETID" => {
                    let example = format!("{}: {answer}", shown_command(command));
                    report.lose("parts of consumer groups of streams", example);
                }
                _ if is_there => {
                    is_there = false;
                    let what = format!("keys of type {} that the target refused", entry.content.type_name());
                    report.lose(what, format!("{}: {answer}", shown(&entry.key)));
                }
                _ => {}
            }
        }
        if is_there {
            report.count_key(entry.content.type_name());
        }
    }
}

/// Loads a library of functions. The one of the same name is replaced: it can only be an older one of the source.
fn load_library(target: &mut Target, state: &mut State, text: bytes::Bytes) -> anyhow::Result<()> {
    let first_line = text.split(|byte| *byte == b'\n').next().unwrap_or_default().to_vec();
    match &target.run(0, &[words!["FUNCTION", "LOAD", "REPLACE", text]])?[..] {
        [Reply::Error(answer)] => {
            state.report.lose("libraries of functions", format!("{}: {answer}", shown(&first_line)));
        }
        _ => state.report.count("libraries of functions, known in the datacenter of the target", 1),
    }
    Ok(())
}
