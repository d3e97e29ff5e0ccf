//! The types of this crate, as Malachite wants them: members, heights, blocks, votes and proposals.

use crate::block::{Block, BlockId};
use crate::keys::{Group, Member, PublicKey, Signature};
use arc_malachitebft_core_types as engine;
use arc_malachitebft_core_types::{NilOrVal, Round, SignedExtension, VoteType};
use std::fmt;
use std::sync::Arc;

/// What the engine's types are parameters of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreement;

pub(crate) type SignedVote = engine::SignedVote<Agreement>;
pub(crate) type SignedProposal = engine::SignedProposal<Agreement>;

/// Which block, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Height(pub(crate) u64);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Vote {
    pub(crate) height: Height,
    pub(crate) round: Round,
    pub(crate) kind: VoteType,
    pub(crate) value: NilOrVal<BlockId>,
    pub(crate) voter: Member,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    pub(crate) height: Height,
    pub(crate) round: Round,
    pub(crate) pol_round: Round,
    pub(crate) proposer: Member,
    pub(crate) block: Block,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Validator {
    member: Member,
    key: PublicKey,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Validators(Arc<Vec<Validator>>);

impl Validators {
    pub(crate) fn of(group: &Group) -> Validators {
        let members = (0..group.replicas() as u32).map(Member);
        let validator = |member| group.replica(member).map(|key| Validator { member, key: *key });
        Validators(Arc::new(members.filter_map(validator).collect()))
    }
}

impl engine::Context for Agreement {
    type Address = Member;
    type Height = Height;
    type ProposalPart = NoPart;
    type Proposal = Proposal;
    type Validator = Validator;
    type ValidatorSet = Validators;
    type Timeouts = engine::LinearTimeouts;
    type Value = Block;
    type Vote = Vote;
    type Extension = ();
    type SigningScheme = Ed25519;

    /// The driver is given the proposer of each round (`Running::proposer`), and calls this nowhere.
    fn select_proposer<'a>(&self, validators: &'a Validators, height: Height, round: Round) -> &'a Validator {
        let turn = height.0.wrapping_add(u64::from(round.as_u32().unwrap_or_default()));
        &validators.0[(turn % validators.0.len() as u64) as usize]
    }

    fn new_proposal(
        &self,
        height: Height,
        round: Round,
        block: Block,
        pol_round: Round,
        proposer: Member,
    ) -> Proposal {
        Proposal { height, round, pol_round, proposer, block }
    }

    fn new_prevote(&self, height: Height, round: Round, value: NilOrVal<BlockId>, voter: Member) -> Vote {
        Vote { height, round, kind: VoteType::Prevote, value, voter }
    }

    fn new_precommit(&self, height: Height, round: Round, value: NilOrVal<BlockId>, voter: Member) -> Vote {
        Vote { height, round, kind: VoteType::Precommit, value, voter }
    }
}

impl engine::Address for Member {}

impl fmt::Display for Height {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl engine::Height for Height {
    const ZERO: Height = Height(0);
    const INITIAL: Height = Height(1);

    fn increment_by(&self, n: u64) -> Height {
        Height(self.0.saturating_add(n))
    }

    fn decrement_by(&self, n: u64) -> Option<Height> {
        self.0.checked_sub(n).map(Height)
    }

    fn as_u64(&self) -> u64 {
        self.0
    }
}

/// Blocks travel whole, in their proposals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoPart {}

impl engine::ProposalPart<Agreement> for NoPart {
    fn is_first(&self) -> bool {
        match *self {}
    }

    fn is_last(&self) -> bool {
        match *self {}
    }
}

impl engine::Proposal<Agreement> for Proposal {
    fn height(&self) -> Height {
        self.height
    }

    fn round(&self) -> Round {
        self.round
    }

    fn value(&self) -> &Block {
        &self.block
    }

    fn take_value(self) -> Block {
        self.block
    }

    fn pol_round(&self) -> Round {
        self.pol_round
    }

    fn validator_address(&self) -> &Member {
        &self.proposer
    }
}

impl engine::Vote<Agreement> for Vote {
    fn height(&self) -> Height {
        self.height
    }

    fn round(&self) -> Round {
        self.round
    }

    fn value(&self) -> &NilOrVal<BlockId> {
        &self.value
    }

    fn take_value(self) -> NilOrVal<BlockId> {
        self.value
    }

    fn vote_type(&self) -> VoteType {
        self.kind
    }

    fn validator_address(&self) -> &Member {
        &self.voter
    }

    fn extension(&self) -> Option<&SignedExtension<Agreement>> {
        None
    }

    fn take_extension(&mut self) -> Option<SignedExtension<Agreement>> {
        None
    }

    /// Votes carry nothing beside what they are for, and the driver extends none.
    fn extend(self, _: SignedExtension<Agreement>) -> Vote {
        self
    }
}

impl engine::Value for Block {
    type Id = BlockId;

    fn id(&self) -> BlockId {
        self.hash()
    }
}

impl engine::Validator<Agreement> for Validator {
    fn address(&self) -> &Member {
        &self.member
    }

    fn public_key(&self) -> &PublicKey {
        &self.key
    }

    fn voting_power(&self) -> u64 {
        1
    }
}

impl engine::ValidatorSet<Agreement> for Validators {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn total_voting_power(&self) -> u64 {
        self.0.len() as u64
    }

    fn get_by_address(&self, address: &Member) -> Option<&Validator> {
        self.0.get(address.0 as usize)
    }

    fn get_by_index(&self, index: usize) -> Option<&Validator> {
        self.0.get(index)
    }
}

/// The engine passes signatures on, and makes and verifies none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ed25519;

impl engine::SigningScheme for Ed25519 {
    type DecodingError = &'static str;
    type Signature = Signature;
    type PublicKey = PublicKey;
    type PrivateKey = ();

    fn decode_signature(bytes: &[u8]) -> Result<Signature, &'static str> {
        bytes.try_into().map(Signature).map_err(|_| "a signature has 64 bytes")
    }

    fn encode_signature(signature: &Signature) -> Vec<u8> {
        signature.0.to_vec()
    }

    fn decode_public_key(bytes: &[u8]) -> Result<PublicKey, &'static str> {
        bytes.try_into().map(PublicKey).map_err(|_| "a public key has 32 bytes")
    }

    fn encode_public_key(key: &PublicKey) -> Vec<u8> {
        key.0.to_vec()
    }
}
