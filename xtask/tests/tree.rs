//! The real tree is tidy. Prints every finding, so that one run shows all there is to do.

use std::path::Path;

#[test]
fn the_tree_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package has a parent folder");
    let report = xtask::tidy::check_tree_at(root).expect("the tree can be read");
    println!("{report}");
    assert!(report.findings.is_empty(), "{} findings, listed above", report.findings.len());
}
