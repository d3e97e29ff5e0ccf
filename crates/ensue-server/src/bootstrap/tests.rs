//! Tests of whole nodes in this process, over real sockets: clients, links, bad peers, and the clean end.

mod impostors;

use super::*;
use crate::config::NodeLine;
use crate::shaper::Shape;
use crate::temporary::Temporary;
use ensue_node::FirstStart;
use ensue_types::DatacenterId;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Datacenters of one node each, on ports that were free a moment ago.
struct World {
    folder: Temporary,
    machine: Machine,
    ports: Vec<u16>,
    nodes: Vec<NodeLine>,
    running: Vec<Running>,
}

fn free_ports(count: usize) -> Vec<u16> {
    let sockets: Vec<_> =
        (0..count).map(|_| std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap()).collect();
    sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect()
}

impl World {
    fn new(datacenters: usize) -> World {
        let mut world = World::planned(datacenters, false);
        (0..datacenters).for_each(|index| world.start(index));
        world
    }

    /// Of which nothing runs yet.
    fn planned(datacenters: usize, has_secret: bool) -> World {
        let ports = free_ports(2 * datacenters);
        let line = |(index, &port): (usize, &u16)| NodeLine {
            datacenter: format!("dc{}", index + 1),
            host: "127.0.0.1".into(),
            port,
            cores: Some(1),
        };
        let nodes = ports[datacenters..].iter().enumerate().map(line).collect();
        let machine = Machine::of_this_process(datacenters);
        let folder = Temporary::new();
        if has_secret {
            let names: Vec<String> = (1..=datacenters).map(|number| format!("dc{number}")).collect();
            crate::secret::make(&folder.path().join("secrets"), &names).unwrap();
        }
        World { folder, machine, ports, nodes, running: Vec::new() }
    }

    fn start(&mut self, index: usize) {
        let running = start(&self.config(index), &self.machine).unwrap();
        self.running.push(running);
    }

    fn config(&self, index: usize) -> Config {
        Config {
            datacenter: format!("dc{}", index + 1),
            nodes: self.nodes.clone(),
            partitions: 2,
            port: self.ports[index],
            bind: vec!["127.0.0.1".into()],
            dir: self.folder.path().into(),
            cluster_secret: Some(self.secret(index)).filter(|path| path.exists()),
            // Those that prove something meet impostors before they meet each other.
            first_start: if self.secret(index).exists() { FirstStart::Alone } else { FirstStart::Ask },
            ..Config::default()
        }
    }

    fn secret(&self, index: usize) -> std::path::PathBuf {
        crate::secret::path_of(&self.folder.path().join("secrets"), &format!("dc{}", index + 1))
    }

    /// A line of `INFO` of this node, without its name; empty if there is none.
    fn info(&self, index: usize, field: &str) -> String {
        let text = ask(&mut self.connect(index), "INFO everything");
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap_or_default().to_owned()
    }

    #[track_caller]
    fn wait_for_info(&self, index: usize, field: &str, words: &str) {
        let start = Instant::now();
        while !self.info(index, field).contains(words) {
            let text = self.info(index, field);
            assert!(start.elapsed() < Duration::from_secs(10), "{field}: {text:?}, without {words:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn connect(&self, index: usize) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.ports[index])).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    /// Asks until the answer is the expected one; returns how long that took.
    fn wait_for(&self, index: usize, command: &str, expected: &str) -> Duration {
        let start = Instant::now();
        let mut stream = self.connect(index);
        loop {
            let answer = ask(&mut stream, command);
            if answer == expected {
                return start.elapsed();
            }
            assert!(start.elapsed() < Duration::from_secs(10), "{command}: {answer:?}, not {expected:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn stop(self) {
        assert!(crate::shutdown::stop(self.running));
    }
}

fn ask(stream: &mut TcpStream, command: &str) -> String {
    stream.write_all(format!("{command}\r\n").as_bytes()).unwrap();
    let mut answer = vec![0; 65_536];
    let length = stream.read(&mut answer).unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[test]
fn a_write_crosses_links_that_are_delayed_cut_and_healed() {
    let world = World::new(2);
    let (one, two) = (DatacenterId(0), DatacenterId(1));
    world.wait_for(0, "SET a 1", "+OK\r\n");
    world.wait_for(1, "GET a", "$1\r\n1\r\n");
    world.machine.shaper.shape(one, two, Shape::DelayMs(100));
    world.wait_for(0, "SET a 2", "+OK\r\n");
    let took = world.wait_for(1, "GET a", "$1\r\n2\r\n");
    assert!(took >= Duration::from_millis(90), "the delay was {took:?}");
    world.machine.shaper.shape(one, two, Shape::Cut);
    world.machine.shaper.shape(one, two, Shape::DelayMs(0));
    world.wait_for(0, "SET a 3", "+OK\r\n");
    thread::sleep(Duration::from_millis(300));
    world.wait_for(1, "GET a", "$1\r\n2\r\n");
    world.machine.shaper.shape(one, two, Shape::Heal);
    world.wait_for(1, "GET a", "$1\r\n3\r\n");
    world.stop();
}

#[test]
fn a_restarted_node_has_its_data_and_hears_what_it_missed() {
    let mut world = World::new(2);
    world.wait_for(1, "SET kept yes", "+OK\r\n");
    let first = world.running.pop().unwrap();
    assert!(crate::shutdown::stop(vec![first]));
    world.wait_for(0, "SET missed no", "+OK\r\n");
    let again = start(&world.config(1), &world.machine).unwrap();
    world.running.push(again);
    world.wait_for(1, "GET kept", "$3\r\nyes\r\n");
    world.wait_for(1, "GET missed", "$2\r\nno\r\n");
    world.stop();
}

#[test]
fn garbage_harms_only_who_sends_it() {
    let world = World::new(2);
    let mut bystander = world.connect(0);
    for port in [world.ports[0], world.nodes[0].port] {
        for garbage in [&b"*1\r\n!\r\n"[..], &[0xff; 3000], b"GET / HTTP/1.1\r\n\r\n*-", &[0; 100]] {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            // The other side may have closed before everything was sent; that is what it is for.
            let _ = stream.write_all(garbage);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
    assert_eq!(ask(&mut bystander, "PING"), "+PONG\r\n");
    world.wait_for(0, "SET a 1", "+OK\r\n");
    world.wait_for(1, "GET a", "$1\r\n1\r\n");
    world.stop();
}

#[test]
fn a_taken_port_is_said_so() {
    let world = World::new(1);
    let config = Config { dir: world.folder.path().join("other"), ..world.config(0) };
    let error = start(&config, &world.machine).unwrap_err();
    assert!(matches!(error, StartError::Listen { whom: "clients", .. }), "{error}");
    world.stop();
}
