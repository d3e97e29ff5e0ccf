//! Names, channels and databases of commands.

use super::*;
use crate::user::tests::args;

fn on<T>(words: &str, then: impl Fn(&Call<'_>) -> T) -> T {
    let args = args(words);
    let spec = ensue_resp::lookup(&args[0]).expect("a known command");
    then(&Call { spec, args: &args, database: KeyspaceId(3) })
}

#[test]
fn names() {
    assert_eq!(on("GET a", |call| call.full_name()), "get");
    assert_eq!(on("CONFIG Get a", |call| call.full_name()), "config|get");
    assert_eq!(on("CONFIG nope", |call| call.full_name()), "config");
}

#[test]
fn databases() {
    assert_eq!(on("get a", |call| call.touched_database()), Some(KeyspaceId(3)));
    assert_eq!(on("watch a", |call| call.touched_database()), Some(KeyspaceId(3)));
    assert_eq!(on("select 7", |call| call.touched_database()), Some(KeyspaceId(7)));
    assert_eq!(on("select 700", |call| call.touched_database()), None);
    assert_eq!(on("ping", |call| call.touched_database()), None);
    assert_eq!(on("cluster info", |call| call.touched_database()), None);
    assert_eq!(on("cluster getkeysinslot 1 2", |call| call.touched_database()), Some(KeyspaceId(3)));
    assert!(
        on("flushall", |call| call.touches_every_database())
            && !on("flushdb", |call| call.touches_every_database())
    );
}

#[test]
fn channels() {
    let count = |words: &str| on(words, |call| call.channels().count());
    let counts =
        ["publish a b", "subscribe a b", "psubscribe a b", "unsubscribe a", "pubsub channels", "get a"];
    assert_eq!(counts.map(count), [1, 2, 2, 0, 0, 0]);
}
