//! Applies commands of an append-only file, or of the stream of a replica, to the target.
//!
//! What the source wrote were effects already: expiry is a `DEL`, a random pop names what it took, and since Redis 5
//! scripts are their commands. A script of an earlier one is executed here, which is reported. A transaction is applied
//! as one where the target takes it, and command by command otherwise. `FLUSHALL` empties the keyspaces that this
//! import writes to, and no other. Where the target refused commands for a while and took later ones, their order is
//! mended ([`super::order`]), and the report names the keys for which it cannot be.

use super::databases::{Databases, Unmapped};
use super::deadlines;
use super::order;
use super::report::{shown, shown_command};
use super::state::State;
use super::target::{Taken, Target, Words, words};
use anyhow::Context;
use bytes::BytesMut;
use ensue_client::Reply;
use ensue_resp::parse::{ParseLimits, Parser};
use ensue_types::limits;

/// Commands that are sent at once, and bytes of them.
const WINDOW_COMMANDS: usize = 1_000;
const WINDOW_BYTES: usize = 4 << 20;

/// What has no effect on data.
const PASSED_OVER: [&[u8]; 6] = [b"PING", b"REPLCONF", b"SCRIPT", b"DISCARD", b"UNWATCH", b"WATCH"];

/// The state of the application; the target and the counts are handed in.
pub(crate) struct Applier {
    databases: Databases,
    /// The one that was selected last.
    database: u64,
    /// Each with the keyspace that it is for.
    window: Vec<(u8, Words)>,
    window_bytes: usize,
    transaction: Option<Vec<Words>>,
    /// When the commands that come now were received, where deadlines count from then.
    received_ms: Option<u64>,
}

impl Applier {
    /// Commands are for this database until another one is selected.
    pub(crate) fn new(databases: Databases, database: u64) -> Applier {
        Applier {
            databases,
            database,
            window: Vec::new(),
            window_bytes: 0,
            transaction: None,
            received_ms: None,
        }
    }

    /// From now on commands come that were received at this time.
    pub(crate) fn received_at(&mut self, unix_ms: u64) {
        self.received_ms = Some(unix_ms);
    }

    pub(crate) fn database(&self) -> u64 {
        self.database
    }

    /// Whether the end of a transaction is to come. What it has brought so far is not applied.
    pub(crate) fn is_amid_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Whether nothing waits to be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.window.is_empty()
    }

    pub(crate) fn take(
        &mut self,
        command: Words,
        target: &mut Target,
        state: &mut State,
    ) -> anyhow::Result<()> {
        let name = command[0].to_ascii_uppercase();
        match &name[..] {
            b"SELECT" => self.select(&command, target, state)?,
            b"MULTI" => self.transaction = Some(Vec::new()),
            b"EXEC" => {
                if let Some(commands) = self.transaction.take() {
                    self.flush(target, state)?;
                    self.execute(commands, target, state)?;
                }
            }
            b"RREPLAY" if command.len() >= 4 => self.replay(&command, target, state)?,
            b"FLUSHALL" => {
                self.end_stretch(target, state)?;
                self.flush(target, state)?;
                for keyspace in state.keyspaces.clone() {
                    target.run(keyspace, &[words!["FLUSHDB"]])?;
                }
                state.report.count("commands applied", 1);
            }
            other if PASSED_OVER.contains(&other) => {}
            _ => {
                if [&b"EVAL"[..], b"EVALSHA"].contains(&&name[..]) {
                    let what = "scripts, executed with the time and the random numbers of the target";
                    state.report.lose(what, shown_command(&command));
                }
                let command = match self.received_ms {
                    Some(received_ms) => deadlines::absolute(command, received_ms),
                    None => command,
                };
                self.push(command, target, state)?;
            }
        }
        Ok(())
    }

    /// A transaction over several databases is one for each stretch of it in one of them.
    fn select(&mut self, command: &Words, target: &mut Target, state: &mut State) -> anyhow::Result<()> {
        let number = command.get(1).and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
        let database = number.unwrap_or(u64::MAX);
        if database == self.database {
            return Ok(());
        }
        self.end_stretch(target, state)?;
        self.database = database;
        Ok(())
    }

    /// Applies what a transaction has brought so far; what it brings from here on is another one.
    fn end_stretch(&mut self, target: &mut Target, state: &mut State) -> anyhow::Result<()> {
        let Some(commands) = &mut self.transaction else { return Ok(()) };
        let commands = std::mem::take(commands);
        self.flush(target, state)?;
        self.execute(commands, target, state)
    }

    /// What an active replica of KeyDB sends: `RREPLAY id commands database`, of which the commands are as a client
    /// sends them.
    fn replay(&mut self, command: &Words, target: &mut Target, state: &mut State) -> anyhow::Result<()> {
        self.take(words!["SELECT", command[3].clone()], target, state)?;
        let mut buffer = BytesMut::from(&command[2][..]);
        let mut parser = Parser::new(ParseLimits::default());
        while let Some(inner) = parser.next(&mut buffer).context("a command of KeyDB in RREPLAY")? {
            match inner.first() {
                Some(name) if !name.eq_ignore_ascii_case(b"RREPLAY") => self.take(inner, target, state)?,
                _ => {
                    state.report.lose("commands RREPLAY of KeyDB within another one", shown_command(command))
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, command: Words, target: &mut Target, state: &mut State) -> anyhow::Result<()> {
        if let Some(commands) = &mut self.transaction {
            commands.push(command);
            if commands.len() >= limits::MULTI_COMMANDS_MAX {
                // Longer ones are no transaction of Ensue: their commands are applied as they come.
                for command in self.transaction.take().unwrap_or_default() {
                    self.push(command, target, state)?;
                }
            }
            return Ok(());
        }
        let Some(keyspace) = self.keyspace(state, &command) else { return Ok(()) };
        // If it is refused as one, its keys are set one by one: before what follows, and after what went before. What
        // empties a keyspace is of all keys, and has its place among the commands of each.
        let is_alone = may_be_split(&command) || empties(&command);
        if is_alone {
            self.flush(target, state)?;
        }
        self.window_bytes += command.iter().map(bytes::Bytes::len).sum::<usize>();
        self.window.push((keyspace, command));
        if is_alone || self.window.len() >= WINDOW_COMMANDS || self.window_bytes >= WINDOW_BYTES {
            self.flush(target, state)?;
        }
        Ok(())
    }

    /// Applies what waits.
    pub(crate) fn flush(&mut self, target: &mut Target, state: &mut State) -> anyhow::Result<()> {
        self.window_bytes = 0;
        let commands = std::mem::take(&mut self.window);
        let taken = target.run_each(&commands)?;
        let replies =
            if taken.is_in_order() { taken.replies } else { mend(&commands, taken, target, state)? };
        for ((keyspace, command), reply) in commands.iter().zip(&replies) {
            judge(command, reply, *keyspace, target, state)?;
        }
        Ok(())
    }

    fn keyspace(&mut self, state: &mut State, example: &Words) -> Option<u8> {
        match self.databases.keyspace(self.database) {
            Ok(keyspace) => {
                state.keyspaces.insert(keyspace);
                Some(keyspace)
            }
            Err(Unmapped::LeftOut) => None,
            Err(Unmapped::TooHigh) => {
                let what =
                    format!("commands on database {}, for which --db-map names no keyspace", self.database);
                state.report.lose(what, shown_command(example));
                None
            }
        }
    }

    fn execute(
        &mut self,
        commands: Vec<Words>,
        target: &mut Target,
        state: &mut State,
    ) -> anyhow::Result<()> {
        let Some(first) = commands.first() else { return Ok(()) };
        let Some(keyspace) = self.keyspace(state, first) else { return Ok(()) };
        if let [only] = &commands[..] {
            let reply = target.run(keyspace, &commands)?.pop().unwrap_or(Reply::Nil);
            return judge(only, &reply, keyspace, target, state);
        }
        let mut whole = vec![words!["MULTI"]];
        whole.extend(commands.iter().cloned());
        whole.push(words!["EXEC"]);
        match target.run(keyspace, &whole)?.pop() {
            Some(Reply::Array(replies)) if replies.len() == commands.len() => {
                for (command, reply) in commands.iter().zip(&replies) {
                    judge(command, reply, keyspace, target, state)?;
                }
            }
            // Nothing of it was executed.
            _ => {
                state.report.count("transactions were applied command by command", 1);
                for command in &commands {
                    let reply = target.run(keyspace, std::slice::from_ref(command))?.pop();
                    judge(command, &reply.unwrap_or(Reply::Nil), keyspace, target, state)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a command sets several keys, which are set one by one where it is refused.
fn may_be_split(command: &Words) -> bool {
    command[0].eq_ignore_ascii_case(b"mset") && command.len() > 3
}

fn empties(command: &Words) -> bool {
    [&b"FLUSHDB"[..], b"SWAPDB"].iter().any(|name| command[0].eq_ignore_ascii_case(name))
}

/// Executes once more what was taken before earlier commands of its keys, and returns the answers that count.
fn mend(
    commands: &[(u8, Words)],
    taken: Taken,
    target: &mut Target,
    state: &mut State,
) -> anyhow::Result<Vec<Reply>> {
    let mut replies = taken.replies;
    let repair = order::repair(commands, &taken.places);
    for index in repair.replaced {
        replies[index] = Reply::Nil;
    }
    let count = repair.again.len() as u64;
    for (index, keyspace, command) in repair.again {
        replies[index] = target.run_singly(keyspace, &[command])?.pop().unwrap_or(Reply::Nil);
    }
    if count > 0 {
        state
            .report
            .count("commands were applied again, behind earlier ones that the target had refused", count);
    }
    for key in repair.disordered {
        state
            .report
            .lose("keys whose commands were applied in another order than at the source", shown(&key));
    }
    Ok(replies)
}

/// Counts a command by its answer. An `MSET` that was refused is tried key by key.
fn judge(
    command: &Words,
    reply: &Reply,
    keyspace: u8,
    target: &mut Target,
    state: &mut State,
) -> anyhow::Result<()> {
    let Reply::Error(answer) = reply else {
        state.report.count("commands applied", 1);
        return Ok(());
    };
    let name = String::from_utf8_lossy(&command[0]).to_ascii_uppercase();
    if may_be_split(command) {
        let single: Vec<Words> = command[1..]
            .chunks_exact(2)
            .map(|pair| words!["SET", pair[0].clone(), pair[1].clone()])
            .collect();
        // One after the other: a key may be there twice.
        let replies = target.run_singly(keyspace, &single)?;
        if !replies.iter().any(Reply::is_error) {
            state.report.count("commands applied", 1);
            return Ok(());
        }
    }
    state.report.lose(
        format!("commands {name} that the target refused"),
        format!("{}: {answer}", shown_command(command)),
    );
    Ok(())
}
