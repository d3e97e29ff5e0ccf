//! Giving up a datacenter: shown first, written into every superblock, refused for names that make no sense and while a
//! node runs.

use super::*;
use crate::temporary::Temporary;
use ensue_store::log::Lsn;
use ensue_store::superblock::FORMAT;
use ensue_types::{DatacenterId, DirectoryId, Incarnation};
use rustix::fs::flock;

const SHAPE_TEXT: &str = "ensue 2\ncluster\tcluster-name\tc\ndatacenter\tdatacenter\tdc1\ndatacenter\tnumber\t0\ncluster\tpartitions\t2\n";

fn data(clean: bool) -> Temporary {
    let folder = Temporary::new();
    let own = folder.path().join("dc1");
    for partition in 0..2 {
        let superblock = Superblock {
            format: FORMAT,
            cluster: 7,
            datacenter: DatacenterId(0),
            partition: PartitionId(partition),
            partitions: 2,
            incarnation: Incarnation(1),
            boot_id: [1; 16],
            clean,
            fsync_always: false,
            witnessed: false,
            synced: Lsn(0),
            checkpoint: 0,
            without: 0,
            directory: DirectoryId(7),
            not_admitted: false,
            filling: false,
        };
        let path = own.join(format!("p{partition}"));
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("superblock"), superblock.encode()).unwrap();
    }
    fs::write(own.join("shape"), SHAPE_TEXT).unwrap();
    fs::write(own.join("datacenters"), "dc1\ndc2\ndc3\n").unwrap();
    fs::write(own.join("node0.lock"), "").unwrap();
    folder
}

fn masks(folder: &Temporary) -> Vec<u16> {
    let superblock = |p| folder.path().join(format!("dc1/p{p}/superblock"));
    (0..2).map(|p| read_superblock(&superblock(p)).unwrap().without).collect()
}

fn fails(folder: &Temporary, name: &str) -> String {
    plan(folder.path(), &[name.to_owned()]).unwrap_err().to_string()
}

#[test]
fn what_is_planned_is_done_only_when_it_is_carried_out() {
    let folder = data(false);
    let planned = plan(folder.path(), &["dc3".to_owned()]).unwrap();
    assert!(planned.steps.len() == 2 && planned.steps.iter().all(|step| !step.has_its_tail));
    assert_eq!(masks(&folder), [0, 0]);
    planned.carry_out().unwrap();
    assert_eq!(masks(&folder), [0b100, 0b100]);
    plan(&folder.path().join("dc1"), &["dc2".to_owned()]).unwrap().carry_out().unwrap();
    assert_eq!(masks(&folder), [0b110, 0b110], "who was given up before stays so");
    assert!(plan(data(true).path(), &["dc2".to_owned()]).unwrap().steps.iter().all(|step| step.has_its_tail));
}

#[test]
fn a_partition_that_never_had_a_superblock_is_passed_over() {
    let folder = data(false);
    let empty = folder.path().join("dc1/p2");
    fs::create_dir(&empty).unwrap();
    plan(folder.path(), &["dc3".to_owned()]).unwrap().carry_out().unwrap();
    assert_eq!(masks(&folder), [0b100, 0b100]);
    assert!(!empty.join("superblock").exists());
    fs::write(empty.join("log-0000000000000000"), "x").unwrap();
    assert!(fails(&folder, "dc2").contains("p2/superblock"), "one that lost it is not");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = data(false);
    assert_eq!(fails(&folder, "dc4"), "there is no datacenter dc4, but dc1, dc2, dc3");
    assert!(fails(&folder, "dc1").contains("cannot do without itself"));
    let lock = File::open(folder.path().join("dc1/node0.lock")).unwrap();
    flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    assert!(fails(&folder, "dc2").contains("in use by another process"));
    drop(lock);
    fs::write(folder.path().join("dc1/p1/superblock"), "x").unwrap();
    assert!(fails(&folder, "dc2").contains("superblock"));
    fs::remove_file(folder.path().join("dc1/datacenters")).unwrap();
    assert!(fails(&folder, "dc2").contains("does not say which datacenters"));
    assert_eq!(masks(&data(false)), [0, 0]);
}

#[test]
fn a_directory_of_a_later_version_is_not_set_aside_as_damaged() {
    let folder = data(true);
    let path = folder.path().join("dc1/p0/superblock");
    let mut bytes = fs::read(&path).unwrap();
    bytes[8..10].copy_from_slice(&(FORMAT + 1).to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let refused = rebuild::plan(folder.path(), &[]).unwrap_err().to_string();
    assert!(refused.contains("which is no damage of it") && refused.contains("format"), "{refused}");
    assert_eq!(rebuild::plan(folder.path(), &[0]).unwrap().partitions.len(), 1, "its number was given");
}
