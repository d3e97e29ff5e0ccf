//! What commands of sessions name, read and write.

use super::Cx;
use crate::evaluate::Writer;
use crate::homes::{STABLE_AT_HOME, home_of};
use crate::partition::order::RowName;
use ensue_protocol::Choice;
use ensue_store::cell::Write;
use ensue_types::{Args, Causes, KeyspaceId, Mode, Reply, Rule, Source};

impl Cx {
    pub(crate) fn writer(&self, keyspace: KeyspaceId, write: Write, choice: &Choice) -> Writer {
        let wants_previous = self.protocol(keyspace).needs().previous_versions;
        let writer = Writer::new(write, self.datacenter.adder(choice.is_stable()), wants_previous);
        writer.with_node_entries(self.stream_node_max_entries())
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
        let homes = &self.config.homes;
        if homes.is_empty() || !causes.times().is_ok_and(|vector| vector.mode == Mode::Stable) {
            return None;
        }
        let rows = self.rows_of(keyspace, commands);
        rows.iter().any(|(_, key)| home_of(homes, keyspace, key).is_some()).then_some(STABLE_AT_HOME)
    }

    /// Whether another datacenter is the home of a key.
    pub(in crate::partition) fn is_home_elsewhere(&self, keyspace: KeyspaceId, key: &[u8]) -> bool {
        let home = home_of(&self.config.homes, keyspace, key);
        home.is_some_and(|home| home != self.datacenter) && Rule::HomeCommandsRunAtHome.holds()
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
