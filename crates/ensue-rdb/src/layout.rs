//! The numbers of the format: layouts of values, and what stands between them.

pub(crate) const TEXT: u8 = 0;
pub(crate) const LIST: u8 = 1;
pub(crate) const SET: u8 = 2;
pub(crate) const SORTED_AS_TEXT: u8 = 3;
pub(crate) const HASH: u8 = 4;
pub(crate) const SORTED: u8 = 5;
pub(crate) const MODULE: u8 = 7;
pub(crate) const HASH_ZIPMAP: u8 = 9;
pub(crate) const LIST_ZIPPED: u8 = 10;
pub(crate) const SET_OF_INTEGERS: u8 = 11;
pub(crate) const SORTED_ZIPPED: u8 = 12;
pub(crate) const HASH_ZIPPED: u8 = 13;
pub(crate) const LIST_OF_ZIPPED: u8 = 14;
pub(crate) const STREAM: u8 = 15;
pub(crate) const HASH_PACKED: u8 = 16;
pub(crate) const SORTED_PACKED: u8 = 17;
pub(crate) const LIST_OF_PACKED: u8 = 18;
pub(crate) const STREAM_2: u8 = 19;
pub(crate) const SET_PACKED: u8 = 20;
pub(crate) const STREAM_3: u8 = 21;
/// Redis wrote hashes with deadlines of fields so before version 7.4 was released. Valkey 9 uses the number otherwise.
pub(crate) const HASH_EXPIRING_EARLY: u8 = 22;
pub(crate) const HASH_OF_VALKEY: u8 = 22;
pub(crate) const HASH_EXPIRING_PACKED_EARLY: u8 = 23;
pub(crate) const HASH_EXPIRING: u8 = 24;
pub(crate) const HASH_EXPIRING_PACKED: u8 = 25;
/// A script that KeyDB runs at times.
pub(crate) const JOB_OF_KEYDB: u8 = 64;

pub(crate) const SLOT_INFO: u8 = 244;
pub(crate) const LIBRARY: u8 = 245;
pub(crate) const MODULE_AUX: u8 = 247;
pub(crate) const IDLE: u8 = 248;
pub(crate) const FREQUENCY: u8 = 249;
pub(crate) const AUX: u8 = 250;
pub(crate) const SIZES: u8 = 251;
pub(crate) const DEADLINE_MS: u8 = 252;
pub(crate) const DEADLINE_S: u8 = 253;
pub(crate) const DATABASE: u8 = 254;
pub(crate) const END: u8 = 255;
