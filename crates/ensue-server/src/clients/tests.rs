//! Tests of all connections of a core: who is disconnected, and how a turn is dealt.

use super::*;
use crate::bounds::CLOSING_US;
use crate::transport::Transport;
use mio::Poll;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;

const READABLE: Ready = Ready { readable: true, at_end: false, writable: false };

struct Hall {
    clients: Clients,
    poll: Poll,
    listener: TcpListener,
    inputs: VecDeque<Input>,
}

impl Hall {
    fn new(needs_password: bool) -> Hall {
        Hall {
            clients: Clients::new(CoreId(0), needs_password, 0, OutputLimits::default()),
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
        let stream = Transport::Plain(stream);
        let guest = Guest { stream, address, local_address: String::new(), seat: Seat::for_test() };
        self.clients.admit(now_us, guest, self.poll.registry(), &mut self.inputs);
        far
    }

    /// Who is dealt how many commands.
    fn turn(&mut self, now_us: u64) -> Vec<(SessionId, usize)> {
        self.inputs.clear();
        self.clients.read(now_us, self.poll.registry(), &mut self.inputs);
        self.clients.flush(now_us, self.poll.registry(), &mut self.inputs);
        let commands = |input: &Input| match input {
            Input::ClientCommands { session, commands } => Some((*session, commands.len())),
            _ => None,
        };
        self.inputs.iter().filter_map(commands).collect()
    }

    fn answer(&mut self, session: SessionId, commands: usize) {
        let (bytes, registry) = (b"+PONG\r\n".repeat(commands), self.poll.registry());
        self.clients.reply(session, bytes, (commands as u32, false), registry, &mut self.inputs);
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

/// Twenty who send a thousand commands each, and one who sends one before each turn.
#[test]
fn a_turn_is_dealt_to_all_who_have_commands() {
    let mut hall = Hall::new(false);
    let mut far: Vec<_> = (0..21).map(|_| hall.connect(0)).collect();
    hall.turn(0);
    let mut single = far.pop().unwrap();
    for stream in &mut far {
        stream.write_all("PING\r\n".repeat(1_000).as_bytes()).unwrap();
    }
    let sessions: Vec<SessionId> = hall.clients.clients.keys().copied().collect();
    let last = sessions.iter().copied().max();
    let mut taken: BTreeMap<SessionId, usize> = sessions.iter().map(|&session| (session, 0)).collect();
    for turn in 1.. {
        single.write_all(b"PING\r\n").unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        sessions.iter().for_each(|&session| hall.clients.on_event(token_of(session), READABLE));
        let dealt = hall.turn(turn);
        let total: usize = dealt.iter().map(|(_, commands)| commands).sum();
        assert!(total < COMMANDS_PER_TURN + COMMANDS_PER_SHARE_MIN + 21 * COMMANDS_OF_A_NEWCOMER, "{total}");
        assert_eq!(
            dealt.iter().filter(|(_, commands)| *commands == 1).count(),
            1,
            "the single one is served"
        );
        for (session, commands) in dealt {
            *taken.entry(session).or_default() += commands;
            hall.answer(session, commands);
        }
        let many = taken.iter().filter(|(session, _)| Some(**session) != last).map(|(_, commands)| *commands);
        let (least, most) = many.fold((1_000, 0), |(least, most), n| (n.min(least), n.max(most)));
        assert!(most - least <= 2 * COMMANDS_PER_SHARE_MIN, "turn {turn}: {least} to {most}");
        if least == 1_000 {
            return;
        }
    }
}

/// A client with more answers than its socket takes, none of which it reads.
fn unread(hall: &mut Hall, now_us: u64) -> (SessionId, std::net::TcpStream) {
    let far = hall.connect(now_us);
    let session = hall.clients.clients.keys().copied().max().unwrap();
    hall.turn(now_us);
    let bytes = vec![b'x'; 32 << 20];
    hall.clients.reply(session, bytes, (0, false), hall.poll.registry(), &mut hall.inputs);
    hall.turn(now_us);
    (session, far)
}

#[test]
fn who_is_ended_and_does_not_read_keeps_no_seat() {
    let mut hall = Hall::new(false);
    let (session, _far) = unread(&mut hall, 0);
    hall.clients.disconnect(5, session);
    hall.turn(5);
    // A second end gives no more time.
    hall.clients.disconnect(6, session);
    hall.clients.clean_up(5 + CLOSING_US - 1, hall.poll.registry(), &mut hall.inputs);
    assert_eq!(hall.clients.clients.len(), 1, "its answers may still leave");
    hall.inputs.clear();
    hall.clients.clean_up(5 + CLOSING_US, hall.poll.registry(), &mut hall.inputs);
    assert_eq!(hall.clients.clients.len(), 0);
    assert!(
        matches!(hall.inputs.make_contiguous(), [Input::ClientGone { session: gone }] if *gone == session)
    );
}

#[test]
fn who_does_not_read_is_idle_and_who_reads_is_not() {
    let mut hall = Hall::new(false);
    hall.clients.timeout_us = 1_000;
    let (_, _still) = unread(&mut hall, 0);
    let (reading, mut far) = unread(&mut hall, 0);
    far.set_nonblocking(true).unwrap();
    let mut taken = vec![0; 1 << 20];
    while hall.clients.clients[&reading].last_active_us == 0 {
        while far.read(&mut taken).is_ok() {}
        hall.clients.dirty.push(reading);
        hall.turn(900);
    }
    hall.clients.clean_up(1_001, hall.poll.registry(), &mut hall.inputs);
    let left: Vec<SessionId> = hall.clients.clients.keys().copied().collect();
    assert_eq!(left, [reading]);
    hall.clients.clean_up(1_901, hall.poll.registry(), &mut hall.inputs);
    assert!(hall.clients.clients.is_empty());
}
