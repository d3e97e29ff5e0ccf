//! A batch whose script has paused: it goes on when the script has ended.

use super::Executor;
use crate::partition::keyspaces::paused::EndedScript;
use ensue_types::{Reply, RequestId};

impl Executor<'_> {
    /// The script that has paused goes on, and what waits for its end, if it ends.
    pub(crate) fn resume_script(&mut self) {
        let ended =
            self.as_its_session(|executor| executor.keyspaces.resume_script(executor.cx, executor.others));
        self.go_on_behind(ended);
    }

    /// The script that has paused is stopped, and answered so.
    pub(crate) fn stop_script(&mut self, reply: Reply) {
        let ended = self
            .as_its_session(|executor| executor.keyspaces.stop_paused(executor.cx, executor.others, reply));
        self.go_on_behind(ended);
    }

    /// The partition stops, and so do its scripts, one after the other; what waits behind each goes on.
    pub(crate) fn stop_scripts(&mut self) {
        while self.keyspaces.is_in_script() {
            self.stop_script(STOPPED);
        }
    }

    /// What the script writes is its session's.
    fn as_its_session<T>(&mut self, work: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let (keyspace, RequestId { core, session, .. }) = self.keyspaces.caller_of_script()?;
        let writer = self.reads.changes.is_wanted().then_some((core, session));
        self.keyspaces.keyspace(keyspace).written_by(writer);
        let done = work(self);
        self.keyspaces.keyspace(keyspace).written_by(None);
        done
    }

    fn go_on_behind(&mut self, ended: Option<EndedScript>) {
        let Some((mut execution, args, reply)) = ended.map(EndedScript::into_parts) else { return };
        self.count_resumed(&execution, &args, &reply);
        execution.used.bytes += reply.encoded_bytes();
        execution.replies.push(reply);
        self.serve_pops();
        let context = &mut execution.context.causes;
        self.others.failover.discarded.strip_lost(self.cx, execution.keyspace, context);
        self.advance(execution);
    }
}

const STOPPED: Reply = Reply::error("UNAVAILABLE this partition stops; the script has changed nothing");
