//! The server that is written to: commands go in windows.
//!
//! An answer may say that the server cannot take a command now, and that nothing has happened: memory or disk is full,
//! a link has been cut for long, a partition reads its log. An import and a restore wait then: the refused commands of
//! the window are sent again in their order before the next window, and never a second time those that were executed.
//! So a refused command follows later ones of its window that were taken. For everybody else it is an error. Answers
//! that say that something may have happened, or that a person must do something, are errors in any case.

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
        if self.keyspace != Some(keyspace) {
            let reply = self.windows(&[select(keyspace)])?;
            self.selected(keyspace, reply.first())?;
        }
        self.windows(commands)
    }

    /// Runs commands each in a keyspace of its own, in their order, and returns an answer for each.
    pub(crate) fn run_each(&mut self, commands: &[(u8, Words)]) -> anyhow::Result<Vec<Reply>> {
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
        let mut replies = Vec::with_capacity(commands.len());
        for (reply, select) in self.windows(&all)?.into_iter().zip(is_select) {
            match select {
                Some(keyspace) => self.selected(keyspace, Some(&reply))?,
                None => replies.push(reply),
            }
        }
        Ok(replies)
    }

    fn selected(&mut self, keyspace: u8, reply: Option<&Reply>) -> anyhow::Result<()> {
        if let Some(Reply::Error(words)) = reply {
            bail!("keyspace {keyspace} of the target: {words}");
        }
        self.keyspace = Some(keyspace);
        Ok(())
    }

    fn windows(&mut self, commands: &[Words]) -> anyhow::Result<Vec<Reply>> {
        let mut replies = Vec::with_capacity(commands.len());
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
            replies.extend(self.window(&rest[..count])?);
            rest = &rest[count..];
        }
        Ok(replies)
    }

    fn window(&mut self, commands: &[Words]) -> anyhow::Result<Vec<Reply>> {
        let mut replies = self.call(commands)?;
        let is_transaction = commands.first().is_some_and(|first| first[0].eq_ignore_ascii_case(b"multi"));
        let began = Instant::now();
        while let Some(words) = replies.iter().find_map(|reply| word_of(reply, &LATER)) {
            self.pause(words, began)?;
            if is_transaction {
                replies = self.call(commands)?;
                continue;
            }
            for (command, reply) in commands.iter().zip(&mut replies) {
                if word_of(reply, &LATER).is_some() {
                    *reply = self.call(std::slice::from_ref(command))?.pop().unwrap_or(Reply::Nil);
                    if word_of(reply, &LATER).is_some() {
                        break;
                    }
                }
            }
        }
        Ok(replies)
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
