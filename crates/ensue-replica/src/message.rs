//! What the replicas of one partition say to each other.

use crate::codec::{Fields, Malformed, put_bytes, put_file};
use crate::journal::{kind_number, kind_of, put_members, take_members};
use bytes::{BufMut, Bytes};
use ensue_store::disk::FileName;
use raft::eraftpb::{self, Entry, MessageType};

/// The last entry of a replica's log: its term, then its index. A later one has more.
pub(crate) type Last = (u64, u64);

/// What a replica says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Its name in the group; none if it has no directory.
    pub(crate) id: Option<u64>,
    /// Drawn for this start.
    pub(crate) nonce: u64,
    /// The nonce of the receiver that it has last heard: what is said since then is fresh.
    pub(crate) heard: u64,
    /// How often it has started.
    pub(crate) life: u32,
    /// The power failed under it, and no leader has confirmed since that it holds what is committed.
    pub(crate) suspended: bool,
    /// It was among those that began the group, and has heard of no leader since.
    pub(crate) fresh: bool,
    pub(crate) last: Last,
    /// It has a vote, as far as it knows.
    pub(crate) votes: bool,
    /// It is an answer, and wants none.
    pub(crate) answer: bool,
    /// What its configuration says of who may have a replica and who begins (`Config::plan`).
    pub(crate) plan: u64,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReplicaMessage {
    Hello(Hello),
    /// Of the consensus engine.
    Raft(Box<eraftpb::Message>),
    /// The receiver, which began with an empty directory, is a member by this name. For the start with this nonce.
    Admit {
        id: u64,
        nonce: u64,
    },
    /// The receiver holds all that is committed as soon as it has this entry. For the start with this life.
    Resume {
        life: u32,
        index: u64,
    },
    /// Bytes of a file are asked for, as the directory was after this entry.
    Fetch {
        index: u64,
        file: FileName,
        offset: u64,
        length: u32,
    },
    Chunk {
        index: u64,
        file: FileName,
        offset: u64,
        bytes: Bytes,
    },
    /// That state is not held any more.
    Gone {
        index: u64,
    },
    /// The group has no member by this name, says who leads it in this term.
    Stranger {
        id: u64,
        term: u64,
    },
    /// The receiver's node is to have a replica.
    Invite,
    /// The receiver's node is to have none. For the start with this nonce.
    Dismiss {
        nonce: u64,
    },
    /// What the receiver's disk has in this file is not what the group has written.
    Spoiled {
        file: FileName,
    },
}

impl ReplicaMessage {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            ReplicaMessage::Hello(hello) => {
                out.put_u8(0);
                out.put_u64_le(hello.id.unwrap_or(0));
                out.put_u64_le(hello.nonce);
                out.put_u64_le(hello.heard);
                out.put_u32_le(hello.life);
                out.put_u8(u8::from(hello.suspended));
                out.put_u8(u8::from(hello.fresh));
                out.put_u64_le(hello.last.0);
                out.put_u64_le(hello.last.1);
                out.put_u8(u8::from(hello.votes));
                out.put_u8(u8::from(hello.answer));
                out.put_u64_le(hello.plan);
            }
            ReplicaMessage::Raft(message) => {
                out.put_u8(1);
                put_raft(&mut out, message);
            }
            ReplicaMessage::Admit { id, nonce } => {
                out.put_u8(2);
                out.put_u64_le(*id);
                out.put_u64_le(*nonce);
            }
            ReplicaMessage::Resume { life, index } => {
                out.put_u8(3);
                out.put_u32_le(*life);
                out.put_u64_le(*index);
            }
            ReplicaMessage::Fetch { index, file, offset, length } => {
                out.put_u8(4);
                out.put_u64_le(*index);
                put_file(&mut out, *file);
                out.put_u64_le(*offset);
                out.put_u32_le(*length);
            }
            ReplicaMessage::Chunk { index, file, offset, bytes } => {
                out.put_u8(5);
                out.put_u64_le(*index);
                put_file(&mut out, *file);
                out.put_u64_le(*offset);
                put_bytes(&mut out, bytes);
            }
            ReplicaMessage::Gone { index } => {
                out.put_u8(6);
                out.put_u64_le(*index);
            }
            ReplicaMessage::Stranger { id, term } => {
                out.put_u8(7);
                out.put_u64_le(*id);
                out.put_u64_le(*term);
            }
            ReplicaMessage::Invite => out.put_u8(8),
            ReplicaMessage::Dismiss { nonce } => {
                out.put_u8(9);
                out.put_u64_le(*nonce);
            }
            ReplicaMessage::Spoiled { file } => {
                out.put_u8(10);
                put_file(&mut out, *file);
            }
        }
        Bytes::from(out)
    }

    pub(crate) fn decode(bytes: Bytes) -> Result<ReplicaMessage, Malformed> {
        let mut fields = Fields(bytes);
        let message = match fields.u8()? {
            0 => ReplicaMessage::Hello(Hello {
                id: Some(fields.u64()?).filter(|&id| id != 0),
                nonce: fields.u64()?,
                heard: fields.u64()?,
                life: fields.u32()?,
                suspended: fields.bool()?,
                fresh: fields.bool()?,
                last: (fields.u64()?, fields.u64()?),
                votes: fields.bool()?,
                answer: fields.bool()?,
                plan: fields.u64()?,
            }),
            1 => ReplicaMessage::Raft(Box::new(take_raft(&mut fields)?)),
            2 => ReplicaMessage::Admit { id: fields.u64()?, nonce: fields.u64()? },
            3 => ReplicaMessage::Resume { life: fields.u32()?, index: fields.u64()? },
            4 => ReplicaMessage::Fetch {
                index: fields.u64()?,
                file: fields.file()?,
                offset: fields.u64()?,
                length: fields.u32()?,
            },
            5 => ReplicaMessage::Chunk {
                index: fields.u64()?,
                file: fields.file()?,
                offset: fields.u64()?,
                bytes: fields.bytes()?,
            },
            6 => ReplicaMessage::Gone { index: fields.u64()? },
            7 => ReplicaMessage::Stranger { id: fields.u64()?, term: fields.u64()? },
            8 => ReplicaMessage::Invite,
            9 => ReplicaMessage::Dismiss { nonce: fields.u64()? },
            10 => ReplicaMessage::Spoiled { file: fields.file()? },
            _ => return Err(Malformed),
        };
        fields.end()?;
        Ok(message)
    }
}

/// The kinds of messages that replicas exchange, by their numbers here.
const KINDS: [MessageType; 12] = [
    MessageType::MsgAppend,
    MessageType::MsgAppendResponse,
    MessageType::MsgRequestVote,
    MessageType::MsgRequestVoteResponse,
    MessageType::MsgSnapshot,
    MessageType::MsgHeartbeat,
    MessageType::MsgHeartbeatResponse,
    MessageType::MsgTransferLeader,
    MessageType::MsgTimeoutNow,
    MessageType::MsgRequestPreVote,
    MessageType::MsgRequestPreVoteResponse,
    MessageType::MsgReadIndex,
];

/// Whether a message of the engine is one that replicas exchange here.
pub(crate) fn is_exchanged(message: &eraftpb::Message) -> bool {
    KINDS.contains(&message.get_msg_type())
}

fn put_raft(out: &mut Vec<u8>, message: &eraftpb::Message) {
    let kind = KINDS.iter().position(|kind| *kind == message.get_msg_type()).unwrap_or(KINDS.len());
    out.put_u8(kind as u8);
    for field in [
        message.to,
        message.from,
        message.term,
        message.log_term,
        message.index,
        message.commit,
        message.commit_term,
        message.request_snapshot,
        message.reject_hint,
    ] {
        out.put_u64_le(field);
    }
    out.put_u8(u8::from(message.reject));
    put_bytes(out, &message.context);
    out.put_u32_le(message.entries.len() as u32);
    for entry in &message.entries {
        out.put_u64_le(entry.term);
        out.put_u64_le(entry.index);
        out.put_u8(kind_number(entry.get_entry_type()));
        put_bytes(out, &entry.data);
    }
    let snapshot = message.get_snapshot();
    out.put_u64_le(snapshot.get_metadata().index);
    out.put_u64_le(snapshot.get_metadata().term);
    put_members(out, snapshot.get_metadata().get_conf_state());
    put_bytes(out, &snapshot.data);
}

fn take_raft(fields: &mut Fields) -> Result<eraftpb::Message, Malformed> {
    let mut message = eraftpb::Message::new();
    let kind = *KINDS.get(usize::from(fields.u8()?)).ok_or(Malformed)?;
    message.set_msg_type(kind);
    message.to = fields.u64()?;
    message.from = fields.u64()?;
    message.term = fields.u64()?;
    message.log_term = fields.u64()?;
    message.index = fields.u64()?;
    message.commit = fields.u64()?;
    message.commit_term = fields.u64()?;
    message.request_snapshot = fields.u64()?;
    message.reject_hint = fields.u64()?;
    message.reject = fields.bool()?;
    message.context = fields.bytes()?;
    let mut next = message.index;
    let entries = fields.many(21, |fields| {
        let mut entry = Entry::new();
        entry.term = fields.u64()?;
        entry.index = fields.u64()?;
        entry.set_entry_type(kind_of(fields.u8()?)?);
        entry.data = fields.bytes()?;
        next = next.wrapping_add(1);
        // The engine relies on it, and ends the process otherwise.
        if entry.index != next { Err(Malformed) } else { Ok(entry) }
    })?;
    message.entries = entries.into();
    let (index, term) = (fields.u64()?, fields.u64()?);
    let members = take_members(fields)?;
    let data = fields.bytes()?;
    if index > 0 {
        let snapshot = message.mut_snapshot();
        snapshot.data = data;
        let metadata = snapshot.mut_metadata();
        (metadata.index, metadata.term) = (index, term);
        metadata.set_conf_state(members);
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raft::eraftpb::{ConfState, Snapshot};

    fn messages() -> Vec<ReplicaMessage> {
        let mut append = eraftpb::Message::new();
        append.set_msg_type(MessageType::MsgAppend);
        (append.to, append.from, append.term, append.index, append.commit) = (2, 1, 5, 8, 7);
        let entry = |index| {
            let mut entry = Entry::new();
            (entry.term, entry.index) = (5, index);
            entry.data = Bytes::from(vec![7; index as usize]);
            entry
        };
        append.entries = vec![entry(9), entry(10)].into();
        let mut snapshot = Snapshot::new();
        snapshot.data = Bytes::from_static(b"directory");
        let mut members = ConfState::new();
        (members.voters, members.learners, members.auto_leave) = (vec![1, 2, 3], vec![4], true);
        let metadata = snapshot.mut_metadata();
        (metadata.index, metadata.term) = (4, 3);
        metadata.set_conf_state(members);
        let mut sent = eraftpb::Message::new();
        sent.set_msg_type(MessageType::MsgSnapshot);
        sent.set_snapshot(snapshot);
        let file = FileName::Segment(64);
        let hello =
            Hello { id: Some(3), nonce: 9, life: 2, suspended: true, last: (4, 5), ..Hello::default() };
        vec![
            ReplicaMessage::Hello(hello),
            ReplicaMessage::Raft(Box::new(append)),
            ReplicaMessage::Raft(Box::new(sent)),
            ReplicaMessage::Admit { id: 65_537, nonce: 4 },
            ReplicaMessage::Resume { life: 3, index: 12 },
            ReplicaMessage::Fetch { index: 4, file, offset: 3, length: 100 },
            ReplicaMessage::Chunk { index: 4, file, offset: 3, bytes: Bytes::from_static(b"abc") },
            ReplicaMessage::Gone { index: 4 },
            ReplicaMessage::Stranger { id: 65_537, term: 4 },
            ReplicaMessage::Invite,
            ReplicaMessage::Dismiss { nonce: 4 },
            ReplicaMessage::Spoiled { file },
        ]
    }

    #[test]
    fn what_is_sent_is_what_is_read() {
        for message in messages() {
            assert_eq!(ReplicaMessage::decode(message.encode()), Ok(message));
        }
    }

    #[test]
    fn a_message_that_ends_early_or_late_is_none() {
        for message in messages() {
            let bytes = message.encode();
            for length in 0..bytes.len() {
                assert_eq!(
                    ReplicaMessage::decode(bytes.slice(..length)),
                    Err(Malformed),
                    "{message:?} {length}"
                );
            }
            let longer = Bytes::from([&bytes[..], &[0]].concat());
            assert_eq!(ReplicaMessage::decode(longer), Err(Malformed), "{message:?}");
        }
    }

    #[test]
    fn no_byte_of_a_message_makes_reading_it_panic() {
        for message in messages() {
            let bytes = message.encode();
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut other = bytes.to_vec();
                    other[at] ^= 1 << bit;
                    // What is read may be another message; the engine is given entries in their order only.
                    if let Ok(ReplicaMessage::Raft(raft)) = ReplicaMessage::decode(Bytes::from(other)) {
                        let first = raft.index + 1;
                        assert!(raft.entries.iter().zip(first..).all(|(entry, index)| entry.index == index));
                    }
                }
            }
        }
    }
}
