//! Who belongs to a group, and signatures: Ed25519. A signature, unlike a shared secret, can be passed on: a replica
//! proves to a third one what another has voted.

use crate::limits::{CLIENTS_MAX, REPLICAS_MAX};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The number of a replica or of a client in its group, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member(pub u32);

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What verifies signatures of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; 32]);

/// Of what is signed, by one member.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Signature(pub [u8; 64]);

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({:02x}{:02x}..)", self.0[0], self.0[1])
    }
}

impl PublicKey {
    /// Whether the owner of this key signed these bytes.
    pub fn verifies(&self, bytes: &[u8], signature: &Signature) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(bytes, &signature.0).is_ok()
    }
}

/// What signs. It is shown to nobody.
#[derive(Clone)]
pub struct Signer(Arc<Ed25519KeyPair>);

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

impl Signer {
    /// Of 32 random bytes that only this member has.
    pub fn new(secret: &[u8; 32]) -> Signer {
        let pair = Ed25519KeyPair::from_seed_unchecked(secret).expect("32 bytes are a secret of Ed25519");
        Signer(Arc::new(pair))
    }

    /// What verifies the signatures.
    pub fn public(&self) -> PublicKey {
        let mut key = [0; 32];
        key.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(key)
    }

    /// Signs. The same bytes have the same signature.
    pub fn sign(&self, bytes: &[u8]) -> Signature {
        let mut signature = [0; 64];
        signature.copy_from_slice(self.0.sign(bytes).as_ref());
        Signature(signature)
    }
}

/// Why there is no such group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The number of replicas.
    #[error("a group has 3f+1 replicas, from 4 to {REPLICAS_MAX}, not {0}")]
    Replicas(usize),
    /// The number of clients.
    #[error("a group has 1 to {CLIENTS_MAX} clients, not {0}")]
    Clients(usize),
    /// A key.
    #[error("two members have the same key")]
    Twice,
}

/// The replicas that agree, and the clients whose requests they accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    replicas: Vec<PublicKey>,
    clients: Vec<PublicKey>,
    id: [u8; 32],
}

impl Group {
    /// Of these keys, whose places are the members' numbers.
    pub fn new(replicas: Vec<PublicKey>, clients: Vec<PublicKey>) -> Result<Group, GroupError> {
        if replicas.len() < 4 || replicas.len() > REPLICAS_MAX || replicas.len() % 3 != 1 {
            return Err(GroupError::Replicas(replicas.len()));
        }
        if clients.is_empty() || clients.len() > CLIENTS_MAX {
            return Err(GroupError::Clients(clients.len()));
        }
        // Whoever has it would vote twice.
        let is_twice = |keys: &[PublicKey]| keys.iter().collect::<BTreeSet<_>>().len() < keys.len();
        if is_twice(&replicas) || is_twice(&clients) {
            return Err(GroupError::Twice);
        }
        let mut hasher = blake3::Hasher::new_derive_key("ensue-byzantine 1 group");
        hasher.update(&(replicas.len() as u64).to_le_bytes());
        replicas.iter().chain(&clients).for_each(|key| {
            hasher.update(&key.0);
        });
        let id = *hasher.finalize().as_bytes();
        Ok(Group { replicas, clients, id })
    }

    /// What tells this group from every other: signatures are made over it.
    pub fn id(&self) -> &[u8; 32] {
        &self.id
    }

    /// How many replicas.
    pub fn replicas(&self) -> usize {
        self.replicas.len()
    }

    /// How many replicas may be faulty: f.
    pub fn faults_max(&self) -> usize {
        (self.replicas.len() - 1) / 3
    }

    /// How many votes decide: 2f+1.
    pub fn quorum(&self) -> usize {
        2 * self.faults_max() + 1
    }

    /// The key of a replica.
    pub fn replica(&self, member: Member) -> Option<&PublicKey> {
        self.replicas.get(member.0 as usize)
    }

    /// The key of a client.
    pub fn client(&self, member: Member) -> Option<&PublicKey> {
        self.clients.get(member.0 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_one_key_and_of_every_byte() {
        let (one, other) = (Signer::new(&[1; 32]), Signer::new(&[2; 32]));
        let signature = one.sign(b"bytes");
        assert!(one.public().verifies(b"bytes", &signature));
        assert!(!one.public().verifies(b"bytez", &signature));
        assert!(!other.public().verifies(b"bytes", &signature));
    }

    #[test]
    fn a_group_has_three_replicas_a_fault_and_one() {
        let keys = |count: u8| (0..count).map(|byte| Signer::new(&[byte; 32]).public()).collect::<Vec<_>>();
        let quorum =
            |count| Group::new(keys(count), keys(1)).map(|group| (group.faults_max(), group.quorum()));
        assert_eq!([4, 7, 10].map(quorum), [Ok((1, 3)), Ok((2, 5)), Ok((3, 7))]);
        assert_eq!([1, 5].map(quorum), [Err(GroupError::Replicas(1)), Err(GroupError::Replicas(5))]);
        assert_eq!(Group::new(keys(4), Vec::new()), Err(GroupError::Clients(0)));
        let twice = [keys(3), keys(1)].concat();
        assert_eq!(Group::new(twice, keys(1)), Err(GroupError::Twice), "one holder with two votes");
        assert_ne!(Group::new(keys(4), keys(1)).unwrap().id(), Group::new(keys(4), keys(2)).unwrap().id());
    }
}
