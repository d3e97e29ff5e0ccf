//! One of the two servers: commands in windows, answers one by one.
//!
//! Only stock commands that read are sent. What a server does not know is found out once a keyspace.

use super::answer;
use crate::import::target::{Words, words};
use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use ensue_client::{Connection, Options, Reply};
use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

/// Commands that are sent before their answers are read, and bytes of them: as many as sockets hold, so that the server
/// never waits for answers to be read while it is written to.
const WINDOW_COMMANDS: usize = 500;
const WINDOW_BYTES: usize = 32 << 10;

/// What an answer begins with that says nothing about the data: the server answers later.
const LATER: [&str; 7] = ["LOADING", "UNAVAILABLE", "TRYAGAIN", "BUSY", "NOTYET", "MASTERDOWN", "TAILLOST"];
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(200);

/// Keyspaces that are looked into although no list names them.
const KEYSPACES: u64 = 16;

/// No key of anybody has this name, so asking about it says only whether the command is known.
const PROBE: &str = "ensue:diff:no such key";

/// Which commands it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Knows {
    /// When a key expires, and not only in how long.
    pub(crate) deadlines: bool,
    /// When a field expires.
    pub(crate) field_deadlines: bool,
}

pub(crate) struct Side {
    /// `left` or `right`.
    name: &'static str,
    connection: Connection,
    knows: Knows,
}

impl Side {
    pub(crate) fn open(name: &'static str, options: &Options) -> anyhow::Result<Side> {
        let connection = Connection::open(options).with_context(|| format!("the {name} server"))?;
        let mut side = Side { name, connection, knows: Knows::default() };
        side.ask(words!["PING"])?;
        Ok(side)
    }

    pub(crate) fn knows(&self) -> Knows {
        self.knows
    }

    /// The keyspaces that have keys.
    pub(crate) fn keyspaces(&mut self) -> anyhow::Result<BTreeSet<u64>> {
        let info = self.run(&[words!["INFO", "keyspace"]])?.pop();
        // Whoever may not run INFO finds the usual ones by asking for them one by one.
        let mut found = info.as_ref().and_then(answer::text).map(|text| listed(&text)).unwrap_or_default();
        let questions =
            (0..KEYSPACES).flat_map(|keyspace| [words!["SELECT", keyspace.to_string()], words!["DBSIZE"]]);
        let answers = self.run(&questions.collect::<Vec<_>>())?;
        // Where it cannot be selected, the number is of the one before.
        let has_keys = |answers: &[Reply]| matches!(answers, [Reply::Status(_), Reply::Integer(1..)]);
        let asked = (0..KEYSPACES).zip(answers.chunks(2));
        found.extend(asked.filter(|(_, answers)| has_keys(answers)).map(|(keyspace, _)| keyspace));
        Ok(found)
    }

    /// Selects a keyspace, and returns how many keys it has.
    pub(crate) fn enter(&mut self, keyspace: u64) -> anyhow::Result<u64> {
        self.ask(words!["SELECT", keyspace.to_string()])?;
        let probes = [words!["PEXPIRETIME", PROBE], words!["HPEXPIRETIME", PROBE, "FIELDS", "1", "f"]];
        let answers = self.run(&probes)?;
        let is_known = |reply: Option<&Reply>| match reply {
            // Whoever may not use it is told so by the keys, instead of being told that nothing differs.
            Some(Reply::Error(words)) => words.starts_with("NOPERM"),
            _ => true,
        };
        self.knows =
            Knows { deadlines: is_known(answers.first()), field_deadlines: is_known(answers.get(1)) };
        let size = self.ask(words!["DBSIZE"])?;
        let size =
            answer::integer(&size).map_err(|words| anyhow!("DBSIZE of the {} server: {words}", self.name))?;
        Ok(u64::try_from(size).unwrap_or_default())
    }

    /// The answer to a command without which there is no going on.
    pub(crate) fn ask(&mut self, command: Words) -> anyhow::Result<Reply> {
        let began = Instant::now();
        loop {
            match self.run(std::slice::from_ref(&command))?.pop() {
                Some(Reply::Error(words)) if is_later(&words) && began.elapsed() < PATIENCE => {
                    thread::sleep(PAUSE)
                }
                Some(Reply::Error(words)) => {
                    let command = String::from_utf8_lossy(&command[0]).into_owned();
                    bail!("the {} server answers to {command}: {words}", self.name)
                }
                Some(reply) => return Ok(reply),
                None => bail!("the {} server gives no answer", self.name),
            }
        }
    }

    pub(crate) fn run(&mut self, commands: &[Words]) -> anyhow::Result<Vec<Reply>> {
        let mut replies = Vec::with_capacity(commands.len());
        self.each(commands, |_, reply| replies.push(reply))?;
        Ok(replies)
    }

    /// Hands out the answer to each command by its place; no two of them are held.
    pub(crate) fn each(
        &mut self,
        commands: &[Words],
        mut take: impl FnMut(usize, Reply),
    ) -> anyhow::Result<()> {
        let mut first = 0;
        while first < commands.len() {
            let mut bytes = 0;
            let fits = |command: &&Words| {
                bytes += command.iter().map(Bytes::len).sum::<usize>();
                bytes <= WINDOW_BYTES
            };
            let count = commands[first..].iter().take(WINDOW_COMMANDS).take_while(fits).count().max(1);
            self.window(&commands[first..first + count], |place, reply| take(first + place, reply))
                .with_context(|| format!("the {} server", self.name))?;
            first += count;
        }
        Ok(())
    }

    fn window(&mut self, commands: &[Words], mut take: impl FnMut(usize, Reply)) -> anyhow::Result<()> {
        let words: Vec<Vec<&[u8]>> =
            commands.iter().map(|command| command.iter().map(|word| &word[..]).collect()).collect();
        self.connection.send_all(&words.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        for place in 0..commands.len() {
            take(place, self.connection.receive()?);
        }
        Ok(())
    }
}

fn is_later(words: &str) -> bool {
    LATER.contains(&words.split(' ').next().unwrap_or_default())
}

/// The numbers in the lines `db3:keys=5,…`.
fn listed(text: &[u8]) -> BTreeSet<u64> {
    let text = String::from_utf8_lossy(text);
    let numbers = text.lines().filter_map(|line| line.strip_prefix("db")?.split_once(':')?.0.parse().ok());
    numbers.collect()
}

#[cfg(test)]
mod tests;
