//! Manifests as Redis writes them, and what is none.

use super::*;

#[test]
fn files_are_read_in_their_order() {
    let text = "file appendonly.aof.2.base.rdb seq 2 type b\n\
                file appendonly.aof.3.incr.aof seq 3 type h\n\
                file \"a \\\"b\\\".4.incr.aof\" seq 4 type i startoffset 17\n\
                file appendonly.aof.5.incr.aof seq 5 type i\n";
    let manifest = Manifest::parse(text).expect("it is one");
    assert_eq!(
        manifest.files,
        ["appendonly.aof.2.base.rdb", "a \"b\".4.incr.aof", "appendonly.aof.5.incr.aof"]
    );
    assert_eq!(Manifest::parse("# nothing\n\n").map(|manifest| manifest.files.len()), Ok(0));
}

#[test]
fn what_is_none_is_refused() {
    for (text, line) in [
        ("file a seq 1 type b\nfile b seq 2 type b", 2),
        ("file a seq 1", 1),
        ("file a seq 1 type x", 1),
        ("\nfile ../a seq 1 type i", 2),
        ("file \"a seq 1 type i", 1),
    ] {
        assert_eq!(Manifest::parse(text), Err(ManifestError { line }), "{text}");
    }
}
