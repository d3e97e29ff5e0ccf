//! What a copy has, as the file that makes it one: written last, so that a folder without it is no copy.

use anyhow::Context;
use serde_json::{Value as Json, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What a copy has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) datacenter: String,
    pub(crate) files: Vec<Entry>,
    /// Which node had which partitions, if there were several.
    pub(crate) pieces: Vec<Piece>,
}

/// What came from one of several nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) node: u16,
    pub(crate) partitions: Vec<u16>,
}

/// A file of a copy. What was written before it ends is never changed, so two of the same name, length and checksum
/// are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Below the folder of the datacenter.
    pub(crate) name: String,
    pub(crate) length: u64,
    /// CRC-32 of its last 16 KiB.
    pub(crate) checksum: u32,
}

const FILE: &str = "backup.json";
const VERSION: u64 = 1;

impl Manifest {
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.length).sum()
    }

    pub(crate) fn save(&self, folder: &Path) -> anyhow::Result<()> {
        let files: Vec<Json> = self
            .files
            .iter()
            .map(|file| json!({"name": file.name, "bytes": file.length, "end_crc32": file.checksum}))
            .collect();
        let nodes: Vec<Json> = self
            .pieces
            .iter()
            .map(|piece| json!({"node": piece.node, "partitions": piece.partitions}))
            .collect();
        let text = json!({"version": VERSION, "datacenter": self.datacenter, "nodes": nodes, "files": files});
        let (path, part) = (folder.join(FILE), folder.join("backup.json.part"));
        let mut file = fs::File::create(&part).with_context(|| part.display().to_string())?;
        writeln!(file, "{text:#}")?;
        file.sync_all()?;
        fs::rename(&part, &path).with_context(|| path.display().to_string())?;
        fs::File::open(folder)?.sync_all()?;
        Ok(())
    }

    pub(crate) fn load(folder: &Path) -> anyhow::Result<Manifest> {
        let path = folder.join(FILE);
        let text = fs::read_to_string(&path).with_context(|| {
            format!("{}: a folder without this file is no finished backup", path.display())
        })?;
        read(&text).with_context(|| format!("{} is not what `ensue backup` writes", path.display()))
    }

    /// The newest finished copy in a folder of copies, by its name, which is its time. A folder that somebody has
    /// renamed is none of them: it is kept for a reason, and has to be named.
    pub(crate) fn newest_folder(copies: &Path) -> anyhow::Result<Option<PathBuf>> {
        let mut found: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(copies).with_context(|| copies.display().to_string())? {
            found.push(entry?.path());
        }
        let is_time = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(is_time);
        found.retain(|path| is_time(path) && path.join(FILE).is_file());
        Ok(found.into_iter().max())
    }
}

/// Whether a name is of the form `20261127T014501Z`.
fn is_time(name: &str) -> bool {
    let form = b"00000000T000000Z";
    name.len() == form.len()
        && name.bytes().zip(form).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            letter => byte == *letter,
        })
}

fn read(text: &str) -> Option<Manifest> {
    let json: Json = serde_json::from_str(text).ok()?;
    if json.get("version")?.as_u64()? != VERSION {
        return None;
    }
    let entry = |file: &Json| {
        Some(Entry {
            name: file.get("name")?.as_str()?.to_owned(),
            length: file.get("bytes")?.as_u64()?,
            checksum: u32::try_from(file.get("end_crc32")?.as_u64()?).ok()?,
        })
    };
    let piece = |piece: &Json| {
        let number = |json: &Json| u16::try_from(json.as_u64()?).ok();
        let partitions = piece.get("partitions")?.as_array()?.iter().map(number).collect::<Option<_>>()?;
        Some(Piece { node: number(piece.get("node")?)?, partitions })
    };
    let pieces = json.get("nodes").and_then(Json::as_array).into_iter().flatten();
    let pieces = pieces.map(piece).collect::<Option<_>>()?;
    let files = json.get("files")?.as_array()?.iter().map(entry).collect::<Option<_>>()?;
    Some(Manifest { datacenter: json.get("datacenter")?.as_str()?.to_owned(), files, pieces })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_copy_is_one_whose_name_is_a_time() {
        let copies = std::env::temp_dir().join(format!("ensue-copies-test-{}", std::process::id()));
        for name in ["20261127T014501Z", "20261126T235959Z", "before-upgrade", "20261128T014501Z"] {
            fs::create_dir_all(copies.join(name)).unwrap();
        }
        // The last one is not finished.
        for name in ["20261127T014501Z", "20261126T235959Z", "before-upgrade"] {
            fs::write(copies.join(name).join(FILE), "{}").unwrap();
        }
        let newest = Manifest::newest_folder(&copies).unwrap();
        fs::remove_dir_all(&copies).unwrap();
        assert_eq!(newest, Some(copies.join("20261127T014501Z")));
    }
}
