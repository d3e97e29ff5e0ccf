//! The files of the workspace, in memory: names relative to its root, with their text.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// What is not ours: built, fetched or written while running. `.git` is a file where the tree is one of several of a
/// repository.
const SKIPPED: [&str; 9] = [
    "target",
    ".git",
    "node_modules",
    "__pycache__",
    "ensue-data",
    "venv",
    ".venv",
    ".pytest_cache",
    ".hypothesis",
];

/// Every file by its path, with `/` between the parts. A file that is no text is there with an empty text.
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    pub fn read(root: &Path) -> io::Result<Tree> {
        let mut tree = Tree::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    pub fn from_files(files: &[(&str, &str)]) -> Tree {
        Tree { files: files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect() }
    }

    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub fn files_ending(&self, end: &str) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(move |(path, _)| path.ends_with(end))
    }

    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether a file or a folder of this name is there. The root is the empty name.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.keys().any(|file| file.starts_with(&folder))
    }

    /// The packages of the workspace: each folder of `crates/` with a manifest, and `xtask`.
    pub fn packages(&self) -> Vec<String> {
        let manifests = self.files.keys().filter_map(|path| path.strip_suffix("/Cargo.toml"));
        let folders = manifests
            .filter_map(|folder| folder.strip_prefix("crates/").or((folder == "xtask").then_some(folder)));
        folders.filter(|folder| !folder.contains('/')).map(String::from).collect()
    }

    fn read_folder(&mut self, folder: &Path, name: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let file_name = entry.file_name();
            let Some(file_name) = file_name.to_str() else { continue };
            let path = if name.is_empty() { file_name.into() } else { format!("{name}/{file_name}") };
            let kind = entry.file_type()?;
            if SKIPPED.contains(&file_name) {
                continue;
            }
            if kind.is_dir() {
                self.read_folder(&entry.path(), &path)?;
            } else if kind.is_file() {
                let text = String::from_utf8(fs::read(entry.path())?).unwrap_or_default();
                self.files.insert(path, text);
            }
        }
        Ok(())
    }
}
