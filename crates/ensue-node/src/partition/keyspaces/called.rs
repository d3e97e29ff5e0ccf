//! What a script has called, for the core of its session: clients that monitor are shown it, and those that are told of
//! changes are told of those of the keys that it has read. What it publishes is published by that core, when the script
//! has its answer; what its user may not do, that core records.

use super::Keyspaces;
use super::scripts::is_published;
use crate::partition::cx::Cx;
use crate::partition::work::Execution;
use crate::statistics::ScriptCounts;
use crate::trace::Trace;
use bytes::Bytes;
use ensue_resp::CommandSpec;
use ensue_types::{Args, Reply, limits};
use ensue_wire::Message;

/// The commands of the scripts of one request, in their order, as far as there is room.
#[derive(Clone, Debug, Default)]
pub(super) struct ScriptCalls {
    commands: Vec<Args>,
    bytes: usize,
    is_full: bool,
    /// How many of them publish, and bytes of these.
    published: (usize, usize),
    /// What the user of the script may not do, as far as there is room, and bytes of it.
    denied: Vec<Args>,
    denied_bytes: usize,
    /// What was written into the log of the server, as far as there is room.
    lines: Vec<(u8, String)>,
    /// How often what was called.
    counts: ScriptCounts,
    /// The error that the last command was answered with, if it was.
    last_error: Option<Reply>,
}

impl ScriptCalls {
    /// How many are noted.
    pub(super) fn count(&self) -> usize {
        self.commands.len()
    }

    /// The script that called those after so many was stopped: it has published nothing.
    pub(super) fn forget_published(&mut self, after: usize) {
        let mut place = 0;
        self.commands.retain(|args| {
            place += 1;
            place <= after || !is_published(args)
        });
    }

    /// A command was called, and answered so; without a row in the table there is none of its name.
    pub(super) fn note_answer(
        &mut self,
        spec: Option<&'static CommandSpec>,
        args: &[Bytes],
        (reply, executed): (&Reply, bool),
    ) {
        match spec {
            Some(spec) => self.counts.count(spec, args, reply, executed),
            None => self.counts.count_unknown(reply),
        }
        self.last_error = reply.is_error().then(|| reply.clone());
    }

    /// The script is answered so. What an error of a command became is one error, which its session counts.
    pub(super) fn note_end(&mut self, reply: &Reply) {
        let last = self.last_error.take();
        if let (Reply::Error(words), Some(Reply::Error(last))) = (reply, &last) {
            if words.starts_with(&**last) {
                self.counts.take_back(reply);
            }
        }
    }

    /// A message is to be published; false if there is no room for it.
    pub(super) fn note_published(&mut self, args: &[Bytes]) -> bool {
        let (count, bytes) = &mut self.published;
        *count += 1;
        *bytes += args.iter().map(Bytes::len).sum::<usize>();
        let has_room = *count <= limits::CALLS_TOLD_MAX && *bytes <= limits::CALLS_TOLD_BYTES_MAX;
        if has_room {
            self.commands.push(args.to_vec());
        }
        has_room
    }

    /// The user may not do this.
    pub(super) fn note_denied(&mut self, args: &[Bytes]) {
        let bytes: usize = args.iter().map(Bytes::len).sum();
        let has_room = self.denied.len() < limits::CALLS_TOLD_MAX
            && self.denied_bytes + bytes <= limits::CALLS_TOLD_BYTES_MAX;
        if has_room {
            self.denied_bytes += bytes;
            self.denied.push(args.to_vec());
        }
    }

    /// The script writes a line into the log of the server. A long one is cut, as by Redis.
    pub(super) fn note_line(&mut self, level: u8, text: &[u8]) {
        if self.lines.len() < LINES_MAX {
            let text = String::from_utf8_lossy(&text[..text.len().min(LINE_BYTES_MAX)]).into_owned();
            self.lines.push((level, text));
        }
    }

    pub(super) fn note(&mut self, args: &[Bytes]) {
        let bytes: usize = args.iter().map(Bytes::len).sum();
        self.is_full |= self.commands.len() >= limits::CALLS_TOLD_MAX
            || self.bytes + bytes > limits::CALLS_TOLD_BYTES_MAX;
        if !self.is_full {
            self.bytes += bytes;
            self.commands.push(args.to_vec());
        }
    }
}

/// Lines that the scripts of one request may write into the log, and bytes of each.
const LINES_MAX: usize = 100;
const LINE_BYTES_MAX: usize = 1024;

impl Keyspaces {
    /// Tells the core of a session what its scripts have called, before it is answered.
    pub(super) fn report_calls(&mut self, cx: &mut Cx, execution: &Execution) {
        let ScriptCalls { commands, is_full, denied, counts, lines, .. } = std::mem::take(&mut self.called);
        cx.statistics.add_calls(counts);
        for (level, text) in lines {
            cx.trace(Trace::ScriptLogged { partition: cx.id, level, text });
        }
        if commands.is_empty() && denied.is_empty() && !is_full {
            return;
        }
        let (request, keyspace) = (execution.request, execution.keyspace);
        cx.send(execution.from, Message::Called { request, keyspace, commands, all: !is_full, denied });
    }
}
