//! Tests of all connections of a core: who is disconnected, and how a turn is dealt.

use super::*;
use mio::Poll;
use std::io::{Read, Write};
use std::net::TcpListener;

struct Hall {
    clients: Clients,
    poll: Poll,
    listener: TcpListener,
    inputs: VecDeque<Input>,
}

impl Hall {
    fn new(needs_password: bool) -> Hall {
        Hall {
            clients: Clients::new(needs_password, 0),
            poll: Poll::new().unwrap(),
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            inputs: VecDeque::new(),
        }
    }

    fn connect(&mut self, now_us: u64) -> std::net::TcpStream {
        let far = std::net::TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        let (near, address) = self.listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        let stream = TcpStream::from_std(near);
        let guest = Guest { stream, address, local_address: String::new(), seat: Seat::for_test() };
        self.clients.admit(now_us, guest, self.poll.registry(), &mut self.inputs);
        far
    }

    fn turn(&mut self, now_us: u64) -> Vec<usize> {
        self.inputs.clear();
        self.clients.read(now_us, self.poll.registry(), &mut self.inputs);
        self.clients.flush(now_us, self.poll.registry(), &mut self.inputs);
        let commands = |input: &Input| match input {
            Input::ClientCommands { commands, .. } => Some(commands.len()),
            _ => None,
        };
        self.inputs.iter().filter_map(commands).collect()
    }
}

#[test]
fn who_does_not_authenticate_is_disconnected() {
    let mut hall = Hall::new(true);
    let mut early = hall.connect(0);
    let _late = hall.connect(5_000_000);
    early.write_all(b"PING\r\n").unwrap();
    hall.turn(9_000_000);
    hall.clients.clean_up(AUTHENTICATION_US, hall.poll.registry(), &mut hall.inputs);
    assert_eq!(hall.clients.clients.len(), 2, "there is time left");
    hall.clients.clean_up(AUTHENTICATION_US + 1, hall.poll.registry(), &mut hall.inputs);
    assert_eq!(hall.clients.clients.len(), 1, "asking does not help");
    assert_eq!(early.read(&mut [0; 8]).unwrap_or(0), 0, "the socket is closed");

    let mut open = Hall::new(false);
    let _idle = open.connect(0);
    open.clients.clean_up(1_000 * AUTHENTICATION_US, open.poll.registry(), &mut open.inputs);
    assert_eq!(open.clients.clients.len(), 1, "without a password there is nothing to prove");
}

#[test]
fn a_turn_is_dealt_to_all_who_have_commands() {
    let mut hall = Hall::new(false);
    let mut far: Vec<_> = (0..8).map(|_| hall.connect(0)).collect();
    for stream in &mut far[1..] {
        stream.write_all("PING\r\n".repeat(1_000).as_bytes()).unwrap();
    }
    far[0].write_all(b"PING\r\n").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(50));
    let mut dealt = hall.turn(1);
    dealt.sort_unstable();
    assert_eq!(dealt[0], 1);
    assert!(dealt[1..].iter().all(|&commands| commands == COMMANDS_PER_TURN / 8), "{dealt:?}");
}
