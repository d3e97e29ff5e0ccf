//! The users of a node as its files say: `aclfile`, or `user` lines and `requirepass`.
//!
//! Passwords are hashed here, once, at the start or when a file is loaded; a node gets verifiers. A file of users is
//! replaced whole: what is written goes to a new file beside it, which then takes its name.

use crate::config::Config;
use crate::secret;
use ensue_node::acl::{Immediate, LoadError, Salt, Users, Verifier};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why there are no users.
#[derive(Debug, Error)]
pub enum UsersError {
    #[error("`aclfile` and `user` lines are both there: users are said in one place")]
    TwoPlaces,
    #[error(
        "`requirepass` and the rules of the user `default` say different passwords: `default` is said in one place, in \
         {place} or by `requirepass`"
    )]
    TwoPasswords { place: String },
    #[error("cannot read the file of users {}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{0}")]
    Rules(#[from] LoadError),
    #[error("no random numbers for salts: {0}")]
    Random(io::Error),
}

/// The users with which a node starts.
pub(crate) fn read(config: &Config) -> Result<Users, UsersError> {
    let mut users = Users::new();
    let opens_channels = config.opens_channels();
    users.open_channels(opens_channels);
    match (&config.aclfile, &config.users[..]) {
        (Some(_), [_, ..]) => return Err(UsersError::TwoPlaces),
        (Some(path), []) => {
            let users = load(path, opens_channels)?;
            check_password(config, &users, || path.display().to_string())?;
            return Ok(users);
        }
        (None, lines) => {
            let directives: Vec<(usize, &str)> =
                lines.iter().enumerate().map(|(index, line)| (index + 1, line.as_str())).collect();
            users.load_directives("user", &directives, &mut Immediate(salts()?))?;
        }
    }
    let says_default = config.users.iter().any(|line| line.split(' ').next() == Some("default"));
    if says_default {
        check_password(config, &users, || "its `user` line".into())?;
    } else if let Some(password) = &config.requirepass {
        // Whoever reads the configuration knows the password itself: a slow hash of it would protect nothing.
        let rule = format!("#{}", Verifier::sha256(password.as_bytes()));
        users
            .set(b"default", &["resetpass", rule.as_str()], &mut Immediate(salts()?))
            .expect("the rules are right");
    }
    Ok(users)
}

/// Refuses a password that nobody would be asked for, or that would not let anybody in: who reads `requirepass` goes
/// by it.
fn check_password(config: &Config, users: &Users, place: impl Fn() -> String) -> Result<(), UsersError> {
    let default = users.default_user();
    match &config.requirepass {
        Some(password) if default.is_nopass() || !default.accepts(password.as_bytes()) => {
            Err(UsersError::TwoPasswords { place: place() })
        }
        _ => Ok(()),
    }
}

/// The users of a file, of whom those that do not say which channels they may use may use all, or none.
pub(crate) fn load(path: &Path, opens_channels: bool) -> Result<Users, UsersError> {
    let text = fs::read(path).map_err(|error| UsersError::File { path: path.into(), error })?;
    let mut users = Users::new();
    users.open_channels(opens_channels);
    users.load(&path.display().to_string(), &text, &mut Immediate(salts()?))?;
    Ok(users)
}

/// Replaces the file of users, whole or not at all. Only its owner can read it.
pub(crate) fn save(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(BESIDE);
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder)?.sync_all()
}

/// What stands behind the name of the file until the new one is complete.
const BESIDE: &str = ".ensue-new";

/// Salts, or an error if there is no source of them.
fn salts() -> Result<impl FnMut() -> Salt, UsersError> {
    secret::random().map_err(UsersError::Random)?;
    Ok(|| {
        let random = secret::random().expect("there were random numbers a moment ago");
        Salt(random[..16].try_into().expect("16 of 32 bytes"))
    })
}

#[cfg(test)]
mod tests;
