//! A command with keys of several owners, or a whole MULTI, cut into one part an owner, and put together again.
//!
//! Each command becomes pieces, one for each owner of its keys, numbered in the order of the commands: the number
//! travels with the piece and comes back with its answer. Nothing is sent here.

pub(super) mod combine;
pub(super) mod functions;
pub(super) mod scripts;

use crate::command;
use crate::evaluate::ANSWER_TOO_LONG;
use crate::session::failure::UNANSWERED;
use bytes::Bytes;
use combine::Combination;
use ensue_resp::{Combine, CommandError, CommandSpec, Request, Route};
use ensue_types::{Args, KeyspaceId, Part, PartitionId, Reply, partition_of};
use std::collections::BTreeMap;

/// The commands, cut.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    partitions: u16,
    /// One an owner, in the order in which the commands name them.
    parts: Vec<Part>,
    places: BTreeMap<PartitionId, usize>,
    pieces: Vec<Piece>,
    commands: Vec<Planned>,
    shape: Shape,
    /// Where it is executed, if that is not by a transaction.
    keyspaces: Keyspaces,
    /// Whether a command among them may change something.
    writes: bool,
    /// Whether a script is among them.
    scripts: bool,
}

/// The keyspaces in which the parts of a plan are executed in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyspaces {
    Selected,
    One(KeyspaceId),
    All,
}

/// What an `EXEC` asks before its commands.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) owner: PartitionId,
    /// `watched`, and each key with its number.
    pub(super) args: Args,
}

/// What the answers of the commands become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// There is one command: its answer.
    Single,
    /// The array of `EXEC`.
    Array,
    /// The same without the first, if that says that what is watched stands, and otherwise no array.
    Checked,
    /// `OK`, or the first error.
    Ok,
    /// 1, or the first error.
    One,
}

/// A part of one command for one owner.
#[derive(Clone, Debug)]
struct Piece {
    command: usize,
    /// For a command that gathers: the places of its keys among all keys.
    places: Vec<usize>,
}

/// How the answer of one command comes about.
#[derive(Clone, Debug)]
enum Planned {
    /// Known before anything is sent.
    Ready(Reply),
    /// What the one owner answers.
    Whole,
    Combined {
        how: Combination,
        keys: usize,
    },
}

/// Whether the keys that patterns of a command make are of one partition, too.
pub(super) fn patterns_stay(spec: &CommandSpec, args: &Args, owner: PartitionId, partitions: u16) -> bool {
    let is_there = |pattern: &[u8]| !pattern.is_empty() && partition_of(pattern, partitions) == owner;
    partitions == 1 || ensue_resp::key_patterns(spec, args).all(is_there)
}

impl Plan {
    pub(super) fn single(partitions: u16) -> Plan {
        Plan {
            partitions,
            parts: Vec::new(),
            places: BTreeMap::new(),
            pieces: Vec::new(),
            commands: Vec::new(),
            shape: Shape::Single,
            keyspaces: Keyspaces::Selected,
            writes: false,
            scripts: false,
        }
    }

    /// The plan of an `EXEC`.
    pub(super) fn exec(partitions: u16) -> Plan {
        Plan { shape: Shape::Array, ..Plan::single(partitions) }
    }

    /// The plan of several commands with an answer each.
    pub(super) fn each(partitions: u16) -> Plan {
        Plan::exec(partitions)
    }

    /// A plan of several commands that the client sees as one.
    pub(super) fn all_ok(partitions: u16) -> Plan {
        Plan { shape: Shape::Ok, ..Plan::single(partitions) }
    }

    /// The same, answered with 1.
    pub(super) fn all_done(partitions: u16) -> Plan {
        Plan { shape: Shape::One, ..Plan::single(partitions) }
    }

    /// Asks the owner of a key how its value is kept.
    pub(super) fn of_object(partitions: u16, key: Bytes) -> Plan {
        let owner = partition_of(&key, partitions);
        let mut plan = Plan::single(partitions);
        plan.add_at(owner, false, vec![Bytes::from_static(b"object"), Bytes::from_static(b"encoding"), key]);
        plan
    }

    /// What an `EXEC` asks before its commands.
    pub(super) fn check_first(&mut self, check: Option<Check>) {
        if let Some(Check { owner, args }) = check {
            self.shape = Shape::Checked;
            self.add_at(owner, false, args);
        }
    }

    /// Whether its commands are executed only if watched keys have not changed.
    pub(super) fn is_checked(&self) -> bool {
        self.shape == Shape::Checked
    }

    /// Adds a `WATCH`, whose answer is a number a key.
    pub(super) fn add_watch(&mut self, args: Args) {
        if let Some(spec) = ensue_resp::lookup(b"watch") {
            self.add_split(spec, Combine::Gather, args);
        }
    }

    /// Adds a command that needs no owner.
    pub(super) fn add_ready(&mut self, reply: Reply) {
        self.commands.push(Planned::Ready(reply));
    }

    /// Adds a command of one key or of several.
    pub(super) fn add(&mut self, spec: &'static CommandSpec, args: Args) {
        match spec.route {
            Route::Split(combine) => self.add_split(spec, combine, args),
            Route::Together => match self.owner_of_all(spec, &args) {
                Ok(owner) => self.add_at(owner, spec.is_write(), args),
                Err(answer) => self.add_ready(answer),
            },
            Route::Script => match scripts::owner(&args, self.partitions) {
                Ok(owner) => {
                    self.scripts = true;
                    self.add_at(owner, true, args);
                }
                Err(refusal) => self.add_ready(refusal),
            },
            // The caller has checked that the arguments are as many as the command takes.
            _ => match args.get(1).map(|key| partition_of(key, self.partitions)) {
                Some(owner) => {
                    self.writes |= spec.is_write();
                    self.add_piece(owner, Vec::new(), args);
                    self.commands.push(Planned::Whole);
                }
                None => self.add_ready(UNANSWERED),
            },
        }
    }

    /// The one owner of all keys of a command, or the answer if it is known without one, as that of `OBJECT HELP` is.
    fn owner_of_all(&self, spec: &'static CommandSpec, args: &Args) -> Result<PartitionId, Reply> {
        let request = Request::parse_as(spec, args).map_err(|error| error.reply())?;
        if let Some(help) = command::help(&request) {
            return Err(help);
        }
        let mut owners = ensue_resp::keys(spec, args).map(|key| partition_of(key, self.partitions));
        let Some(owner) = owners.next() else { return Ok(PartitionId(0)) };
        let is_one = owners.all(|other| other == owner) && patterns_stay(spec, args, owner, self.partitions);
        if is_one { Ok(owner) } else { Err(CommandError::SeveralOwners(spec.name).reply()) }
    }

    /// The plan of one command that all partitions get, each of them whole.
    pub(super) fn fan_out(how: Combination, writes: bool, partitions: u16, args: &Args) -> Plan {
        let mut plan = Plan::single(partitions);
        plan.add_for_each(how, writes, (0..partitions).map(PartitionId), args);
        plan
    }

    /// The same, executed in these keyspaces.
    pub(super) fn in_keyspaces(self, keyspaces: Keyspaces) -> Plan {
        Plan { keyspaces, ..self }
    }

    /// Adds a command for these partitions, each of which gets it whole.
    pub(super) fn add_for_each(
        &mut self,
        how: Combination,
        writes: bool,
        partitions: impl Iterator<Item = PartitionId>,
        args: &Args,
    ) {
        self.writes |= writes;
        let first = self.pieces.len();
        for partition in partitions {
            self.add_piece(partition, Vec::new(), args.clone());
        }
        let keys = self.pieces.len() - first;
        self.commands.push(Planned::Combined { how, keys });
    }

    /// Adds a command at an owner without looking for its keys.
    pub(super) fn add_at(&mut self, owner: PartitionId, writes: bool, args: Args) {
        self.writes |= writes;
        self.add_piece(owner, Vec::new(), args);
        self.commands.push(Planned::Whole);
    }

    fn add_split(&mut self, spec: &'static CommandSpec, combine: Combine, args: Args) {
        // Read as a whole first: no owner may refuse its piece when another has made its own.
        if let Err(error) = Request::parse_as(spec, &args) {
            return self.add_ready(error.reply());
        }
        self.writes |= spec.is_write();
        let step = usize::from(spec.step.unsigned_abs()).max(1);
        let mut split: BTreeMap<PartitionId, (Vec<usize>, Args)> = BTreeMap::new();
        let mut order = Vec::new();
        let mut keys = 0;
        for group in args[1..].chunks(step) {
            let owner = partition_of(&group[0], self.partitions);
            let (places, piece) = split.entry(owner).or_insert_with(|| {
                order.push(owner);
                (Vec::new(), vec![args[0].clone()])
            });
            places.push(keys);
            piece.extend_from_slice(group);
            keys += 1;
        }
        for owner in order {
            if let Some((places, piece)) = split.remove(&owner) {
                self.add_piece(owner, places, piece);
            }
        }
        self.commands.push(Planned::Combined { how: combine.into(), keys });
    }

    /// Adds a piece of the command that is pushed next.
    fn add_piece(&mut self, owner: PartitionId, places: Vec<usize>, args: Args) {
        let part = *self.places.entry(owner).or_insert_with(|| {
            self.parts.push(Part { partition: owner, commands: Vec::new() });
            self.parts.len() - 1
        });
        self.parts[part].commands.push((self.pieces.len() as u32, args));
        self.pieces.push(Piece { command: self.commands.len(), places });
    }

    /// Whether a script is among the commands.
    pub(super) fn has_scripts(&self) -> bool {
        self.scripts
    }

    /// One an owner, in the order in which the commands name them.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The parts, to be sent as a whole: what is left puts the answers together.
    pub(super) fn take_parts(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts)
    }

    /// Where it is executed, if that is not by a transaction.
    pub(super) fn keyspaces(&self) -> Keyspaces {
        self.keyspaces
    }

    /// Whether a command of it may change something.
    pub(super) fn writes(&self) -> bool {
        self.writes
    }

    /// The commands of one part, copied: they are needed again if there is another round.
    pub(super) fn commands_of(&self, part: usize) -> Vec<Args> {
        self.parts[part].commands.iter().map(|(_, args)| args.clone()).collect()
    }

    /// Room for the answers of all pieces.
    pub(super) fn answers(&self) -> Answers {
        Answers(vec![None; self.pieces.len()])
    }

    /// The answer of the whole.
    pub(super) fn assemble(self, answers: Answers) -> Reply {
        let shape = self.shape;
        let mut replies = self.into_replies(answers);
        match shape {
            Shape::Single => replies.pop().unwrap_or(UNANSWERED),
            Shape::Array => Reply::Array(replies),
            Shape::Checked if replies.first() == Some(&Reply::Integer(1)) => {
                Reply::Array(replies.split_off(1))
            }
            Shape::Checked => Reply::NilArray,
            Shape::Ok => replies.into_iter().find(Reply::is_error).unwrap_or(Reply::OK),
            Shape::One => replies.into_iter().find(Reply::is_error).unwrap_or(Reply::Integer(1)),
        }
    }

    /// The answers of commands that were put together though the client did not ask for that, and those that are
    /// executed again, since their answers were too long together; the first of them is alone then, or its answer is
    /// too long by itself.
    pub(super) fn into_each(mut self, answers: Answers) -> (Vec<Reply>, Vec<Args>) {
        let parts = std::mem::take(&mut self.parts);
        let mut replies = self.into_replies(answers);
        let too_long = replies.iter().position(|reply| *reply == ANSWER_TOO_LONG).filter(|&place| place > 0);
        let Some(place) = too_long else { return (replies, Vec::new()) };
        replies.truncate(place);
        // Each command is whole, and has one piece.
        let mut commands: Vec<(u32, Args)> = parts.into_iter().flat_map(|part| part.commands).collect();
        commands.sort_unstable_by_key(|(piece, _)| *piece);
        (replies, commands.into_iter().skip(place).map(|(_, args)| args).collect())
    }

    /// The answer of each command.
    pub(super) fn into_replies(self, answers: Answers) -> Vec<Reply> {
        let mut found = self.pieces.into_iter().zip(answers.0).peekable();
        let mut replies = Vec::with_capacity(self.commands.len());
        for (index, planned) in self.commands.into_iter().enumerate() {
            let mut own = Vec::new();
            while let Some((piece, reply)) = found.next_if(|(piece, _)| piece.command == index) {
                own.push((piece.places, reply.unwrap_or(UNANSWERED)));
            }
            replies.push(match planned {
                Planned::Ready(reply) => reply,
                Planned::Whole => own.pop().map_or(UNANSWERED, |(_, reply)| reply),
                Planned::Combined { how, keys } => how.combine(own, keys),
            });
        }
        replies
    }
}

/// The answers of the pieces, as they come in.
#[derive(Clone, Debug)]
pub(super) struct Answers(Vec<Option<Reply>>);

impl Answers {
    /// The answers of one part, in the order of its commands.
    pub(super) fn put_part(&mut self, part: &Part, replies: Vec<Reply>) {
        for ((piece, _), reply) in part.commands.iter().zip(replies) {
            self.put(*piece, reply);
        }
    }

    /// Whether every piece has its answer.
    pub(super) fn are_whole(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    /// The answer of one piece. One that was never sent is dropped, and an error stays: `FLUSHALL` asks an owner once
    /// for each keyspace.
    pub(super) fn put(&mut self, piece: u32, reply: Reply) {
        match self.0.get_mut(piece as usize) {
            Some(Some(earlier)) if earlier.is_error() => {}
            Some(place) => *place = Some(reply),
            None => {}
        }
    }
}
