//! The server that is written to: commands go in windows.
//!
//! An answer may say that the server cannot take a command now, and that nothing has happened: memory or disk is full,
//! a link has been cut for long, a partition reads its log. An import and a restore wait then: the refused commands of
//! the window are sent again in their order before the next window, and never a second time those that were executed.
//! So a refused command follows later ones of its window that were taken: [`Taken`] says which, and whoever sent them
//! has to mend that. For everybody else it is an error. Answers that say that something may have happened, or that a
//! person must do something, are errors in any case.

use super::Stop;
use anyhow::{Context, bail};
use bytes::Bytes;
use ensue_client::{Connection, Options, Reply};
use std::thread;
use std::time::{Duration, Instant};

/// A command and its arguments.
pub(crate) type Words = Vec<Bytes>;

/// A command of words of both kinds.
macro_rules! words {
    ($($word:expr),+ $(,)?) => { vec![$(bytes::Bytes::from($word)),+] };
}
pub(crate) use words;

/// Commands that are sent before their answers are read, and bytes of them.
const WINDOW_COMMANDS: usize = 1_000;
const WINDOW_BYTES: usize = 4 << 20;

/// What an answer begins with that says nothing about the command: the server takes it later, as it is.
const LATER: [&str; 14] = [
    "LOADING",
    "UNAVAILABLE",
    "OOM",
    "BACKLOG",
    "DISKFULL",
    "TAILLOST",
    "CLOCKAHEAD",
    "NOREPLICAS",
    "BUSY",
    "HOMEAWAY",
    "NOTYET",
    "BLOCKED",
    "FALLBACK",
    "TRYAGAIN",
];

/// The same, but waiting does not help, or it is not known whether the command was executed.
const NEVER: [&str; 9] = [
    "UNKNOWN",
    "STOPPED",
    "NOAUTH",
    "NOPERM",
    "READONLY",
    "MISCONF",
    "CLUSTERDOWN",
    "REJOIN",
    "DECLAREDDEAD",
];

/// How long it is waited for a server that takes commands later.
const PATIENCE: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_millis(200);

/// Answers to commands.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) replies: Vec<Reply>,
    /// The place in which each command was taken: a later one than its own where it was refused at first.
    pub(crate) places: Vec<usize>,
}

impl Taken {
    pub(crate) fn is_in_order(&self) -> bool {
        self.places.is_sorted()
    }
}

/// A connection to it.
pub(crate) struct Target {
    connection: Connection,
    keyspace: Option<u8>,
    /// It is waited for, until somebody wants an end.
    waits: Option<Stop>,
}

impl Target {
    pub(crate) fn open(options: &Options) -> anyhow::Result<Target> {
        let mut connection = Connection::open(options)?;
        match connection.call(&[b"PING"])? {
            Reply::Error(words) => bail!("{}:{} answers: {words}", options.host, options.port),
            _ => Ok(Target { connection, keyspace: None, waits: None }),
        }
    }

    /// From now on it is waited for what it takes later, until somebody wants an end.
    pub(crate) fn wait_for_it(&mut self, stop: &Stop) {
        self.waits = Some(stop.clone());
    }

    /// Runs commands in a keyspace, and returns an answer for each.
    pub(crate) fn run(&mut self, keyspace: u8, commands: &[Words]) -> anyhow::Result<Vec<Reply>> {
        Ok(self.take(keyspace, commands)?.replies)
    }

    /// The same, with the places in which they were taken.
    pub(crate) fn take(&mut self, keyspace: u8, commands: &[Words]) -> anyhow::Result<Taken> {
        if self.keyspace != Some(keyspace) {
            let taken = self.windows(&[select(keyspace)])?;
            self.selected(keyspace, taken.replies.first())?;
        }
        self.windows(commands)
    }

    /// The same, each command after the one before it was taken.
    pub(crate) fn run_singly(&mut self, keyspace: u8, commands: &[Words]) -> anyhow::Result<Vec<Reply>> {
        let mut replies = Vec::with_capacity(commands.len());
        for command in commands {
            replies.extend(self.run(keyspace, std::slice::from_ref(command))?);
        }
        Ok(replies)
    }

    /// Writes the value of a key that nobody else writes. If a part of it was taken too early, it is written anew.
    pub(crate) fn run_value(
        &mut self,
        keyspace: u8,
        key: &Bytes,
        commands: &[Words],
    ) -> anyhow::Result<Vec<Reply>> {
        let taken = self.take(keyspace, commands)?;
        if taken.is_in_order() { Ok(taken.replies) } else { self.run_value_anew(keyspace, key, commands) }
    }

    /// Writes the value of a key from nothing, in its order.
    pub(crate) fn run_value_anew(
        &mut self,
        keyspace: u8,
        key: &Bytes,
        commands: &[Words],
    ) -> anyhow::Result<Vec<Reply>> {
        self.run(keyspace, &[words!["DEL", key.clone()]])?;
        self.run_singly(keyspace, commands)
    }

    /// Runs commands each in a keyspace of its own, and returns an answer for each.
    pub(crate) fn run_each(&mut self, commands: &[(u8, Words)]) -> anyhow::Result<Taken> {
        let (mut all, mut is_select, mut current) = (Vec::new(), Vec::new(), self.keyspace);
        for (keyspace, command) in commands {
            if current != Some(*keyspace) {
                current = Some(*keyspace);
                all.push(select(*keyspace));
                is_select.push(Some(*keyspace));
            }
            all.push(command.clone());
            is_select.push(None);
        }
        let mut of_commands = Taken::default();
        let taken = self.windows(&all)?;
        for ((reply, place), select) in taken.replies.into_iter().zip(taken.places).zip(is_select) {
            match select {
                Some(keyspace) => self.selected(keyspace, Some(&reply))?,
                None => {
                    of_commands.replies.push(reply);
                    of_commands.places.push(place);
                }
            }
        }
        Ok(of_commands)
    }

    fn selected(&mut self, keyspace: u8, reply: Option<&Reply>) -> anyhow::Result<()> {
        if let Some(Reply::Error(words)) = reply {
            bail!("keyspace {keyspace} of the target: {words}");
        }
        self.keyspace = Some(keyspace);
        Ok(())
    }

    fn windows(&mut self, commands: &[Words]) -> anyhow::Result<Taken> {
        let mut taken = Taken::default();
        if commands.first().is_some_and(|first| first[0].eq_ignore_ascii_case(b"multi")) {
            // A part of a transaction must not be sent a second time.
            taken.replies = self.transaction(commands)?;
            taken.places = (0..commands.len()).collect();
            return Ok(taken);
        }
        let mut rest = commands;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |command: &&Words| {
                bytes += command.iter().map(Bytes::len).sum::<usize>();
                bytes <= WINDOW_BYTES
            };
            // Whatever is executed once more is of the keyspace that was selected last.
            let stays = |command: &(usize, &Words)| command.0 == 0 || &command.1[0][..] != SELECT;
            let window = rest.iter().enumerate().take(WINDOW_COMMANDS).take_while(stays);
            let count = window.map(|(_, command)| command).take_while(fits).count().max(1);
            self.window(&rest[..count], &mut taken)?;
            rest = &rest[count..];
        }
        Ok(taken)
    }

    fn transaction(&mut self, commands: &[Words]) -> anyhow::Result<Vec<Reply>> {
        let began = Instant::now();
        loop {
            let replies = self.call(commands)?;
            match replies.iter().find_map(|reply| word_of(reply, &LATER)) {
                Some(words) => self.pause(words, began)?,
                None => return Ok(replies),
            }
        }
    }

    fn window(&mut self, commands: &[Words], taken: &mut Taken) -> anyhow::Result<()> {
        let mut replies = self.call(commands)?;
        let began = Instant::now();
        let first = taken.places.iter().max().map_or(0, |last| last + 1);
        let mut places: Vec<usize> = (first..first + commands.len()).collect();
        let mut next = first + commands.len();
        while let Some(words) = replies.iter().find_map(|reply| word_of(reply, &LATER)) {
            self.pause(words, began)?;
            for ((command, reply), place) in commands.iter().zip(&mut replies).zip(&mut places) {
                if word_of(reply, &LATER).is_some() {
                    *reply = self.call(std::slice::from_ref(command))?.pop().unwrap_or(Reply::Nil);
                    if word_of(reply, &LATER).is_some() {
                        break;
                    }
                    *place = next;
                    next += 1;
                }
            }
        }
        taken.replies.extend(replies);
        taken.places.extend(places);
        Ok(())
    }

    /// Waits for a moment, or ends it.
    fn pause(&self, words: &str, began: Instant) -> anyhow::Result<()> {
        let waits = self.waits.as_ref().is_some_and(|stop| !stop.is_asked());
        if !waits || began.elapsed() > PATIENCE {
            bail!("the target cannot take a command now: {words}");
        }
        thread::sleep(PAUSE);
        Ok(())
    }

    fn call(&mut self, commands: &[Words]) -> anyhow::Result<Vec<Reply>> {
        let slices: Vec<Vec<&[u8]>> =
            commands.iter().map(|command| command.iter().map(|word| &word[..]).collect()).collect();
        let slices: Vec<&[&[u8]]> = slices.iter().map(Vec::as_slice).collect();
        let replies = self.connection.pipeline(&slices).context("the target")?;
        if let Some(words) = replies.iter().find_map(|reply| word_of(reply, &NEVER)) {
            bail!("the target cannot take a command now: {words}");
        }
        Ok(replies)
    }
}

/// What an answer says, if it begins with one of these words.
fn word_of<'r>(reply: &'r Reply, known: &[&str]) -> Option<&'r str> {
    let Reply::Error(words) = reply else { return None };
    known.contains(&words.split(' ').next().unwrap_or_default()).then_some(words)
}

const SELECT: &[u8] = b"SELECT";

fn select(keyspace: u8) -> Words {
    words![SELECT, keyspace.to_string()]
}
