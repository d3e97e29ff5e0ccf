//! Replays the committed corpus of every fuzz target, without a fuzzer.

use ensue_fuzz::TARGETS;
use std::path::Path;

#[test]
fn the_committed_corpus_is_fine() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in TARGETS {
        let folder = root.join(name);
        let mut files: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{name} has no corpus");
        for file in files {
            let bytes = std::fs::read(&file).unwrap();
            println!("{}", file.display());
            target(&bytes);
        }
    }
}
