//! Tests of the lock and of the guard against foreign data.

use super::*;
use crate::config::Config;
use crate::temporary::Temporary;

fn cluster(partitions: u16) -> Cluster {
    Config { partitions, ..Config::default() }.cluster().unwrap()
}

#[test]
fn two_never_share_a_directory() {
    let folder = Temporary::new();
    let first = Directory::open(folder.path(), &cluster(4)).unwrap();
    assert!(matches!(Directory::open(folder.path(), &cluster(4)), Err(DirectoryError::Locked { .. })));
    drop(first);
    Directory::open(folder.path(), &cluster(4)).unwrap();
}

#[test]
fn data_of_another_shape_is_refused() {
    let folder = Temporary::new();
    drop(Directory::open(folder.path(), &cluster(4)).unwrap());
    assert!(matches!(Directory::open(folder.path(), &cluster(8)), Err(DirectoryError::Other { .. })));
}
