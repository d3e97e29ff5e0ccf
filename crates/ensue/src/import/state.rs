//! How far an import is, in a file, so that one that was interrupted continues.
//!
//! Before the keys of a window are written, the file says where the window ends and which of its keys had existed
//! before. Whoever continues writes the others of that window again, from nothing: whatever was written of them is its
//! own. Commands are different: one that was sent when the process was killed may be applied a second time.

use super::report::Report;
use anyhow::{Context, bail};
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Everything that a continued import needs to know.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct State {
    path: Option<PathBuf>,
    /// What is imported, and to where: another one is not continued.
    subject: String,
    /// Which of several files is being read.
    pub(crate) file: u64,
    /// The offset up to which that one is done.
    pub(crate) done: u64,
    /// The end of the window that was written when this was saved.
    pub(crate) window_end: u64,
    /// Keys of that window that had existed before.
    pub(crate) existing: Vec<Vec<u8>>,
    /// Keyspaces that were written to.
    pub(crate) keyspaces: BTreeSet<u8>,
    /// The database that commands from here on are for.
    pub(crate) database: u64,
    pub(crate) replica: Replica,
    pub(crate) report: Report,
}

/// How far a live import is in the stream of its source.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Replica {
    /// The name of the stream; empty before the first contact.
    pub(crate) id: String,
    /// The offset of the snapshot.
    pub(crate) base: u64,
    pub(crate) has_snapshot: bool,
    /// The offset up to which the stream is applied.
    pub(crate) applied: u64,
}

impl State {
    /// The one in this file, if it is there; a new one otherwise.
    pub(crate) fn load(path: Option<&Path>, subject: String) -> anyhow::Result<State> {
        let new = State { path: path.map(Path::to_path_buf), subject: subject.clone(), ..State::default() };
        let Some(path) = path.filter(|path| path.exists()) else { return Ok(new) };
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let json: Json =
            serde_json::from_str(&text).with_context(|| format!("{} is no state", path.display()))?;
        let state =
            State::from_json(&json, new).with_context(|| format!("{} is no state", path.display()))?;
        if state.subject != subject {
            bail!("{} belongs to another import: {}", path.display(), state.subject);
        }
        Ok(state)
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.path.is_some()
    }

    /// Replaces the file as a whole.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut next = path.clone().into_os_string();
        next.push(".next");
        let written = write_private(&next, self.to_json().to_string().as_bytes());
        let written = written.and_then(|()| fs::rename(&next, path));
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    fn to_json(&self) -> Json {
        let Replica { id, base, has_snapshot, applied } = &self.replica;
        let existing: Vec<String> = self.existing.iter().map(|key| hex(key)).collect();
        json!({
            "subject": self.subject, "file": self.file, "done": self.done, "window_end": self.window_end,
            "keyspaces": self.keyspaces, "existing": existing, "database": self.database, "report": self.report.to_json(),
            "replica": { "id": id, "base": base, "has_snapshot": has_snapshot, "applied": applied },
        })
    }

    fn from_json(json: &Json, new: State) -> Option<State> {
        let number = |json: &Json, name: &str| json.get(name)?.as_u64();
        let keyspaces = json.get("keyspaces").and_then(Json::as_array).into_iter().flatten();
        let keyspaces = keyspaces.filter_map(|number| u8::try_from(number.as_u64()?).ok());
        let replica = json.get("replica")?;
        let existing = json.get("existing")?.as_array()?.iter().map(|key| bytes_of_hex(key.as_str()?));
        Some(State {
            path: new.path,
            subject: json.get("subject")?.as_str()?.into(),
            file: number(json, "file")?,
            done: number(json, "done")?,
            window_end: number(json, "window_end")?,
            existing: existing.collect::<Option<_>>()?,
            keyspaces: keyspaces.collect(),
            database: number(json, "database")?,
            replica: Replica {
                id: replica.get("id")?.as_str()?.into(),
                base: number(replica, "base")?,
                has_snapshot: replica.get("has_snapshot")?.as_bool()?,
                applied: number(replica, "applied")?,
            },
            report: Report::from_json(json.get("report")?)?,
        })
    }
}

/// It has keys, which only this user may read; what stood under the name is not written to.
fn write_private(path: &OsStr, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || text.len() % 2 != 0 {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests;
