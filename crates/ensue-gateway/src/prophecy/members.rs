//! Who belongs to a group, in a file that all have, and what a member knows alone, in a file of its own.
//!
//! A secret signs what a member says to all, and has one key for each other member that it speaks with: so no replica
//! can speak as another one, and none but sketchers can make a request.

use crate::limits::MEMBERS_BYTES_MAX;
use ensue_byzantine::keys::{Group, GroupError, Member, PublicKey, Signer};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

/// What clients and the servers behind the replicas speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// The Redis protocol.
    Redis,
    /// HTTP/1.1.
    Http,
}

impl Protocol {
    /// By its name in a group file.
    pub fn from_name(name: &str) -> Option<Protocol> {
        match name {
            "redis" => Some(Protocol::Redis),
            "http" => Some(Protocol::Http),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Protocol::Redis => "redis",
            Protocol::Http => "http",
        }
    }
}

/// A member, by its number among those that do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// One of 3f+1.
    Replica(Member),
    /// It makes requests.
    Sketcher(Member),
}

impl Role {
    pub(super) fn code(self) -> (u8, u32) {
        match self {
            Role::Replica(member) => (1, member.0),
            Role::Sketcher(member) => (2, member.0),
        }
    }

    pub(super) fn from_code(kind: u8, number: u32) -> Option<Role> {
        match kind {
            1 => Some(Role::Replica(Member(number))),
            2 => Some(Role::Sketcher(Member(number))),
            _ => None,
        }
    }

    fn from_words(kind: &str, number: &str) -> Option<Role> {
        let number = number.parse::<u32>().ok()?.checked_sub(1)?;
        match kind {
            "replica" => Some(Role::Replica(Member(number))),
            "sketcher" => Some(Role::Sketcher(Member(number))),
            _ => None,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Replica(member) => write!(f, "replica {}", member.0 + 1),
            Role::Sketcher(member) => write!(f, "sketcher {}", member.0 + 1),
        }
    }
}

/// What is wrong with a file of a group.
#[derive(Debug, thiserror::Error)]
pub enum MembersError {
    /// A line.
    #[error("line {0} makes no sense: {1}")]
    Line(usize, &'static str),
    /// Something that has to be there.
    #[error("there is no line `{0}`")]
    Missing(&'static str),
    /// The numbers of members.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// The secret of another group.
    #[error("the secret of {0} is not of this group")]
    Foreign(Role),
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A replica as all know it.
#[derive(Clone, Debug)]
pub struct ReplicaEntry {
    /// Its name in messages and figures.
    pub name: String,
    /// Where it takes connections of the group.
    pub address: SocketAddr,
    key: PublicKey,
}

/// What a group file says.
#[derive(Clone, Debug)]
pub struct Members {
    /// What is spoken.
    pub protocol: Protocol,
    /// By number.
    pub replicas: Vec<ReplicaEntry>,
    sketchers: Vec<PublicKey>,
    /// The same, for the machines.
    pub group: Arc<Group>,
}

/// What a secret says.
#[derive(Clone)]
pub struct Secret {
    /// Whose it is.
    pub role: Role,
    pub(super) signer: Signer,
    pub(super) pairs: BTreeMap<Role, [u8; 32]>,
    /// Of the sketches of a sketcher.
    pub(super) sketches: [u8; 32],
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret(of {})", self.role)
    }
}

impl Members {
    /// Reads a group file.
    pub fn read(path: &Path) -> Result<Members, MembersError> {
        Members::parse(&read_bounded(path)?)
    }

    fn parse(text: &str) -> Result<Members, MembersError> {
        let (mut protocol, mut replicas, mut sketchers) = (None, Vec::new(), Vec::new());
        for (number, words) in lines(text) {
            let wrong = |what| MembersError::Line(number, what);
            match words[..] {
                ["protocol", name] => {
                    protocol = Some(Protocol::from_name(name).ok_or(wrong("`redis` or `http`"))?);
                }
                ["replica", name, address, key] => replicas.push(ReplicaEntry {
                    name: checked_name(name).ok_or(wrong("a name has letters, digits and dashes"))?,
                    address: address.parse().map_err(|_| wrong("an address and a port"))?,
                    key: PublicKey(unhex(key).ok_or(wrong("a key has 64 hexadecimal digits"))?),
                }),
                ["sketcher", key] => {
                    let key = unhex(key).ok_or(wrong("a key has 64 hexadecimal digits"))?;
                    sketchers.push(PublicKey(key));
                }
                _ => return Err(wrong("an unknown word")),
            }
        }
        let keys = replicas.iter().map(|replica| replica.key).collect();
        let group = Arc::new(Group::new(keys, sketchers.clone())?);
        let protocol = protocol.ok_or(MembersError::Missing("protocol"))?;
        Ok(Members { protocol, replicas, sketchers, group })
    }

    /// Whether the secret is of a member of this group. What another one says would be dropped by all, silently.
    pub(super) fn check(&self, secret: &Secret) -> Result<(), MembersError> {
        let key = match secret.role {
            Role::Replica(member) => self.group.replica(member),
            Role::Sketcher(member) => self.group.client(member),
        };
        if key == Some(&secret.signer.public()) { Ok(()) } else { Err(MembersError::Foreign(secret.role)) }
    }

    /// The names of the replicas.
    pub fn names(&self) -> Vec<String> {
        self.replicas.iter().map(|replica| replica.name.clone()).collect()
    }

    fn text(&self) -> String {
        let mut text = format!(
            "# A group of Prophecy: every member has this file.\nprotocol {}\n",
            self.protocol.name()
        );
        for ReplicaEntry { name, address, key } in &self.replicas {
            writeln!(text, "replica {name} {address} {}", hex(&key.0)).expect("a string takes all");
        }
        for key in &self.sketchers {
            writeln!(text, "sketcher {}", hex(&key.0)).expect("a string takes all");
        }
        text
    }
}

impl Secret {
    /// Reads a secret.
    pub fn read(path: &Path) -> Result<Secret, MembersError> {
        Secret::parse(&read_bounded(path)?)
    }

    fn parse(text: &str) -> Result<Secret, MembersError> {
        let (mut role, mut signs, mut sketches, mut pairs) = (None, None, None, BTreeMap::new());
        for (number, words) in lines(text) {
            let wrong = |what| MembersError::Line(number, what);
            let key = |digits| unhex(digits).ok_or(wrong("a key has 64 hexadecimal digits"));
            let whose =
                |kind, number| Role::from_words(kind, number).ok_or(wrong("`replica 1`, `sketcher 1`, ..."));
            match words[..] {
                ["of", kind, number] => role = Some(whose(kind, number)?),
                ["signs", digits] => signs = Some(key(digits)?),
                ["sketches", digits] => sketches = Some(key(digits)?),
                ["with", kind, number, digits] => {
                    pairs.insert(whose(kind, number)?, key(digits)?);
                }
                _ => return Err(wrong("an unknown word")),
            }
        }
        Ok(Secret {
            role: role.ok_or(MembersError::Missing("of"))?,
            signer: Signer::new(&signs.ok_or(MembersError::Missing("signs"))?),
            pairs,
            sketches: sketches.ok_or(MembersError::Missing("sketches"))?,
        })
    }
}

/// Makes a group: `group`, `replica-1.secret` and so on, in a directory where they are not yet.
pub fn create(
    directory: &Path,
    protocol: Protocol,
    replicas: &[(String, SocketAddr)],
    sketchers: usize,
) -> Result<(), MembersError> {
    let random = SystemRandom::new();
    let draw = || {
        let mut bytes = [0; 32];
        random.fill(&mut bytes).map(|()| bytes).map_err(|_| io::Error::other("no random bytes"))
    };
    let roles: Vec<Role> = (0..replicas.len() as u32)
        .map(|number| Role::Replica(Member(number)))
        .chain((0..sketchers as u32).map(|number| Role::Sketcher(Member(number))))
        .collect();
    let mut pairs = BTreeMap::new();
    for (place, one) in roles.iter().enumerate() {
        for other in &roles[place + 1..] {
            pairs.insert((*one, *other), draw()?);
        }
    }
    let mut keys = Vec::new();
    let mut texts = Vec::new();
    for role in &roles {
        let signs = draw()?;
        keys.push(Signer::new(&signs).public());
        let mut text =
            format!("# Whoever has this speaks as this member.\nof {role}\nsigns {}\n", hex(&signs));
        writeln!(text, "sketches {}", hex(&draw()?)).expect("a string takes all");
        for ((one, other), key) in pairs.iter().filter(|((one, other), _)| one == role || other == role) {
            let whom = if one == role { other } else { one };
            writeln!(text, "with {whom} {}", hex(key)).expect("a string takes all");
        }
        texts.push(text);
    }
    let entries = replicas.iter().zip(&keys).map(|((name, address), key)| {
        let name =
            checked_name(name).ok_or(MembersError::Line(0, "a name has letters, digits and dashes"))?;
        Ok(ReplicaEntry { name, address: *address, key: *key })
    });
    let entries = entries.collect::<Result<Vec<_>, MembersError>>()?;
    let group = Group::new(keys[..replicas.len()].to_vec(), keys[replicas.len()..].to_vec())?;
    let sketchers = keys[replicas.len()..].to_vec();
    let members = Members { protocol, replicas: entries, sketchers, group: Arc::new(group) };
    std::fs::create_dir_all(directory)?;
    write_new(&directory.join("group"), &members.text(), 0o644)?;
    for (role, text) in roles.iter().zip(&texts) {
        write_new(&directory.join(format!("{}.secret", role.to_string().replace(' ', "-"))), text, 0o600)?;
    }
    Ok(())
}

fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())
}

fn read_bounded(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MEMBERS_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Lines with words, and their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    let numbered = text.lines().enumerate().map(|(place, line)| (place + 1, line));
    numbered
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|(number, line)| (number, line.split_whitespace().collect()))
}

fn checked_name(name: &str) -> Option<String> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (!name.is_empty() && name.len() <= 64 && name.bytes().all(is_fit)).then(|| name.to_string())
}

fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_read_as_it_was_made_and_every_two_members_share_one_key() {
        let directory = std::env::temp_dir().join(format!("ensue-members-{}", std::process::id()));
        let replicas: Vec<(String, SocketAddr)> = (1..=4)
            .map(|number| (format!("r{number}"), SocketAddr::from(([127, 0, 0, 1], 21_000 + number))))
            .collect();
        create(&directory, Protocol::Http, &replicas, 2).unwrap();
        assert!(create(&directory, Protocol::Http, &replicas, 2).is_err(), "keys are not written over");
        let members = Members::read(&directory.join("group")).unwrap();
        assert_eq!(members.names(), ["r1", "r2", "r3", "r4"]);
        let read = |name: &str| Secret::read(&directory.join(format!("{name}.secret"))).unwrap();
        let (one, two, sketcher) = (read("replica-1"), read("replica-2"), read("sketcher-2"));
        assert_eq!(one.pairs.len(), 5);
        assert_eq!(one.pairs[&two.role], two.pairs[&one.role]);
        assert_eq!(one.pairs[&sketcher.role], sketcher.pairs[&one.role]);
        assert_ne!(one.pairs[&two.role], one.pairs[&sketcher.role]);
        assert_eq!(members.group.replica(Member(1)), Some(&two.signer.public()));
        assert_eq!(members.group.client(Member(1)), Some(&sketcher.signer.public()));
        for secret in [&one, &two, &sketcher] {
            members.check(secret).unwrap();
            let shown = format!("{secret:?}");
            assert_eq!(shown, format!("Secret(of {})", secret.role), "nothing that is secret");
        }
        let other = directory.join("other");
        create(&other, Protocol::Http, &replicas, 2).unwrap();
        for name in ["replica-1", "sketcher-2"] {
            let foreign = Secret::read(&other.join(format!("{name}.secret"))).unwrap();
            assert!(
                matches!(members.check(&foreign), Err(MembersError::Foreign(role)) if role == foreign.role)
            );
        }
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_line_that_makes_no_sense_is_named() {
        let error = |text: &str| Members::parse(text).unwrap_err().to_string();
        assert_eq!(error("protocol redis\n\nreplica a\n"), "line 3 makes no sense: an unknown word");
        assert_eq!(error("protocol smtp\n"), "line 1 makes no sense: `redis` or `http`");
        assert_eq!(error("protocol redis\n"), "a group has 3f+1 replicas, from 4 to 64, not 0");
        let error = |text: &str| Secret::parse(text).unwrap_err().to_string();
        assert_eq!(error("of replica 0\n"), "line 1 makes no sense: `replica 1`, `sketcher 1`, ...");
        assert_eq!(error("of replica 1\n"), "there is no line `signs`");
    }
}
