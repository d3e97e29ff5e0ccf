//! Tests of one connection over a real socket: bounds, the gate before authentication, and every way to end.

use super::*;
use mio::net::TcpStream;
use std::net::{Shutdown, TcpListener};
use std::time::{Duration, Instant};

/// More than any of these asks at once.
const SHARE: usize = 10_000;

struct Pair {
    client: Client,
    far: std::net::TcpStream,
    scratch: Vec<u8>,
}

impl Pair {
    fn new(needs_password: bool) -> Pair {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (near, _) = listener.accept().unwrap();
        near.set_nonblocking(true).unwrap();
        let address = near.peer_addr().unwrap();
        let (stream, seat) = (Transport::Plain(TcpStream::from_std(near)), Seat::for_test());
        let guest = Guest { stream, address, local_address: String::new(), seat };
        let client = Client::new(0, guest, needs_password);
        Pair { client, far, scratch: vec![0; 4096] }
    }

    /// Reads until this many commands have come, an error, or the end of patience.
    fn read(&mut self, wanted: usize) -> (Vec<Args>, Option<ParseError>) {
        let mut commands = Vec::new();
        let until = Instant::now() + Duration::from_secs(5);
        while commands.len() < wanted && Instant::now() < until {
            self.client.on_readable(true);
            match self.client.read(&mut self.scratch, SHARE, &mut commands).unwrap() {
                Taken::Commands => {}
                Taken::Broken(error) => return (commands, Some(error)),
                Taken::CrossProtocol => panic!("no test of these speaks HTTP"),
            }
        }
        (commands, None)
    }

    fn settle_now(&mut self) {
        self.client.on_readable(true);
        self.client.read(&mut self.scratch, SHARE, &mut Vec::new()).unwrap();
    }

    fn settle(&mut self) -> Vec<Args> {
        std::thread::sleep(Duration::from_millis(20));
        let mut commands = Vec::new();
        self.client.on_readable(true);
        self.client.read(&mut self.scratch, SHARE, &mut commands).unwrap();
        commands
    }
}

#[test]
fn commands_cut_anywhere_come_out_whole() {
    let mut pair = Pair::new(false);
    for byte in b"*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\nPING\r\n" {
        pair.far.write_all(&[*byte]).unwrap();
    }
    let (commands, error) = pair.read(2);
    assert_eq!(error, None);
    assert_eq!(commands, vec![vec!["ECHO".into(), "hi".into()], vec![bytes::Bytes::from("PING")]]);
}

#[test]
fn garbage_ends_the_connection_with_a_reason() {
    let mut pair = Pair::new(false);
    pair.far.write_all(b"PING\r\n*1\r\n!garbage").unwrap();
    let (commands, error) = pair.read(2);
    assert_eq!((commands.len(), error), (1, Some(ParseError::ExpectedBulk { got: b'!' })));
    assert_eq!(pair.client.read(&mut pair.scratch, SHARE, &mut Vec::new()).unwrap(), Taken::Commands);
    pair.client.reply(b"+PONG\r\n-ERR\r\n".to_vec(), 1, false).unwrap();
    pair.client.close(0);
    assert_eq!(pair.client.flush().unwrap(), Fate::Lingers);
    assert!(!pair.client.has_work());
}

#[test]
fn who_asks_much_waits_for_answers() {
    let mut pair = Pair::new(false);
    let many = limits::COMMANDS_IN_FLIGHT_MAX + 10;
    pair.far.write_all("PING\r\n".repeat(many).as_bytes()).unwrap();
    let (commands, _) = pair.read(limits::COMMANDS_IN_FLIGHT_MAX);
    assert_eq!(commands.len(), limits::COMMANDS_IN_FLIGHT_MAX);
    assert!(pair.settle().is_empty() && !pair.client.has_work());
    pair.client.reply(b"+PONG\r\n".repeat(4), 4, false).unwrap();
    assert!(pair.client.has_work());
    assert_eq!(pair.read(4).0.len(), 4);
}

#[test]
fn who_asks_in_long_commands_waits_sooner() {
    let mut pair = Pair::new(false);
    pair.scratch = vec![0; 1 << 20];
    let value_bytes = limits::COMMAND_BYTES_IN_FLIGHT_MAX / 2;
    let command =
        [format!("*2\r\n$4\r\nECHO\r\n${value_bytes}\r\n").as_bytes(), &vec![b'x'; value_bytes], b"\r\n"]
            .concat();
    let mut far = pair.far.try_clone().unwrap();
    let sending = std::thread::spawn(move || (0..3).try_for_each(|_| far.write_all(&command)));
    assert_eq!(pair.read(2).0.len(), 2);
    assert!(pair.settle().is_empty() && !pair.client.has_work(), "two fill the bound");
    pair.client.reply(b"$0\r\n\r\n".to_vec(), 1, false).unwrap();
    assert_eq!(pair.read(1).0.len(), 1);
    sending.join().unwrap().unwrap();
}

#[test]
fn who_does_not_read_is_not_read() {
    let mut pair = Pair::new(false);
    pair.client.reply(vec![b'x'; limits::CLIENT_OUTPUT_PAUSE_BYTES + 1], 0, false).unwrap();
    pair.far.write_all(b"PING\r\n").unwrap();
    assert!(pair.settle().is_empty(), "the answers wait, so no command is taken");
    assert!(pair.client.reply(vec![b'x'; limits::CLIENT_OUTPUT_BYTES_MAX], 0, false).is_err());
}

#[test]
fn a_half_closed_client_gets_its_answers() {
    let mut pair = Pair::new(false);
    pair.far.write_all(b"PING\r\nPING\r\n").unwrap();
    pair.far.shutdown(Shutdown::Write).unwrap();
    assert_eq!(pair.read(2).0.len(), 2);
    assert!(pair.settle().is_empty());
    assert_eq!(pair.client.flush().unwrap(), Fate::Stays);
    pair.client.reply(b"+PONG\r\n+PONG\r\n".to_vec(), 2, false).unwrap();
    assert_eq!(pair.client.flush().unwrap(), Fate::Gone);
    drop(pair.client);
    let mut answers = String::new();
    pair.far.read_to_string(&mut answers).unwrap();
    assert_eq!(answers, "+PONG\r\n+PONG\r\n");
}

#[test]
fn a_half_closed_client_that_reads_slowly_makes_no_work() {
    let mut pair = Pair::new(false);
    pair.far.write_all(b"GET big\r\n").unwrap();
    pair.far.shutdown(Shutdown::Write).unwrap();
    assert_eq!(pair.read(1).0.len(), 1);
    while !pair.client.take_end() {
        pair.settle_now();
    }
    pair.client.reply(vec![b'x'; 1 << 10], 1, false).unwrap();
    // The socket takes more, and reports with it that it has been shut down.
    pair.settle_now();
    assert!(!pair.client.has_work() && !pair.client.take_end(), "its end is known");
    assert_eq!(pair.client.flush().unwrap(), Fate::Gone);
}

#[test]
fn a_half_closed_client_that_is_reset_is_gone() {
    let mut pair = Pair::new(false);
    pair.far.write_all(b"CAUSAL WAIT\r\n").unwrap();
    pair.far.shutdown(Shutdown::Write).unwrap();
    assert_eq!(pair.read(1).0.len(), 1);
    while !pair.client.take_end() {
        pair.settle_now();
    }
    // What is not read when a socket is closed makes its end a reset.
    pair.client.stream.write_all(b"+OK\r\n").unwrap();
    drop(pair.far);
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        pair.client.on_readable(true);
        if pair.client.read(&mut pair.scratch, SHARE, &mut Vec::new()).is_err() {
            return;
        }
    }
    panic!("the reset was not seen");
}

#[test]
fn before_the_password_only_little_is_taken() {
    let mut pair = Pair::new(true);
    pair.far.write_all(b"*11\r\n").unwrap();
    let (_, error) = pair.read(1);
    assert_eq!(error, Some(ParseError::UnauthenticatedMultibulkLength));
}

#[test]
fn the_gate_opens_when_auth_is_answered_without_an_error() {
    let mut pair = Pair::new(true);
    pair.far.write_all(b"PING\r\nAUTH wrong\r\nAUTH right\r\nMGET 1 2 3 4 5 6 7 8 9 10 11\r\n").unwrap();
    assert_eq!(pair.read(1).0.len(), 1);
    assert!(pair.settle().is_empty(), "AUTH waits for the answer before it");
    pair.client.reply(b"-NOAUTH\r\n".to_vec(), 1, false).unwrap();
    assert_eq!(pair.read(1).0[0][1], "wrong");
    assert!(pair.settle().is_empty(), "nothing is taken while AUTH is not answered");
    pair.client.reply(b"-WRONGPASS\r\n".to_vec(), 1, false).unwrap();
    assert_eq!(pair.read(1).0[0][1], "right");
    pair.client.reply(b"+OK\r\n".to_vec(), 1, false).unwrap();
    assert_eq!(pair.read(1).0[0].len(), 12);
}

#[test]
fn a_turn_is_a_share_of_what_was_asked() {
    let mut pair = Pair::new(false);
    pair.far.write_all("PING\r\n".repeat(100).as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    for turn in 1..=3 {
        let mut commands = Vec::new();
        pair.client.on_readable(false);
        assert_eq!(pair.client.read(&mut pair.scratch, 16, &mut commands).unwrap(), Taken::Commands);
        assert_eq!((commands.len(), pair.client.has_work()), (16, true), "turn {turn}");
    }
    pair.client.reply(b"+PONG\r\n".repeat(48), 48, false).unwrap();
    assert!(pair.client.may_write_later(), "the next answers come at once");
    pair.client.reply(vec![b'x'; WRITE_BYTES_MIN], 0, false).unwrap();
    assert!(!pair.client.may_write_later(), "enough for a write");
}

#[test]
fn a_session_has_its_next_turn_when_its_client_has_read() {
    let mut pair = Pair::new(false);
    pair.far.write_all(b"PING\r\nPING\r\n").unwrap();
    assert_eq!(pair.read(2).0.len(), 2);
    pair.client.reply(vec![b'x'; limits::CLIENT_OUTPUT_PAUSE_BYTES + 1], 1, true).unwrap();
    assert!(!pair.client.has_work(), "nothing was read yet");
    let mut read = vec![0; 64 << 10];
    while pair.client.output_waiting() > 0 {
        assert_eq!(pair.client.flush().unwrap(), Fate::Stays);
        let _ = pair.far.read(&mut read).unwrap();
    }
    assert!(pair.client.has_work() && pair.client.take_turn());
    assert!(!pair.client.take_turn(), "one turn at a time");
}

#[test]
fn what_follows_the_words_of_a_browser_is_no_command() {
    for request in ["POST / HTTP/1.1\r\nHost: a\r\n\r\nSET a b\r\n", "hOST: a\r\nSET a b\r\n"] {
        let mut pair = Pair::new(false);
        pair.far.write_all(b"PING\r\n").unwrap();
        pair.far.write_all(request.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let mut commands = Vec::new();
        let taken = pair.client.read(&mut pair.scratch, SHARE, &mut commands).unwrap();
        assert_eq!((taken, commands.len()), (Taken::CrossProtocol, 1), "{request}");
        assert!(pair.settle().is_empty());
    }
}

#[test]
fn before_the_password_a_connection_holds_little() {
    let mut pair = Pair::new(true);
    pair.scratch = vec![0; 64 << 10];
    let long = "x".repeat(limits::BULK_BYTES_BEFORE_AUTH_MAX - 1);
    let start = format!("*10\r\n$4\r\nECHO\r\n${}\r\n{long}", long.len() + 1);
    pair.far.write_all(start.as_bytes()).unwrap();
    assert!(pair.settle().is_empty());
    for _ in 0..100 {
        pair.settle_now();
    }
    assert!(pair.client.input.capacity() <= 40 << 10, "{}", pair.client.input.capacity());
    let (mut far, more) = (pair.far.try_clone().unwrap(), "PING\r\n".repeat(1_000));
    far.write_all(format!("x\r\n$1\r\n{more}").as_bytes()).unwrap();
    let (_, error) = pair.read(1);
    assert!(error.is_some(), "all arguments together are bounded, too");

    let mut pair = Pair::new(true);
    pair.far.write_all("PING\r\n".repeat(100).as_bytes()).unwrap();
    assert_eq!(pair.read(COMMANDS_BEFORE_AUTH_MAX).0.len(), COMMANDS_BEFORE_AUTH_MAX);
    assert!(pair.settle().is_empty(), "few wait for their answers");
    pair.client.reply(vec![b'-'; OUTPUT_BYTES_BEFORE_AUTH_MAX + 1], 8, false).unwrap();
    assert!(pair.settle().is_empty(), "and few answers wait for their reader");
}
