//! The rows of commands on the places of members of sorted sets.

use super::{READS, flags, row};
use crate::command::{CommandSpec, Flags, Route};

const LATER_PLACE: &str = "For each member the later place, or score, wins.";
const REPLACES: &str = "Replaces the members of the target that are seen by what is found in the source; unseen ones \
    stay. Keys of several partitions are refused: hash tags put them into one.";
const STORES: [&str; 2] = ["STORE", "STOREDIST"];

pub(super) const ROWS: [CommandSpec; 10] = [
    row("geoadd", -5, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Key)
        .keys(1, 1, 1)
        .listed("geo", "3.2.0")
        .says("Add members with places on the earth to a sorted set, or change the places.", LATER_PLACE),
    row("geodist", -4, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("geo", "3.2.0")
        .says("How far two members are from each other.", READS),
    row("geohash", -2, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("geo", "3.2.0")
        .says("The places of members as geohash texts.", READS),
    row("geopos", -2, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("geo", "3.2.0")
        .says("The longitudes and latitudes of members.", READS),
    row("georadius", -6, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, 1, 1)
        .keys_behind(&STORES)
        .listed("geo", "3.2.0")
        .says("Members within a distance from a place; it may store them.", REPLACES),
    row("georadius_ro", -6, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("geo", "3.2.10")
        .says("Members within a distance from a place.", READS),
    row("georadiusbymember", -5, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, 1, 1)
        .keys_behind(&STORES)
        .listed("geo", "3.2.0")
        .says("Members within a distance from a member; it may store them.", REPLACES),
    row("georadiusbymember_ro", -5, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("geo", "3.2.10")
        .says("Members within a distance from a member.", READS),
    row("geosearch", -7, flags(&[Flags::READONLY]), Route::Key)
        .keys(1, 1, 1)
        .listed("geo", "6.2.0")
        .says("Members in a circle or a rectangle around a place or a member.", READS),
    row("geosearchstore", -8, flags(&[Flags::WRITE, Flags::DENYOOM]), Route::Together)
        .keys(1, 2, 1)
        .listed("geo", "6.2.0")
        .says("Store the members in a circle or a rectangle around a place or a member.", REPLACES),
];
