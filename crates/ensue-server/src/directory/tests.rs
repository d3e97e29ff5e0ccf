//! Tests of the lock and of the guard against foreign data.

use super::*;
use crate::config::{Config, NamedHandler, NodeLine};
use crate::settings::settings;
use crate::temporary::Temporary;

/// A node of the first of these datacenters.
fn config(partitions: u16, names: &[&str]) -> Config {
    let line = |name: &&str| NodeLine {
        datacenter: (*name).into(),
        host: "10.0.0.1".into(),
        port: 1_000,
        cores: Some(2),
    };
    let nodes = names.iter().map(line).collect();
    Config { partitions, nodes, datacenter: names[0].into(), ..Config::default() }
}

fn open(folder: &Path, config: &Config) -> Result<Directory, DirectoryError> {
    let cluster = config.cluster().unwrap();
    Directory::open(folder, &cluster, &settings(config, &cluster))
}

/// As a partition that has served leaves it.
fn write_partition(directory: &Directory, partition: u16) {
    let folder = directory.path().join(format!("p{partition:04}"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("superblock"), "anything").unwrap();
}

/// The words with which a start is refused.
#[track_caller]
fn refused(folder: &Path, config: &Config) -> String {
    open(folder, config).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn two_never_share_a_directory() {
    let folder = Temporary::new();
    let first = open(folder.path(), &config(4, &["dc1"])).unwrap();
    assert!(matches!(open(folder.path(), &config(4, &["dc1"])), Err(DirectoryError::Locked { .. })));
    drop(first);
    open(folder.path(), &config(4, &["dc1"])).unwrap();
}

#[test]
fn a_directory_is_made_with_all_above_it() {
    let folder = Temporary::new();
    let dir = folder.path().join("srv/ensue");
    for _ in 0..2 {
        let directory = open(&dir, &config(4, &["dc1"])).unwrap();
        assert_eq!(directory.path().parent(), Some(dir.as_path()));
    }
}

#[test]
fn data_of_another_shape_is_refused() {
    let folder = Temporary::new();
    drop(open(folder.path(), &config(4, &["dc1"])).unwrap());
    assert!(matches!(open(folder.path(), &config(8, &["dc1"])), Err(DirectoryError::Other { .. })));
}

#[test]
fn what_a_node_writes_down_can_be_read() {
    let folder = Temporary::new();
    let config = config(4, &["oslo", "lisbon"]);
    let cluster = config.cluster().unwrap();
    let directory = open(folder.path(), &config).unwrap();
    let shape = read_shape(directory.path()).unwrap();
    let hash = u128::from_le_bytes(cluster_hash(&cluster.name));
    assert_eq!((shape.cluster, shape.number, shape.partitions), (hash, DatacenterId(0), 4));
    assert_eq!(shape.datacenter, "oslo");
    assert_eq!(
        fs::read_to_string(directory.path().join(SHAPE)).unwrap(),
        shape_text(&cluster, &settings(&config, &cluster))
    );
    for wrong in [
        "",
        "ensue 3\n",
        "ensue 2\n",
        "ensue 2\nnonsense\n",
        "ensue 1 cluster a datacenter b number 0 partitions 4",
    ] {
        fs::write(directory.path().join(SHAPE), wrong).unwrap();
        assert!(matches!(read_shape(directory.path()), Err(ShapeError::Unknown { .. })), "{wrong:?}");
    }
}

#[test]
fn a_changed_protocol_is_refused_and_says_what_to_do() {
    let folder = Temporary::new();
    let before = config(4, &["dc1"]);
    drop(open(folder.path(), &before).unwrap());
    let mut after = before.clone();
    after.protocols[1] = "cure".into();
    let words = refused(folder.path(), &after);
    assert!(
        words.contains("keyspace 1 was written under the protocol eiger, and the configuration says cure"),
        "{words}"
    );
    assert!(words.contains("put `keyspace 1 protocol eiger` back"), "{words}");
    open(folder.path(), &before).unwrap();
}

#[test]
fn what_only_steers_a_node_may_change() {
    let folder = Temporary::new();
    let mut config = config(4, &["dc1"]);
    config.protocols[1] = "cops-cd".into();
    config.protocols[2] = "tardis".into();
    drop(open(folder.path(), &config).unwrap());
    config.appendfsync = ensue_node::AppendFsync::Always;
    let pattern = "cart:*".to_owned().into();
    let fold = ensue_store::fold::by_name("union").unwrap();
    let handler = ensue_node::Handler { keyspace: ensue_types::KeyspaceId(1), pattern, fold };
    config.handlers.push(NamedHandler { words: "union".into(), handler });
    config.branch_merging_datacenter = Some("dc1".into());
    let directory = open(folder.path(), &config).unwrap();
    let text = fs::read_to_string(directory.path().join(SHAPE)).unwrap();
    assert!(
        text.contains("keyspace 1 conflicts\t\"cart:*\" union\n") && text.contains("appendfsync\talways\n"),
        "{text}"
    );
}

#[test]
fn a_renamed_datacenter_does_not_begin_with_nothing() {
    let folder = Temporary::new();
    drop(open(folder.path(), &config(4, &["lisbon", "oslo"])).unwrap());
    let words = refused(folder.path(), &config(4, &["porto", "oslo"]));
    assert!(words.contains("of this datacenter under the name 'lisbon'"), "{words}");
    assert!(words.contains("a datacenter keeps its name"), "{words}");
    // Renamed and moved to another place at once.
    let moved = Config { datacenter: "porto".into(), ..config(4, &["oslo", "porto"]) };
    let words = refused(folder.path(), &moved);
    assert!(words.contains("of a datacenter 'lisbon' that no `node` line names"), "{words}");
    assert!(!folder.path().join("porto").exists(), "nothing was begun");
    // The other one may live in the same folder, and so may another cluster.
    open(folder.path(), &Config { datacenter: "oslo".into(), ..config(4, &["lisbon", "oslo"]) }).unwrap();
    open(folder.path(), &Config { cluster_name: "other".into(), ..config(4, &["porto", "oslo"]) }).unwrap();
}

#[test]
fn others_keep_their_names_and_places_too() {
    let folder = Temporary::new();
    drop(open(folder.path(), &config(4, &["lisbon", "oslo"])).unwrap());
    for names in [&["lisbon", "bergen"][..], &["lisbon"], &["lisbon", "bergen", "oslo"]] {
        let words = refused(folder.path(), &config(4, names));
        assert!(words.contains("its datacenters are lisbon oslo"), "{words}");
    }
    open(folder.path(), &config(4, &["lisbon", "oslo", "bergen"])).unwrap();
}

#[test]
fn a_missing_shape_beside_data_is_damage() {
    let folder = Temporary::new();
    let directory = open(folder.path(), &config(4, &["dc1"])).unwrap();
    let shape = directory.path().join(SHAPE);
    fs::remove_file(&shape).unwrap();
    let path = directory.path().to_path_buf();
    fs::create_dir_all(path.join("p0000")).unwrap();
    drop(directory);
    // A crash of the very first start: nothing is lost.
    let directory = open(folder.path(), &config(4, &["dc1"])).unwrap();
    write_partition(&directory, 0);
    drop(directory);
    fs::remove_file(&shape).unwrap();
    let words = refused(folder.path(), &config(4, &["dc1"]));
    assert!(words.contains("shape is missing") && words.contains("ensue recover"), "{words}");
    assert!(!shape.exists(), "it was not written anew");
}

#[test]
fn partitions_move_only_where_their_data_is() {
    let folder = Temporary::new();
    let lines = |cores: [u16; 2]| {
        let line = |cores: &u16| NodeLine {
            datacenter: "dc1".into(),
            host: "10.0.0.1".into(),
            port: 1_000,
            cores: Some(*cores),
        };
        Config { nodes: cores.iter().map(line).collect(), ..config(4, &["dc1"]) }
    };
    let directory = open(folder.path(), &lines([1, 1])).unwrap();
    // Partitions 0 and 2 are this node's.
    write_partition(&directory, 0);
    write_partition(&directory, 2);
    drop(directory);
    let words = refused(folder.path(), &lines([2, 1]));
    assert!(words.contains("cores of the nodes of dc1 were 1 1 and are 2 1 now"), "{words}");
    let directory = open(folder.path(), &lines([1, 1])).unwrap();
    write_partition(&directory, 1);
    write_partition(&directory, 3);
    drop(directory);
    open(folder.path(), &lines([2, 1])).unwrap();
}
