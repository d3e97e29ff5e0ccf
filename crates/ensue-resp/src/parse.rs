//! From the bytes of a connection to commands, however the bytes were cut on their way.
//!
//! Bytes arrive in a buffer that the caller fills; commands leave as slices of that buffer, without a copy. The
//! parser promises: any split of the same bytes gives the same commands and the same error; nothing is allocated
//! because a client announced it, only because it arrived; bytes are looked at once, however slowly an argument
//! arrives. After an error the parser stays failed, because the framing is lost.
//!
//! As in Redis, the two bytes after a bulk string are skipped unread, and so is the byte after a header's `\r`. The
//! parser does not know command names, and does not detach small arguments from the big buffer that they point into:
//! whoever keeps an argument for long should copy it.

mod inline;

use crate::{ParseError, number};
use bytes::{Buf, Bytes, BytesMut};
use ensue_types::{Args, limits};
use std::ops::Range;

/// How much one command may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseLimits {
    /// Longest argument.
    pub bulk_bytes_max: usize,
    /// Most arguments, with the command's name.
    pub arguments_max: usize,
    /// Longest inline command, and longest line of a header.
    pub inline_bytes_max: usize,
    /// All arguments of one command together: it must fit a frame between nodes.
    pub command_bytes_max: usize,
    /// Whether a refusal is to say that authentication would help.
    pub authenticated: bool,
}

impl ParseLimits {
    /// For a connection that has not authenticated where a password is set.
    pub fn before_auth() -> ParseLimits {
        ParseLimits {
            bulk_bytes_max: limits::BULK_BYTES_BEFORE_AUTH_MAX,
            arguments_max: limits::ARGUMENTS_BEFORE_AUTH_MAX,
            inline_bytes_max: limits::BULK_BYTES_BEFORE_AUTH_MAX,
            command_bytes_max: limits::COMMAND_BYTES_BEFORE_AUTH_MAX,
            authenticated: false,
        }
    }

    fn refuse_arguments(&self, count: i64) -> Option<ParseError> {
        match usize::try_from(count) {
            Ok(count) if count <= self.arguments_max => None,
            Ok(count) if !self.authenticated && count <= limits::ARGUMENTS_MAX => {
                Some(ParseError::UnauthenticatedMultibulkLength)
            }
            _ => Some(ParseError::InvalidMultibulkLength),
        }
    }

    fn refuse_bulk(&self, length: i64) -> Option<ParseError> {
        let bytes_max = if self.authenticated { limits::BULK_BYTES_SKIPPED_MAX } else { self.bulk_bytes_max };
        match usize::try_from(length) {
            Ok(length) if length <= bytes_max => None,
            Ok(length) if !self.authenticated && length <= limits::BULK_BYTES_SKIPPED_MAX => {
                Some(ParseError::UnauthenticatedBulkLength)
            }
            _ => Some(ParseError::InvalidBulkLength),
        }
    }
}

impl Default for ParseLimits {
    fn default() -> ParseLimits {
        ParseLimits {
            bulk_bytes_max: limits::BULK_BYTES_MAX,
            arguments_max: limits::ARGUMENTS_MAX,
            inline_bytes_max: limits::INLINE_BYTES_MAX,
            command_bytes_max: 2 * limits::BULK_BYTES_MAX,
            authenticated: true,
        }
    }
}

/// Whether a command is the first word of an HTTP request or of one of its headers, `POST` or `Host:`. No client of
/// Redis sends it, and a
/// browser that a web page makes send it would go on with lines that are commands.
pub fn is_cross_protocol(args: &Args) -> bool {
    args.first().is_some_and(|word| word.eq_ignore_ascii_case(b"post") || word.eq_ignore_ascii_case(b"host:"))
}

/// The state between two arrivals of bytes. One a connection.
#[derive(Clone, Debug)]
pub struct Parser {
    limits: ParseLimits,
    /// The arguments of the present command that have arrived whole.
    args: Args,
    /// How many are still to come; zero between commands.
    missing: usize,
    /// The announced length of the argument that is arriving.
    bulk: Option<usize>,
    /// Announced bytes of the present command so far.
    command_bytes: usize,
    /// The present command is longer than allowed: its bytes are read past. What is left of the argument that is
    /// arriving then counts its end, too.
    too_long: bool,
    /// Bytes at the front of the buffer that are known to hold no end of line.
    scanned: usize,
    failed: Option<ParseError>,
}

impl Parser {
    /// A parser for a connection that has sent nothing yet.
    pub fn new(limits: ParseLimits) -> Parser {
        Parser {
            limits,
            args: Args::new(),
            missing: 0,
            bulk: None,
            command_bytes: 0,
            too_long: false,
            scanned: 0,
            failed: None,
        }
    }

    /// Changes the limits for every header read from now on: after `AUTH`, or after `RESET`.
    pub fn set_limits(&mut self, limits: ParseLimits) {
        self.limits = limits;
    }

    /// Bytes that the buffer must hold at the least before [`Parser::next`] can give more than it did.
    ///
    /// A hint for the next read; a caller should not allocate it before the bytes come.
    pub fn wanted_bytes(&self) -> usize {
        let bulk = if self.too_long { None } else { self.bulk };
        bulk.map_or(1, |length| length + TERMINATOR_BYTES)
    }

    /// Whether a command has arrived in part.
    pub fn is_amid_command(&self) -> bool {
        self.missing > 0
    }

    /// Takes the next whole command off the front of the buffer, or nothing if it has not arrived.
    ///
    /// A command without a word stands for one that was longer than allowed, and has been read past. It is to be
    /// answered by [`CommandError::TooLong`](crate::CommandError::TooLong).
    ///
    /// The caller may append to the buffer between two calls and must not change it otherwise.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Args>, ParseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.advance(buffer);
        if let Err(error) = result {
            self.failed = Some(error);
            self.args = Args::new();
        }
        result
    }

    fn advance(&mut self, buffer: &mut BytesMut) -> Result<Option<Args>, ParseError> {
        while self.missing == 0 {
            match buffer.first() {
                None => return Ok(None),
                Some(b'*') => {
                    if let Some(args) = self.whole_command(buffer) {
                        return Ok(Some(args));
                    }
                    if !self.begin_command(buffer)? {
                        return Ok(None);
                    }
                }
                Some(_) => match self.inline_command(buffer)? {
                    None => return Ok(None),
                    Some(args) if args.is_empty() => {}
                    Some(args) => return Ok(Some(args)),
                },
            }
        }
        self.arguments(buffer)
    }

    /// Cuts a command out of the buffer at once that has arrived whole and is short, as nearly all are. Whatever is
    /// unusual about another one is found when it is read argument by argument.
    fn whole_command(&mut self, buffer: &mut BytesMut) -> Option<Args> {
        let (count, mut at) = short_header(buffer)?;
        if count == 0 || count > self.limits.arguments_max.min(SHORT_ARGUMENTS_MAX) {
            return None;
        }
        let mut ranges = [const { 0..0 }; SHORT_ARGUMENTS_MAX];
        let mut left = self.limits.command_bytes_max;
        for range in &mut ranges[..count] {
            let rest = buffer.get(at..)?;
            let (length, header) = short_header(rest).filter(|_| rest[0] == b'$')?;
            if length > self.limits.bulk_bytes_max || rest.len() < header + length + TERMINATOR_BYTES {
                return None;
            }
            left = left.checked_sub(length)?;
            *range = at + header..at + header + length;
            at += header + length + TERMINATOR_BYTES;
        }
        self.scanned = 0;
        let whole = buffer.split_to(at).freeze();
        let argument =
            |range: &Range<usize>| if range.is_empty() { Bytes::new() } else { whole.slice(range.clone()) };
        Some(ranges[..count].iter().map(argument).collect())
    }

    /// Reads `*<count>`. A count of zero or less is a command without a word: it is skipped.
    fn begin_command(&mut self, buffer: &mut BytesMut) -> Result<bool, ParseError> {
        let Some(header) = self.header(buffer, ParseError::TooBigMultibulkCount)? else {
            return Ok(false);
        };
        let count = header.number.ok_or(ParseError::InvalidMultibulkLength)?;
        if count > 0 {
            if let Some(error) = self.limits.refuse_arguments(count) {
                return Err(error);
            }
            self.missing = count as usize;
            self.args = Args::with_capacity(self.missing.min(ARGUMENTS_RESERVED_MAX));
            self.command_bytes = 0;
        }
        buffer.advance(header.length);
        Ok(true)
    }

    fn arguments(&mut self, buffer: &mut BytesMut) -> Result<Option<Args>, ParseError> {
        while self.missing > 0 {
            let (length, end) = match self.bulk {
                Some(length) => (length, 0),
                None => match self.begin_bulk(buffer)? {
                    Some(length) => (length, TERMINATOR_BYTES),
                    None => return Ok(None),
                },
            };
            if self.too_long {
                if !self.skip_argument(buffer, length + end) {
                    return Ok(None);
                }
                continue;
            }
            if buffer.len() < length + TERMINATOR_BYTES {
                self.bulk = Some(length);
                return Ok(None);
            }
            self.bulk = None;
            let argument = if length == 0 { Bytes::new() } else { buffer.split_to(length).freeze() };
            buffer.advance(TERMINATOR_BYTES);
            self.args.push(argument);
            self.missing -= 1;
        }
        self.too_long = false;
        Ok(Some(std::mem::take(&mut self.args)))
    }

    /// Reads past the argument that is arriving, of which so much is left with its end. Whether that was all of it.
    fn skip_argument(&mut self, buffer: &mut BytesMut, left: usize) -> bool {
        self.args = Args::new();
        let arrived = left.min(buffer.len());
        buffer.advance(arrived);
        self.bulk = (arrived < left).then_some(left - arrived);
        self.missing -= usize::from(self.bulk.is_none());
        self.bulk.is_none()
    }

    /// Reads `$<length>` of the next argument.
    fn begin_bulk(&mut self, buffer: &mut BytesMut) -> Result<Option<usize>, ParseError> {
        match buffer.first() {
            None => return Ok(None),
            Some(b'$') => {}
            Some(&got) => return Err(ParseError::ExpectedBulk { got }),
        }
        let Some(header) = self.header(buffer, ParseError::TooBigBulkCount)? else {
            return Ok(None);
        };
        let length = header.number.ok_or(ParseError::InvalidBulkLength)?;
        if let Some(error) = self.limits.refuse_bulk(length) {
            return Err(error);
        }
        let length = length as usize;
        self.command_bytes = self.command_bytes.saturating_add(length);
        if length > self.limits.bulk_bytes_max || self.command_bytes > self.limits.command_bytes_max {
            if !self.limits.authenticated {
                return Err(ParseError::TooBigRequest);
            }
            self.too_long = true;
        }
        buffer.advance(header.length);
        Ok(Some(length))
    }

    /// Finds the end of the header at the front of the buffer and reads the number in it.
    fn header(&mut self, buffer: &[u8], endless: ParseError) -> Result<Option<Header>, ParseError> {
        if let Some((number, length)) = short_header(buffer) {
            self.scanned = 0;
            return Ok(Some(Header { number: Some(number as i64), length }));
        }
        let Some(end) = self.find(b'\r', buffer, endless)? else { return Ok(None) };
        if buffer.len() < end + TERMINATOR_BYTES {
            self.scanned = end;
            return Ok(None);
        }
        self.scanned = 0;
        Ok(Some(Header { number: number::parse_i64(&buffer[1..end]), length: end + TERMINATOR_BYTES }))
    }

    fn inline_command(&mut self, buffer: &mut BytesMut) -> Result<Option<Args>, ParseError> {
        let Some(end) = self.find(b'\n', buffer, ParseError::TooBigInline)? else { return Ok(None) };
        self.scanned = 0;
        let line = buffer.split_to(end).freeze();
        buffer.advance(1);
        let args = inline::split(&line)?;
        match self.limits.refuse_arguments(args.len() as i64) {
            Some(error) => Err(error),
            None => Ok(Some(args)),
        }
    }

    /// Looks for a byte within the longest line allowed; where it stands must not depend on how the line arrived.
    fn find(&mut self, byte: u8, buffer: &[u8], endless: ParseError) -> Result<Option<usize>, ParseError> {
        let longest = self.limits.inline_bytes_max;
        let window = &buffer[..buffer.len().min(longest + 1)];
        let from = self.scanned.min(window.len());
        match window[from..].iter().position(|&found| found == byte) {
            Some(offset) => Ok(Some(from + offset)),
            None if buffer.len() > longest => Err(endless),
            None => {
                self.scanned = window.len();
                Ok(None)
            }
        }
    }
}

/// The number in the header at the front, and how long that is, if the number has one or two digits: almost every one
/// has.
fn short_header(buffer: &[u8]) -> Option<(usize, usize)> {
    match *buffer {
        [_, digit @ b'0'..=b'9', b'\r', _, ..] => Some((usize::from(digit - b'0'), 4)),
        [_, tens @ b'1'..=b'9', digit @ b'0'..=b'9', b'\r', _, ..] => {
            Some((usize::from(tens - b'0') * 10 + usize::from(digit - b'0'), 5))
        }
        _ => None,
    }
}

/// A line `*<number>` or `$<number>`.
struct Header {
    /// Nothing if the text is no number.
    number: Option<i64>,
    /// Bytes of the line, with its end.
    length: usize,
}

/// `\r\n`.
const TERMINATOR_BYTES: usize = 2;
/// Room for the arguments of nearly every command; the announced count is no reason to reserve more.
const ARGUMENTS_RESERVED_MAX: usize = 8;
/// Commands of so many arguments are cut out of the buffer at once, if all their headers are short.
const SHORT_ARGUMENTS_MAX: usize = 8;

#[cfg(test)]
mod tests;
