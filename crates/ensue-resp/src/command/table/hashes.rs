//! The rows of hashes.

use super::{READS, flags, row};
use crate::command::{CommandSpec, Flags, Route};

const EXPIRES: &str = "The later setting of a deadline wins. It ends the value that was seen: one that is set at the same \
    time elsewhere has no deadline.";

pub(super) const ROWS: [CommandSpec; 28] = [
    row("hdel", -3, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.0.0")
        .says(
            "Delete fields of a hash.",
            "Deletes what was seen of each field; a later write stays, and so do unseen increments.",
        ),
    row("hexists", 3, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.0.0")
        .says(
            "Whether a field exists.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("hget", 3, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.0.0")
        .says(
            "The value of a field.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("hgetall", 2, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.0.0")
        .says(
            "All fields and values of a hash.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("hincrby", 4, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.0.0")
        .says(
            "Add an integer to a field.",
            "Increments of a field add up, from every datacenter, also those a concurrent HSET had not seen.",
        ),
    row("hincrbyfloat", 4, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.6.0")
        .says(
            "Add a decimal number to a field.",
            "Increments of a field add up, from every datacenter, also those a concurrent HSET had not seen. Decimal sums are exact.",
        ),
    row("hkeys", 2, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.0.0")
        .says(
            "All fields of a hash.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("hlen", 2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.0.0")
        .says(
            "The number of fields of a hash.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("hmget", -3, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.0.0")
        .says(
            "The values of several fields.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("hmset", -4, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.0.0")
        .says(
            "Set fields of a hash and answer OK.",
            "Each field is a register of its own: the later write of a field wins, other fields stay.",
        ),
    row("hscan", -3, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.8.0")
        .says(
            "Iterate over the fields of a hash.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("hrandfield", -2, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "6.2.0")
        .says(
            "Some field of a hash, or several.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("hset", -4, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.0.0")
        .says(
            "Set fields of a hash.",
            "Each field is a register of its own: the later write of a field wins, other fields stay.",
        ),
    row("hsetnx", 4, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.0.0")
        .says(
            "Set a field that does not exist.",
            "Each field is a register of its own: the later write of a field wins, other fields stay. Both datacenters may answer 1.",
        ),
    row("hstrlen", 3, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "3.2.0")
        .says(
            "The length of the value of a field.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("hvals", 2, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "2.0.0")
        .says(
            "All values of a hash.",
            "Reads what this datacenter has received; equal everywhere once writes cease.",
        ),
    row("hexpire", -6, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "7.4.0")
        .says(
            "Set deadlines of fields, in seconds from now.",
            EXPIRES,
        ),
    row("hexpireat", -6, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "7.4.0")
        .says(
            "Set deadlines of fields, in seconds since 1970.",
            EXPIRES,
        ),
    row("hpexpire", -6, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "7.4.0")
        .says(
            "Set deadlines of fields, in milliseconds from now.",
            EXPIRES,
        ),
    row("hpexpireat", -6, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "7.4.0")
        .says(
            "Set deadlines of fields, in milliseconds since 1970.",
            EXPIRES,
        ),
    row("httl", -5, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "7.4.0")
        .says(
            "The seconds that fields have left.",
            READS,
        ),
    row("hpttl", -5, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "7.4.0")
        .says(
            "The milliseconds that fields have left.",
            READS,
        ),
    row("hexpiretime", -5, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "7.4.0")
        .says(
            "The deadlines of fields, in seconds since 1970.",
            READS,
        ),
    row("hpexpiretime", -5, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "7.4.0")
        .says(
            "The deadlines of fields, in milliseconds since 1970.",
            READS,
        ),
    row("hpersist", -5, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "7.4.0")
        .says(
            "Remove the deadlines of fields.",
            "Removes the deadline that was seen; one that another datacenter has set at the same time stays.",
        ),
    row("hgetex", -5, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "8.0.0")
        .says(
            "Answer values of fields and set their deadlines.",
            EXPIRES,
        ),
    row("hgetdel", -5, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "8.0.0")
        .says(
            "Answer values of fields and delete them.",
            "As HDEL of what was answered; both datacenters may answer the same values.",
        ),
    row("hsetex", -6, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("hash", "8.0.0")
        .says(
            "Set fields of a hash and their deadlines.",
            "Each field is a register of its own: the later write wins, and its deadline with it. Conditions are checked against what this datacenter has received.",
        ),
];
