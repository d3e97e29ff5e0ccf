//! What replicas say to each other, and the certificate that proves a block to be the agreed one.
//!
//! Votes and proposals are signed by the replica that they name, so that anybody may pass them on. The rest is believed
//! to be of whom the link leads to, and makes a replica do a bounded amount of work, no more.

use crate::block::{Block, BlockId};
use crate::codec::{Malformed, Reader, push_bytes};
use crate::context::{Height, Proposal, SignedProposal, SignedVote, Vote};
use crate::keys::{Group, Member, PublicKey, Signature};
use crate::limits::{BLOCK_BYTES_MAX, REPLICAS_MAX, REQUEST_BYTES_MAX};
use arc_malachitebft_core_types::{NilOrVal, Round, VoteType};

/// Bytes of a message.
pub const MESSAGE_BYTES_MAX: usize = BLOCK_BYTES_MAX + 2 * REQUEST_BYTES_MAX + 128 * REPLICAS_MAX;

const PROPOSAL: u8 = 1;
const VOTE: u8 = 2;
const STATUS: u8 = 3;
const DECIDED: u8 = 4;
const POLKA: u8 = 5;
/// Stands for no round.
const NO_ROUND: u32 = u32::MAX;

/// What one replica sends another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message(pub(crate) Said);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Proposal(SignedProposal),
    Vote(SignedVote),
    /// The sender decides at this height next.
    Status(Height),
    Decided(Decided),
    Polka(Polka),
}

/// Prevotes of a quorum for one block in one round. It is passed on because a replica keeps one vote of each voter: to
/// a replica that has another prevote of a two-faced voter, the votes by themselves prove less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Polka {
    pub(crate) height: Height,
    pub(crate) round: Round,
    pub(crate) value: BlockId,
    pub(crate) prevotes: Vec<(Member, Signature)>,
}

/// A block, and what proves that it is the one of its height: precommits of a quorum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    pub(crate) height: Height,
    pub(crate) round: Round,
    pub(crate) block: Block,
    pub(crate) precommits: Vec<(Member, Signature)>,
}

impl Message {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match &self.0 {
            Said::Proposal(proposal) => {
                out.push(PROPOSAL);
                out.extend_from_slice(&proposal.height.0.to_le_bytes());
                push_round(&mut out, proposal.round);
                push_round(&mut out, proposal.pol_round);
                out.extend_from_slice(&proposal.proposer.0.to_le_bytes());
                out.extend_from_slice(&proposal.signature.0);
                push_bytes(&mut out, proposal.block.bytes());
            }
            Said::Vote(vote) => {
                out.push(VOTE);
                push_vote(&mut out, vote);
                out.extend_from_slice(&vote.signature.0);
            }
            Said::Status(height) => {
                out.push(STATUS);
                out.extend_from_slice(&height.0.to_le_bytes());
            }
            Said::Decided(decided) => {
                out.push(DECIDED);
                decided.push(&mut out);
            }
            Said::Polka(polka) => {
                out.push(POLKA);
                out.extend_from_slice(&polka.height.0.to_le_bytes());
                push_round(&mut out, polka.round);
                out.extend_from_slice(&polka.value.0);
                push_signatures(&mut out, &polka.prevotes);
            }
        }
        out
    }

    /// Reads one whole message.
    pub fn decode(bytes: &[u8]) -> Result<Message, Malformed> {
        let mut reader = Reader(bytes);
        let said = match reader.u8()? {
            PROPOSAL => {
                let (height, round, pol_round) =
                    (Height(reader.u64()?), read_round(&mut reader)?, read_round(&mut reader)?);
                let (proposer, signature) = (Member(reader.u32()?), Signature(reader.array()?));
                let block = Block::decode(reader.bytes(MESSAGE_BYTES_MAX)?)?;
                let proposal = Proposal { height, round, pol_round, proposer, block };
                Said::Proposal(SignedProposal::new(proposal, signature))
            }
            VOTE => {
                let vote = read_vote(&mut reader)?;
                Said::Vote(SignedVote::new(vote, Signature(reader.array()?)))
            }
            STATUS => Said::Status(Height(reader.u64()?)),
            DECIDED => Said::Decided(Decided::read(&mut reader)?),
            POLKA => Said::Polka(Polka {
                height: Height(reader.u64()?),
                round: read_round(&mut reader)?,
                value: BlockId(reader.array()?),
                prevotes: read_signatures(&mut reader)?,
            }),
            _ => return Err(Malformed("an unknown kind of message")),
        };
        reader.end()?;
        Ok(Message(said))
    }

    /// The bytes of a message with a block that a replica has kept, for one that lags.
    pub fn bytes_of_decided(record: &[u8]) -> Vec<u8> {
        std::iter::once(DECIDED).chain(record.iter().copied()).collect()
    }
}

impl Decided {
    /// Its height.
    pub fn height(&self) -> u64 {
        self.height.0
    }

    /// What a replica keeps of it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.push(&mut out);
        out
    }

    /// Reads what [`Decided::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Decided, Malformed> {
        let mut reader = Reader(bytes);
        let decided = Decided::read(&mut reader)?;
        reader.end()?;
        Ok(decided)
    }

    /// Whether a quorum of different replicas has signed precommits for this block at this height, in one round.
    pub fn is_proved(&self, group: &Group) -> bool {
        let (height, round, value) = (self.height, self.round, self.block.hash());
        let vote =
            |voter| Vote { height, round, kind: VoteType::Precommit, value: NilOrVal::Val(value), voter };
        is_of_quorum(group, &self.precommits, vote)
    }

    fn push(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.height.0.to_le_bytes());
        push_round(out, self.round);
        push_signatures(out, &self.precommits);
        push_bytes(out, self.block.bytes());
    }

    fn read(reader: &mut Reader<'_>) -> Result<Decided, Malformed> {
        let (height, round) = (Height(reader.u64()?), read_round(reader)?);
        let precommits = read_signatures(reader)?;
        let block = Block::decode(reader.bytes(MESSAGE_BYTES_MAX)?)?;
        Ok(Decided { height, round, block, precommits })
    }
}

impl Polka {
    /// Whether a quorum of different replicas has signed such prevotes.
    pub(crate) fn is_proved(&self, group: &Group) -> bool {
        let (height, round, value) = (self.height, self.round, NilOrVal::Val(self.value));
        let vote = |voter| Vote { height, round, kind: VoteType::Prevote, value, voter };
        is_of_quorum(group, &self.prevotes, vote)
    }
}

fn is_of_quorum(group: &Group, votes: &[(Member, Signature)], vote: impl Fn(Member) -> Vote) -> bool {
    // Their number and their names are compared before anything is verified, and the first wrong signature is the last
    // one that is: no correct replica passes on what it has not verified.
    let are_different = votes.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let is_signed = |(voter, signature): &(Member, Signature)| {
        let verifies = |key: &PublicKey| key.verifies(&vote_bytes(group, &vote(*voter)), signature);
        group.replica(*voter).is_some_and(verifies)
    };
    are_different && (group.quorum()..=group.replicas()).contains(&votes.len()) && votes.iter().all(is_signed)
}

fn push_signatures(out: &mut Vec<u8>, signatures: &[(Member, Signature)]) {
    out.push(u8::try_from(signatures.len()).expect("one of each replica"));
    for (member, signature) in signatures {
        out.extend_from_slice(&member.0.to_le_bytes());
        out.extend_from_slice(&signature.0);
    }
}

fn read_signatures(reader: &mut Reader<'_>) -> Result<Vec<(Member, Signature)>, Malformed> {
    let count = reader.u8()?;
    if usize::from(count) > REPLICAS_MAX {
        return Err(Malformed("more votes than replicas"));
    }
    (0..count).map(|_| Ok((Member(reader.u32()?), Signature(reader.array()?)))).collect()
}

/// What a voter signs.
pub(crate) fn vote_bytes(group: &Group, vote: &Vote) -> Vec<u8> {
    let mut bytes = b"ensue-byzantine 1 vote".to_vec();
    bytes.extend_from_slice(group.id());
    push_vote(&mut bytes, vote);
    bytes
}

/// What a proposer signs.
pub(crate) fn proposal_bytes(group: &Group, proposal: &Proposal) -> Vec<u8> {
    let mut bytes = b"ensue-byzantine 1 proposal".to_vec();
    bytes.extend_from_slice(group.id());
    bytes.extend_from_slice(&proposal.height.0.to_le_bytes());
    push_round(&mut bytes, proposal.round);
    push_round(&mut bytes, proposal.pol_round);
    bytes.extend_from_slice(&proposal.proposer.0.to_le_bytes());
    bytes.extend_from_slice(&proposal.block.hash().0);
    bytes
}

pub(crate) fn push_round(out: &mut Vec<u8>, round: Round) {
    out.extend_from_slice(&round.as_u32().unwrap_or(NO_ROUND).to_le_bytes());
}

pub(crate) fn read_round(reader: &mut Reader<'_>) -> Result<Round, Malformed> {
    let round = reader.u32()?;
    Ok(if round == NO_ROUND { Round::Nil } else { Round::new(round) })
}

fn push_vote(out: &mut Vec<u8>, vote: &Vote) {
    out.extend_from_slice(&vote.height.0.to_le_bytes());
    push_round(out, vote.round);
    out.push(u8::from(vote.kind == VoteType::Precommit));
    out.extend_from_slice(&vote.voter.0.to_le_bytes());
    match &vote.value {
        NilOrVal::Nil => out.push(0),
        NilOrVal::Val(id) => {
            out.push(1);
            out.extend_from_slice(&id.0);
        }
    }
}

fn read_vote(reader: &mut Reader<'_>) -> Result<Vote, Malformed> {
    let (height, round) = (Height(reader.u64()?), read_round(reader)?);
    let kind = match reader.u8()? {
        0 => VoteType::Prevote,
        1 => VoteType::Precommit,
        _ => return Err(Malformed("an unknown kind of vote")),
    };
    let voter = Member(reader.u32()?);
    let value = match reader.u8()? {
        0 => NilOrVal::Nil,
        1 => NilOrVal::Val(BlockId(reader.array()?)),
        _ => return Err(Malformed("a vote is for a block or for none")),
    };
    Ok(Vote { height, round, kind, value, voter })
}

#[cfg(test)]
mod tests;
