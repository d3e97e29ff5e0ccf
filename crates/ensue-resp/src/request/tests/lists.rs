//! Arguments of commands on lists, and the errors that Redis 7.0.15 answers.

use super::{NOT_INTEGER, SYNTAX, bad, good};
use crate::request::{End, List, ListSearch, Request};

#[test]
fn ends() {
    let push = |words: &str| match good(words) {
        Request::Elements(List::Push { end, values, if_present, .. }) => (end, values.len(), if_present),
        other => panic!("{other:?}"),
    };
    assert_eq!(push("LPUSH l a b"), (End::Left, 2, false));
    assert_eq!(push("RPUSHX l a"), (End::Right, 1, true));
    let count = |words: &str| match good(words) {
        Request::Elements(List::Pop { count, .. }) => count,
        other => panic!("{other:?}"),
    };
    assert_eq!((count("LPOP l"), count("RPOP l 0")), (None, Some(0)));
    bad("LPOP l -1", "ERR value is out of range, must be positive");
    bad("RPOP l x", "ERR value is out of range, must be positive");
    bad("RPOP l 1 2", "ERR wrong number of arguments for 'rpop' command");
    bad("LMPOP 0 l LEFT", "ERR numkeys should be greater than 0");
    bad("LMPOP 1 l MIN", SYNTAX);
    bad("LMPOP 1 l LEFT COUNT 0", "ERR count should be greater than 0");
    bad("LMPOP 1 l LEFT COUNT 1 COUNT 1", SYNTAX);
    bad("LMOVE a b LEFT", "ERR wrong number of arguments for 'lmove' command");
    bad("LMOVE a b LEFT MIDDLE", SYNTAX);
    assert_eq!(good("RPOPLPUSH a b"), good("LMOVE a b right LEFT"));
}

#[test]
fn places() {
    for words in ["LINDEX l x", "LRANGE l x 1", "LRANGE l 1 x", "LTRIM l x 1", "LSET l x a", "LREM l x a"] {
        bad(words, NOT_INTEGER);
    }
    bad("LINSERT l AT a b", SYNTAX);
    let search = |words: &str| match good(words) {
        Request::Elements(List::Position { search, .. }) => search,
        other => panic!("{other:?}"),
    };
    assert_eq!(search("LPOS l a"), ListSearch { rank: 1, count: None, compared: 0 });
    assert_eq!(
        search("LPOS l a MAXLEN 5 rank -2 COUNT 0"),
        ListSearch { rank: -2, count: Some(0), compared: 5 }
    );
    bad("LPOS l a RANK", SYNTAX);
    bad("LPOS l a RANK x", NOT_INTEGER);
    bad("LPOS l a COUNT -1", "ERR COUNT can't be negative");
    bad("LPOS l a FIRST 1", SYNTAX);
}
