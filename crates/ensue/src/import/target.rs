//! The server that is written to: commands go in windows, and an answer that says that it cannot write now ends it.

use anyhow::{Context, bail};
use bytes::Bytes;
use ensue_client::{Connection, Options, Reply};

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

/// What an answer begins with that says nothing about the command: the server cannot take any now.
const NOT_NOW: [&str; 12] = [
    "LOADING",
    "UNAVAILABLE",
    "UNKNOWN",
    "STOPPED",
    "OOM",
    "NOAUTH",
    "NOPERM",
    "READONLY",
    "MISCONF",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "REJOIN",
];

/// A connection to it.
pub(crate) struct Target {
    connection: Connection,
    keyspace: Option<u8>,
}

impl Target {
    pub(crate) fn open(options: &Options) -> anyhow::Result<Target> {
        let mut connection = Connection::open(options)?;
        match connection.call(&[b"PING"])? {
            Reply::Error(words) => bail!("{}:{} answers: {words}", options.host, options.port),
            _ => Ok(Target { connection, keyspace: None }),
        }
    }

    /// The same as a user other than the default one.
    pub(crate) fn open_as(options: &Options, user: &str, password: &str) -> anyhow::Result<Target> {
        let mut connection = Connection::open(options)?;
        match connection.call(&[b"AUTH", user.as_bytes(), password.as_bytes()])? {
            Reply::Error(words) => bail!("{}:{} answers: {words}", options.host, options.port),
            _ => Ok(Target { connection, keyspace: None }),
        }
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
            let count = rest.iter().take(WINDOW_COMMANDS).take_while(fits).count().max(1);
            replies.extend(self.window(&rest[..count])?);
            rest = &rest[count..];
        }
        Ok(replies)
    }

    fn window(&mut self, commands: &[Words]) -> anyhow::Result<Vec<Reply>> {
        let slices: Vec<Vec<&[u8]>> =
            commands.iter().map(|command| command.iter().map(|word| &word[..]).collect()).collect();
        let slices: Vec<&[&[u8]]> = slices.iter().map(Vec::as_slice).collect();
        let replies = self.connection.pipeline(&slices).context("the target")?;
        for reply in &replies {
            let Reply::Error(words) = reply else { continue };
            if NOT_NOW.contains(&words.split(' ').next().unwrap_or_default()) {
                bail!("the target cannot take a command now: {words}");
            }
        }
        Ok(replies)
    }
}

fn select(keyspace: u8) -> Words {
    words!["SELECT", keyspace.to_string()]
}
