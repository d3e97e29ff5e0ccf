//! A recording between real sockets.

use super::*;
use ensue_check::format::jsonl;
use ensue_check::history::{Operation, Outcome};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        locked(&self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_is_pending_when_the_recording_is_interrupted_has_an_unknown_outcome() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (lines, live) = (Lines::default(), Live::default());
    let recorder = Recorder::new(Box::new(lines.clone())).unwrap();
    let route = Route {
        server: server.local_addr().unwrap().to_string(),
        datacenter: None,
        recorder: recorder.clone(),
        live: live.clone(),
        listener,
    };
    thread::spawn(move || route.accept());
    let command = b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1\r\n1\r\n";
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(command).unwrap();
    let (mut connection, _) = server.accept().unwrap();
    let mut arrived = [0; 27];
    connection.read_exact(&mut arrived).unwrap();
    assert_eq!(&arrived, command);

    live.finish(&recorder).unwrap();

    let history = jsonl::read(&mut locked(&lines.0).as_slice()).unwrap();
    assert_eq!(history.truncated_at_line, None);
    assert_eq!(history.transactions.len(), 1);
    assert_eq!(history.transactions[0].outcome, Outcome::Unknown);
    assert!(matches!(history.transactions[0].operations[..], [Operation::Write { .. }]));
}
