//! What commands of sessions name, read and write.

use super::Cx;
use crate::evaluate::Writer;
use crate::homes::{MOVING, STABLE_AT_HOME, is_on_keys};
use crate::partition::order::RowName;
use ensue_protocol::Choice;
use ensue_resp::Flags;
use ensue_store::cell::Write;
use ensue_types::{Args, Causes, KeyspaceId, Mode, Reply, Rule, Source};

impl Cx {
    pub(crate) fn writer(&self, keyspace: KeyspaceId, write: Write, choice: &Choice) -> Writer {
        let wants_previous = self.protocol(keyspace).needs().previous_versions;
        let writer = Writer::new(write, self.datacenter.adder(choice.is_stable()), wants_previous);
        let writer = writer.with_node_entries(self.stream_node_max_entries());
        writer.with_bytes_max(self.config.tuning.entry_bytes_max)
    }

    /// What was read, as far as the rules let it count as the past of who read it.
    pub(crate) fn observed(&self, mut sources: Vec<Source>) -> Vec<Source> {
        if !Rule::RememberReads.holds() {
            return Vec::new();
        }
        if !Rule::CounterDependencies.holds() {
            sources.truncate(1);
        }
        sources
    }

    /// Why commands of a session that reads only what is stable do not write at the home of their keys: it may not see
    /// what others have written there (decision 33).
    pub(crate) fn stable_refusal<'a>(
        &self,
        keyspace: KeyspaceId,
        causes: &Causes,
        commands: impl IntoIterator<Item = &'a Args>,
    ) -> Option<Reply> {
        if self.homes.is_empty() || !causes.times().is_ok_and(|vector| vector.mode == Mode::Stable) {
            return None;
        }
        let rows = self.rows_of(keyspace, commands);
        rows.iter().any(|(_, key)| self.homes.line_of(keyspace, key).is_some()).then_some(STABLE_AT_HOME)
    }

    /// Why commands are not executed here: this datacenter is not the home of their keys, or not yet, or not any more.
    /// Reads are executed anywhere, unless the keyspace is read at home.
    pub(in crate::partition) fn home_refusal<'a>(
        &self,
        keyspace: KeyspaceId,
        commands: impl IntoIterator<Item = &'a Args>,
    ) -> Option<Reply> {
        if self.homes.is_empty() || !Rule::HomeCommandsRunAtHome.holds() {
            return None;
        }
        let reads_there =
            self.config.home_reads.contains(&keyspace) || !self.protocol(keyspace).capabilities().causality;
        let is_refused = |args: &Args| {
            let Some(spec) = args.first().and_then(|name| ensue_resp::lookup(name)) else { return false };
            let writes = spec.is_write() && !spec.flags.contains(Flags::READONLY);
            (writes || reads_there)
                && is_on_keys(spec)
                && ensue_resp::keys(spec, args).any(|key| self.is_home_elsewhere(keyspace, key))
        };
        commands.into_iter().any(is_refused).then_some(MOVING)
    }

    /// Whether a key has a home that is not here, or not yet, or not any more.
    pub(in crate::partition) fn is_home_elsewhere(&self, keyspace: KeyspaceId, key: &[u8]) -> bool {
        let line = self.homes.line_of(keyspace, key);
        line.is_some_and(|line| !self.homes.is_open(line)) && Rule::HomeCommandsRunAtHome.holds()
    }

    /// The rows that commands name.
    pub(crate) fn rows_of<'a>(
        &self,
        keyspace: KeyspaceId,
        commands: impl IntoIterator<Item = &'a Args>,
    ) -> Vec<RowName> {
        let mut rows: Vec<RowName> = Vec::new();
        for args in commands {
            let Some(spec) = ensue_resp::lookup(&args[0]) else { continue };
            for key in ensue_resp::keys(spec, args) {
                rows.push((keyspace, key.clone()));
            }
        }
        rows.sort_unstable();
        rows.dedup();
        rows
    }
}
