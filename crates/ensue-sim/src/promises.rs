//! What each protocol promises its clients: the oracle asks for this, no more and no less.
//!
//! `eiger` promises causal+ consistency. `eventual` promises, of that, what follows from writes that are stamped above all
//! that their session had seen and that are taken by one owner of each key in each datacenter:
//!
//! - the writes of a key are ordered, the same way everywhere, and a write comes after all that its session had seen;
//! - a session, which stays in one datacenter here, never sees a key go back, and sees its own writes of it;
//! - everyone ends with the same, nothing acknowledged is lost, and an addition counts once;
//! - a datacenter serves whatever becomes of the others.
//!
//! Who sees one key of a write of several knows nothing of its other keys: each has a stamp of its own.
//!
//! It promises nothing about two keys, and nothing to a session that goes elsewhere with its token. A write of several
//! keys is several writes, and a `MULTI` that would write in several partitions is refused.

/// What the oracle checks only of protocols that promise it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promises {
    /// What a session sees contains the causal past of all that it saw, in every datacenter: P1 to P5, P11.
    pub causality: bool,
    /// The reads of a transaction see one state: P9.
    pub snapshots: bool,
    /// Writes of several keys take effect together: P10.
    pub transactions: bool,
}

impl Default for Promises {
    fn default() -> Promises {
        Promises { causality: true, snapshots: true, transactions: true }
    }
}

impl Promises {
    /// Every protocol that worlds are drawn with.
    pub const PROTOCOLS: [(&str, Promises); 2] = [
        ("eiger", Promises { causality: true, snapshots: true, transactions: true }),
        ("eventual", Promises { causality: false, snapshots: false, transactions: false }),
    ];

    /// What the protocol of this name promises.
    pub fn of(protocol: &str) -> Option<Promises> {
        Promises::PROTOCOLS.iter().find(|(name, _)| *name == protocol).map(|(_, promises)| *promises)
    }
}
