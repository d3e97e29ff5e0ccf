//! An answer to a client on its way between nodes: a kind, then the value. Not RESP, which only the edge speaks.

use super::reader::{self, Reader};
use super::writer::Writer;
use crate::error::Malformed;
use crate::limits;
use ensue_types::Reply;
use std::borrow::Cow;

const STATUS: u8 = 1;
const ERROR: u8 = 2;
const INTEGER: u8 = 3;
const BULK: u8 = 4;
const VERBATIM: u8 = 5;
const NIL: u8 = 6;
const NIL_ARRAY: u8 = 7;
const ARRAY: u8 = 8;
const MAP: u8 = 9;
const SET: u8 = 10;
const DOUBLE: u8 = 11;
const FALSE: u8 = 12;
const TRUE: u8 = 13;
const PAIRS: u8 = 14;
const KEYED: u8 = 15;
const BIG_NUMBER: u8 = 16;

const ITEM_BYTES_MIN: usize = 1;
const PAIR_BYTES_MIN: usize = 2 * ITEM_BYTES_MIN;

impl Writer<'_> {
    pub(super) fn reply(&mut self, reply: &Reply) -> &mut Self {
        self.reply_within(reply, 0)
    }

    /// A reply inside so many arrays, maps and sets.
    fn reply_within(&mut self, reply: &Reply, levels: usize) -> &mut Self {
        match reply {
            Reply::Status(text) => self.u8(STATUS).bytes(limits::TEXT_BYTES, text.as_bytes()),
            Reply::Error(text) => self.u8(ERROR).bytes(limits::TEXT_BYTES, text.as_bytes()),
            Reply::Integer(value) => self.u8(INTEGER).i64(*value),
            Reply::Bulk(bytes) => self.u8(BULK).bytes(limits::REPLY_BYTES, bytes),
            Reply::Verbatim(bytes) => self.u8(VERBATIM).bytes(limits::REPLY_BYTES, bytes),
            Reply::Nil => self.u8(NIL),
            Reply::NilArray => self.u8(NIL_ARRAY),
            Reply::Array(items) => self.u8(ARRAY).reply_items(items, levels + 1),
            Reply::Set(items) => self.u8(SET).reply_items(items, levels + 1),
            Reply::Map(pairs) => self.u8(MAP).reply_pairs(pairs, levels + 1),
            Reply::Pairs(pairs) => self.u8(PAIRS).reply_pairs(pairs, levels + 1),
            Reply::Keyed(pairs) => self.u8(KEYED).reply_pairs(pairs, levels + 1),
            Reply::Double(value) => self.u8(DOUBLE).u64(value.to_bits()),
            Reply::BigNumber(digits) => self.u8(BIG_NUMBER).bytes(limits::REPLY_BYTES, digits),
            Reply::Boolean(value) => self.u8(if *value { TRUE } else { FALSE }),
        }
    }

    fn reply_items(&mut self, items: &[Reply], levels: usize) -> &mut Self {
        if !self.check(limits::NESTING, levels) {
            return self;
        }
        self.list(limits::REPLY_ITEMS, items, |w, item| {
            w.reply_within(item, levels);
        })
    }

    fn reply_pairs(&mut self, pairs: &[(Reply, Reply)], levels: usize) -> &mut Self {
        if !self.check(limits::NESTING, levels) {
            return self;
        }
        self.list(limits::REPLY_ITEMS, pairs, |w, (key, value)| {
            w.reply_within(key, levels).reply_within(value, levels);
        })
    }
}

impl Reader<'_> {
    pub(super) fn reply(&mut self) -> Result<Reply, Malformed> {
        self.reply_within(0)
    }

    fn reply_within(&mut self, levels: usize) -> Result<Reply, Malformed> {
        match self.u8()? {
            STATUS => Ok(Reply::Status(self.reply_text()?)),
            ERROR => Ok(Reply::Error(self.reply_text()?)),
            INTEGER => Ok(Reply::Integer(self.i64()?)),
            BULK => Ok(Reply::Bulk(self.bytes(limits::REPLY_BYTES)?)),
            VERBATIM => Ok(Reply::Verbatim(self.bytes(limits::REPLY_BYTES)?)),
            NIL => Ok(Reply::Nil),
            NIL_ARRAY => Ok(Reply::NilArray),
            ARRAY => Ok(Reply::Array(self.reply_items(levels + 1)?)),
            SET => Ok(Reply::Set(self.reply_items(levels + 1)?)),
            MAP => Ok(Reply::Map(self.reply_pairs(levels + 1)?)),
            PAIRS => Ok(Reply::Pairs(self.reply_pairs(levels + 1)?)),
            KEYED => Ok(Reply::Keyed(self.reply_pairs(levels + 1)?)),
            DOUBLE => Ok(Reply::Double(f64::from_bits(self.u64()?))),
            BIG_NUMBER => Ok(Reply::BigNumber(self.bytes(limits::REPLY_BYTES)?)),
            FALSE => Ok(Reply::Boolean(false)),
            TRUE => Ok(Reply::Boolean(true)),
            value => Err(Malformed::UnknownKind { what: "reply", value }),
        }
    }

    fn reply_text(&mut self) -> Result<Cow<'static, str>, Malformed> {
        // By far the most frequent status, and it need not be copied.
        Ok(match self.text(limits::TEXT_BYTES)? {
            "OK" => Cow::Borrowed("OK"),
            text => Cow::Owned(text.to_owned()),
        })
    }

    fn reply_items(&mut self, levels: usize) -> Result<Vec<Reply>, Malformed> {
        reader::check(limits::NESTING, levels)?;
        self.list(limits::REPLY_ITEMS, ITEM_BYTES_MIN, |r| r.reply_within(levels))
    }

    fn reply_pairs(&mut self, levels: usize) -> Result<Vec<(Reply, Reply)>, Malformed> {
        reader::check(limits::NESTING, levels)?;
        self.list(limits::REPLY_ITEMS, PAIR_BYTES_MIN, |r| {
            Ok((r.reply_within(levels)?, r.reply_within(levels)?))
        })
    }
}
