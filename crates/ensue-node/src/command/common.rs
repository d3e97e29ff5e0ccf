//! `LCS`: the longest common subsequence of two strings, by the table of all prefixes.
//!
//! The table takes four bytes for each pair of places, so the strings are bounded together.

use super::{integer, text_of};
use crate::evaluate::{Evaluation, Halt};
use bytes::Bytes;
use ensue_resp::CommandError;
use ensue_resp::request::CommonPart;
use ensue_types::{Column, Reply, limits};

pub(super) fn evaluate(
    evaluation: &mut Evaluation<'_>,
    keys: &[Bytes; 2],
    part: &Result<CommonPart, CommandError>,
) -> Result<Reply, Halt> {
    let mut texts = [Bytes::new(), Bytes::new()];
    for (key, text) in keys.iter().zip(&mut texts) {
        *text = match evaluation.content(key, &Column::Text) {
            Ok(content) => text_of(content).unwrap_or_default(),
            Err(Halt::WrongType) => return Err(CommandError::Argument(NOT_STRINGS).into()),
            Err(halt) => return Err(halt),
        };
    }
    let part = part.clone()?;
    let [one, other] = texts;
    let cells = (one.len() + 1).saturating_mul(other.len() + 1);
    if cells.saturating_mul(size_of::<u32>()) > limits::BULK_BYTES_MAX {
        return Err(CommandError::Argument(TOO_LONG).into());
    }
    let table = Table::new(&one, &other);
    Ok(match part {
        CommonPart::Length => integer(table.at(one.len(), other.len()) as usize),
        CommonPart::Text => Reply::bulk(table.text(&one, &other)),
        CommonPart::Places { length_min, with_lengths } => {
            let pieces = table.pieces(&one, &other);
            let pieces = pieces.into_iter().filter(|piece| piece.length >= length_min);
            let matches = pieces.map(|piece| piece.reply(with_lengths)).collect();
            Reply::Map(vec![
                (Reply::bulk("matches"), Reply::Array(matches)),
                (Reply::bulk("len"), integer(table.at(one.len(), other.len()) as usize)),
            ])
        }
    })
}

/// The lengths of the longest common subsequences of all prefixes.
struct Table {
    lengths: Vec<u32>,
    width: usize,
}

/// Neighbouring bytes that both strings have.
struct Piece {
    begin: usize,
    other_begin: usize,
    length: usize,
}

impl Piece {
    fn reply(&self, with_lengths: bool) -> Reply {
        let range = |begin: usize| Reply::Array(vec![integer(begin), integer(begin + self.length - 1)]);
        let mut parts = vec![range(self.begin), range(self.other_begin)];
        if with_lengths {
            parts.push(integer(self.length));
        }
        Reply::Array(parts)
    }
}

impl Table {
    fn new(one: &[u8], other: &[u8]) -> Table {
        let width = other.len() + 1;
        let mut lengths = vec![0; (one.len() + 1) * width];
        for (row, byte) in one.iter().enumerate() {
            let (above, below) = lengths[row * width..(row + 2) * width].split_at_mut(width);
            for (column, other_byte) in other.iter().enumerate() {
                below[column + 1] = match byte == other_byte {
                    true => above[column] + 1,
                    false => above[column + 1].max(below[column]),
                };
            }
        }
        Table { lengths, width }
    }

    fn at(&self, row: usize, column: usize) -> u32 {
        self.lengths[row * self.width + column]
    }

    /// The places of common bytes, last first.
    fn matches(&self, one: &[u8], other: &[u8]) -> Vec<(usize, usize)> {
        let (mut row, mut column) = (one.len(), other.len());
        let mut matches = Vec::new();
        while row > 0 && column > 0 {
            if one[row - 1] == other[column - 1] {
                row -= 1;
                column -= 1;
                matches.push((row, column));
            } else if self.at(row - 1, column) > self.at(row, column - 1) {
                row -= 1;
            } else {
                column -= 1;
            }
        }
        matches
    }

    fn text(&self, one: &[u8], other: &[u8]) -> Bytes {
        self.matches(one, other).into_iter().rev().map(|(row, _)| one[row]).collect()
    }

    /// Common bytes that are neighbours in both strings, last first.
    fn pieces(&self, one: &[u8], other: &[u8]) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for (begin, other_begin) in self.matches(one, other) {
            match pieces.last_mut() {
                Some(last) if (last.begin, last.other_begin) == (begin + 1, other_begin + 1) => {
                    *last = Piece { begin, other_begin, length: last.length + 1 };
                }
                _ => pieces.push(Piece { begin, other_begin, length: 1 }),
            }
        }
        pieces
    }
}

const NOT_STRINGS: &str = "The specified keys must contain string values";
const TOO_LONG: &str = "Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len";
