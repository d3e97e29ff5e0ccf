//! What a connection remembers: one causal context a keyspace, and which keyspace it has selected.

use ensue_protocol::Protocol;
use ensue_resp::number;
use ensue_types::{Args, Causes, Context, KeyspaceId, LogicalTime, Reply};

/// The causal past of one session.
#[derive(Clone, Debug)]
pub(super) struct Contexts {
    selected: KeyspaceId,
    contexts: Vec<Context>,
    /// What the session did at homes of keys, by keyspaces, and does not know to be visible here.
    awaited: Vec<(KeyspaceId, Context)>,
}

impl Contexts {
    pub(super) fn new(keyspaces: usize) -> Contexts {
        Contexts {
            selected: KeyspaceId::default(),
            contexts: vec![Context::default(); keyspaces],
            awaited: Vec::new(),
        }
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
        self.causes_of_mut(self.selected)
    }

    pub(super) fn causes_of_mut(&mut self, keyspace: KeyspaceId) -> &mut Causes {
        &mut self.contexts[usize::from(keyspace.0)].causes
    }

    /// An answer carried this time, so the session's past in the selected keyspace includes it.
    pub(super) fn observe(&mut self, time: LogicalTime) {
        self.observe_in(self.selected, time);
    }

    pub(super) fn observe_in(&mut self, keyspace: KeyspaceId, time: LogicalTime) {
        let own = &mut self.contexts[usize::from(keyspace.0)];
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
        self.awaited.clear();
    }

    /// The session has this past, too, from when it is visible here.
    pub(super) fn await_later(&mut self, protocol: &dyn Protocol, keyspace: KeyspaceId, context: Context) {
        let Some((_, awaited)) = self.awaited.iter_mut().find(|(of, _)| *of == keyspace) else {
            return self.awaited.push((keyspace, context));
        };
        awaited.time = awaited.time.max(context.time);
        if protocol.merge(&mut awaited.causes, &context.causes).is_err() {
            *awaited = context;
        }
    }

    /// What is to become the session's past in a keyspace when it is visible here.
    pub(super) fn awaited(&self, keyspace: KeyspaceId) -> Option<&Context> {
        self.awaited.iter().find(|(of, _)| *of == keyspace).map(|(_, context)| context)
    }

    /// A keyspace in which something is awaited.
    pub(super) fn first_awaited(&self) -> Option<KeyspaceId> {
        self.awaited.first().map(|(keyspace, _)| *keyspace)
    }

    /// It is visible here, or will never be.
    pub(super) fn end_awaiting(&mut self, keyspace: KeyspaceId) {
        self.awaited.retain(|(of, _)| *of != keyspace);
    }
}

pub(super) const KEYSPACE_OUT_OF_RANGE: Reply = Reply::error("ERR DB index is out of range");
