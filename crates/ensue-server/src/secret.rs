//! The keys by which peers prove which datacenter they speak for: one file a datacenter, read at the start.
//!
//! ```text
//! # any comment
//! ensue-secret 1 lisbon
//! lisbon 52f1…       64 hexadecimal digits: what only the nodes of lisbon have
//! oslo   9c07…       what only lisbon and oslo have
//! @tokens 1b55…      what all datacenters have, to seal tokens; the first of several seals, all are accepted
//! ```
//!
//! Each pair of datacenters has a key of its own, so that who has the file of one can speak as that one, and deceive
//! that one, and nobody else. [`make`] writes the files; nothing else ever writes one, and no key is ever printed.

use crate::bounds::SECRET_BYTES_MAX;
use ensue_node::TokenKey;
use ensue_wire::SharedKey;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What the name of a file ends with.
const EXTENSION: &str = "secret";

/// Why there are no keys. No key is in the words.
#[derive(Debug, Error)]
pub enum SecretError {
    #[error("cannot use the cluster-secret {path}: {error}")]
    Machine { path: PathBuf, error: io::Error },
    #[error("{path}:{line}: {reason}")]
    Syntax { path: PathBuf, line: usize, reason: &'static str },
    #[error(
        "{path} is the cluster-secret of {found}, and this node is of {expected}: each datacenter has a file of its own"
    )]
    OtherOwner { path: PathBuf, found: String, expected: String },
    #[error("{path} has no key for {datacenter}: `ensue secret` adds the missing ones, for both sides")]
    NoKey { path: PathBuf, datacenter: String },
    #[error(
        "{one} and {other} have different keys for each other in {folder}: remove the line in one of the files"
    )]
    Unequal { folder: PathBuf, one: String, other: String },
    #[error("'{name}' is no name of a datacenter, or is named twice")]
    Name { name: String },
}

/// What one file says.
#[derive(Debug)]
struct SecretFile {
    owner: String,
    keys: BTreeMap<String, [u8; 32]>,
    /// What seals tokens.
    tokens: Vec<[u8; 32]>,
}

/// The name of a key that seals tokens. No datacenter has it.
const TOKENS: &str = "@tokens";

/// The keys of this datacenter for all of these, itself included.
pub fn read(
    path: &Path,
    own: &str,
    datacenters: &[String],
) -> Result<BTreeMap<String, SharedKey>, SecretError> {
    let SecretFile { owner, keys, .. } = read_file(path)?;
    if owner != own {
        return Err(SecretError::OtherOwner { path: path.into(), found: owner, expected: own.into() });
    }
    let key = |datacenter: &String| {
        let key = keys.get(datacenter).copied().and_then(SharedKey::new);
        let key =
            key.ok_or_else(|| SecretError::NoKey { path: path.into(), datacenter: datacenter.clone() })?;
        Ok((datacenter.clone(), key))
    };
    datacenters.iter().map(key).collect()
}

/// The keys that seal tokens, in order; none in a file of a time when there were none.
pub(crate) fn token_keys(path: &Path) -> Result<Vec<TokenKey>, SecretError> {
    Ok(read_file(path)?.tokens.into_iter().map(TokenKey).collect())
}

/// Whether others than the file's owner may read it.
pub(crate) fn is_readable_by_others(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

/// Makes a key for each pair that has none yet, and writes the file of each datacenter into the folder. Keys that are
/// there
/// stay. Returns the files, and how many pairs got a key.
pub fn make(folder: &Path, datacenters: &[String]) -> Result<(Vec<PathBuf>, usize), SecretError> {
    for (place, name) in datacenters.iter().enumerate() {
        if !ensue_wire::handshake::is_name(name) || datacenters[..place].contains(name) {
            return Err(SecretError::Name { name: name.clone() });
        }
    }
    let fails = |error| SecretError::Machine { path: folder.into(), error };
    std::fs::create_dir_all(folder).map_err(fails)?;
    let (mut files, mut tokens) = (Vec::new(), Vec::new());
    for name in datacenters {
        files.push(match read_file(&path_of(folder, name)) {
            Ok(file) => {
                // Where files differ, an operator is replacing a key: the longest list knows all.
                if file.tokens.len() > tokens.len() {
                    tokens = file.tokens;
                }
                file.keys
            }
            Err(SecretError::Machine { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                BTreeMap::new()
            }
            Err(error) => return Err(error),
        });
    }
    if tokens.is_empty() {
        tokens.push(random().map_err(fails)?);
    }
    let mut made = 0;
    for one in 0..datacenters.len() {
        for other in one..datacenters.len() {
            let known = [files[one].get(&datacenters[other]), files[other].get(&datacenters[one])];
            let key = match known.map(|key| key.copied()) {
                [Some(here), Some(there)] if here != there => {
                    let (one, other) = (datacenters[one].clone(), datacenters[other].clone());
                    return Err(SecretError::Unequal { folder: folder.into(), one, other });
                }
                [Some(key), _] | [_, Some(key)] => key,
                [None, None] => {
                    made += 1;
                    random().map_err(fails)?
                }
            };
            files[one].insert(datacenters[other].clone(), key);
            files[other].insert(datacenters[one].clone(), key);
        }
    }
    let paths: Vec<PathBuf> = datacenters.iter().map(|name| path_of(folder, name)).collect();
    for ((path, name), keys) in paths.iter().zip(datacenters).zip(&files) {
        write_file(path, name, keys, &tokens)
            .map_err(|error| SecretError::Machine { path: path.clone(), error })?;
    }
    Ok((paths, made))
}

/// The file of a datacenter in a folder that [`make`] has filled.
pub fn path_of(folder: &Path, datacenter: &str) -> PathBuf {
    folder.join(format!("{datacenter}.{EXTENSION}"))
}

/// Bytes that nobody can foresee, of the machine.
pub fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

fn read_file(path: &Path) -> Result<SecretFile, SecretError> {
    let fails = |error| SecretError::Machine { path: path.into(), error };
    let mut text = String::new();
    let file = File::open(path).map_err(fails)?;
    file.take(SECRET_BYTES_MAX).read_to_string(&mut text).map_err(fails)?;
    let syntax = |line, reason| SecretError::Syntax { path: path.into(), line, reason };
    let (mut owner, mut keys, mut tokens) = (None, BTreeMap::new(), Vec::new());
    for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (&owner, words.as_slice()) {
            (_, []) => {}
            (_, [first, ..]) if first.starts_with('#') => {}
            (None, ["ensue-secret", "1", name]) => owner = Some((*name).to_owned()),
            (None, _) => return Err(syntax(number, "the first line must be `ensue-secret 1 DATACENTER`")),
            (Some(_), [name, digits]) => {
                let Some(key) = from_digits(digits) else {
                    return Err(syntax(number, "a key has 64 hexadecimal digits, not all of them 0"));
                };
                if *name == TOKENS {
                    tokens.push(key);
                } else if keys.insert((*name).to_owned(), key).is_some() {
                    return Err(syntax(number, "a second key for the same datacenter"));
                }
            }
            (Some(_), _) => return Err(syntax(number, "write DATACENTER KEY")),
        }
    }
    let owner = owner.ok_or_else(|| syntax(1, "it is empty"))?;
    Ok(SecretFile { owner, keys, tokens })
}

fn from_digits(digits: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = digits.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let mut key = [0; 32];
    if digits.len() != 2 * key.len() {
        return None;
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        *byte = pair[0] << 4 | pair[1];
    }
    SharedKey::new(key).map(|_| key)
}

/// As a whole, and for its owner's eyes only.
fn write_file(
    path: &Path,
    owner: &str,
    keys: &BTreeMap<String, [u8; 32]>,
    tokens: &[[u8; 32]],
) -> io::Result<()> {
    let mut text = format!(
        "# The directive `cluster-secret` of every node of {owner} names this file. Whoever reads it can speak as {owner}.\n\
         ensue-secret 1 {owner}\n"
    );
    let of_tokens = tokens.iter().map(|key| (TOKENS, key));
    for (name, key) in keys.iter().map(|(name, key)| (name.as_str(), key)).chain(of_tokens) {
        let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!("{name} {digits}\n");
    }
    if std::fs::read(path).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(());
    }
    let temporary = path.with_extension("secret.tmp");
    // One that an earlier run left behind may have other permissions.
    let _ = std::fs::remove_file(&temporary);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all())?;
    std::fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests;
