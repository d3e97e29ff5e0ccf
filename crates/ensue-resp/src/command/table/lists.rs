//! The rows of lists.

use super::{READS, flags, row};
use crate::command::{CommandSpec, Flags, Route};

const PUSHES: &str = "Every element stays. What two datacenters push concurrently stands side by side, each \
    datacenter's together and in its order.";
const POPS: &str = "Removes the elements that this datacenter sees; another may have answered the same ones.";
const MOVES: &str = "As a pop and a push; another datacenter may move the same element, which then is there twice. \
    Keys of several partitions are refused: hash tags put them into one.";
const WAITS: &str = "As a pop, or if there is nothing after waiting until something can be read here; those that wait \
    are served in the order in which they came. Another datacenter may answer the same elements. Keys of several \
    partitions are refused: hash tags put them into one.";
const WAITS_TO_MOVE: &str = "As a pop and a push, or if there is nothing after waiting until something can be read \
    here. Keys of several partitions are refused: hash tags put them into one.";
const REMOVES: &str = "Removes elements that this datacenter sees; others stay, and so does what a later LSET \
    put into one of them.";

pub(super) const ROWS: [CommandSpec; 22] = [
    row("blmove", 6, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::BLOCKING]), Route::Together)
        .keys(1, 2, 1)
        .listed("list", "6.2.0")
        .says("Move an element from an end of a list to an end of another one, or wait for one.", WAITS_TO_MOVE),
    row("blmpop", -5, flags(&[Flags::WRITE, Flags::BLOCKING]), Route::Together)
        .counted_keys(2)
        .listed("list", "7.0.0")
        .says("Remove and answer elements of the first list that is not empty, or wait for some.", WAITS),
    row("blpop", -3, flags(&[Flags::WRITE, Flags::BLOCKING]), Route::Together)
        .keys(1, -2, 1)
        .listed("list", "2.0.0")
        .says("Remove and answer the first element of the first list that is not empty, or wait for one.", WAITS),
    row("brpop", -3, flags(&[Flags::WRITE, Flags::BLOCKING]), Route::Together)
        .keys(1, -2, 1)
        .listed("list", "2.0.0")
        .says("Remove and answer the last element of the first list that is not empty, or wait for one.", WAITS),
    row("brpoplpush", 4, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::BLOCKING]), Route::Together)
        .keys(1, 2, 1)
        .listed("list", "2.2.0")
        .says("Move the last element of a list to the beginning of another one, or wait for one.", WAITS_TO_MOVE),
    row("lindex", 3, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "1.0.0")
        .says("The element at a place of a list.", READS),
    row("linsert", 5, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "2.2.0")
        .says(
            "Insert an element before or behind another one.",
            "The element stays beside the other one, with what the same datacenter puts there; the other one may \
            be removed concurrently.",
        ),
    row("llen", 2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "1.0.0")
        .says("The number of elements of a list.", READS),
    row("lmove", 5, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, 2, 1)
        .listed("list", "6.2.0")
        .says("Move an element from an end of a list to an end of another one.", MOVES),
    row("lmpop", -4, flags(&[Flags::WRITE]), Route::Together)
        .counted_keys(1)
        .listed("list", "7.0.0")
        .says(
            "Remove and answer elements of an end of the first list that is not empty.",
            "Removes the elements that this datacenter sees; another may have answered the same ones. Keys of \
            several partitions are refused: hash tags put them into one.",
        ),
    row("lpop", -2, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "1.0.0")
        .says("Remove and answer the first element of a list, or several.", POPS),
    row("lpos", -3, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "6.0.6")
        .says("The places at which a list has a value.", READS),
    row("lpush", -3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "1.0.0")
        .says("Put elements at the beginning of a list.", PUSHES),
    row("lpushx", -3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "2.2.0")
        .says("Put elements at the beginning of a list that is not empty.", PUSHES),
    row("lrange", 4, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "1.0.0")
        .says("Elements in a range of places.", READS),
    row("lrem", 4, flags(&[Flags::WRITE]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "1.0.0")
        .says("Remove elements that have a value.", REMOVES),
    row("lset", 4, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "1.0.0")
        .says(
            "Give an element of a list another value.",
            "For each element the later of setting and removing it wins.",
        ),
    row("ltrim", 4, flags(&[Flags::WRITE]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "1.0.0")
        .says("Remove the elements outside of a range of places.", REMOVES),
    row("rpop", -2, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "1.0.0")
        .says("Remove and answer the last element of a list, or several.", POPS),
    row("rpoplpush", 3, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, 2, 1)
        .listed("list", "1.2.0")
        .says("Move the last element of a list to the beginning of another one.", MOVES),
    row("rpush", -3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "1.0.0")
        .says("Put elements at the end of a list.", PUSHES),
    row("rpushx", -3, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("list", "2.2.0")
        .says("Put elements at the end of a list that is not empty.", PUSHES),
];
