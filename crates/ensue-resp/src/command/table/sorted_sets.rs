//! The rows of sorted sets.

use super::{POPS, READS, READS_TOGETHER, flags, row};
use crate::command::{CommandSpec, Flags, Route};

const REPLACES: &str = "Replaces the members of the target that are seen by what is seen of the sources; unseen \
    members and increments stay. Keys of several partitions are refused: hash tags put them into one.";
const LATER_SCORE: &str = "For each member the later score wins; unseen increments are added.";
const INCREMENTS: &str =
    "Increments add up, from every datacenter, also those a concurrent ZADD had not seen.";
const REMOVES: &str = "For each member the later of adding and removing wins; unseen increments stay.";
const POPS_TOGETHER: &str = "Removes the members that this datacenter sees; another may have answered the same \
    ones. Keys of several partitions are refused: hash tags put them into one.";

const WAITS: &str = "As a pop, or if there is nothing after waiting until something can be read here; those that wait \
    are served in the order in which they came. Another datacenter may answer the same members. Keys of several \
    partitions are refused: hash tags put them into one.";

pub(super) const ROWS: [CommandSpec; 35] = [
    row("bzmpop", -5, flags(&[Flags::WRITE, Flags::BLOCKING]), Route::Together)
        .counted_keys(2)
        .listed("sorted-set", "7.0.0")
        .says(
            "Remove and answer members of the first sorted set that is not empty, or wait for some.",
            WAITS,
        ),
    row("bzpopmax", -3, flags(&[Flags::WRITE, Flags::FAST, Flags::BLOCKING]), Route::Together)
        .keys(1, -2, 1)
        .listed("sorted-set", "5.0.0")
        .says(
            "Remove and answer the highest member of the first sorted set that is not empty, or wait.",
            WAITS,
        ),
    row("bzpopmin", -3, flags(&[Flags::WRITE, Flags::FAST, Flags::BLOCKING]), Route::Together)
        .keys(1, -2, 1)
        .listed("sorted-set", "5.0.0")
        .says(
            "Remove and answer the lowest member of the first sorted set that is not empty, or wait.",
            WAITS,
        ),
    row("zadd", -4, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "1.2.0")
        .says("Add members to a sorted set, or set or increment their scores.", LATER_SCORE),
    row("zcard", 2, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "1.2.0")
        .says("The number of members of a sorted set.", READS),
    row("zcount", 4, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "2.0.0")
        .says("The number of members with scores in a range.", READS),
    row("zdiff", -3, flags(&[Flags::READONLY]), Route::Together)
        .counted_keys(1)
        .listed("sorted-set", "6.2.0")
        .says("The difference of sorted sets.", READS_TOGETHER),
    row("zdiffstore", -4, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, 1, 1)
        .counted_keys(2)
        .listed("sorted-set", "6.2.0")
        .says("Store the difference of sorted sets.", REPLACES),
    row("zincrby", 4, flags(&[Flags::WRITE, Flags::DENYOOM, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "1.2.0")
        .says("Increment the score of a member.", INCREMENTS),
    row("zinter", -3, flags(&[Flags::READONLY]), Route::Together)
        .counted_keys(1)
        .listed("sorted-set", "6.2.0")
        .says("The intersection of sorted sets.", READS_TOGETHER),
    row("zintercard", -3, flags(&[Flags::READONLY]), Route::Together)
        .counted_keys(1)
        .listed("sorted-set", "7.0.0")
        .says("The number of members of an intersection of sorted sets.", READS_TOGETHER),
    row("zinterstore", -4, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, 1, 1)
        .counted_keys(2)
        .listed("sorted-set", "2.0.0")
        .says("Store the intersection of sorted sets.", REPLACES),
    row("zlexcount", 4, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "2.8.9")
        .says("The number of members in a range of names.", READS),
    row("zmpop", -4, flags(&[Flags::WRITE]), Route::Together)
        .counted_keys(1)
        .listed("sorted-set", "7.0.0")
        .says(
            "Remove and answer the lowest or highest members of the first sorted set that is not empty.",
            POPS_TOGETHER,
        ),
    row("zmscore", -3, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "6.2.0")
        .says("The scores of several members.", READS),
    row("zpopmax", -2, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "5.0.0")
        .says("Remove and answer the members with the highest scores.", POPS),
    row("zpopmin", -2, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "5.0.0")
        .says("Remove and answer the members with the lowest scores.", POPS),
    row("zrandmember", -2, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "6.2.0")
        .says("Some member of a sorted set, or several.", READS),
    row("zrange", -4, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "1.2.0")
        .says("Members in a range of places, scores or names.", READS),
    row("zrangebylex", -4, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "2.8.9")
        .says("Members in a range of names.", READS),
    row("zrangebyscore", -4, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "1.0.5")
        .says("Members with scores in a range.", READS),
    row("zrangestore", -5, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, 2, 1)
        .listed("sorted-set", "6.2.0")
        .says("Store members in a range of places, scores or names.", REPLACES),
    row("zrank", -3, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "2.0.0")
        .says("The place of a member, the lowest score first.", READS),
    row("zrem", -3, flags(&[Flags::WRITE, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "1.2.0")
        .says("Remove members from a sorted set.", REMOVES),
    row("zremrangebylex", 4, flags(&[Flags::WRITE]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "2.8.9")
        .says("Remove members in a range of names.", REMOVES),
    row("zremrangebyrank", 4, flags(&[Flags::WRITE]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "2.0.0")
        .says("Remove members in a range of places.", REMOVES),
    row("zremrangebyscore", 4, flags(&[Flags::WRITE]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "1.2.0")
        .says("Remove members with scores in a range.", REMOVES),
    row("zrevrange", -4, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "1.2.0")
        .says("Members in a range of places, the highest score first.", READS),
    row("zrevrangebylex", -4, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "2.8.9")
        .says("Members in a range of names, the highest first.", READS),
    row("zrevrangebyscore", -4, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "2.2.0")
        .says("Members with scores in a range, the highest first.", READS),
    row("zrevrank", -3, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "2.0.0")
        .says("The place of a member, the highest score first.", READS),
    row("zscan", -3, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "2.8.0")
        .says("Iterate over the members of a sorted set.", READS),
    row("zscore", 3, flags(&[Flags::READONLY, Flags::FAST]), Route::Key)
        .keys(1, 1, 1)
        .listed("sorted-set", "1.2.0")
        .says("The score of a member.", READS),
    row("zunion", -3, flags(&[Flags::READONLY]), Route::Together)
        .counted_keys(1)
        .listed("sorted-set", "6.2.0")
        .says("The union of sorted sets.", READS_TOGETHER),
    row("zunionstore", -4, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, 1, 1)
        .counted_keys(2)
        .listed("sorted-set", "2.0.0")
        .says("Store the union of sorted sets.", REPLACES),
];
