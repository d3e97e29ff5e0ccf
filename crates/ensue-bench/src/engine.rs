//! The three ways to control concurrency, on one storage: states and versions of `ensue-branch`.

mod branching;
mod locking;
mod optimistic;

use crate::load::Operation;
use bytes::Bytes;
use ensue_branch::{Branches, Collection, Committed, Constraint, Key, Options, StateId, Term};
use ensue_types::DatacenterId;

/// How conflicts are dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// A conflict forks; a merger joins the leaves again and again.
    Branching,
    /// The same code without branching: a conflict aborts.
    Sequential,
    /// Two-phase locking; a client whose wait would close a circle aborts.
    Locking,
    /// Validation against what has committed since (Kung and Robinson).
    Optimistic,
}

impl Control {
    pub const ALL: [Control; 4] =
        [Control::Branching, Control::Sequential, Control::Locking, Control::Optimistic];

    pub fn name(self) -> &'static str {
        match self {
            Control::Branching => "branching",
            Control::Sequential => "no branching",
            Control::Locking => "locking",
            Control::Optimistic => "optimistic",
        }
    }
}

/// What became of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Done,
    /// It goes on when `woken` says so.
    Waits,
    /// The transaction is over and begins again.
    Aborted,
}

/// A client, by its number.
pub type Client = usize;

pub trait Engine {
    fn step(&mut self, client: Client, operation: Operation) -> Step;

    /// Operations that had to wait, and what became of them.
    fn woken(&mut self) -> Vec<(Client, Step)> {
        Vec::new()
    }

    /// The next step of merging, of which each is a round trip. Says whether that was a merge's last.
    fn merge_step(&mut self) -> bool {
        false
    }

    fn store(&self) -> &Branches;
}

/// What an engine is made with.
#[derive(Clone, Debug)]
pub struct Setting {
    pub control: Control,
    pub clients: usize,
    pub keys: u32,
    pub leaves_max: usize,
    /// Commits of a client between two of its ceilings; 0 places none, so that nothing is collected.
    pub ceiling_every: u64,
    /// Of branches: by what transactions begin and end.
    pub terms: Terms,
}

/// Constraints in place of `ANCESTOR` and `SERIALIZABILITY`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// `PARENT`: a client goes on from its own last commit, and nothing is merged.
    pub parent: bool,
    /// `SNAPSHOT-ISOLATION`.
    pub snapshot: bool,
}

pub fn new(setting: &Setting) -> Box<dyn Engine> {
    match setting.control {
        Control::Branching | Control::Sequential => Box::new(branching::Branching::new(setting)),
        Control::Locking => Box::new(locking::Locking::new(setting)),
        Control::Optimistic => Box::new(optimistic::Optimistic::new(setting)),
    }
}

/// Bytes of a value.
const VALUE: [u8; 100] = [b'v'; 100];

fn key_of(number: u32) -> Key {
    Bytes::copy_from_slice(&number.to_le_bytes())
}

fn value() -> Bytes {
    Bytes::from_static(&VALUE)
}

/// A store with a value for every key.
fn filled(setting: &Setting, leaves_max: usize) -> (Branches, StateId) {
    let options = Options { collection: Collection::Pessimistic, states_max: usize::MAX, leaves_max };
    let mut store = Branches::new(DatacenterId(0), [DatacenterId(0)], options);
    let writes: Vec<Key> = (0..setting.keys).map(key_of).collect();
    let state = write_in_order(&mut store, &writes);
    (store, state)
}

/// Commits below the one leaf, as a store without branches does once nothing is in the way.
fn write_in_order(store: &mut Branches, writes: &[Key]) -> StateId {
    let any = Constraint::of(Term::Any);
    let transaction = store.begin(&[], &any).expect("the leaf satisfies ANY");
    for key in writes {
        store.put(transaction, key.clone(), Some(value())).expect("just begun");
    }
    match store.commit(transaction, &any).expect("the leaf satisfies ANY") {
        Committed::New(commit) => commit.id,
        Committed::Known(id) => id,
        Committed::Nothing(at) => at[0],
    }
}

/// Places ceilings for clients, and collects after a thousand commits of all of them together.
#[derive(Clone, Debug)]
struct Forgetting {
    every: u64,
    commits_of: Vec<u64>,
    commits: u64,
}

const COLLECT_EVERY: u64 = 1_000;

impl Forgetting {
    fn new(setting: &Setting) -> Forgetting {
        // Clients of a real load do not begin all at once, so their ceilings do not come all at once.
        let clients = setting.clients as u64;
        let commits_of = (0..clients).map(|client| setting.ceiling_every * client / clients).collect();
        Forgetting { every: setting.ceiling_every, commits_of, commits: 0 }
    }

    fn committed(&mut self, store: &mut Branches, client: Client, state: StateId) {
        self.commits += 1;
        self.commits_of[client] += 1;
        if self.every > 0 && self.commits_of[client] % self.every == 0 {
            // A state that was collected meanwhile needs no ceiling.
            store.place_ceilings(&[state]).ok();
        }
        if self.commits % COLLECT_EVERY == 0 {
            store.take_ceilings();
            store.collect(|_| true);
        }
    }
}
