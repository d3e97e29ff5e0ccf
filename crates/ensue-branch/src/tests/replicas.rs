//! Several sites with random transactions, merges, deliveries, ceilings, collections and restarts, against a store that
//! keeps every state whole. After every step, whatever a site still has must be what the definitions say.

use super::reference::{Reference, Wanted};
use crate::{
    Abort, Branches, Collection, Committed, Constraint, Key, Mode, Note, Offered, Options, StateId, Tag,
    Term, TransactionId, Value,
};
use bytes::Bytes;
use ensue_types::{DatacenterId, Position};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const SITES: usize = 3;
const KEYS: [&str; 4] = ["a", "b", "c", "d"];
const BEGINS: [&str; 6] =
    ["ANY", "ANCESTOR", "PARENT", "ANCESTOR AND NO-BRANCHING", "STATE", "K-BRANCHING 3"];
const ENDS: [&str; 8] = [
    "SERIALIZABILITY",
    "SERIALIZABILITY",
    "SNAPSHOT-ISOLATION",
    "ANY",
    "SERIALIZABILITY AND NO-BRANCHING",
    "SNAPSHOT-ISOLATION AND K-BRANCHING 3 OR PARENT",
    "NO-BRANCHING",
    "ANCESTOR",
];

/// Something that happens at a site. Numbers choose among what there is.
#[derive(Clone, Debug)]
enum Event {
    Begin {
        constraint: usize,
        state: usize,
    },
    Merge,
    /// Of two leaves only.
    Join {
        leaves: [usize; 2],
    },
    /// Begins, reads a key and writes another.
    Run {
        constraint: usize,
        state: usize,
        keys: [usize; 2],
    },
    Read {
        transaction: usize,
        key: usize,
    },
    Write {
        transaction: usize,
        key: usize,
        deletes: bool,
    },
    Commit {
        transaction: usize,
        constraint: usize,
    },
    Abort {
        transaction: usize,
    },
    Deliver {
        from: usize,
        count: usize,
    },
    Ceiling {
        state: usize,
    },
    Collect,
    /// Everything is told, all ceilings are placed on all leaves, and all collect.
    GiveUp,
    Restart,
    Ask {
        states: [usize; 3],
    },
}

fn event() -> impl Strategy<Value = (usize, Event)> {
    let any = || 0..64_usize;
    let what = prop_oneof![
        5 => (any(), any()).prop_map(|(constraint, state)| Event::Begin { constraint, state }),
        2 => Just(Event::Merge),
        2 => [any(), any()].prop_map(|leaves| Event::Join { leaves }),
        4 => (any(), any()).prop_map(|(transaction, key)| Event::Read { transaction, key }),
        6 => (any(), any(), proptest::bool::weighted(0.15))
            .prop_map(|(transaction, key, deletes)| Event::Write { transaction, key, deletes }),
        6 => (any(), any()).prop_map(|(transaction, constraint)| Event::Commit { transaction, constraint }),
        1 => any().prop_map(|transaction| Event::Abort { transaction }),
        8 => (any(), 1..6_usize).prop_map(|(from, count)| Event::Deliver { from, count }),
        2 => any().prop_map(|state| Event::Ceiling { state }),
        3 => Just(Event::Collect),
        1 => Just(Event::GiveUp),
        1 => Just(Event::Restart),
        2 => [any(), any(), any()].prop_map(|states| Event::Ask { states }),
    ];
    (0..SITES, what)
}

/// What takes many steps of one site, and is rarely drawn where each is of any: transactions that run while others
/// commit and merge, and while what is old is given up.
fn event_of_one() -> impl Strategy<Value = Event> {
    let any = || 0..64_usize;
    prop_oneof![
        6 => (any(), any(), [any(), any()])
            .prop_map(|(constraint, state, keys)| Event::Run { constraint, state, keys }),
        6 => any().prop_map(|transaction| Event::Commit { transaction, constraint: 0 }),
        3 => [any(), any()].prop_map(|leaves| Event::Join { leaves }),
        1 => Just(Event::Merge),
        1 => Just(Event::GiveUp),
    ]
}

/// A transaction of the model.
#[derive(Clone, Debug)]
struct Open {
    id: TransactionId,
    anchor: StateId,
    reads: Vec<StateId>,
    read: BTreeSet<Key>,
    written: BTreeMap<Key, Value>,
}

struct Site {
    branches: Branches,
    /// What has been put in its place, by the states' names.
    here: BTreeSet<StateId>,
    open: Vec<Open>,
    anchor: StateId,
    /// Its own stream, and how much of each other's it was told.
    stream: Vec<Bytes>,
    told: [usize; SITES],
    /// What of each stream is in its place.
    applied: [BTreeSet<Position>; SITES],
    /// Its own ceilings.
    ceilings: BTreeSet<StateId>,
    has_collected: bool,
}

struct World {
    sites: Vec<Site>,
    reference: Reference,
    collection: Collection,
    values: u64,
}

fn site(number: usize, collection: Collection) -> Branches {
    let sites = (0..SITES as u8).map(DatacenterId);
    let options = Options { collection, states_max: 10_000, leaves_max: 1_000 };
    Branches::new(DatacenterId(number as u8), sites, options)
}

fn constraint(text: &str) -> Constraint {
    Constraint::parse(text.split(' ').map(str::as_bytes)).unwrap()
}

fn key(choice: usize) -> Key {
    Key::from_static(KEYS[choice % KEYS.len()].as_bytes())
}

/// The highest of these states, in the order of the names that a site knows.
fn highest(order: &[StateId], states: &BTreeSet<StateId>) -> StateId {
    *order.iter().find(|id| states.contains(id)).expect("a commit needs a state")
}

impl World {
    fn new(collection: Collection) -> World {
        let site = |number| Site {
            branches: site(number, collection),
            here: BTreeSet::from([StateId::ROOT]),
            open: Vec::new(),
            anchor: StateId::ROOT,
            stream: Vec::new(),
            told: [0; SITES],
            applied: Default::default(),
            ceilings: BTreeSet::new(),
            has_collected: false,
        };
        World { sites: (0..SITES).map(site).collect(), reference: Reference::new(), collection, values: 0 }
    }

    fn happen(&mut self, at: usize, event: &Event) {
        match *event {
            Event::Begin { constraint, state } => self.begin(at, constraint, state),
            Event::Merge => self.merge(at, None),
            Event::Join { leaves } => self.merge(at, Some(leaves)),
            Event::Run { constraint, state, keys } => {
                let last = self.sites[at].open.len();
                self.begin(at, constraint, state);
                if self.sites[at].open.len() > last {
                    self.read(at, last, keys[0]);
                    self.write(at, last, keys[1], false);
                }
            }
            Event::Read { transaction, key } => self.read(at, transaction, key),
            Event::Write { transaction, key, deletes } => self.write(at, transaction, key, deletes),
            Event::Commit { transaction, constraint } => self.commit(at, transaction, constraint),
            Event::Abort { transaction } => {
                if let Some(open) = self.take(at, transaction) {
                    self.sites[at].branches.abort(open.id).unwrap();
                }
            }
            Event::Deliver { from, count } => self.deliver(from % SITES, at, count),
            Event::Ceiling { state } => self.place_ceiling(at, state),
            Event::Collect => self.collect(at),
            Event::GiveUp => self.give_up(),
            Event::Restart => self.restart(at),
            Event::Ask { states } => self.ask(at, states),
        }
        self.check(at);
    }

    fn live(&self, at: usize) -> Vec<StateId> {
        self.sites[at].branches.log(None).unwrap().map(|state| state.id).collect()
    }

    fn choose(&self, at: usize, choice: usize) -> StateId {
        let live = self.live(at);
        live[choice % live.len()]
    }

    /// The states that no ceiling of the site is below.
    fn may_begin(&self, at: usize, id: StateId) -> bool {
        let ceilings = &self.sites[at].ceilings;
        let name = self.reference.name(id);
        !ceilings
            .iter()
            .any(|ceiling| self.reference.name(*ceiling) != name && self.reference.is_before(name, *ceiling))
    }

    fn begin(&mut self, at: usize, choice: usize, state: usize) {
        let text = match BEGINS[choice % BEGINS.len()] {
            "STATE" => format!("STATE {}", self.choose(at, state)),
            text => text.to_owned(),
        };
        let wanted = constraint(&text);
        let anchor = self.sites[at].anchor;
        let live = self.live(at);
        let site = &self.sites[at];
        let fits = |id: &&StateId| {
            self.reference.begins(&wanted, **id, anchor, &site.here) && self.may_begin(at, **id)
        };
        let suitable: Vec<StateId> = live.iter().filter(fits).copied().collect();
        let expected = suitable.first().copied();
        let found = self.sites[at].branches.begin(&[anchor], &wanted);
        let is_live = live.iter().any(|id| self.reference.name(*id) == self.reference.name(anchor));
        match found {
            Ok(id) => {
                let reads = self.sites[at].branches.transaction(id).unwrap().1.to_vec();
                if is_live && !self.sites[at].has_collected {
                    // Which of several leaves it is goes by the merges before them; nothing suitable comes after it.
                    let read = reads[0];
                    let is_later =
                        |other: &&StateId| **other != read && self.reference.is_before(read, **other);
                    let later = suitable.iter().find(is_later);
                    assert!(suitable.contains(&read), "{text} of {anchor} at site {at}: {read}");
                    assert_eq!(later, None, "{text} of {anchor} at site {at}: {read}");
                } else {
                    assert!(suitable.contains(&reads[0]) || text.contains('K'));
                }
                self.opened(at, id, anchor, reads);
            }
            Err(Abort::NoReadState { .. }) => {
                assert!(expected.is_none() || self.sites[at].has_collected, "{text} at {expected:?}");
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn opened(&mut self, at: usize, id: TransactionId, anchor: StateId, reads: Vec<StateId>) {
        self.sites[at].open.push(Open { id, anchor, reads, read: BTreeSet::new(), written: BTreeMap::new() });
    }

    fn merge(&mut self, at: usize, chosen: Option<[usize; 2]>) {
        let anchor = self.sites[at].anchor;
        let mut leaves = self.sites[at].branches.leaves();
        let mut wanted = constraint("ANY");
        if let Some(chosen) = chosen {
            let chosen: BTreeSet<StateId> =
                chosen.iter().map(|choice| leaves[choice % leaves.len()]).collect();
            leaves = chosen.into_iter().rev().collect();
            wanted = Constraint::of(Term::State(leaves.clone()));
        }
        match self.sites[at].branches.begin_merge(&[anchor], &wanted) {
            Ok(id) => {
                let (mode, reads) = self.sites[at].branches.transaction(id).unwrap();
                assert_eq!((mode, reads), (Mode::Merge, &leaves[..]));
                let reads = reads.to_vec();
                self.opened(at, id, anchor, reads);
            }
            Err(Abort::NothingToMerge { found, .. }) => assert_eq!((found, leaves.len()), (1, 1)),
            Err(other) => panic!("{other}"),
        }
    }

    fn read(&mut self, at: usize, transaction: usize, choice: usize) {
        let site = &mut self.sites[at];
        let count = site.open.len();
        let Some(open) = transaction.checked_rem(count).and_then(|index| site.open.get_mut(index)) else {
            return;
        };
        let key = key(choice);
        let found = site.branches.get(open.id, &key, true).unwrap();
        let expected = match open.written.get(&key) {
            Some(value) => value.clone(),
            None => self.reference.value(&open.reads, &key),
        };
        assert_eq!(found, expected, "{key:?} at {:?} of site {at}", open.reads);
        open.read.insert(key);
    }

    fn write(&mut self, at: usize, transaction: usize, choice: usize, deletes: bool) {
        self.values += 1;
        // Merges write what follows from their states, so that others may make an equal one.
        let site = &mut self.sites[at];
        let count = site.open.len();
        let Some(open) = transaction.checked_rem(count).and_then(|index| site.open.get_mut(index)) else {
            return;
        };
        let text = if open.reads.len() > 1 { format!("{:?}", open.reads) } else { self.values.to_string() };
        let value = (!deletes).then(|| Bytes::from(text));
        site.branches.put(open.id, key(choice), value.clone()).unwrap();
        open.written.insert(key(choice), value);
    }

    fn take(&mut self, at: usize, transaction: usize) -> Option<Open> {
        let open = &mut self.sites[at].open;
        let index = transaction.checked_rem(open.len())?;
        Some(open.remove(index))
    }

    fn commit(&mut self, at: usize, transaction: usize, choice: usize) {
        let Some(open) = self.take(at, transaction) else { return };
        let end = constraint(ENDS[choice % ENDS.len()]);
        let order: Vec<StateId> = self.live(at).into_iter().map(|id| self.reference.name(id)).collect();
        let live: BTreeSet<StateId> = order.iter().copied().collect();
        let committed = self.sites[at].branches.commit(open.id, &end);
        if open.written.is_empty() && open.reads.len() == 1 {
            // An equal merge may have come meanwhile, and its name be the lower one.
            let Ok(Committed::Nothing(reads)) = committed else { panic!("{committed:?}") };
            let name = |read: &StateId| self.reference.name(*read);
            assert!(reads.iter().map(name).eq(open.reads.iter().map(name)), "{reads:?} for {:?}", open.reads);
            if let [read] = open.reads[..] {
                self.sites[at].anchor = read;
            }
            return;
        }
        let wanted = Wanted {
            reads: open.reads.clone(),
            read: &open.read,
            written: open.written.keys().cloned().collect(),
            end: &end,
            anchor: open.anchor,
        };
        let here = &self.sites[at].here;
        // One branch of a merge after the other: each minds how far those before it have gone on.
        let mut branches = open.reads.clone();
        let mut ends: Vec<BTreeSet<StateId>> = Vec::new();
        for (place, read) in open.reads.iter().enumerate() {
            let found = self.reference.ends(&wanted, &branches, *read, here);
            let found: BTreeSet<StateId> = found.intersection(&live).copied().collect();
            if !found.is_empty() {
                branches[place] = highest(&order, &found);
            }
            ends.push(found);
        }
        // Which children a collected state had is not for this reference; nor is an anchor that is gone. What was
        // written since is, unless a state came late: it counts as having written all that it brought.
        let is_of_writes =
            ["SERIALIZABILITY", "SNAPSHOT-ISOLATION", "ANY"].contains(&ENDS[choice % ENDS.len()]);
        let is_plain =
            !self.sites[at].has_collected || is_of_writes && self.collection == Collection::Pessimistic;
        match committed {
            Ok(Committed::New(commit)) => {
                if is_plain {
                    let highest: Vec<StateId> = ends.iter().map(|ends| highest(&order, ends)).collect();
                    let expected = self.reference.newest(&highest);
                    let found: BTreeSet<StateId> =
                        commit.parents.iter().map(|id| self.reference.name(*id)).collect();
                    assert_eq!(found, expected, "{end} of {:?} at site {at}", open.reads);
                }
                let written: BTreeMap<Key, Value> =
                    commit.writes.iter().map(|write| (write.key.clone(), write.value.clone())).collect();
                assert_eq!(written, open.written);
                assert!(commit.parents.iter().all(|parent| *parent < commit.id));
                self.reference.add(&commit);
                let site = &mut self.sites[at];
                site.here.insert(commit.id);
                site.anchor = commit.id;
                let tag = (DatacenterId(at as u8), Position(site.stream.len() as u64 + 1));
                site.branches.note_tag(commit.id, tag);
                site.stream.push(Note::Commit(commit).encode());
                self.rename();
            }
            Ok(Committed::Known(id)) => {
                assert_eq!(self.reference.made(id).writes, open.written);
                self.sites[at].anchor = id;
            }
            Err(Abort::NoCommitState { .. }) => {
                assert!(!is_plain || ends.iter().any(BTreeSet::is_empty), "{end} at {ends:?}");
            }
            other => panic!("{other:?}"),
        }
    }

    /// Names of equal merges may have changed.
    fn rename(&mut self) {
        for site in &mut self.sites {
            site.here = site.here.iter().map(|id| self.reference.name(*id)).collect();
        }
    }

    fn deliver(&mut self, from: usize, to: usize, count: usize) {
        for _ in 0..count {
            let position = self.sites[to].told[from];
            let Some(note) = self.sites[from].stream.get(position).cloned() else { return };
            if from == to {
                return;
            }
            self.sites[to].told[from] += 1;
            let tag = (DatacenterId(from as u8), Position(position as u64 + 1));
            match Note::decode(note).unwrap() {
                Note::Ceiling(state) => self.sites[to].branches.offer_ceiling(tag.0, state),
                Note::Commit(commit) => {
                    let offered = self.sites[to].branches.offer(tag, commit);
                    self.applied(to, offered);
                }
            }
        }
    }

    /// What came below collected states is asked for from its origin, which has it until everybody has.
    fn applied(&mut self, to: usize, offered: Offered) {
        let mut late: VecDeque<StateId> = offered.late.into();
        self.note(to, &offered.applied);
        while let Some(id) = late.pop_front() {
            assert_eq!(self.collection, Collection::Optimistic, "{id} came late to site {to}");
            let theirs = self.live(to);
            let origin = usize::from(id.site().0);
            let Some(rebuilt) = self.sites[origin].branches.rebuild(id, &theirs) else {
                panic!("site {origin} does not know its own {id}")
            };
            let bytes = rebuilt.encode();
            let rebuilt = crate::Rebuilt::decode(bytes).unwrap();
            let offered = self.sites[to].branches.accept(&rebuilt);
            assert!(!offered.applied.is_empty(), "{id} was sent to site {to} and is not there");
            self.note(to, &offered.applied);
            late.extend(offered.late);
        }
    }

    fn note(&mut self, to: usize, applied: &[(DatacenterId, Position)]) {
        for (site, position) in applied {
            self.sites[to].applied[usize::from(site.0)].insert(*position);
            let note = self.sites[usize::from(site.0)].stream[position.0 as usize - 1].clone();
            if let Ok(Note::Commit(commit)) = Note::decode(note) {
                let name = self.reference.name(commit.id);
                self.sites[to].here.insert(name);
            }
        }
    }

    fn place_ceiling(&mut self, at: usize, choice: usize) {
        let state = self.choose(at, choice);
        self.sites[at].branches.place_ceilings(&[state]).unwrap();
        self.sites[at].ceilings.insert(state);
        self.tell_ceilings(at);
    }

    fn tell_ceilings(&mut self, at: usize) {
        let site = &mut self.sites[at];
        for ceiling in site.branches.take_ceilings() {
            site.stream.push(Note::Ceiling(ceiling).encode());
        }
    }

    fn collect(&mut self, at: usize) {
        self.tell_ceilings(at);
        let lacks = |tag: Tag| {
            let others = self.sites.iter().enumerate().filter(|(number, _)| *number != usize::from(tag.0.0));
            others.into_iter().any(|(_, site)| !site.applied[usize::from(tag.0.0)].contains(&tag.1))
        };
        let of_stream = |(number, site): (usize, &Site)| {
            let tags = (1..=site.stream.len() as u64)
                .map(move |position| (DatacenterId(number as u8), Position(position)));
            tags.collect::<Vec<Tag>>()
        };
        let lacking: BTreeSet<Tag> =
            self.sites.iter().enumerate().flat_map(of_stream).filter(|tag| lacks(*tag)).collect();
        let site = &mut self.sites[at];
        site.has_collected |= site.branches.collect(|tag| !lacking.contains(&tag)) > 0;
        for open in &self.sites[at].open {
            for read in &open.reads {
                let name = self.reference.name(*read);
                let live = self.live(at);
                assert!(live.iter().any(|id| self.reference.name(*id) == name), "{read} is read");
            }
        }
    }

    /// Everything goes through bytes; what ran is gone, and so are ceilings that were not told.
    fn restart(&mut self, at: usize) {
        let mut fresh = site(at, self.collection);
        let old = &mut self.sites[at].branches;
        fresh.restore_dag(Bytes::from(old.encode_dag())).unwrap();
        let mut from = 0;
        loop {
            let mut items = Vec::new();
            let next = old.encode_keys(from, 2, |item| items.push(Bytes::copy_from_slice(item)));
            items.into_iter().for_each(|item| fresh.restore_key(item).unwrap());
            match next {
                Some(next) => from = next,
                None => break,
            }
        }
        let site = &mut self.sites[at];
        assert_eq!(fresh.leaves(), site.branches.leaves());
        site.branches = fresh;
        site.open.clear();
    }

    fn ask(&mut self, at: usize, states: [usize; 3]) {
        let states: Vec<StateId> = states.iter().map(|choice| self.choose(at, *choice)).collect();
        let branches = &self.sites[at].branches;
        let conflicts: BTreeSet<Key> = branches.conflicts(&states).unwrap().into_iter().collect();
        let expected = self.reference.conflicts(&states);
        // What comes late for a collected state is sent whole, and where it forked is gone: then all that differs is
        // told.
        if self.collection == Collection::Optimistic && self.sites[at].has_collected {
            // What a merge that all see has decided since is none.
            let differ = |key: &&Key| {
                let value = |state| self.reference.value(&[state], key);
                states.iter().any(|state| value(*state) != value(states[0]))
            };
            assert!(
                expected.iter().filter(differ).all(|key| conflicts.contains(key)),
                "conflicts of {states:?} at site {at}"
            );
        } else {
            assert_eq!(conflicts, expected, "conflicts of {states:?} at site {at}");
        }
        self.ask_fork_points(at, &states);
        let [a, b] = [states[0], states[1]];
        let told = branches.difference(a, b).unwrap();
        let keys = KEYS.map(|name| Key::from_static(name.as_bytes()));
        let value = |state, key: &Key| self.reference.value(&[state], key);
        let differ = keys.into_iter().filter(|key| value(a, key) != value(b, key));
        let expected: Vec<_> = differ.map(|key| (key.clone(), value(a, &key), value(b, &key))).collect();
        assert_eq!(told, expected, "difference of {a} and {b}");
    }

    /// Each state that one of them sees counts once.
    fn ask_fork_points(&self, at: usize, states: &[StateId]) {
        let points = match self.sites[at].branches.fork_points(states) {
            Ok(points) => points,
            Err(Abort::Collected(_)) if self.collection == Collection::Optimistic => return,
            Err(other) => panic!("{other}"),
        };
        let newest = self.reference.newest(states);
        for id in self.reference.below(states) {
            let on = newest.iter().filter(|state| self.reference.is_before(id, **state)).count() as i64;
            let weights = points.iter().filter(|(point, _)| self.reference.is_before(id, *point));
            let weights: i64 = weights.map(|(_, weight)| weight).sum();
            assert_eq!(on + weights, 1, "{id} in fork points {points:?} of {states:?}");
        }
    }

    /// What a site has is what was made: who sees whom, what stands where, and which states are leaves.
    fn check(&self, at: usize) {
        let (site, reference) = (&self.sites[at], &self.reference);
        let live: Vec<StateId> = self.live(at);
        for state in &live {
            let seen: BTreeSet<StateId> =
                site.branches.log(Some(*state)).unwrap().map(|other| reference.name(other.id)).collect();
            let before = |other: &&StateId| reference.is_before(**other, *state);
            let expected: BTreeSet<StateId> =
                live.iter().filter(before).map(|other| reference.name(*other)).collect();
            assert_eq!(seen, expected, "what {state} sees at site {at}");
            for name in KEYS {
                let key = Key::from_static(name.as_bytes());
                let found = site.branches.value_at(&key, *state).unwrap();
                assert_eq!(found, reference.value(&[*state], &key), "{name} at {state} of site {at}");
            }
        }
        let leaves: BTreeSet<StateId> =
            site.branches.leaves().into_iter().map(|id| reference.name(id)).collect();
        let here: Vec<StateId> = site.here.iter().copied().collect();
        assert_eq!(leaves, reference.newest(&here), "leaves of site {at}");
        let metrics = site.branches.metrics();
        assert_eq!((metrics.leaves, metrics.states), (leaves.len(), live.len()));
        let waiting = site.branches.waiting.iter().map(|(_, commit)| commit);
        let late: Vec<StateId> =
            waiting.filter(|commit| site.branches.is_late(commit)).map(|commit| commit.id).collect();
        assert_eq!(site.branches.late(), late, "of what waits at site {at}");
    }

    fn deliver_all(&mut self) {
        for _ in 0..2 {
            for from in 0..SITES {
                self.tell_ceilings(from);
                for to in 0..SITES {
                    self.deliver(from, to, usize::MAX);
                }
            }
        }
        (0..SITES).for_each(|at| self.check(at));
    }

    fn digest(&self, at: usize, with_states: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.sites[at].branches.visit(with_states, |more| bytes.extend_from_slice(more));
        bytes
    }

    /// Everything arrives, and everyone gives up what nobody reads.
    fn give_up(&mut self) {
        self.deliver_all();
        for site in &mut self.sites {
            let leaves = site.branches.leaves();
            site.branches.place_ceilings(&leaves).unwrap();
            site.ceilings.extend(leaves);
        }
        self.deliver_all();
        for at in 0..SITES {
            self.collect(at);
            self.check(at);
        }
    }

    /// Everything arrives, everyone gives up what is old, and nothing of it is left.
    fn come_to_rest(&mut self) {
        for at in 0..SITES {
            self.sites[at].open.clear();
            self.restart(at);
        }
        self.deliver_all();
        for at in 1..SITES {
            assert_eq!(self.sites[at].branches.leaves(), self.sites[0].branches.leaves());
            assert_eq!(self.digest(at, false), self.digest(0, false));
            assert_eq!(self.sites[at].branches.metrics().waiting, 0);
        }
        self.give_up();
        for at in 1..SITES {
            assert_eq!(self.digest(at, false), self.digest(0, false));
            if self.collection == Collection::Pessimistic {
                assert_eq!(self.digest(at, true), self.digest(0, true));
            }
        }
        self.join_all();
    }
}

impl World {
    /// One merge joins everything, everybody gives up what was before it, and one state is left with one version a key.
    fn join_all(&mut self) {
        self.merge(0, None);
        self.write(0, 0, 0, false);
        self.commit(0, 0, 0);
        self.deliver_all();
        for at in 0..SITES {
            let leaves = self.sites[at].branches.leaves();
            assert_eq!(leaves.len(), 1);
            self.sites[at].branches.place_ceilings(&leaves).unwrap();
        }
        self.deliver_all();
        for at in 0..SITES {
            self.collect(at);
            self.check(at);
            let metrics = self.sites[at].branches.metrics();
            assert_eq!((metrics.states, metrics.records), (1, metrics.keys), "{metrics:?}");
        }
    }
}

fn run(collection: Collection, events: &[(usize, Event)]) {
    let mut world = World::new(collection);
    for (at, event) in events {
        world.happen(*at, event);
    }
    world.come_to_rest();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sites_that_collect_by_consent_are_what_the_definitions_say(events in vec(event(), 1..120)) {
        run(Collection::Pessimistic, &events);
    }

    #[test]
    fn a_site_that_runs_much_at_once_is_what_the_definitions_say(events in vec(event_of_one(), 20..80)) {
        let events: Vec<(usize, Event)> = events.into_iter().map(|event| (0, event)).collect();
        run(Collection::Pessimistic, &events);
    }

    #[test]
    fn sites_that_collect_on_their_own_are_what_the_definitions_say(events in vec(event(), 1..120)) {
        run(Collection::Optimistic, &events);
    }
}
