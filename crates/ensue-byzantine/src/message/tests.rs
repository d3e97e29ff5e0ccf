//! What is written is read again, nothing else is, and proofs need a quorum.

use super::*;
use crate::block::{Request, RequestNumber, Session};
use crate::keys::Signer;
use crate::replica::Replica;
use std::sync::Arc;

fn signer(member: u32) -> Signer {
    Signer::new(&[member as u8 + 1; 32])
}

fn group() -> Group {
    let keys = |members: std::ops::Range<u32>| members.map(|member| signer(member).public()).collect();
    Group::new(keys(0..4), keys(4..5)).unwrap()
}

fn block() -> Block {
    let session = Session { client: Member(0), number: 3 };
    let number = RequestNumber { incarnation: 7, call: 1 };
    Block::new(Member(2), vec![Request::sign(&group(), &signer(4), session, number, b"SET".to_vec())])
}

fn precommit(voter: u32, signed_by: u32, round: u32) -> (Member, Signature) {
    let value = NilOrVal::Val(block().hash());
    let (height, round) = (Height(9), Round::new(round));
    let vote = Vote { height, round, kind: VoteType::Precommit, value, voter: Member(voter) };
    (Member(voter), signer(signed_by).sign(&vote_bytes(&group(), &vote)))
}

fn decided(precommits: Vec<(Member, Signature)>) -> Decided {
    Decided { height: Height(9), round: Round::new(1), block: block(), precommits }
}

fn messages() -> [Message; 5] {
    let (height, round) = (Height(9), Round::new(2));
    let signature = signer(1).sign(b"");
    let proposal = Proposal { height, round, pol_round: Round::Nil, proposer: Member(1), block: block() };
    let vote = Vote { height, round, kind: VoteType::Prevote, value: NilOrVal::Nil, voter: Member(1) };
    [
        Said::Proposal(SignedProposal::new(proposal, signature)),
        Said::Vote(SignedVote::new(vote, signature)),
        Said::Status(height),
        Said::Decided(decided(vec![precommit(0, 0, 1)])),
        Said::Polka(Polka { height, round, value: block().hash(), prevotes: vec![precommit(0, 0, 1)] }),
    ]
    .map(Message)
}

#[test]
fn a_message_is_read_as_it_was_written_and_no_other_bytes_are() {
    for message in messages() {
        let bytes = message.encode();
        assert_eq!(Message::decode(&bytes), Ok(message.clone()));
        for end in 0..bytes.len() {
            assert!(Message::decode(&bytes[..end]).is_err(), "{end} bytes of {message:?}");
        }
        assert_eq!(Message::decode(&[&bytes[..], b"x"].concat()), Err(Malformed("bytes follow its end")));
    }
}

#[test]
fn a_quorum_of_different_replicas_proves_a_block() {
    let of = |voters: &[u32]| voters.iter().map(|voter| precommit(*voter, *voter, 1)).collect::<Vec<_>>();
    assert!(decided(of(&[0, 1, 3])).is_proved(&group()));
    assert!(!decided(of(&[0, 1])).is_proved(&group()), "f+1 are too few");
    assert!(!decided(of(&[0, 1, 1])).is_proved(&group()), "twice the same");
    let forged = [of(&[0, 1]), vec![precommit(2, 3, 1)]].concat();
    assert!(!decided(forged).is_proved(&group()), "signed by another");
    let one_forged = [of(&[0, 1, 2]), vec![precommit(3, 2, 1)]].concat();
    assert!(!decided(one_forged).is_proved(&group()), "no correct replica passes it on");
    assert!(!decided(of(&[1, 0, 3])).is_proved(&group()), "not in their order");
    assert!(!decided(of(&[0, 1, 2, 3, 4])).is_proved(&group()), "more than there are");
    let other_round = [of(&[0, 1]), vec![precommit(2, 2, 0)]].concat();
    assert!(!decided(other_round).is_proved(&group()), "of another round");
}

#[test]
fn a_request_is_valid_as_its_client_signed_it() {
    let request = block().requests()[0].clone();
    assert!(request.is_valid(&group()));
    let mut other = request.clone();
    other.body = b"DEL".to_vec();
    assert!(!other.is_valid(&group()), "a lying proposer cannot invent a write");
    let mut other = request.clone();
    other.number.call = 2;
    assert!(!other.is_valid(&group()), "nor repeat one under another number");
    let mut other = request;
    other.session.client = Member(1);
    assert!(!other.is_valid(&group()));
}

/// A faulty replica sends what it likes: whatever is read stands for the same bytes, and a replica survives it.
#[test]
fn bytes_of_a_faulty_replica_are_refused_or_read_as_they_are() {
    let mut replica = Replica::new(Arc::new(group()), Member(0), signer(0));
    replica.on_restored(0);
    let mut chance = 1_u64;
    let mut draw = |bound: usize| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((chance >> 33) % bound as u64) as usize
    };
    let mut read = 0;
    for _ in 0..2_000 {
        for message in messages() {
            let mut bytes = message.encode();
            for _ in 0..=draw(3) {
                let place = draw(bytes.len());
                bytes[place] = [0, 1, 255, draw(256) as u8][draw(4)];
            }
            if let Ok(message) = Message::decode(&bytes) {
                assert_eq!(message.encode(), bytes);
                replica.on_message(0, Member(1), message);
                while replica.take_output().is_some() {}
                read += 1;
            }
        }
    }
    assert!(read > 1_000, "{read} messages were read");
    assert_eq!(replica.height(), 1);
}
