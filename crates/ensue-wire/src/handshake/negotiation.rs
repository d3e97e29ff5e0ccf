//! Two `Hello`s to one version, or to the reason why these two may not talk.
//!
//! What makes every other comparison pointless comes first, and the secret last, so that a mistake in a configuration
//! is named as what it is.

use super::{CoreName, Foreign, Hello, VersionRange};
use ensue_types::DatacenterId;
use std::fmt;
use thiserror::Error;

/// Why a connection is closed before its first frame. The words name both sides' values, never a secret's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HandshakeError {
    // The other side is no Ensue, or the way damaged what it said.
    #[error("the other side is not an Ensue peer: it sent \"{shown}\", which looks like {speaks}")]
    NotEnsue { speaks: Foreign, shown: String },
    #[error("a hello with checksum {computed:#010x}, announced as {announced:#010x}")]
    Checksum { announced: u32, computed: u32 },

    // Two sound sides that do not belong together: somebody's configuration.
    #[error("clusters of other names: ours hashes to {}, theirs to {}", Hex(.ours), Hex(.theirs))]
    OtherCluster { ours: [u8; 16], theirs: [u8; 16] },
    #[error("no common version of the wire: we speak {ours}, they speak {theirs}")]
    NoCommonVersion { ours: VersionRange, theirs: VersionRange },
    #[error("we dialled {dialled}, and {answered} answered")]
    NotTheCoreDialled { dialled: CoreName, answered: CoreName },
    #[error("we are {name} (boot {ours_boot}), and so are they (boot {theirs_boot}): {}", explain_same(*ours_boot, *theirs_boot))]
    SameCore { name: CoreName, ours_boot: u32, theirs_boot: u32 },
    #[error("we have {ours} partitions, they have {theirs}")]
    OtherPartitionCount { ours: u16, theirs: u16 },
    #[error("we know {ours} datacenters, they know {theirs}")]
    OtherDatacenterCount { ours: u8, theirs: u8 },
    #[error("they say they are {theirs}, and we know {datacenters} datacenters")]
    NoSuchDatacenter { theirs: DatacenterId, datacenters: u8 },

    // The secret. Neither side's proof is ever shown.
    #[error("we have a secret, and they showed no proof of it: it is not set there")]
    SecretMissingThere,
    #[error("they showed proof of a secret, and we have none: it is not set here")]
    SecretMissingHere,
    #[error("their secret is another one than ours")]
    OtherSecret,
}

/// The version that both sides will speak: the highest that both know.
pub fn negotiate(ours: &Hello, theirs: &Hello) -> Result<u16, HandshakeError> {
    if ours.cluster != theirs.cluster {
        return Err(HandshakeError::OtherCluster { ours: ours.cluster, theirs: theirs.cluster });
    }
    let version = common_version(ours.versions(), theirs.versions())?;
    if ours.name() == theirs.name() {
        let (ours_boot, theirs_boot) = (ours.boot, theirs.boot);
        return Err(HandshakeError::SameCore { name: ours.name(), ours_boot, theirs_boot });
    }
    if ours.partitions != theirs.partitions {
        return Err(HandshakeError::OtherPartitionCount { ours: ours.partitions, theirs: theirs.partitions });
    }
    if ours.datacenters != theirs.datacenters {
        return Err(HandshakeError::OtherDatacenterCount {
            ours: ours.datacenters,
            theirs: theirs.datacenters,
        });
    }
    if theirs.datacenter.0 >= ours.datacenters {
        let (theirs, datacenters) = (theirs.datacenter, ours.datacenters);
        return Err(HandshakeError::NoSuchDatacenter { theirs, datacenters });
    }
    compare_secrets(ours, theirs)?;
    Ok(version)
}

/// The same for the side that dialled, which also knows whom it wanted.
pub fn negotiate_dialled(ours: &Hello, theirs: &Hello, dialled: CoreName) -> Result<u16, HandshakeError> {
    let version = negotiate(ours, theirs)?;
    if theirs.name() != dialled {
        return Err(HandshakeError::NotTheCoreDialled { dialled, answered: theirs.name() });
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

fn compare_secrets(ours: &Hello, theirs: &Hello) -> Result<(), HandshakeError> {
    match (ours.secret_proof, theirs.secret_proof) {
        (None, None) => Ok(()),
        (Some(_), None) => Err(HandshakeError::SecretMissingThere),
        (None, Some(_)) => Err(HandshakeError::SecretMissingHere),
        (Some(ours), Some(theirs)) if ours == theirs => Ok(()),
        (Some(_), Some(_)) => Err(HandshakeError::OtherSecret),
    }
}

fn explain_same(ours_boot: u32, theirs_boot: u32) -> &'static str {
    if ours_boot == theirs_boot {
        "an address leads back to ourselves"
    } else {
        "two processes have one identity"
    }
}

/// Bytes as digits, for an error's words.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
