//! The check of a directory that a node left: sound, torn, damaged, in use. It never changes a byte.

use super::*;
use crate::config::{Config, NodeLine};
use crate::temporary::Temporary;
use crate::{Machine, Running, start};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

/// A node of one datacenter with two partitions, and some writes.
fn serve(folder: &Temporary) -> Running {
    let socket = || TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (clients, peers) = (socket(), socket());
    let [port, peer_port] = [clients, peers].map(|socket| socket.local_addr().unwrap().port());
    let node =
        NodeLine { datacenter: "dc1".into(), host: "127.0.0.1".into(), port: peer_port, cores: Some(1) };
    let config = Config {
        datacenter: "dc1".into(),
        nodes: vec![node],
        partitions: 2,
        port,
        bind: vec!["127.0.0.1".into()],
        dir: folder.path().into(),
        ..Config::default()
    };
    let running = start(&config, &Machine::of_this_process(1)).unwrap();
    let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", port)).unwrap());
    for index in 0..20 {
        loop {
            stream.get_mut().write_all(format!("SET key{index} value\r\n").as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_line(&mut answer).unwrap();
            if answer == "+OK\r\n" {
                break;
            }
            // The partitions still read what is not there.
            assert!(answer.starts_with("-LOADING "), "{answer}");
        }
    }
    running
}

fn stopped() -> Temporary {
    let folder = Temporary::new();
    assert!(crate::shutdown::stop(vec![serve(&folder)]));
    folder
}

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for path in entries(folder).unwrap() {
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    all
}

fn checked(path: &Path) -> Vec<Checked> {
    let before = files(path);
    let mut found = Vec::new();
    run(path, |finding| match finding {
        Finding::Partition(checked) => found.push(*checked),
        Finding::NoShape { folder } => panic!("{} has no shape", folder.display()),
    })
    .unwrap();
    assert!(before == files(path), "a check changes nothing");
    found
}

fn segment(folder: &Temporary, partition: &str) -> PathBuf {
    folder.path().join("dc1").join(partition).join("log-0000000000000000")
}

#[test]
fn what_a_clean_stop_leaves_is_sound() {
    let folder = stopped();
    for path in [folder.path().to_owned(), folder.path().join("dc1")] {
        let found = checked(&path);
        assert_eq!(found.iter().map(|one| one.partition.0).collect::<Vec<_>>(), [0, 1]);
        assert!(found.iter().all(|one| one.report.is_sound() && one.datacenter == "dc1"), "{found:?}");
        assert_eq!(found.iter().map(|one| one.report.entries).sum::<u64>(), 20);
    }
}

#[test]
fn a_torn_tail_is_no_damage_and_a_flipped_bit_is() {
    let folder = stopped();
    let torn = segment(&folder, "p0000");
    let whole = fs::metadata(&torn).unwrap().len();
    fs::OpenOptions::new().append(true).open(&torn).unwrap().write_all(&[7; 100]).unwrap();
    let flipped = segment(&folder, "p0001");
    let mut bytes = fs::read(&flipped).unwrap();
    bytes[60] ^= 1;
    fs::write(&flipped, bytes).unwrap();
    let found = checked(folder.path());
    let tear = found[0].report.recovery.as_ref().unwrap().torn.clone().unwrap();
    assert!(found[0].report.is_sound());
    assert_eq!((tear.offset, tear.dropped_bytes), (whole, 100));
    let error = found[1].report.error.as_ref().expect("the bit is missed").to_string();
    assert!(error.starts_with("log-0000000000000000 is damaged at byte "), "{error}");
}

#[test]
fn an_empty_folder_is_sound() {
    let folder = stopped();
    fs::remove_dir_all(folder.path().join("dc1/p0001")).unwrap();
    fs::create_dir(folder.path().join("dc1/p0001")).unwrap();
    let found = checked(folder.path());
    assert!(found.iter().all(|one| one.report.is_sound()), "{found:?}");
    let fresh = found.iter().map(|one| one.report.recovery.as_ref().unwrap().fresh);
    assert_eq!(fresh.collect::<Vec<_>>(), [false, true]);
}

#[test]
fn a_missing_superblock_or_segment_is_damage() {
    let folder = stopped();
    fs::remove_file(folder.path().join("dc1/p0000/superblock")).unwrap();
    fs::remove_file(segment(&folder, "p0001")).unwrap();
    let found = checked(folder.path());
    let errors: Vec<String> =
        found.iter().map(|one| one.report.error.as_ref().unwrap().to_string()).collect();
    assert!(errors[0].starts_with("superblock is damaged at byte 0: it is missing"), "{errors:?}");
    assert!(errors[1].starts_with("log-0000000000000000 is damaged at byte 0"), "{errors:?}");
}

#[test]
fn what_is_in_use_or_no_data_is_not_checked() {
    let folder = Temporary::new();
    assert!(matches!(run(folder.path(), |_| ()), Err(FsckError::NoData { .. })));
    let missing = folder.path().join("missing");
    assert!(matches!(run(&missing, |_| ()), Err(FsckError::Machine { .. })));
    let running = serve(&folder);
    assert!(matches!(run(folder.path(), |_| ()), Err(FsckError::Locked { .. })));
    assert!(crate::shutdown::stop(vec![running]));
    run(folder.path(), |_| ()).unwrap();
}

#[test]
fn a_folder_that_lost_its_shape_is_damaged_and_can_be_told_again_what_it_is() {
    let folder = stopped();
    let shape = folder.path().join("dc1/shape");
    let before = fs::read_to_string(&shape).unwrap();
    fs::remove_file(&shape).unwrap();
    let mut found = Vec::new();
    run(folder.path(), |finding| found.push(format!("{finding:?}"))).unwrap();
    assert!(found.len() == 1 && found[0].starts_with("NoShape"), "{found:?}");
    let config = Config { datacenter: "dc1".into(), partitions: 2, ..Config::default() };
    let other = Config { cluster_name: "other".into(), ..config.clone() };
    assert!(crate::recover::lost_shape(folder.path(), &other).is_err(), "data of another cluster");
    let lost = crate::recover::lost_shape(folder.path(), &config).unwrap();
    assert_eq!(lost.text(), before);
    lost.write().unwrap();
    drop(lost);
    assert_eq!(checked(folder.path()).len(), 2);
}
