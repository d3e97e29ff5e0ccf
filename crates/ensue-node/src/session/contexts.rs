//! What a connection remembers: one causal context a keyspace, and which keyspace it has selected.

use ensue_resp::number;
use ensue_types::{Args, Causes, Context, KeyspaceId, LogicalTime, Reply};

/// The causal past of one session.
#[derive(Clone, Debug)]
pub(super) struct Contexts {
    selected: KeyspaceId,
    contexts: Vec<Context>,
}

impl Contexts {
    pub(super) fn new(keyspaces: usize) -> Contexts {
        Contexts { selected: KeyspaceId::default(), contexts: vec![Context::default(); keyspaces] }
    }

    pub(super) fn selected(&self) -> KeyspaceId {
        self.selected
    }

    pub(super) fn select(&mut self, keyspace: KeyspaceId) {
        self.selected = keyspace;
    }

    pub(super) fn keyspaces(&self) -> impl Iterator<Item = KeyspaceId> + use<> {
        (0..self.contexts.len() as u8).map(KeyspaceId)
    }

    /// The keyspace of this number, if the configuration has it.
    pub(super) fn keyspace_of(&self, number: &[u8]) -> Option<KeyspaceId> {
        let index = number::parse_i64(number).and_then(|number| u8::try_from(number).ok())?;
        (usize::from(index) < self.contexts.len()).then_some(KeyspaceId(index))
    }

    /// The keyspace that a `SELECT` names, if there is one.
    pub(super) fn named_by_select(&self, args: &Args) -> Option<KeyspaceId> {
        self.keyspace_of(args.get(1)?)
    }

    /// The context of the selected keyspace.
    pub(super) fn own(&self) -> &Context {
        self.of(self.selected)
    }

    pub(super) fn of(&self, keyspace: KeyspaceId) -> &Context {
        &self.contexts[usize::from(keyspace.0)]
    }

    /// What the selected keyspace's protocol remembers.
    pub(super) fn causes_mut(&mut self) -> &mut Causes {
        &mut self.contexts[usize::from(self.selected.0)].causes
    }

    /// An answer carried this time, so the session's past in the selected keyspace includes it.
    pub(super) fn observe(&mut self, time: LogicalTime) {
        let own = &mut self.contexts[usize::from(self.selected.0)];
        own.time = own.time.max(time);
    }

    /// The context that came back with an answer replaces what the session sent with the command.
    pub(super) fn replace(&mut self, keyspace: KeyspaceId, context: Context) {
        let own = &mut self.contexts[usize::from(keyspace.0)];
        own.time = own.time.max(context.time);
        own.causes = context.causes;
    }

    /// Back to those of a new connection.
    pub(super) fn reset(&mut self) {
        self.selected = KeyspaceId::default();
        self.contexts.fill(Context::default());
    }
}

pub(super) const KEYSPACE_OUT_OF_RANGE: Reply = Reply::error("ERR DB index is out of range");
