//! Histories as text: which forms there are, and what can be wrong with a file.

pub mod jsonl;
pub mod plume;

use crate::history::History;
use std::io::{self, BufRead, Write};

/// A form of text that histories come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON lines, our own; nothing is lost in it.
    Jsonl,
    /// The text form of Plume, which other checkers read; registers only.
    Plume,
}

/// Why a file is not a history.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("line {line}, column {column}: {message}")]
    Line { line: u32, column: u32, message: String },
    #[error("cannot read on: {0}")]
    Io(#[from] io::Error),
}

/// Why a history cannot be written in a form.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{0}")]
    NotExpressible(String),
    #[error("cannot write on: {0}")]
    Io(#[from] io::Error),
}

impl Format {
    pub const ALL: [Format; 2] = [Format::Jsonl, Format::Plume];

    pub fn name(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Plume => "plume",
        }
    }

    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    pub fn read(self, input: &mut dyn BufRead) -> Result<History, ReadError> {
        match self {
            Format::Jsonl => jsonl::read(input),
            Format::Plume => plume::read(input),
        }
    }

    pub fn write(self, history: &History, output: &mut dyn Write) -> Result<(), WriteError> {
        match self {
            Format::Jsonl => jsonl::write(history, output),
            Format::Plume => plume::write(history, output),
        }
    }
}
