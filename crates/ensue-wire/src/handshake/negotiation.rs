//! Two `Hello`s to one version, or to the reason why these two may not talk.
//!
//! What makes every other comparison pointless comes first. Who the other one is, is only said here; the proof that
//! follows shows whether it is true.

use super::settings::Differences;
use super::{Foreign, Hello, Speaker, VersionRange};
use thiserror::Error;

/// Why a connection is closed before its first message. The words name both sides' values, never a secret's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    // The other side is no Ensue, or the way damaged what it said.
    #[error("the other side is not an Ensue peer: it sent \"{shown}\", which looks like {speaks}")]
    NotEnsue { speaks: Foreign, shown: String },
    #[error("a hello with checksum {computed:#010x}, announced as {announced:#010x}")]
    Checksum { announced: u32, computed: u32 },
    #[error("a hello with a name that is none: \"{shown}\"")]
    NoName { shown: String },
    #[error("its settings cannot be read")]
    NoSettings,

    // Two sound sides that do not belong together: somebody's configuration.
    #[error("cluster-name: {ours} here, {theirs} there")]
    OtherCluster { ours: String, theirs: String },
    #[error("no common version of the wire: we speak {ours}, they speak {theirs}")]
    NoCommonVersion { ours: VersionRange, theirs: VersionRange },
    #[error("we dialled {dialled}, and {answered} answered: compare the `node` lines of both sides")]
    NotTheCoreDialled { dialled: Speaker, answered: Speaker },
    #[error("we are {name} (boot {ours_boot}), and so are they (boot {theirs_boot}): {}", explain_same(*ours_boot, *theirs_boot))]
    SameCore { name: Speaker, ours_boot: u32, theirs_boot: u32 },
    #[error("they say they are of {theirs}, and our `node` lines know only {known}")]
    NoSuchDatacenter { theirs: String, known: String },
    #[error("they say they are {theirs}, and by our `node` lines there is no such core")]
    NoSuchCore { theirs: Speaker },
    #[error("{0}")]
    OtherSettings(Differences),

    // The secret. Neither side's proof is ever shown.
    #[error("we have a `cluster-secret`, and they have none")]
    SecretMissingThere,
    #[error("they have a `cluster-secret`, and we have none")]
    SecretMissingHere,
    #[error("our `cluster-secret` has no key for {theirs}")]
    NoKey { theirs: String },
    #[error(
        "they say they are of {theirs}, and do not prove it: the key of {ours} and {theirs} is another one here than there"
    )]
    NotProven { ours: String, theirs: String },
}

/// The version that both sides will speak: the highest that both know.
pub fn negotiate(ours: &Hello, theirs: &Hello) -> Result<u16, HandshakeError> {
    if ours.cluster != theirs.cluster {
        let (ours, theirs) = (ours.cluster.clone(), theirs.cluster.clone());
        return Err(HandshakeError::OtherCluster { ours, theirs });
    }
    let version = common_version(ours.versions(), theirs.versions())?;
    if ours.speaker() == theirs.speaker() {
        let (ours_boot, theirs_boot) = (ours.boot, theirs.boot);
        return Err(HandshakeError::SameCore { name: ours.speaker(), ours_boot, theirs_boot });
    }
    match (ours.has_secret(), theirs.has_secret()) {
        (true, false) => Err(HandshakeError::SecretMissingThere),
        (false, true) => Err(HandshakeError::SecretMissingHere),
        _ => Ok(version),
    }
}

/// The same for the side that dialled, which also knows whom it wanted.
pub fn negotiate_dialled(ours: &Hello, theirs: &Hello, dialled: &Speaker) -> Result<u16, HandshakeError> {
    let version = negotiate(ours, theirs)?;
    if theirs.speaker() != *dialled {
        let dialled = dialled.clone();
        return Err(HandshakeError::NotTheCoreDialled { dialled, answered: theirs.speaker() });
    }
    Ok(version)
}

fn common_version(ours: VersionRange, theirs: VersionRange) -> Result<u16, HandshakeError> {
    let highest = ours.max.min(theirs.max);
    if highest < ours.min.max(theirs.min) {
        return Err(HandshakeError::NoCommonVersion { ours, theirs });
    }
    Ok(highest)
}

fn explain_same(ours_boot: u32, theirs_boot: u32) -> &'static str {
    if ours_boot == theirs_boot {
        "an address leads back to ourselves"
    } else {
        "two processes have one identity"
    }
}
