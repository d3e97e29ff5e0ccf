//! Answers of a session, encoded in the order of its commands, until they leave together.

use ensue_resp::ProtocolVersion;
use ensue_types::Reply;

/// A guess that spares most growing of the buffer.
const REPLY_BYTES_EXPECTED: usize = 16;

/// Whether a client wants answers: `CLIENT REPLY`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Muted {
    #[default]
    No,
    Always,
    /// So many answers.
    Next(u32),
}

/// Encoded answers.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplyBuffer {
    bytes: Vec<u8>,
    answered: u32,
    /// The last answer, where nothing is encoded: it goes to another datacenter.
    kept: Option<Option<Reply>>,
    muted: Muted,
}

impl ReplyBuffer {
    /// Keeps the last answer as it is.
    pub(super) fn keeping() -> ReplyBuffer {
        ReplyBuffer { kept: Some(None), ..ReplyBuffer::default() }
    }

    /// The last answer, if it was kept.
    pub(super) fn take_kept(&mut self) -> Option<Reply> {
        self.kept.as_mut().and_then(Option::take)
    }

    /// From now on the client wants its answers, or does not.
    pub(super) fn mute(&mut self, muted: Muted) {
        // To skip an answer means nothing where all are skipped.
        if !matches!((self.muted, muted), (Muted::Always, Muted::Next(_))) {
            self.muted = muted;
        }
    }

    /// Whether the next answer is not sent; it counts as one.
    fn skips(&mut self) -> bool {
        let (skips, muted) = match self.muted {
            Muted::No => return false,
            Muted::Always => (true, Muted::Always),
            Muted::Next(0) => (false, Muted::No),
            Muted::Next(count) => (true, Muted::Next(count - 1)),
        };
        self.muted = muted;
        self.answered += u32::from(skips);
        skips
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// What the buffer takes.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// The answer to one command.
    pub(super) fn push(&mut self, version: ProtocolVersion, reply: &Reply) {
        if let Some(kept) = &mut self.kept {
            *kept = Some(reply.clone());
            return;
        }
        if self.skips() {
            return;
        }
        ensue_resp::encode(reply, version, &mut self.bytes);
        self.answered += 1;
    }

    /// The answers to several commands.
    pub(super) fn push_all(&mut self, version: ProtocolVersion, replies: &[Reply]) {
        if self.kept.is_some() || self.muted != Muted::No {
            return replies.iter().for_each(|reply| self.push(version, reply));
        }
        self.bytes.reserve(replies.len() * REPLY_BYTES_EXPECTED);
        for reply in replies {
            ensue_resp::encode(reply, version, &mut self.bytes);
        }
        self.answered += replies.len() as u32;
    }

    /// Frames that are the answer to one command. They are sent to a client that wants no answers, too.
    pub(super) fn push_frames(&mut self, version: ProtocolVersion, frames: &[Vec<Reply>]) {
        for items in frames {
            ensue_resp::encode::encode_push(items, version, &mut self.bytes);
        }
        self.answered += 1;
    }

    /// The answer to one command, encoded.
    pub(super) fn push_raw(&mut self, bytes: &[u8]) {
        if !self.skips() {
            self.bytes.extend_from_slice(bytes);
            self.answered += 1;
        }
    }

    /// Bytes that answer no command.
    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// An error that answers no command.
    pub(super) fn push_error(&mut self, version: ProtocolVersion, error: String) {
        ensue_resp::encode(&Reply::Error(error.into()), version, &mut self.bytes);
    }

    /// The bytes, and how many commands they answer.
    pub(super) fn take(&mut self) -> (Vec<u8>, u32) {
        (std::mem::take(&mut self.bytes), std::mem::take(&mut self.answered))
    }
}
