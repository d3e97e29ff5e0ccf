//! The reference store: every state that anybody was told of, whole, with its parents, its ancestors by a plain walk,
//! and the rows that it wrote. Nothing is ever collected here.
//!
//! What a `BRANCH LOG` says of a state is the truth as long as the state is neither above a ceiling nor under one
//! there: then nothing before it can have been collected. Where nobody was told in time, a state is not whole: of its
//! ancestors some are known, and there may be more.

use super::id::{ROOT, StateId, show};
use super::rows::{Key, Row, effect};
use super::tale::{Kind, Outcome, Tale, Transaction};
use crate::oracle::Violation;
use crate::resp::Answer;
use ensue_types::DatacenterId;
use std::collections::{BTreeMap, BTreeSet};

/// A state by its place in the order of ids.
pub type Place = usize;

/// A set of states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct States(Vec<u64>);

impl States {
    fn of(count: usize) -> States {
        States(vec![0; count.div_ceil(64)])
    }

    pub fn has(&self, place: Place) -> bool {
        self.0[place / 64] >> (place % 64) & 1 == 1
    }

    pub fn add(&mut self, place: Place) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    pub fn join(&mut self, other: &States) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    /// The highest state that is in both.
    fn highest_among(&self, other: &States) -> Option<Place> {
        let both = self.0.iter().zip(&other.0).map(|(mine, theirs)| mine & theirs);
        let (at, word) = both.enumerate().rfind(|(_, word)| *word != 0)?;
        Some(at * 64 + 63 - word.leading_zeros() as usize)
    }

    /// Those of this set that the other has not.
    pub fn without(&self, other: &States) -> States {
        States(self.0.iter().zip(&other.0).map(|(mine, theirs)| mine & !theirs).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = Place> + '_ {
        let bits = |word: u64| (0..64).filter(move |bit| word >> bit & 1 == 1);
        self.0.iter().enumerate().flat_map(move |(at, &word)| bits(word).map(move |bit| at * 64 + bit))
    }
}

/// One line of a `BRANCH LOG`.
#[derive(Clone, Debug)]
pub struct Telling {
    pub id: StateId,
    pub parents: BTreeSet<StateId>,
    pub keys: BTreeSet<Key>,
    pub flags: BTreeSet<String>,
    pub datacenter: DatacenterId,
    pub answered_us: u64,
}

impl Telling {
    /// Nothing that it says can have been collected before, and the state has not been sent whole to a site that had
    /// collected what it came from, as happens only where sites collect on their own.
    fn is_true(&self, by_consent: bool) -> bool {
        let is_own = self.id.site == self.datacenter.0;
        !self.flags.contains("above") && !self.flags.contains("ceiling") && (by_consent || is_own)
    }
}

#[derive(Clone, Debug)]
pub struct Node {
    pub id: StateId,
    /// As they are, if anybody was told in time.
    pub parents: Option<BTreeSet<Place>>,
    /// Known ancestors, itself included.
    pub ancestors: States,
    /// All its ancestors are known, and what keys they wrote.
    pub is_whole: bool,
    /// The keys that it wrote, if anybody knows.
    pub keys: Option<BTreeSet<Key>>,
    pub rows: BTreeMap<Key, Row>,
    /// The transaction that made it.
    pub transaction: Option<usize>,
}

/// The reference store.
#[derive(Debug, Default)]
pub struct Graph {
    pub nodes: Vec<Node>,
    places: BTreeMap<StateId, Place>,
    /// The states that wrote each key.
    writers: BTreeMap<Key, States>,
    /// The state that each transaction made, where it is known.
    pub made: BTreeMap<usize, Place>,
    /// All lines of all logs.
    pub tellings: Vec<Telling>,
    /// States are collected only by the consent of all sites.
    by_consent: bool,
}

impl Graph {
    pub fn build(tale: &Tale, tellings: Vec<Telling>, by_consent: bool) -> Result<Graph, Violation> {
        let mut graph = Graph { tellings, by_consent, ..Graph::default() };
        let mut ids = BTreeSet::from([ROOT]);
        for telling in &graph.tellings {
            ids.insert(telling.id);
            ids.extend(&telling.parents);
        }
        for transaction in &tale.transactions {
            ids.extend(&transaction.reads);
            if let Outcome::At(id) = transaction.outcome {
                ids.insert(id);
            }
        }
        for (_, known, _) in &tale.anchors {
            ids.extend(known);
        }
        for (place, &id) in ids.iter().enumerate() {
            graph.places.insert(id, place);
            graph.nodes.push(Node {
                id,
                parents: None,
                ancestors: States::of(ids.len()),
                is_whole: false,
                keys: None,
                rows: BTreeMap::new(),
                transaction: None,
            });
        }
        graph.nodes[0].parents = Some(BTreeSet::new());
        graph.nodes[0].keys = Some(BTreeSet::new());
        graph.join_equals();
        graph.take_tellings()?;
        graph.take_transactions(tale)?;
        graph.connect()?;
        for place in 0..graph.nodes.len() {
            graph.write(tale, place);
        }
        Ok(graph)
    }

    pub fn place(&self, id: StateId) -> Option<Place> {
        self.places.get(&id).copied()
    }

    /// Whether equal merges of other names are the same state.
    pub fn has_equals(&self, id: StateId) -> bool {
        let place = self.place(id);
        self.places.iter().any(|(other, at)| *other != id && Some(*at) == place)
    }

    pub fn node(&self, id: StateId) -> Option<&Node> {
        self.place(id).map(|place| &self.nodes[place])
    }

    /// Merges of the same states that write the same are one state, named by the lowest of their ids. Only merges that
    /// write nothing but merged counters can be: what else clients write is named after them.
    fn join_equals(&mut self) {
        let mut lines: Vec<&Telling> =
            self.tellings.iter().filter(|line| line.is_true(self.by_consent)).collect();
        lines.sort_by_key(|line| line.id);
        let mut lowest: BTreeMap<(BTreeSet<Place>, BTreeSet<Key>), Place> = BTreeMap::new();
        for line in lines {
            let is_counter = |key: &Key| key.first() == Some(&b'c');
            if line.parents.len() < 2 || !line.keys.iter().all(is_counter) {
                continue;
            }
            let parents = line.parents.iter().filter_map(|id| self.places.get(id).copied()).collect();
            let Some(&place) = self.places.get(&line.id) else { continue };
            let lowest = *lowest.entry((parents, line.keys.clone())).or_insert(place);
            self.places.insert(line.id, lowest);
        }
    }

    /// What all sites say of a state while it is whole there is the same: its parents, and the keys that it wrote.
    fn take_tellings(&mut self) -> Result<(), Violation> {
        let mut first: BTreeMap<Place, &Telling> = BTreeMap::new();
        for telling in self.tellings.iter().filter(|telling| telling.is_true(self.by_consent)) {
            let known = first.entry(self.places[&telling.id]).or_insert(telling);
            let same = self.places_of(&known.parents) == self.places_of(&telling.parents);
            // A site that was restarted may have forgotten that the state is above a ceiling: what it took over is told
            // as its own.
            let (more, fewer) = (known.keys.is_superset(&telling.keys), known.keys.is_subset(&telling.keys));
            if more != fewer {
                if more {
                    *known = telling;
                }
                continue;
            }
            if !same || known.keys != telling.keys {
                let line = |telling: &Telling| {
                    let keys: Vec<_> = telling.keys.iter().map(|key| String::from_utf8_lossy(key)).collect();
                    let (at, parents) = (telling.answered_us, show(&telling.parents));
                    format!("{} at {at} us: parents {parents}; keys {}", telling.datacenter, keys.join(" "))
                };
                let words = format!("{}\n{}\n{}", telling.id, line(known), line(telling));
                return Err(Violation::new(super::property::REPLICAS, words));
            }
        }
        let known: Vec<_> = first
            .into_iter()
            .map(|(place, telling)| (place, self.places_of(&telling.parents), telling.keys.clone()))
            .collect();
        for (place, parents, keys) in known {
            if place > 0 {
                self.nodes[place].parents = Some(parents);
                self.nodes[place].keys = Some(keys);
            }
        }
        Ok(())
    }

    fn places_of(&self, ids: &BTreeSet<StateId>) -> BTreeSet<Place> {
        ids.iter().filter_map(|id| self.place(*id)).collect()
    }

    /// Which transaction made which state: its answer says so, or the key that only it writes.
    fn take_transactions(&mut self, tale: &Tale) -> Result<(), Violation> {
        let mut tags: BTreeMap<Key, Place> = BTreeMap::new();
        for (place, node) in self.nodes.iter().enumerate() {
            let tagged = node.keys.iter().flatten().filter(|key| key.first() == Some(&b't'));
            tags.extend(tagged.map(|key| (key.clone(), place)));
        }
        for (index, transaction) in tale.transactions.iter().enumerate() {
            let by_tag = || own_tag(transaction).and_then(|tag| tags.get(&tag).copied());
            let place = match transaction.outcome {
                Outcome::At(id) if wrote(transaction) => self.place(id),
                Outcome::At(_) | Outcome::Aborted | Outcome::Dropped => None,
                Outcome::Done | Outcome::Unknown => by_tag(),
            };
            let Some(place) = place else { continue };
            self.made.insert(index, place);
            if let Some(other) = self.nodes[place].transaction.replace(index) {
                if may_be_equal(transaction) && may_be_equal(&tale.transactions[other]) {
                    continue;
                }
                let words = format!(
                    "{} is the state of two transactions: operations #{} and #{}",
                    self.nodes[place].id,
                    tale.transactions[other].began.operation,
                    transaction.began.operation
                );
                return Err(Violation::new(super::property::REPLICAS, words));
            }
        }
        Ok(())
    }

    /// Finds the ancestors of each state, and whether they are all.
    fn connect(&mut self) -> Result<(), Violation> {
        let mut told: BTreeMap<Place, BTreeSet<StateId>> = BTreeMap::new();
        for telling in &self.tellings {
            told.entry(self.places[&telling.id]).or_default().extend(&telling.parents);
        }
        for place in 0..self.nodes.len() {
            let id = self.nodes[place].id;
            let told = self.places_of(&told.remove(&place).unwrap_or_default());
            let mut ancestors = States::of(self.nodes.len());
            ancestors.add(place);
            ancestors.add(0);
            let before = self.nodes[place].parents.clone().unwrap_or_default();
            for &parent in before.iter().chain(&told) {
                if parent >= place {
                    let words = format!("{} is a parent of {id}", self.nodes[parent].id);
                    return Err(Violation::new(super::property::REPLICAS, words));
                }
                ancestors.join(&self.nodes[parent].ancestors);
            }
            let node = &self.nodes[place];
            let known = node.parents.as_ref().is_some_and(|parents| {
                place == 0 || !parents.is_empty() && parents.iter().all(|&parent| self.nodes[parent].is_whole)
            });
            let node = &mut self.nodes[place];
            node.is_whole = known && node.keys.is_some();
            node.ancestors = ancestors;
        }
        Ok(())
    }

    /// Carries out the transaction that made a state.
    fn write(&mut self, tale: &Tale, place: Place) {
        let Some(index) = self.nodes[place].transaction else {
            let keys = self.nodes[place].keys.clone().unwrap_or_default();
            self.set_rows(place, keys.into_iter().map(|key| (key, Row::Untold)).collect());
            return;
        };
        let transaction = &tale.transactions[index];
        let bases = self.bases(transaction, Some(place));
        let mut rows: BTreeMap<Key, Row> = BTreeMap::new();
        for step in &transaction.steps {
            let seen =
                |key: &[u8]| rows.get(key).cloned().unwrap_or_else(|| self.row_at(bases.as_deref(), key));
            let Some(effect) = effect(&step.args, &seen) else { continue };
            // Nor does what found nothing to delete. A counter that comes to nothing is written, as any other number
            // is.
            let is_nothing = step.answer == Some(Answer::Integer(0));
            let found_nothing = is_nothing && matches!(step.word(0).as_str(), "DEL" | "PEXPIRE");
            if !step.was_refused() && !found_nothing {
                rows.extend(effect.writes);
            }
        }
        let node = &mut self.nodes[place];
        let told = node.keys.clone();
        match told {
            // What it did not write after all (a key deleted that was not there) is left out, and what nobody foresaw
            // is untold.
            Some(keys) => {
                rows.retain(|key, _| keys.contains(key));
                keys.into_iter().for_each(|key| {
                    rows.entry(key).or_insert(Row::Untold);
                });
            }
            None => node.keys = Some(rows.keys().cloned().collect()),
        }
        self.set_rows(place, rows);
    }

    fn set_rows(&mut self, place: Place, rows: BTreeMap<Key, Row>) {
        for key in rows.keys() {
            match self.writers.get_mut(key) {
                Some(writers) => writers.add(place),
                None => {
                    let mut writers = States::of(self.nodes.len());
                    writers.add(place);
                    self.writers.insert(key.clone(), writers);
                }
            }
        }
        self.nodes[place].rows = rows;
    }

    /// The states that a transaction read. Of one that was not told them: the parents of its state, if nothing that it
    /// read was written on the way there.
    pub fn bases(&self, transaction: &Transaction, made: Option<Place>) -> Option<Vec<Place>> {
        if !transaction.reads.is_empty() {
            return transaction.reads.iter().map(|id| self.place(*id)).collect();
        }
        if transaction.kind != Kind::Alone {
            return None;
        }
        match (made, &transaction.outcome) {
            (Some(place), _) => {
                let serial = |condition: &_| *condition == super::constraint::Condition::Serializability;
                let parents = self.nodes[place].parents.as_ref()?;
                transaction.end.always(serial).then(|| parents.iter().copied().collect())
            }
            (None, Outcome::At(id)) if !wrote(transaction) => self.place(*id).map(|place| vec![place]),
            _ => None,
        }
    }

    /// All known ancestors of these states, themselves included.
    pub fn below(&self, places: &[Place]) -> States {
        let mut all = States::of(self.nodes.len());
        places.iter().for_each(|&place| all.join(&self.nodes[place].ancestors));
        all
    }

    pub fn are_whole(&self, places: &[Place]) -> bool {
        places.iter().all(|&place| self.nodes[place].is_whole)
    }

    /// The newest state that wrote a key among the known ancestors of these states.
    pub fn writer(&self, places: &[Place], key: &[u8]) -> Option<Place> {
        let writers = self.writers.get(key)?;
        places.iter().filter_map(|&place| self.nodes[place].ancestors.highest_among(writers)).max()
    }

    /// What stands at a key there; untold where not all is known.
    pub fn row_at(&self, places: Option<&[Place]>, key: &[u8]) -> Row {
        let Some(places) = places.filter(|places| self.are_whole(places)) else { return Row::Untold };
        match self.writer(places, key) {
            None => Row::Nothing,
            Some(writer) => self.nodes[writer].rows[key].clone(),
        }
    }

    pub fn is_ancestor(&self, a: Place, b: Place) -> bool {
        self.nodes[b].ancestors.has(a)
    }

    pub fn children(&self, place: Place) -> impl Iterator<Item = Place> + '_ {
        let is_child = move |other: &Place| {
            self.nodes[*other].parents.as_ref().is_some_and(|parents| parents.contains(&place))
        };
        (place + 1..self.nodes.len()).filter(is_child)
    }
}

/// The key that only this transaction writes, if it has one.
pub fn own_tag(transaction: &Transaction) -> Option<Key> {
    let tagged = |step: &&super::tale::Step| {
        step.word(0) == "SET" && step.args.get(1).is_some_and(|key| key.first() == Some(&b't'))
    };
    transaction.steps.iter().find(tagged).map(|step| step.args[1].to_vec())
}

/// Whether an equal merge may have been made by somebody else.
fn may_be_equal(transaction: &Transaction) -> bool {
    transaction.kind == Kind::Merge && own_tag(transaction).is_none()
}

/// Whether a transaction wrote, as far as its commands say: a deletion or a deadline where nothing is writes nothing.
pub fn wrote(transaction: &Transaction) -> bool {
    let writes = |step: &super::tale::Step| match step.word(0).as_str() {
        "SET" | "INCRBY" | "HSET" | "SADD" => step.error().is_none(),
        "DEL" | "PEXPIRE" => step.answer == Some(Answer::Integer(1)),
        _ => false,
    };
    // A merge makes a state though it writes nothing.
    let joined = match transaction.outcome {
        Outcome::At(id) => transaction.kind == Kind::Merge && !transaction.reads.contains(&id),
        _ => false,
    };
    joined || transaction.steps.iter().any(writes)
}

/// The lines of a log.
pub fn tellings(answer: &Answer, datacenter: DatacenterId, answered_us: u64) -> Result<Vec<Telling>, String> {
    let Answer::Array(lines) = answer else { return Err(format!("a log is {answer}")) };
    let telling = |line: &Answer| {
        let Answer::Array(parts) = line else { return None };
        let [id, Answer::Array(parents), Answer::Array(keys), Answer::Array(flags)] = parts.as_slice() else {
            return None;
        };
        let flag = |flag: &Answer| match flag {
            Answer::Status(text) => Some(text.clone()),
            other => other.text().map(str::to_owned),
        };
        Some(Telling {
            id: StateId::parse(id.text()?)?,
            parents: parents.iter().map(|id| StateId::parse(id.text()?)).collect::<Option<_>>()?,
            keys: keys.iter().map(|key| key.bytes().map(<[u8]>::to_vec)).collect::<Option<_>>()?,
            flags: flags.iter().map(flag).collect::<Option<_>>()?,
            datacenter,
            answered_us,
        })
    };
    lines.iter().map(|line| telling(line).ok_or_else(|| format!("a line of a log is {line}"))).collect()
}
