//! What takes the place of a message that has no encoding, so that nobody waits for it in vain.

use crate::codec::encode;
use crate::error::Unsendable;
use crate::message::{AtValues, Envelope, FirstValues, HomeOutcome, Message, SnapshotOutcome};
use ensue_types::Reply;

/// What is done instead of sending a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Instead {
    /// It is an answer: this one goes, with errors for the replies that cannot.
    Send(Box<Envelope>),
    /// It is a request: its sender receives this answer.
    Receive(Box<Envelope>),
    /// It is a part of a stream, which has a gap without it: the link cannot stay up as if nothing had happened.
    EndLink,
    /// Whoever wants it asks again.
    Drop,
}

impl Envelope {
    /// What is done instead of sending this, which was refused for that reason.
    pub fn instead(&self, reason: &Unsendable) -> Instead {
        if matches!(
            self.message,
            Message::StreamEntries { .. } | Message::TailFetched { .. } | Message::PassedOn { .. }
        ) {
            return Instead::EndLink;
        }
        if let Some(message) = refused(&self.message, reason) {
            let Envelope { from, to, time, .. } = *self;
            return Instead::Receive(Box::new(Envelope { from: to, to: from, time, message }));
        }
        let error = || {
            let words =
                format!("ERR the answer cannot be sent between nodes: {reason}; the command was executed");
            Reply::Error(words.into())
        };
        let is_alone = |reply: &Reply| self.with(Message::BackupTold { number: 0, reply: reply.clone() });
        let is_long = |reply: &Reply| !is_sendable(&is_alone(reply));
        // Those that cannot be sent even alone; if that is not enough, all of them.
        let replaced =
            [&is_long as &dyn Fn(&Reply) -> bool, &|_| true].into_iter().filter_map(|is_replaced| {
                let mut answer = self.clone();
                let replies = replies(&mut answer.message)?;
                replies.into_iter().filter(|reply| is_replaced(reply)).for_each(|reply| *reply = error());
                is_sendable(&answer).then(|| Instead::Send(Box::new(answer)))
            });
        replaced.into_iter().next().unwrap_or(Instead::Drop)
    }

    fn with(&self, message: Message) -> Envelope {
        Envelope { message, ..*self }
    }
}

fn is_sendable(envelope: &Envelope) -> bool {
    encode(envelope, &mut Vec::new()).is_ok()
}

/// The answer to a request that never arrives.
fn refused(message: &Message, reason: &Unsendable) -> Option<Message> {
    let reply = Reply::Error(format!("ERR the request cannot be sent between nodes: {reason}").into());
    match message {
        Message::Execute { request, .. }
        | Message::ReadFirst { request, .. }
        | Message::ReadAt { request, .. }
        | Message::Transact { request, .. }
        | Message::ReadSnapshot { request, .. } => Some(Message::Refused { request: *request, reply }),
        Message::ReadSnapshotPart { read, .. } => Some(Message::SnapshotPartRefused { read: *read, reply }),
        Message::HomeRequest(request) => {
            let outcome = HomeOutcome::Refused { reply };
            Some(Message::HomeAnswer { boot: request.boot, number: request.number, outcome })
        }
        _ => None,
    }
}

/// The replies of an answer; nothing if it is none.
fn replies(message: &mut Message) -> Option<Vec<&mut Reply>> {
    Some(match message {
        Message::Executed { replies, .. }
        | Message::TimedOut { replies, .. }
        | Message::ExecutedInPart { replies, .. }
        | Message::ReadFirstDone { values: Some(FirstValues { replies, .. }), .. }
        | Message::ReadAtDone { values: Some(AtValues { replies, .. }), .. }
        | Message::SnapshotPartRead { values: Some(AtValues { replies, .. }), .. } => {
            replies.iter_mut().collect()
        }
        Message::Transacted { replies, .. }
        | Message::Committed { replies, .. }
        | Message::SnapshotRead { outcome: SnapshotOutcome::Read { replies, .. }, .. } => {
            replies.iter_mut().map(|(_, reply)| reply).collect()
        }
        Message::Refused { reply, .. }
        | Message::SnapshotPartRefused { reply, .. }
        | Message::SnapshotRead { outcome: SnapshotOutcome::TimedOut { reply, .. }, .. }
        | Message::HomeAnswer { outcome: HomeOutcome::Executed { reply, .. }, .. }
        | Message::HomeAnswer { outcome: HomeOutcome::Refused { reply }, .. }
        | Message::BackupTold { reply, .. } => vec![reply],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::WireError;
    use crate::limits::TEXT_BYTES;
    use crate::message::Address;
    use bytes::Bytes;
    use ensue_types::{
        CoreId, DatacenterId, Incarnation, KeyspaceId, LogicalTime, PartitionId, Position, RequestId,
        SessionId,
    };

    const CORE: Address = Address::Core { datacenter: DatacenterId(0), core: CoreId(1) };
    const PARTITION: Address = Address::Partition { datacenter: DatacenterId(0), partition: PartitionId(0) };

    fn instead(from: Address, to: Address, message: Message) -> Instead {
        let envelope = Envelope { from, to, time: LogicalTime(9), message };
        let Err(WireError::Ours(reason)) = encode(&envelope, &mut Vec::new()) else {
            panic!("it can be sent")
        };
        envelope.instead(&reason)
    }

    fn request() -> RequestId {
        RequestId { core: CoreId(1), boot: 2, session: SessionId(7), sequence: 3 }
    }

    #[test]
    fn of_an_answer_only_what_is_too_long_is_replaced() {
        let long = Reply::Status("x".repeat(TEXT_BYTES.max + 1).into());
        let replies = vec![Reply::OK, long, Reply::Integer(1)];
        let message = Message::Executed { request: request(), context: Default::default(), replies };
        let Instead::Send(envelope) = instead(PARTITION, CORE, message) else { panic!("it is an answer") };
        assert!(is_sendable(&envelope));
        assert_eq!((envelope.from, envelope.to), (PARTITION, CORE));
        let Message::Executed { replies, .. } = envelope.message else { panic!("it is the same answer") };
        let Reply::Error(words) = &replies[1] else { panic!("{:?}", replies[1]) };
        assert!(words.contains("bytes in a status or an error") && words.contains("was executed"), "{words}");
        assert_eq!((&replies[0], &replies[2]), (&Reply::OK, &Reply::Integer(1)));
    }

    #[test]
    fn what_is_too_much_together_is_replaced_as_a_whole() {
        let long = Reply::Status("x".repeat(TEXT_BYTES.max + 1).into());
        let large = Reply::bulk(vec![b'x'; crate::limits::FRAME.max / 2]);
        let replies = vec![large.clone(), long, large];
        let message = Message::Executed { request: request(), context: Default::default(), replies };
        let Instead::Send(envelope) = instead(PARTITION, CORE, message) else { panic!("it is an answer") };
        let Message::Executed { replies, .. } = envelope.message else { panic!("it is the same answer") };
        assert!(replies.len() == 3 && replies.iter().all(Reply::is_error));
    }

    #[test]
    fn the_sender_of_a_request_is_answered() {
        let long = Bytes::from(vec![b'x'; ensue_types::limits::BULK_BYTES_MAX + 1]);
        let commands = vec![[Bytes::from("GET"), long].into_iter().collect()];
        let (keyspace, context) = (KeyspaceId(0), Default::default());
        let message = Message::Execute { request: request(), keyspace, context, commands, together: false };
        let Instead::Receive(envelope) = instead(CORE, PARTITION, message) else { panic!("it is a request") };
        assert_eq!((envelope.from, envelope.to), (PARTITION, CORE));
        assert!(matches!(envelope.message, Message::Refused { request: asked, .. } if asked == request()));
    }

    #[test]
    fn a_stream_has_no_gap() {
        let entries = vec![Bytes::new(); crate::limits::ENTRIES.max + 1];
        let (incarnation, first) = (Incarnation(1), Position(1));
        let message = Message::StreamEntries { incarnation, first, entries };
        assert_eq!(instead(PARTITION, PARTITION, message), Instead::EndLink);
        let metrics = vec![("x".repeat(300), 1)];
        let message = Message::MetricsAnswer { request: request(), metrics };
        assert_eq!(instead(CORE, CORE, message), Instead::Drop);
    }
}
