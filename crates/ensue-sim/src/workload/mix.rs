//! What clients ask, drawn one request at a time from weights of the seed.

use super::client::{Client, Expiring};
use super::command::{Command, Expect};
use super::fields;
use super::keys::{HASH_OF_COUNTERS, Keys, SORTED_SET_OF_COUNTERS, sum_text};
use crate::oracle::folded;
use crate::oracle::history::{History, Location, Written};
use crate::oracle::values::value_of;
use crate::random::Random;
use crate::resp::args;
use ensue_protocol::SeveralWrites;
use ensue_types::{DatacenterId, PartitionId, partition_of};

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Get,
    GetSeveral,
    Set,
    SetSeveral,
    ReadTransaction,
    WriteTransaction,
    MixedTransaction,
    Delete,
    SetIfMissing,
    Exchange,
    Append,
    AppendRead,
    Add,
    Sum,
    FieldSet,
    FieldRead,
    FieldsRead,
    FieldDelete,
    MemberAdd,
    MemberDelete,
    MembersRead,
    ScoreSet,
    ScoreRead,
    ScoresRead,
    ScoreDelete,
    ElementPush,
    ElementsRead,
    ElementDelete,
    EntryAdd,
    EntriesRead,
    Wait,
    Expire,
    ExpireRead,
    Private,
    PrivateTransaction,
    Total,
    Mixed,
    Flush,
    Script,
    Watched,
    FoldSet,
    FoldRead,
    FoldDelete,
    EscrowChange,
    EscrowRead,
}

/// Every kind with its usual weight.
pub const KINDS: [(Kind, u64); 42] = [
    (Kind::Get, 16),
    (Kind::GetSeveral, 12),
    (Kind::Set, 14),
    (Kind::SetSeveral, 9),
    (Kind::ReadTransaction, 6),
    (Kind::WriteTransaction, 6),
    (Kind::MixedTransaction, 3),
    (Kind::Delete, 5),
    (Kind::SetIfMissing, 2),
    (Kind::Exchange, 2),
    (Kind::Append, 3),
    (Kind::AppendRead, 2),
    (Kind::Add, 6),
    (Kind::Sum, 5),
    (Kind::FieldSet, 4),
    (Kind::FieldRead, 3),
    (Kind::FieldsRead, 4),
    (Kind::FieldDelete, 2),
    (Kind::MemberAdd, 4),
    (Kind::MemberDelete, 2),
    (Kind::MembersRead, 3),
    (Kind::Expire, 3),
    (Kind::ExpireRead, 5),
    (Kind::Private, 8),
    (Kind::PrivateTransaction, 3),
    (Kind::Total, 3),
    (Kind::Mixed, 6),
    (Kind::Flush, 1),
    (Kind::ScoreSet, 4),
    (Kind::ScoreRead, 3),
    (Kind::ScoresRead, 4),
    (Kind::ScoreDelete, 2),
    (Kind::Script, 5),
    (Kind::Watched, 4),
    (Kind::ElementPush, 5),
    (Kind::ElementsRead, 4),
    (Kind::ElementDelete, 2),
    (Kind::Wait, 3),
    (Kind::EntryAdd, 5),
    (Kind::EntriesRead, 4),
    (Kind::EscrowChange, 6),
    (Kind::EscrowRead, 2),
];

/// The kinds that touch keys with handlers of conflicts, of protocols that have them.
pub const FOLD_KINDS: [(Kind, u64); 3] = [(Kind::FoldSet, 24), (Kind::FoldRead, 16), (Kind::FoldDelete, 3)];

/// The kind at a place of the weights.
pub fn kind(place: usize) -> Kind {
    KINDS.iter().chain(&FOLD_KINDS).nth(place).expect("there are so many weights").0
}

/// A request before it is sent.
#[derive(Debug, Default)]
pub struct Draft {
    pub commands: Vec<Command>,
    /// Within `MULTI` and `EXEC`.
    pub multi: bool,
    /// The first command is sent before that, behind a `WATCH` of its key.
    pub watched: bool,
    /// Reads beside writes: each read stands for itself.
    pub mixed: bool,
    pub writes: Vec<(Location, Written)>,
    /// An addition to a counter whose total is checked at the end.
    pub total: Option<(String, i64)>,
    pub expiring: Option<Expiring>,
    /// Touches keys that only this client has.
    pub private: bool,
}

/// What drawing a request needs.
pub struct Drawer<'a> {
    pub history: &'a mut History,
    pub keys: &'a mut Keys,
    pub random: &'a mut Random,
    pub now_us: u64,
    /// Where the client is.
    pub datacenter: DatacenterId,
    /// Deadlines are this uncertain, to either side.
    pub slack_ms: u64,
    pub owners: Owners,
}

/// Who owns which key, and what becomes of writes at several owners: what is refused is not asked.
#[derive(Clone, Copy, Debug)]
pub struct Owners {
    pub partitions: u16,
    pub several_writes: SeveralWrites,
}

impl Owners {
    pub fn of(&self, key: &str) -> PartitionId {
        partition_of(key.as_bytes(), self.partitions)
    }

    /// Whether a `MULTI` that writes may name these two keys.
    pub fn allow(&self, one: &str, other: &str) -> bool {
        self.several_writes == SeveralWrites::Together || self.of(one) == self.of(other)
    }

    /// Whether one owner has all of these locations.
    pub fn have_one(&self, history: &History, mut locations: impl Iterator<Item = Location>) -> bool {
        let owner = |location| self.of(key_of(history.name(location)));
        let first = locations.next().map(owner);
        locations.all(|location| Some(owner(location)) == first)
    }
}

/// The key of a location, which may be a field or a member of it.
fn key_of(name: &str) -> &str {
    name.split('/').next().unwrap_or(name)
}

impl Drawer<'_> {
    pub fn draft(&mut self, kind: Kind, client: &mut Client) -> Draft {
        let mut draft = Draft::default();
        match kind {
            Kind::Get => self.read_one(&mut draft),
            Kind::GetSeveral => self.read_several(&mut draft),
            Kind::Set => self.write(&mut draft, 1),
            Kind::SetSeveral => {
                let count = self.random.between(2, 4);
                self.write(&mut draft, count);
            }
            Kind::ReadTransaction => self.read_transaction(&mut draft),
            Kind::WriteTransaction => self.write_transaction(&mut draft),
            Kind::MixedTransaction => self.mixed_transaction(&mut draft),
            Kind::Delete => self.delete(&mut draft),
            Kind::SetIfMissing => self.conditional(&mut draft, "SETNX"),
            Kind::Exchange => self.conditional(&mut draft, "GETSET"),
            Kind::Append | Kind::AppendRead => self.append(&mut draft, kind),
            Kind::Add | Kind::Sum => self.bits(&mut draft, kind),
            Kind::FieldSet | Kind::FieldRead | Kind::FieldsRead | Kind::FieldDelete => {
                self.hash(&mut draft, kind);
            }
            Kind::MemberAdd | Kind::MemberDelete | Kind::MembersRead => self.set(&mut draft, kind),
            Kind::ScoreSet | Kind::ScoreRead | Kind::ScoresRead | Kind::ScoreDelete => {
                self.score(&mut draft, kind);
            }
            Kind::ElementPush | Kind::ElementsRead | Kind::ElementDelete => self.element(&mut draft, kind),
            Kind::Wait => self.wait(&mut draft),
            Kind::EntryAdd | Kind::EntriesRead => self.entry(&mut draft, kind),
            Kind::Expire => self.expire(&mut draft),
            Kind::ExpireRead => self.expire_read(&mut draft, client),
            Kind::Private => super::private::single(self.random, &mut draft, client),
            Kind::PrivateTransaction => {
                super::private::transaction(self.random, &mut draft, client, self.owners);
            }
            Kind::Total => self.total(&mut draft),
            Kind::Mixed => self.anything_goes(&mut draft),
            Kind::Flush => self.flush(&mut draft),
            Kind::Script => self.script(&mut draft),
            Kind::Watched => self.watched(&mut draft),
            Kind::FoldSet | Kind::FoldRead | Kind::FoldDelete => self.fold(&mut draft, kind),
            Kind::EscrowChange | Kind::EscrowRead => self.escrow(&mut draft, kind),
        }
        self.leave_out_refused(&mut draft);
        if draft.commands.is_empty() {
            draft = Draft::default();
            self.read_one(&mut draft);
        }
        draft
    }

    /// What a `MULTI` that writes would do at other owners than that of one of its keys, where that is refused.
    fn leave_out_refused(&mut self, draft: &mut Draft) {
        let together = self.owners.several_writes == SeveralWrites::Together;
        if together || !draft.multi || draft.writes.is_empty() {
            return;
        }
        let named = |command: &Command| String::from_utf8_lossy(&command.args[1]).into_owned();
        let chosen = named(&draft.commands[self.random.index(draft.commands.len())]);
        draft.commands.retain(|command| self.owners.allow(&chosen, &named(command)));
        draft.writes.retain(|&(location, _)| self.owners.allow(&chosen, key_of(self.history.name(location))));
    }

    /// A shared register: one that is never deleted, or one that is.
    fn register(&mut self) -> (String, Location) {
        let class = if self.random.chance(700) { "r" } else { "d" };
        self.key(class, self.keys.count)
    }

    pub(super) fn registers(&mut self, count: u64) -> Vec<(String, Location)> {
        let mut keys: Vec<(String, Location)> = (0..count).map(|_| self.register()).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    pub(super) fn key(&mut self, class: &str, count: usize) -> (String, Location) {
        let name = format!("{class}{}", self.random.index(count));
        let location = self.history.location(&name);
        (name, location)
    }

    fn read_one(&mut self, draft: &mut Draft) {
        let (key, location) = self.register();
        draft.commands.push(Command::new(&format!("GET {key}"), Expect::Value(location)));
    }

    fn read_several(&mut self, draft: &mut Draft) {
        let count = self.random.between(2, 5);
        let (names, locations): (Vec<_>, Vec<_>) = self.registers(count).into_iter().unzip();
        let text = format!("MGET {}", names.join(" "));
        draft.commands.push(Command::new(&text, Expect::Values(locations)));
    }

    fn write(&mut self, draft: &mut Draft, count: u64) {
        let value = value_of(self.history.next());
        let mut keys = self.registers(count);
        if self.owners.several_writes == SeveralWrites::Refused {
            let chosen = keys[self.random.index(keys.len())].0.clone();
            keys.retain(|(key, _)| self.owners.allow(&chosen, key));
        }
        let name = if keys.len() == 1 && self.random.chance(700) { "SET" } else { "MSET" };
        let pairs: Vec<String> = keys.iter().map(|(key, _)| format!("{key} {value}")).collect();
        draft.commands.push(Command::new(&format!("{name} {}", pairs.join(" ")), Expect::Ok));
        draft.writes.extend(keys.iter().map(|&(_, location)| (location, Written::Value)));
    }

    fn read_transaction(&mut self, draft: &mut Draft) {
        draft.multi = true;
        let count = self.random.between(2, 4);
        for (key, location) in self.registers(count) {
            draft.commands.push(Command::new(&format!("GET {key}"), Expect::Value(location)));
        }
        if self.random.chance(300) {
            self.hash(draft, Kind::FieldsRead);
        }
        if self.random.chance(200) {
            self.bits(draft, Kind::Sum);
        }
        if self.random.chance(200) {
            self.score(draft, Kind::ScoresRead);
        }
        if self.random.chance(200) {
            self.element(draft, Kind::ElementsRead);
        }
        if self.random.chance(200) {
            self.entry(draft, Kind::EntriesRead);
        }
    }

    fn write_transaction(&mut self, draft: &mut Draft) {
        draft.multi = true;
        let value = value_of(self.history.next());
        let count = self.random.between(2, 4);
        for (key, location) in self.registers(count) {
            if key.starts_with('d') && self.random.chance(300) {
                draft.commands.push(Command::new(&format!("DEL {key}"), Expect::Deleted(location)));
                draft.writes.push((location, Written::Nothing));
            } else {
                draft.commands.push(Command::new(&format!("SET {key} {value}"), Expect::Ok));
                draft.writes.push((location, Written::Value));
            }
        }
        // What a delete found is a read of its own, at the moment of the write.
        draft.mixed = draft.writes.iter().any(|(_, written)| *written == Written::Nothing);
        if self.random.chance(300) {
            self.hash(draft, Kind::FieldSet);
        }
        if self.random.chance(200) {
            self.score(draft, Kind::ScoreSet);
        }
        if self.random.chance(200) {
            self.element(draft, Kind::ElementPush);
        }
        if self.random.chance(200) {
            self.entry(draft, Kind::EntryAdd);
        }
        if self.random.chance(200) {
            self.bits(draft, Kind::Add);
            draft.mixed = true;
        }
    }

    fn mixed_transaction(&mut self, draft: &mut Draft) {
        draft.multi = true;
        draft.mixed = true;
        let value = value_of(self.history.next());
        let count = self.random.between(2, 4);
        for (index, (key, location)) in self.registers(count).into_iter().enumerate() {
            if index % 2 == 0 {
                draft.commands.push(Command::new(&format!("GET {key}"), Expect::Value(location)));
            } else {
                draft.commands.push(Command::new(&format!("SET {key} {value}"), Expect::Ok));
                draft.writes.push((location, Written::Value));
            }
        }
    }

    /// Replaces what was read only if it is still there. Each datacenter has such keys of its own, so that nothing
    /// arrives from elsewhere meanwhile.
    fn watched(&mut self, draft: &mut Draft) {
        (draft.multi, draft.watched, draft.mixed) = (true, true, true);
        let (key, location) = self.key(&format!("w{}-", self.datacenter.0), 2);
        let value = value_of(self.history.next());
        draft.commands.push(Command::new(&format!("GET {key}"), Expect::Value(location)));
        draft
            .commands
            .push(Command::new(&format!("SET {key} {value}"), Expect::WrittenIfUnchanged(location)));
        draft.writes.push((location, Written::Value));
    }

    fn delete(&mut self, draft: &mut Draft) {
        let (key, location) = self.key("d", self.keys.count);
        draft.commands.push(Command::new(&format!("DEL {key}"), Expect::Deleted(location)));
        draft.writes.push((location, Written::Nothing));
    }

    fn conditional(&mut self, draft: &mut Draft, name: &str) {
        let (key, location) = self.key("d", self.keys.count);
        let value = value_of(self.history.next());
        let expect = match name {
            "SETNX" => Expect::WrittenIfMissing(location),
            _ => Expect::Value(location),
        };
        draft.commands.push(Command::new(&format!("{name} {key} {value}"), expect));
        draft.writes.push((location, Written::Value));
    }

    fn append(&mut self, draft: &mut Draft, kind: Kind) {
        let (key, location) = self.key("a", 2);
        if kind == Kind::AppendRead {
            draft.commands.push(Command::new(&format!("GET {key}"), Expect::Pieces(location)));
            return;
        }
        let value = value_of(self.history.next());
        let command = if self.random.chance(100) {
            Command::new(&format!("SET {key} {value},"), Expect::Ok)
        } else {
            Command::new(&format!("APPEND {key} {value},"), Expect::Integer)
        };
        draft.commands.push(command);
        draft.writes.push((location, Written::Value));
    }

    fn bits(&mut self, draft: &mut Draft, kind: Kind) {
        let slot = match self.random.below(10) {
            0..3 => HASH_OF_COUNTERS.to_owned(),
            3..5 => SORTED_SET_OF_COUNTERS.to_owned(),
            _ => format!("c{}", self.random.index(3)),
        };
        if kind == Kind::Sum {
            let (key, field, location) = self.keys.sum(self.history, &slot);
            draft.commands.push(Command::new(&sum_text(&key, field.as_deref()), Expect::Sum(location)));
            return;
        }
        let addition = self.keys.addition(self.history, &slot);
        let (key, amount) = (addition.key, 1u64 << addition.bit);
        let text = match addition.field {
            Some(member) if slot == SORTED_SET_OF_COUNTERS => format!("ZINCRBY {key} {amount} {member}"),
            Some(field) => format!("HINCRBY {key} {field} {amount}"),
            None if amount == 1 => format!("INCR {key}"),
            None => format!("INCRBY {key} {amount}"),
        };
        draft.commands.push(Command::new(&text, Expect::Sum(addition.location)));
        draft.writes.push((addition.location, Written::Bit(addition.bit)));
    }

    fn hash(&mut self, draft: &mut Draft, kind: Kind) {
        let key = format!("h{}", self.random.index(2));
        let fields = Keys::fields(self.history, &key);
        let (field, location) = fields[self.random.index(fields.len())].clone();
        let value = value_of(self.history.next());
        let (text, expect, written) = match kind {
            Kind::FieldSet => (format!("HSET {key} {field} {value}"), Expect::Integer, Some(Written::Value)),
            Kind::FieldRead => (format!("HGET {key} {field}"), Expect::Value(location), None),
            Kind::FieldDelete => {
                (format!("HDEL {key} {field}"), Expect::Deleted(location), Some(Written::Nothing))
            }
            _ => (format!("HGETALL {key}"), Expect::Fields(fields), None),
        };
        draft.commands.push(Command::new(&text, expect));
        draft.writes.extend(written.map(|written| (location, written)));
    }

    fn set(&mut self, draft: &mut Draft, kind: Kind) {
        let key = format!("s{}", self.random.index(2));
        let known = self.keys.members.entry(key.clone()).or_default();
        match kind {
            Kind::MemberAdd => {
                let member = value_of(self.history.next());
                let location = self.history.location(&format!("{key}/{member}"));
                known.push((member.clone(), location, self.history.next()));
                draft.commands.push(Command::new(&format!("SADD {key} {member}"), Expect::Added));
                draft.writes.push((location, Written::Value));
            }
            Kind::MemberDelete if !known.is_empty() => {
                // Recent members are wanted: old ones are mostly gone.
                let recent = known.len() - known.len().min(6);
                let at = recent + self.random.index(known.len() - recent);
                let (member, location, _) = known[at].clone();
                draft.commands.push(Command::new(&format!("SREM {key} {member}"), Expect::Deleted(location)));
                draft.writes.push((location, Written::Nothing));
            }
            // Which members there can be is known when the answer comes.
            _ => draft.commands.push(Command::new(&format!("SMEMBERS {key}"), Expect::Members(Vec::new()))),
        }
    }

    fn expire(&mut self, draft: &mut Draft) {
        let value = value_of(self.history.next());
        let ms = self.random.skewed(20, 8_000);
        if self.random.chance(400) {
            let key = format!("{}{}", fields::PREFIX, self.history.next());
            return self.expire_field(draft, key, value, ms);
        }
        let key = format!("e{}", self.history.next());
        if self.random.chance(500) {
            draft.commands.push(Command::new(&format!("SET {key} {value} PX {ms}"), Expect::Ok));
        } else {
            draft.commands.push(Command::new(&format!("SET {key} {value}"), Expect::Ok));
            draft.commands.push(Command::new(
                &format!("PEXPIRE {key} {ms}"),
                Expect::Exactly(crate::resp::Answer::Integer(1)),
            ));
            draft.multi = true;
        }
        let (invoked_us, gone_after_us) = (self.now_us, u64::MAX);
        draft.expiring = Some(Expiring { key, value, ms, invoked_us, gone_after_us });
    }

    fn expire_read(&mut self, draft: &mut Draft, client: &Client) {
        let here = self.keys.gone.iter().rev().find(|(datacenter, _)| *datacenter == self.datacenter);
        if let Some((_, key)) = here.filter(|_| self.random.chance(500)) {
            let gone = Expect::Exactly(crate::resp::Answer::Nil);
            return draft.commands.push(Command::new(&fields::read_of(key), gone));
        }
        let Some(expiring) = &client.expiring else { return self.read_one(draft) };
        let expect = Expect::Expiring {
            value: expiring.value.clone(),
            sure_until_us: expiring.invoked_us + expiring.ms.saturating_sub(self.slack_ms) * 1_000,
            gone_after_us: expiring.gone_after_us,
        };
        draft.commands.push(Command { args: args(&fields::read_of(&expiring.key)), expect });
    }

    fn total(&mut self, draft: &mut Draft) {
        let key = format!("n{}", self.random.index(2));
        let amount = self.random.around_zero(20);
        let (name, size) = if amount < 0 { ("DECRBY", -amount) } else { ("INCRBY", amount) };
        draft.commands.push(Command::new(&format!("{name} {key} {size}"), Expect::Integer));
        draft.total = Some((key, amount));
    }

    /// A key whose conflicting values are folded. Each value is a place of its own: several are read at once.
    fn fold(&mut self, draft: &mut Draft, kind: Kind) {
        let key = folded::KEYS[self.random.index(folded::KEYS.len())];
        match kind {
            Kind::FoldSet => {
                let value = folded::value_of(key, self.history.next(), self.random);
                let location = self.history.location(&format!("{key}/{value}"));
                draft.commands.push(Command::new(&format!("SET {key} {value}"), Expect::Ok));
                draft.writes.push((location, Written::Value));
            }
            Kind::FoldDelete => {
                draft.commands.push(Command::new(&format!("DEL {key}"), Expect::Integer));
            }
            _ => draft.commands.push(Command::new(&format!("GET {key}"), Expect::Folded(key))),
        }
    }

    /// A keyspace apart, in which everyone writes and now and then flushes: only convergence is checked.
    fn flush(&mut self, draft: &mut Draft) {
        draft.commands.push(Command::new("SELECT 1", Expect::Ok));
        for _ in 0..self.random.between(1, 3) {
            let (key, number) = (self.random.below(4), self.random.below(100));
            let text = match self.random.below(12) {
                0 => "FLUSHDB".to_owned(),
                1 => format!("DEL f{key}"),
                2 => format!("HSET fh{key} a {number}"),
                3 | 4 => format!("INCRBY fc{key} {number}"),
                5 => format!("ZADD fz{key} {number} a"),
                6 => format!("ZINCRBY fz{key} {number} a"),
                7 => format!("RPUSH fq{key} {number}"),
                8 => format!("LPOP fq{key}"),
                _ => format!("SET f{key} {number}"),
            };
            draft.commands.push(Command::new(&text, Expect::Anything));
        }
        draft.commands.push(Command::new("SELECT 0", Expect::Ok));
    }

    /// Values, additions and deletes of one key by everyone, of some keys with deadlines: only convergence is checked.
    fn anything_goes(&mut self, draft: &mut Draft) {
        if self.random.chance(400) {
            return self.any_members(draft);
        }
        if self.random.chance(400) {
            return self.anything_with_deadlines(draft);
        }
        if self.random.chance(250) {
            return self.any_fields(draft);
        }
        if self.random.chance(300) {
            return self.any_scores(draft);
        }
        if self.random.chance(300) {
            return self.any_elements(draft);
        }
        if self.random.chance(300) {
            return self.any_entries(draft);
        }
        if self.random.chance(200) {
            return self.any_escrows(draft);
        }
        let key = format!("m{}", self.random.index(2));
        let number = self.random.below(100);
        let text = match self.random.below(6) {
            0 => format!("SET {key} {number}"),
            1 => format!("DEL {key}"),
            2 => format!("GET {key}"),
            _ => format!("INCRBY {key} {number}"),
        };
        draft.commands.push(Command::new(&text, Expect::Anything));
    }

    /// What is written after a deadline has passed must outlive the row that it ended.
    fn anything_with_deadlines(&mut self, draft: &mut Draft) {
        let key = format!("md{}", self.random.index(2));
        let (number, ms) = (self.random.below(100), self.random.skewed(10, 2_000));
        let text = match self.random.below(8) {
            0 | 1 => format!("SET {key} {number} PX {ms}"),
            2 => format!("SET {key} {number}"),
            3 => format!("PEXPIRE {key} {ms}"),
            4 => format!("DEL {key}"),
            5 => format!("GET {key}"),
            _ => format!("INCRBY {key} {number}"),
        };
        draft.commands.push(Command::new(&text, Expect::Anything));
    }
}
