//! The rows of commands on bounded counters, which Redis does not have.

use super::{READS, flags, row};
use crate::command::{CommandSpec, Flags, Route};

const CHANGES: &str = "All changes count. Each datacenter spends rights of its own, so no bound is passed in any of \
    them; one whose rights are spent answers SPENT until it gets some of another one's.";
const MAKES: &str = "Two that are made at the same time are two counters: the later one is shown, with its own \
    changes alone. A DEL ends the counter and what others do to it unseen.";

pub(super) const ROWS: [CommandSpec; 5] = [
    row("bcreate", -5, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("bounded-counter", "0.1.0")
        .says("Make a bounded counter, if the key is not there.", MAKES),
    row("bdecrby", 3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("bounded-counter", "0.1.0")
        .says("Lower a bounded counter by an amount, not below its lower bound.", CHANGES),
    row("bget", -2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("bounded-counter", "0.1.0")
        .says("The value of a bounded counter, and who has which rights to change it.", READS),
    row("bincrby", 3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("bounded-counter", "0.1.0")
        .says("Raise a bounded counter by an amount, not above its upper bound.", CHANGES),
    row("bmove", -4, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("bounded-counter", "0.1.0")
        .says(
            "Give rights to change a bounded counter to another datacenter.",
            "Rights count in one datacenter at any time; the value stays.",
        ),
];
