//! The socket of a connection of the metrics port, plain or under TLS, with an end to every wait.
//!
//! Each direction has a deadline, and every wait for the socket ends at it, those of a handshake too: who sends a byte
//! now and then gains no time by it.

use rustls::{ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A connection.
pub(super) struct Wire<'a> {
    socket: Timed<'a>,
    session: Option<ServerConnection>,
}

/// A socket that waits until a moment and no longer.
struct Timed<'a> {
    socket: &'a TcpStream,
    until: Instant,
}

impl<'a> Wire<'a> {
    /// An error is one of the settings.
    pub(super) fn new(
        socket: &'a TcpStream,
        tls: Option<Arc<ServerConfig>>,
    ) -> Result<Wire<'a>, rustls::Error> {
        let session = tls.map(ServerConnection::new).transpose()?;
        Ok(Wire { socket: Timed { socket, until: Instant::now() }, session })
    }

    /// What follows may take so long together.
    pub(super) fn allow(&mut self, ms: u64) {
        self.socket.until = Instant::now() + Duration::from_millis(ms);
    }

    /// Whether the other side could read an answer.
    pub(super) fn can_answer(&self) -> bool {
        self.session.as_ref().is_none_or(|session| !session.is_handshaking())
    }

    /// Says that nothing follows, and reads until the other side has said so, too: closing the socket before could take
    /// the answer from it.
    pub(super) fn close(&mut self, ms: u64) -> io::Result<()> {
        self.allow(ms);
        if let Some(session) = &mut self.session {
            session.send_close_notify();
            while session.wants_write() {
                session.write_tls(&mut self.socket)?;
            }
        }
        self.socket.socket.shutdown(Shutdown::Write)?;
        let mut rest = [0; 1 << 10];
        while self.socket.read(&mut rest)? > 0 {}
        Ok(())
    }
}

impl Read for Wire<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.session {
            None => self.socket.read(buffer),
            Some(session) => match rustls::Stream::new(session, &mut self.socket).read(buffer) {
                // The other side left without a farewell.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                result => result,
            },
        }
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.session {
            None => self.socket.write(bytes),
            Some(session) => rustls::Stream::new(session, &mut self.socket).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.session {
            None => Ok(()),
            Some(session) => rustls::Stream::new(session, &mut self.socket).flush(),
        }
    }
}

impl Timed<'_> {
    /// What is left, in steps that a socket takes.
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left < Duration::from_millis(1) { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.socket.set_read_timeout(self.left()?)?;
            match self.socket.read(buffer) {
                Err(error) if goes_on(&error) => {}
                result => return result,
            }
        }
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            self.socket.set_write_timeout(self.left()?)?;
            match self.socket.write(bytes) {
                Err(error) if goes_on(&error) => {}
                result => return result,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether it is tried again, if there is time.
fn goes_on(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
