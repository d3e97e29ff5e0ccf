//! What is answered to who asks something that cannot be served now, or never.

use super::Cx;
use super::words::{DECLARED_DEAD, RETIRED, SILENT};
use ensue_types::Reply;
use ensue_wire::{Envelope, Message, PeerStage};

/// What to do about damage.
pub(in crate::partition) const ADVICE: &str = "; `ensue fsck` says what each partition holds, and \
    `ensue recover --rebuild` has a damaged one taken back from other datacenters";

impl Cx {
    /// Answers a question that a partition cannot serve now, or never, since it has stopped. Only sessions are
    /// answered; partitions wait.
    pub(crate) fn refuse(&mut self, envelope: &Envelope, reason: &str) {
        if let Some(message) = self.refusal_of(envelope, reason) {
            self.send_refusal(envelope.from, message);
        }
    }

    /// The same, before everything that waits for the log.
    pub(crate) fn refuse_ahead(&mut self, envelope: &Envelope, reason: &str) {
        if let Some(message) = self.refusal_of(envelope, reason) {
            self.send_ahead(envelope.from, message);
        }
    }

    fn refusal_of(&self, envelope: &Envelope, reason: &str) -> Option<Message> {
        let refusal = |words: String| Reply::Error(words.into());
        let has_code = ["TAILLOST", "REJOIN", "LOADING", "BUSY", DECLARED_DEAD, RETIRED];
        let has_code = has_code.iter().any(|code| reason.starts_with(code));
        let words = if has_code {
            reason.to_owned()
        } else {
            format!("STOPPED partition {} has stopped: {reason}", self.id)
        };
        let request = match &envelope.message {
            Message::ReadSnapshotPart { read, .. } => {
                return Some(Message::SnapshotPartRefused { read: *read, reply: refusal(words) });
            }
            Message::Execute { request, .. }
            | Message::ReadFirst { request, .. }
            | Message::ReadAt { request, .. }
            | Message::Transact { request, .. }
            | Message::ReadSnapshot { request, .. }
            | Message::AwaitReplicas { request, .. }
            | Message::CountReplicas { request, .. }
            | Message::ContextFetch { request, .. }
            | Message::ContextMerge { request, .. } => *request,
            Message::MetricsQuery { request } => {
                let request = *request;
                let what = match reason.split(' ').next() {
                    Some("TAILLOST") => "catching_up",
                    Some("LOADING") if self.stage == PeerStage::Joining => "joining",
                    Some("LOADING") => "loading",
                    Some("REJOIN") => "rejoin",
                    Some(DECLARED_DEAD) => "declared_dead",
                    Some(RETIRED) => "retired",
                    _ => "stopped",
                };
                let metrics = vec![(what.to_owned(), 1)];
                return Some(Message::MetricsAnswer { request, metrics });
            }
            // One that has yet to come to the end waits for nobody who has.
            Message::Retiring { .. } if reason.starts_with(RETIRED) => {
                return Some(Message::Retiring { step: SILENT });
            }
            _ => return None,
        };
        Some(Message::Refused { request, reply: refusal(words) })
    }

    /// A session meets a partition that has lost its tail.
    pub(in crate::partition) fn refuse_without_tail(&mut self, envelope: &Envelope, waits: &[String]) {
        let whom = if waits.is_empty() {
            "it catches up".to_owned()
        } else {
            format!("waits for {}", waits.join(", "))
        };
        let reason = format!(
            "TAILLOST partition {} lacks the end of its log and recovers what the other datacenters have of it: {whom}",
            self.id
        );
        self.refuse(envelope, &reason);
    }

    pub(in crate::partition) fn refuse_loading(&mut self, envelope: &Envelope) {
        let reason = format!("LOADING partition {} is still reading its log; try again later", self.id);
        self.refuse(envelope, &reason);
    }
}
