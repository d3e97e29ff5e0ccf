//! An append-only file: commands as a client sends them, or a snapshot first and commands behind it.

use crate::error::{Damage, RdbError};
use crate::file::{Item, RdbReader, is_rdb};
use bytes::{Bytes, BytesMut};
use ensue_resp::parse::{ParseLimits, Parser};
use ensue_types::limits;
use std::io::BufRead;

/// What stands in an append-only file.
#[derive(Clone, Debug, PartialEq)]
pub enum AofItem {
    /// Of the snapshot that it begins with.
    Item(Item),
    Command(Vec<Bytes>),
    /// A command that is longer than Ensue takes one; it was read past.
    TooLong,
}

/// Reads a file from its beginning.
#[derive(Debug)]
pub struct AofReader<R> {
    state: State<R>,
}

#[derive(Debug)]
enum State<R> {
    Snapshot(RdbReader<R>),
    Commands(Commands<R>),
    /// Only while one becomes the other, or after an error.
    Over {
        offset: u64,
    },
}

/// The commands of a connection or a file, each with the offset behind it.
#[derive(Debug)]
struct Commands<R> {
    source: R,
    parser: Parser,
    buffer: BytesMut,
    /// Bytes taken from the source.
    taken: u64,
}

impl<R: BufRead> AofReader<R> {
    pub fn new(mut source: R) -> Result<AofReader<R>, RdbError> {
        let beginning = source.fill_buf().map_err(|error| RdbError::Io { offset: 0, error })?;
        let state = if is_rdb(beginning) {
            State::Snapshot(RdbReader::new(source)?)
        } else {
            State::Commands(Commands::new(source, 0))
        };
        Ok(AofReader { state })
    }

    /// Bytes read so far, to the end of the last item.
    pub fn offset(&self) -> u64 {
        match &self.state {
            State::Snapshot(snapshot) => snapshot.offset(),
            State::Commands(commands) => commands.offset(),
            State::Over { offset } => *offset,
        }
    }

    /// Whether a snapshot that it begins with, if it does, is over.
    pub fn is_amid_commands(&self) -> bool {
        matches!(self.state, State::Commands(_))
    }

    /// What comes next; nothing at the end. A file that ends amid a command is `Truncated`.
    pub fn next_item(&mut self) -> Result<Option<AofItem>, RdbError> {
        if let State::Snapshot(snapshot) = &mut self.state {
            if let Some(item) = snapshot.next_item()? {
                return Ok(Some(AofItem::Item(item)));
            }
            let offset = snapshot.offset();
            if let State::Snapshot(snapshot) = std::mem::replace(&mut self.state, State::Over { offset }) {
                self.state = State::Commands(Commands::new(snapshot.into_source(), offset));
            }
        }
        match &mut self.state {
            State::Commands(commands) => commands.next_command(),
            _ => Ok(None),
        }
    }
}

impl<R: BufRead> Commands<R> {
    /// Commands from here on, which is at this offset.
    fn new(source: R, offset: u64) -> Commands<R> {
        let limits = ParseLimits { arguments_max: limits::ARGUMENTS_MAX, ..ParseLimits::default() };
        Commands { source, parser: Parser::new(limits), buffer: BytesMut::new(), taken: offset }
    }

    /// The offset behind the last command.
    fn offset(&self) -> u64 {
        self.taken - self.buffer.len() as u64
    }

    fn next_command(&mut self) -> Result<Option<AofItem>, RdbError> {
        loop {
            if !self.parser.is_amid_command() && self.buffer.first().is_some_and(|byte| !b"*#".contains(byte))
            {
                return Err(self.damaged(Damage::NotCommand));
            }
            match self.parser.next(&mut self.buffer) {
                Err(_) => return Err(self.damaged(Damage::NotCommand)),
                Ok(Some(args)) if args.is_empty() => return Ok(Some(AofItem::TooLong)),
                // A note of its writer, such as the time.
                Ok(Some(args)) if args[0].starts_with(b"#") => continue,
                Ok(Some(args)) => return Ok(Some(AofItem::Command(args.into_iter().collect()))),
                Ok(None) => {}
            }
            let offset = self.taken;
            let bytes = self.source.fill_buf().map_err(|error| RdbError::Io { offset, error })?;
            if bytes.is_empty() {
                let is_whole = self.buffer.is_empty() && !self.parser.is_amid_command();
                return if is_whole { Ok(None) } else { Err(self.damaged(Damage::Truncated)) };
            }
            self.buffer.extend_from_slice(bytes);
            let count = bytes.len();
            self.taken += count as u64;
            self.source.consume(count);
        }
    }

    fn damaged(&self, damage: Damage) -> RdbError {
        RdbError::Damaged { offset: self.offset(), damage }
    }
}

#[cfg(test)]
mod tests;
