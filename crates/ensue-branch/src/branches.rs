//! A branching keyspace at one site: all that it holds, and all that can be asked of it.
//!
//! Local transactions begin, read, write and commit; commits and ceilings of other sites are offered as they arrive, in
//! the order of each site's stream. A commit is applied the moment it is returned: it is the caller's to log it and to
//! tell the other sites, before it answers anybody. Nothing is decided by time or chance, so the same calls make the
//! same states.

mod questions;

use crate::begin::Beginning;
use crate::ceiling::{Ceilings, Collection};
use crate::chain::Place;
use crate::collect::Collector;
use crate::commit::{Commit, Write, detached};
use crate::constraint::Constraint;
use crate::dag::{Dag, Found, State};
use crate::error::Abort;
use crate::id::StateId;
use crate::records::{Records, Version};
use crate::ripple::Ripple;
use crate::transaction::{Mode, Transaction};
use crate::waiting::Waiting;
use crate::{Key, Value};
use ensue_types::{DatacenterId, Incarnation, Position, Rule, limits};
use std::collections::{BTreeMap, BTreeSet};

/// A transaction that runs, by its number at this site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransactionId(pub u64);

/// Where a commit stands in the streams: its site's, and the place there.
pub type Tag = (DatacenterId, Position);

#[derive(Clone, Debug)]
pub struct Options {
    pub collection: Collection,
    /// States beyond which local transactions are refused.
    pub states_max: usize,
    /// Leaves beyond which no local transaction forks.
    pub leaves_max: usize,
}

/// Commits that may be on their way at once, of all sites together, far more than any log holds: a commit that is
/// named beyond would use up the
/// names of all that follow.
const COUNTER_AHEAD_MAX: u64 = 1 << 24;

/// What chains may list for each of the states that there may be; beyond, no local transaction makes one. Some twenty
/// are usual; but merges of the same two long branches beside each other list all of both anew, each of them.
const NODES_A_STATE_MAX: usize = 128;

/// What became of a transaction that did not abort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// It wrote nothing, and read at these states.
    Nothing(Vec<StateId>),
    /// An equal merge of the same states was here.
    Known(StateId),
    /// A new state, to be logged and told.
    New(Commit),
}

/// What an arrival led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offered {
    /// These are in their places now, in this order.
    pub applied: Vec<Tag>,
    /// These came below a state that is collected here: their origin must send them whole.
    pub late: Vec<StateId>,
    /// These came from a state that was lost everywhere, and are gone with it.
    pub discarded: Vec<StateId>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub collected: u64,
    pub commits: u64,
    pub merges: u64,
    pub aborts: u64,
    pub forks: u64,
}

/// Where an arrived commit goes.
enum Below {
    States(Vec<StateId>),
    /// It waits for these.
    Missing(Vec<StateId>),
    /// One was collected here.
    Collected,
    /// One was lost everywhere, or discarded.
    Lost,
}

/// Figures of a keyspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    pub states: usize,
    pub leaves: usize,
    pub chains: usize,
    pub keys: usize,
    /// Versions of keys.
    pub records: usize,
    /// Of records, of what says which state sees which, of commits that wait, and of what transactions that run have
    /// read and written.
    pub bytes: usize,
    pub waiting: usize,
    pub transactions: usize,
    /// Old names that are still told apart.
    pub promoted: usize,
    pub collected: u64,
    /// Of this site, since the start.
    pub commits: u64,
    pub merges: u64,
    pub aborts: u64,
    pub forks: u64,
}

/// A state as it is shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateView {
    pub id: StateId,
    pub parents: Vec<StateId>,
    pub writes: Vec<Key>,
    pub is_leaf: bool,
    pub is_fork: bool,
    pub is_merge: bool,
    pub is_ceiling: bool,
    pub is_above: bool,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Branches {
    pub(crate) site: DatacenterId,
    pub(crate) incarnation: Incarnation,
    /// All that take part, this one among them.
    pub(crate) sites: BTreeSet<DatacenterId>,
    pub(crate) options: Options,
    pub(crate) dag: Dag,
    pub(crate) records: Records,
    pub(crate) ceilings: Ceilings,
    pub(crate) waiting: Waiting,
    /// The highest counter that has ever been here, of any site.
    pub(crate) counter: u64,
    /// The highest counter of each life of a site that was offered.
    pub(crate) seen: BTreeMap<(DatacenterId, Incarnation), u64>,
    /// Of each site the first of its lives whose states may still come: what is not here of those before was lost
    /// everywhere.
    pub(crate) lives: BTreeMap<DatacenterId, Incarnation>,
    /// Commits that came from a lost state, or late and from a site that is dead.
    pub(crate) discarded: BTreeSet<StateId>,
    /// What was late when the DAG was last encoded, and when one was that is kept: that is so after a restart, too.
    pub(crate) late_encoded: BTreeSet<StateId>,
    pub(crate) late_kept: BTreeSet<StateId>,
    pub(crate) counts: Counts,
    /// States that have got another name since the DAG was last encoded, by it.
    pub(crate) renamed: BTreeMap<StateId, StateId>,
    transactions: BTreeMap<TransactionId, Transaction>,
    next_transaction: u64,
    /// What the transactions that run have read and will write.
    open_bytes: usize,
    /// A ceiling came, or what held states is over.
    may_collect: bool,
}

impl Branches {
    /// An empty keyspace.
    pub fn new(
        site: DatacenterId,
        sites: impl IntoIterator<Item = DatacenterId>,
        options: Options,
    ) -> Branches {
        Branches {
            site,
            incarnation: Incarnation(1),
            sites: sites.into_iter().chain([site]).collect(),
            options,
            dag: Dag::new(),
            records: Records::default(),
            ceilings: Ceilings::default(),
            waiting: Waiting::default(),
            counter: 0,
            seen: BTreeMap::new(),
            lives: BTreeMap::new(),
            discarded: BTreeSet::new(),
            late_encoded: BTreeSet::new(),
            late_kept: BTreeSet::new(),
            counts: Counts::default(),
            renamed: BTreeMap::new(),
            transactions: BTreeMap::new(),
            next_transaction: 0,
            open_bytes: 0,
            may_collect: false,
        }
    }

    /// The site lives in this incarnation from now on; its states carry it.
    pub fn begin_incarnation(&mut self, incarnation: Incarnation) {
        self.incarnation = incarnation;
    }

    // Transactions.

    /// Begins a transaction of a session that committed `anchors` last.
    pub fn begin(&mut self, anchors: &[StateId], constraint: &Constraint) -> Result<TransactionId, Abort> {
        let found = self.anchors(anchors)?;
        self.check_named(constraint)?;
        let beginning = Beginning { dag: &self.dag, ceilings: &self.ceilings, constraint, anchors: &found };
        let state = beginning.newest().ok_or_else(|| self.no_read_state(anchors, constraint))?;
        Ok(self.add(Mode::Single, anchors, vec![state]))
    }

    /// Begins one that joins branches.
    pub fn begin_merge(
        &mut self,
        anchors: &[StateId],
        constraint: &Constraint,
    ) -> Result<TransactionId, Abort> {
        let found = self.anchors(anchors)?;
        self.check_named(constraint)?;
        let beginning = Beginning { dag: &self.dag, ceilings: &self.ceilings, constraint, anchors: &found };
        let states = beginning.all_newest();
        if states.len() < 2 {
            return Err(Abort::NothingToMerge { constraint: constraint.clone(), found: states.len() });
        }
        if states.len() > usize::from(u16::MAX) {
            return Err(Abort::TooManyBranches(states.len()));
        }
        Ok(self.add(Mode::Merge, anchors, states))
    }

    fn no_read_state(&self, anchors: &[StateId], constraint: &Constraint) -> Abort {
        let anchors = if constraint.names_the_session() { anchors.to_vec() } else { Vec::new() };
        Abort::NoReadState { constraint: constraint.clone(), anchors }
    }

    fn add(&mut self, mode: Mode, anchors: &[StateId], at: Vec<StateId>) -> TransactionId {
        let id = TransactionId(self.next_transaction);
        self.next_transaction += 1;
        let transaction = Transaction {
            mode,
            anchors: anchors.to_vec(),
            at,
            read: BTreeSet::new(),
            read_bytes: 0,
            read_all: false,
            writes: BTreeMap::new(),
            bytes: 0,
        };
        self.transactions.insert(id, transaction);
        id
    }

    /// How it began: its mode, and its read states, highest first.
    pub fn transaction(&self, id: TransactionId) -> Option<(Mode, &[StateId])> {
        self.transactions.get(&id).map(|transaction| (transaction.mode, &transaction.at[..]))
    }

    /// Whether it would end without a state.
    pub fn writes_nothing(&self, id: TransactionId) -> bool {
        let is_nothing = |transaction: &Transaction| transaction.writes.is_empty();
        self.transactions.get(&id).is_none_or(|it| it.mode == Mode::Single && is_nothing(it))
    }

    /// Reads a key as the transaction sees it. It counts as read only if the caller says so.
    pub fn get(&mut self, id: TransactionId, key: &Key, is_read: bool) -> Result<Value, Abort> {
        if is_read {
            self.note_use(id, [key.clone()], BTreeMap::new())?;
        }
        let transaction = self.transactions.get(&id).ok_or(Abort::NoTransaction)?;
        if let Some(value) = transaction.writes.get(key) {
            return Ok(value.clone());
        }
        if let [state] = transaction.at[..] {
            return Ok(self.look(key, &[state]));
        }
        let at = &self.transactions[&id].at;
        Ok(self.look(key, at))
    }

    /// Reads every key, and counts them all as read: those there are, and those there are not. The keys come in the
    /// order of their hashes from the given one on; `each` says whether to go on.
    pub fn scan(
        &mut self,
        id: TransactionId,
        from: u32,
        mut each: impl FnMut(u32, &Key, &bytes::Bytes) -> bool,
    ) -> Result<(), Abort> {
        let transaction = self.transactions.get_mut(&id).ok_or(Abort::NoTransaction)?;
        transaction.read_all = true;
        transaction.read.clear();
        self.open_bytes -= std::mem::take(&mut transaction.read_bytes);
        let transaction = &self.transactions[&id];
        let mut own = Records::default();
        for (key, value) in &transaction.writes {
            own.insert(key, Version { id: StateId::ROOT, place: Place::default(), value: value.clone() });
        }
        let places = self.places(&transaction.at);
        let mut written = own.walk(from).peekable();
        let mut stored = self.records.walk(from).peekable();
        loop {
            let next_own = written.peek().map(|(hash, key, _)| (*hash, *key));
            let next_stored = stored.peek().map(|(hash, key, _)| (*hash, *key));
            let (hash, key, value) = match (next_own, next_stored) {
                (None, None) => return Ok(()),
                (Some(own), other) if other.is_none_or(|other| own <= other) => {
                    if Some(own) == other {
                        stored.next();
                    }
                    let (hash, key, versions) = written.next().expect("peeked");
                    (hash, key, versions[0].value.as_ref())
                }
                _ => {
                    let (hash, key, versions) = stored.next().expect("peeked");
                    let seen = |version: &&Version| {
                        places.iter().any(|place| self.dag.chains.sees(*place, version.place))
                    };
                    (hash, key, versions.iter().rev().find(seen).and_then(|version| version.value.as_ref()))
                }
            };
            if let Some(value) = value {
                if !each(hash, key, value) {
                    return Ok(());
                }
            }
        }
    }

    /// Buffers a write; nothing deletes.
    pub fn put(&mut self, id: TransactionId, key: Key, value: Value) -> Result<(), Abort> {
        self.put_all(id, BTreeMap::from([(key, value)]))
    }

    /// Buffers several writes, or none of them: what a state writes is one entry of a stream, and one that is longer
    /// than an entry may be would never reach another site.
    pub fn put_all(&mut self, id: TransactionId, writes: BTreeMap<Key, Value>) -> Result<(), Abort> {
        self.note_use(id, [], writes)
    }

    /// Buffers writes, and remembers that keys were read; or neither.
    pub fn note_use(
        &mut self,
        id: TransactionId,
        read: impl IntoIterator<Item = Key>,
        writes: BTreeMap<Key, Value>,
    ) -> Result<(), Abort> {
        let transaction = self.transactions.get_mut(&id).ok_or(Abort::NoTransaction)?;
        let read: BTreeSet<Key> = read.into_iter().collect();
        let (bytes, read_bytes) = (transaction.bytes_with(&writes), transaction.read_bytes_with(&read));
        if bytes > limits::ENTRY_BYTES_MAX {
            return Err(Abort::TooLong(bytes));
        }
        if read_bytes > limits::BRANCH_READ_BYTES_MAX {
            return Err(Abort::ReadsTooLong(read_bytes));
        }
        let writes = writes.iter().map(|(key, value)| (detached(key), value.as_ref().map(detached)));
        self.open_bytes -= transaction.open_bytes();
        if !transaction.read_all {
            let new = read.iter().filter(|key| !transaction.read.contains(*key));
            let new: Vec<Key> = new.map(detached).collect();
            transaction.read.extend(new);
        }
        transaction.writes.extend(writes);
        (transaction.bytes, transaction.read_bytes) = (bytes, read_bytes);
        self.open_bytes += transaction.open_bytes();
        Ok(())
    }

    pub fn abort(&mut self, id: TransactionId) -> Result<(), Abort> {
        self.end(id)?;
        self.counts.aborts += 1;
        Ok(())
    }

    fn end(&mut self, id: TransactionId) -> Result<Transaction, Abort> {
        let transaction = self.transactions.remove(&id).ok_or(Abort::NoTransaction)?;
        self.open_bytes -= transaction.open_bytes();
        self.may_collect = true;
        Ok(transaction)
    }

    /// Ends a transaction. Whatever the answer, it is over.
    pub fn commit(&mut self, id: TransactionId, end: &Constraint) -> Result<Committed, Abort> {
        let transaction = self.end(id)?;
        // A merge joins its branches though nothing is left to be written.
        if transaction.writes.is_empty() && transaction.mode == Mode::Single {
            return Ok(Committed::Nothing(transaction.at));
        }
        let committed = self.place_commit(transaction, end);
        match &committed {
            Ok(_) => self.counts.commits += 1,
            Err(_) => self.counts.aborts += 1,
        }
        committed
    }

    fn place_commit(&mut self, transaction: Transaction, end: &Constraint) -> Result<Committed, Abort> {
        let parents = self.commit_states(&transaction, end)?;
        let mode = transaction.mode;
        let writes = transaction.writes.into_iter().map(|(key, value)| Write { key, value }).collect();
        let commit = Commit { id: self.next_id(&parents)?, parents, writes };
        if let Some(equal) = self.equal_merge(&commit.parents, &commit.writes) {
            return Ok(Committed::Known(equal));
        }
        self.check_room(&commit)?;
        self.counts.merges += u64::from(mode == Mode::Merge);
        self.apply(&commit, commit.parents.clone());
        Ok(Committed::New(commit))
    }

    /// The states that a transaction commits below.
    fn commit_states(&self, transaction: &Transaction, end: &Constraint) -> Result<Vec<StateId>, Abort> {
        let anchors = self.anchors(&transaction.anchors)?;
        // Of each branch where it is committed below; each goes on past what none of the others, as far as they have
        // come, disagrees with.
        let mut parents = transaction.at.clone();
        for place in 0..parents.len() {
            let read = &transaction.at[place];
            let ripple = Ripple {
                dag: &self.dag,
                records: &self.records,
                branches: &parents,
                transaction,
                anchors: &anchors,
                end,
            };
            let no_state = || Abort::NoCommitState { constraint: end.clone(), read: transaction.at.clone() };
            let below = ripple.from(*read).ok_or_else(no_state)?;
            parents[place] = below;
        }
        Ok(self.dag.newest_of(parents))
    }

    fn next_id(&self, parents: &[StateId]) -> Result<StateId, Abort> {
        let highest = parents.iter().map(|parent| parent.counter()).max().unwrap_or(0);
        let above = if Rule::IdsAboveTheirParents.holds() { self.counter.max(highest) } else { highest };
        match above < StateId::COUNTER_MAX {
            true => Ok(StateId::new(above + 1, self.site, self.incarnation)),
            false => Err(Abort::Names),
        }
    }

    fn check_room(&self, commit: &Commit) -> Result<(), Abort> {
        // A merge of leaves is what makes room: its branches end, and ceilings above it let go of them. There are fewer
        // such merges than leaves.
        let joins = commit.parents.iter().filter(|parent| self.dag.leaves.contains(parent)).count() > 1;
        let is_crowded = self.dag.chains.nodes() > NODES_A_STATE_MAX.saturating_mul(self.options.states_max);
        if !joins && (is_crowded || self.dag.states.len() >= self.options.states_max) {
            return Err(Abort::States(self.dag.states.len()));
        }
        let forks = commit.parents.iter().all(|parent| !self.dag.leaves.contains(parent));
        if forks && self.dag.leaves.len() >= self.options.leaves_max {
            return Err(Abort::Leaves(self.dag.leaves.len()));
        }
        Ok(())
    }

    // What comes from other sites, and comes back after a restart.

    /// Whether a commit of another site could be named so: a site goes on from the highest name that it knows, and
    /// cannot be ahead of all
    /// that is known here by more than what is on its way.
    pub fn may_follow(&self, commit: &Commit) -> bool {
        commit.id.counter() <= self.counter.saturating_add(COUNTER_AHEAD_MAX)
    }

    /// A commit that was made elsewhere, or here before a restart. One that is here already changes nothing.
    pub fn offer(&mut self, tag: Tag, commit: Commit) -> Offered {
        let mut offered = Offered::default();
        if self.is_here(commit.id) {
            offered.applied.push(tag);
        } else {
            let id = commit.id;
            self.note_seen(id);
            self.waiting.add(tag, commit.detached(), &[]);
            self.put_in(vec![id], &mut offered);
        }
        offered
    }

    /// Puts commits that wait in their places, and those that wait for them. Until its turn each counts as waiting: it
    /// would else be taken for one that was here and is collected.
    pub(crate) fn put_in(&mut self, mut open: Vec<StateId>, offered: &mut Offered) {
        while let Some(id) = open.pop() {
            let Some((tag, commit)) = self.waiting.remove(id) else { continue };
            match self.parents_of(&commit) {
                Below::States(parents) => self.apply(&commit, parents),
                Below::Missing(missing) => {
                    self.waiting.add(tag, commit, &missing);
                    continue;
                }
                Below::Collected => {
                    let Some(equal) = self.equal_to_late(&commit) else {
                        offered.late.push(commit.id);
                        self.waiting.add_late(tag, commit);
                        continue;
                    };
                    self.make_one(equal, commit.id);
                }
                Below::Lost => {
                    self.discarded.insert(id);
                    offered.discarded.push(id);
                }
            }
            self.note_tag(commit.id, tag);
            offered.applied.push(tag);
            open.extend(self.waiting.take_up(commit.id).into_iter().rev());
        }
    }

    /// The states that an arrived commit goes below.
    fn parents_of(&self, commit: &Commit) -> Below {
        let mut parents = Vec::new();
        let mut missing = Vec::new();
        let mut late = false;
        if commit.parents.iter().any(|parent| self.is_lost(*parent)) {
            return Below::Lost;
        }
        for parent in &commit.parents {
            match self.find(*parent) {
                Found::Live(state) => parents.push(state),
                Found::Collected(taker) if !Rule::TheCollectedAreNoParents.holds() => parents.push(taker),
                Found::Collected(_) => late = true,
                Found::Unknown if !Rule::CommitsWaitForTheirParents.holds() => {
                    parents.push(*self.dag.leaves.last().expect("there is always a leaf"));
                }
                Found::Unknown => missing.push(*parent),
            }
        }
        match (missing.is_empty(), late) {
            (true, false) => Below::States(parents),
            (true, true) => Below::Collected,
            (false, _) => Below::Missing(missing),
        }
    }

    /// A site goes on in this life without what it lost at the end of the one before: what is not here of that is
    /// nowhere, and whatever came from it is discarded, by every site alike. Its commit was acknowledged and not
    /// durable: section 6.5 discards what is after such a one.
    pub fn lose_before(&mut self, site: DatacenterId, life: Incarnation) -> Offered {
        let mut offered = Offered::default();
        let known = self.lives.entry(site).or_default();
        if life > *known {
            *known = life;
            let waiting: Vec<StateId> = self.waiting.iter().map(|(_, commit)| commit.id).rev().collect();
            self.put_in(waiting, &mut offered);
        }
        offered
    }

    fn is_lost(&self, id: StateId) -> bool {
        let is_over = || self.lives.get(&id.site()).is_some_and(|life| id.incarnation() < *life);
        let never_came = || self.find(id) == Found::Unknown && !self.waiting.contains(id);
        self.discarded.contains(&id) || Rule::WhatCameFromTheLostGoes.holds() && is_over() && never_came()
    }

    /// Where the commit of a state stands in its site's stream.
    pub fn note_tag(&mut self, id: StateId, tag: Tag) {
        let Found::Live(id) = self.find(id) else { return };
        let state = self.dag.states.get_mut(&id).expect("just found");
        if !state.tags.contains(&tag) {
            state.tags.push(tag);
        }
    }

    /// Where the commit of a live state stands.
    pub fn tag(&self, id: StateId) -> Option<Tag> {
        let state = self.dag.states.get(&self.live(id).ok()?)?;
        state.tags.iter().find(|(site, _)| *site == id.site()).copied()
    }

    /// The newest of a session's anchors, by the names that the session has for them: those that no other of them comes
    /// from, and those that are not here.
    ///
    /// A name is kept when the state was taken over. Only a transaction that begins there moves a session to the
    /// taker-over: else it would be told of a place that another datacenter, which still keeps the state, knows nothing
    /// of. Nor is anything dropped for a name whose state was taken over: what its taker-over comes from, it may not
    /// come from itself.
    pub fn newest_anchors(&self, anchors: &[StateId]) -> Vec<StateId> {
        if let [only] = anchors {
            return vec![*only];
        }
        let (live, rest): (Vec<_>, Vec<_>) =
            anchors.iter().partition(|anchor| matches!(self.anchor(**anchor), Found::Live(_)));
        let live = self.dag.newest_of(live);
        let is_behind = |anchor: &StateId| match self.anchor(*anchor) {
            Found::Live(state) | Found::Collected(state) => {
                live.iter().any(|newer| self.dag.sees(*newer, state))
            }
            Found::Unknown => false,
        };
        let rest: BTreeSet<StateId> = rest.into_iter().filter(|anchor| !is_behind(anchor)).collect();
        live.iter().copied().chain(rest.into_iter().rev()).collect()
    }

    /// A ceiling of another site, or one of this site that comes back after a restart.
    pub fn offer_ceiling(&mut self, site: DatacenterId, state: StateId) {
        match self.find(state) {
            Found::Live(state) if site == self.site => self.ceilings.place_own(&self.dag, site, state),
            Found::Live(state) => self.ceilings.place(site, state),
            Found::Unknown => self.ceilings.place(site, state),
            Found::Collected(_) => {}
        }
        self.may_collect = true;
    }

    fn apply(&mut self, commit: &Commit, parents: Vec<StateId>) {
        self.note_seen(commit.id);
        // Ceilings may have been here before it, and what it waited for was held.
        self.may_collect = true;
        if let Some(equal) = self.equal_merge(&parents, &commit.writes) {
            return self.make_one(equal, commit.id);
        }
        let id = commit.id;
        let parents = self.dag.newest_of(parents);
        self.counts.forks += u64::from(parents.iter().any(|parent| !self.dag.leaves.contains(parent)));
        let keys: Vec<Key> = commit.writes.iter().map(|write| self.records.own(&write.key)).collect();
        self.dag.insert(id, parents, keys.clone());
        self.note_joined(commit);
        self.ceilings.note_state(&self.dag, self.site, id);
        let place = self.dag.place(id);
        for (key, write) in keys.iter().zip(&commit.writes) {
            self.records.insert(key, Version { id, place, value: write.value.clone() });
        }
    }

    /// A merge that is here, of the same states with the same writes (trap 11).
    fn equal_merge(&self, parents: &[StateId], writes: &[Write]) -> Option<StateId> {
        if parents.len() < 2 || !Rule::EqualMergesAreOne.holds() {
            return None;
        }
        let mut parents = parents.to_vec();
        parents.sort_unstable_by(|a, b| b.cmp(a));
        let children = &self.dag.states[&parents[0]].children;
        let is_equal = |id: &StateId| {
            let state = &self.dag.states[id];
            let wrote = |write: &Write| {
                let versions = self.records.versions(&write.key);
                versions.iter().any(|version| version.id == *id && version.value == write.value)
            };
            state.parents == parents && state.writes.len() == writes.len() && writes.iter().all(wrote)
        };
        children.iter().copied().find(is_equal)
    }

    pub(crate) fn note_joined(&mut self, commit: &Commit) {
        if commit.parents.len() > 1 {
            let state = self.dag.states.get_mut(&commit.id).expect("a caller has put it in");
            state.joined = commit.parents.clone();
        }
    }

    /// Two merges are one state: it has the lower of their names, which is below those of all that came from either.
    pub(crate) fn make_one(&mut self, here: StateId, other: StateId) {
        if other > here {
            self.dag.aliases.insert(other, here);
            return;
        }
        let keys = self.dag.states[&here].writes.clone();
        self.dag.rename(here, other);
        let first = self.renamed.remove(&here).unwrap_or(here);
        self.renamed.insert(other, first);
        self.ceilings.rename(here, other);
        for key in &keys {
            self.records.change(key, |versions| {
                for version in versions.iter_mut().filter(|version| version.id == here) {
                    version.id = other;
                }
            });
        }
        for transaction in self.transactions.values_mut() {
            for at in transaction.at.iter_mut().filter(|at| **at == here) {
                *at = other;
            }
        }
    }

    fn note_seen(&mut self, id: StateId) {
        self.counter = self.counter.max(id.counter());
        let highest = self.seen.entry((id.site(), id.incarnation())).or_default();
        *highest = (*highest).max(id.counter());
    }

    /// Whether a state of this name is, or was, in the DAG.
    fn is_here(&self, id: StateId) -> bool {
        self.find(id) != Found::Unknown
    }

    /// What a session goes on from. A state that was lost everywhere will never come: what it came from is all that is
    /// left of it.
    fn anchor(&self, id: StateId) -> Found {
        match self.find(id) {
            Found::Unknown if self.is_lost(id) => Found::Collected(self.dag.base),
            found => found,
        }
    }

    pub(crate) fn find(&self, id: StateId) -> Found {
        self.dag.find(id, had_its_turn(&self.seen, id) && !self.waiting.contains(id))
    }

    // Forgetting.

    /// Places ceilings of this site: no transaction of it begins above these states from now on.
    pub fn place_ceilings(&mut self, states: &[StateId]) -> Result<(), Abort> {
        for state in self.live_all(states)? {
            self.ceilings.place_own(&self.dag, self.site, state);
            self.ceilings.tell_later(state);
        }
        self.may_collect = true;
        Ok(())
    }

    /// Ceilings of this site that the others are to be told now.
    pub fn take_ceilings(&mut self) -> Vec<StateId> {
        if !self.ceilings.has_untold() {
            return Vec::new();
        }
        let reads = match Rule::CeilingsWaitForReaders.holds() {
            true => {
                self.transactions.values().flat_map(|transaction| transaction.at.iter().copied()).collect()
            }
            false => BTreeSet::new(),
        };
        self.ceilings.take_told(&self.dag, &reads)
    }

    /// A site that takes part no more: nobody waits for its ceilings.
    pub fn forget_site(&mut self, site: DatacenterId) {
        if self.sites.remove(&site) {
            self.ceilings.forget_site(site);
            self.may_collect = true;
        }
    }

    /// Collects what nobody can need any more, if anything has changed since the last time; says how many states that
    /// were.
    ///
    /// `is_globally_stable` says of a commit whether every site has it for good. It is asked only where this site
    /// decides alone: what another may still come late for is kept. While something is late here, nothing goes: the
    /// answer is about the states that were here when it was asked for.
    pub fn collect(&mut self, is_globally_stable: impl Fn(Tag) -> bool) -> usize {
        let decides_alone = self.options.collection == Collection::Optimistic;
        if !(self.may_collect || decides_alone) || !self.waiting.late().is_empty() {
            return 0;
        }
        self.may_collect = false;
        let mut held: BTreeSet<StateId> =
            self.transactions.values().flat_map(|transaction| transaction.at.iter().copied()).collect();
        held.extend(self.waiting.parents().filter_map(|parent| self.live(parent).ok()));
        if decides_alone && Rule::KeepWhatOthersLack.holds() {
            let lacks =
                |(_, state): &(&StateId, &State)| !state.tags.iter().all(|tag| is_globally_stable(*tag));
            held.extend(self.dag.states.iter().filter(lacks).map(|(id, _)| *id));
        }
        let mut collector = Collector {
            dag: &mut self.dag,
            records: &mut self.records,
            ceilings: &self.ceilings,
            held: &held,
            site: self.site,
            sites: &self.sites,
            collection: self.options.collection,
        };
        let collected = collector.collect();
        if collected > 0 {
            let (dag, seen, waiting) = (&self.dag, &self.seen, &self.waiting);
            self.ceilings.tidy(dag, |id| had_its_turn(seen, id) && !waiting.contains(id));
            self.forget_names();
        }
        self.counts.collected += collected as u64;
        collected
    }

    /// Names of what the base took over need not be remembered once their turn in the stream has been: an old name that
    /// nobody knows stands for the base. What was sent whole before its turn comes once more.
    fn forget_names(&mut self) {
        let sources = self.dag.states.values().filter(|state| state.parents.is_empty()).count();
        if sources == 1 {
            let (base, seen) = (self.dag.base, &self.seen);
            self.dag.promoted.retain(|name, taker| *taker != base || !had_its_turn(seen, *name));
        }
    }
}

/// Whether a state of this name was offered, by how far its site's stream has come.
fn had_its_turn(seen: &BTreeMap<(DatacenterId, Incarnation), u64>, id: StateId) -> bool {
    seen.get(&(id.site(), id.incarnation())).is_some_and(|highest| id.counter() <= *highest)
        || id == StateId::ROOT
}
