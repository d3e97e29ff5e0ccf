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
fn a_directory_is_made_with_all_above_it() {
    let folder = Temporary::new();
    let dir = folder.path().join("srv/ensue");
    for _ in 0..2 {
        let directory = Directory::open(&dir, &cluster(4)).unwrap();
        assert_eq!(directory.path().parent(), Some(dir.as_path()));
    }
}

#[test]
fn data_of_another_shape_is_refused() {
    let folder = Temporary::new();
    drop(Directory::open(folder.path(), &cluster(4)).unwrap());
    assert!(matches!(Directory::open(folder.path(), &cluster(8)), Err(DirectoryError::Other { .. })));
}

#[test]
fn what_a_node_writes_down_can_be_read() {
    let folder = Temporary::new();
    let cluster = cluster(4);
    let directory = Directory::open(folder.path(), &cluster).unwrap();
    let shape = read_shape(directory.path()).unwrap();
    let name = cluster.own_datacenter().name.clone();
    let hash = u128::from_le_bytes(cluster_hash(&cluster.name));
    assert_eq!(shape, Shape { cluster: hash, datacenter: name, number: cluster.own, partitions: 4 });
    fs::write(directory.path().join(SHAPE), "ensue 2 cluster a").unwrap();
    assert!(matches!(read_shape(directory.path()), Err(ShapeError::Unknown { .. })));
}
