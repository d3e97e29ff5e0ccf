//! The rows of commands on the bits of strings.

use super::{READS, flags, row};
use crate::command::{CommandSpec, Flags, Route};

const LATER_STRING: &str = "The later resulting value wins whole; the bits that the other has set are lost.";

pub(super) const ROWS: [CommandSpec; 7] = [
    row("bitcount", -2, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("bitmap", "2.6.0")
        .says("The number of bits that are set.", READS),
    row("bitfield", -2, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Key)
        .keys(1, 1, 1)
        .listed("bitmap", "3.2.0")
        .says("Read and write integers of any width in a value.", LATER_STRING),
    row("bitfield_ro", -2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("bitmap", "6.0.0")
        .says("Read integers of any width in a value.", READS),
    row("bitop", -4, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(2, -1, 1)
        .listed("bitmap", "2.6.0")
        .says("Store what the bits of several values combine to.", LATER_STRING),
    row("bitpos", -3, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("bitmap", "2.8.7")
        .says("The place of the first bit that is set, or clear.", READS),
    row("getbit", 3, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("bitmap", "2.2.0")
        .says("The bit at a place of a value.", READS),
    row("setbit", 4, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Key)
        .keys(1, 1, 1)
        .listed("bitmap", "2.2.0")
        .says("Set or clear the bit at a place of a value.", LATER_STRING),
];
