//! What carries the bytes of a connection: a socket, or TLS over it.
//!
//! Both read and write as a socket does that never blocks, so that whoever owns a connection need not know which it
//! is. What TLS adds stays here: records that wait for the socket, plaintext that waits for its reader, and a
//! handshake that may still be on its way. Buffers are bounded by the size of a record each way, and 64 KiB of
//! plaintext that the socket does not take.

use mio::event::Source;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;

/// One connection's carrier.
#[derive(Debug)]
pub(crate) enum Transport {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

/// TLS over a socket.
#[derive(Debug)]
pub(crate) struct Tls {
    socket: TcpStream,
    session: Connection,
    /// Bytes that were decrypted and not read.
    plaintext: usize,
    /// The latest read took everything that the socket held.
    has_emptied: bool,
}

impl Transport {
    /// The accepting side of TLS. An error is one of the settings.
    pub(crate) fn accept(
        socket: TcpStream,
        settings: &Arc<ServerConfig>,
    ) -> Result<Transport, rustls::Error> {
        let session = ServerConnection::new(Arc::clone(settings))?;
        Ok(Transport::Tls(Box::new(Tls::new(socket, session.into()))))
    }

    /// The dialling side, to whoever has a certificate with this name. An error is one of the settings.
    pub(crate) fn dial(
        socket: TcpStream,
        settings: &Arc<ClientConfig>,
        name: rustls::pki_types::ServerName<'static>,
    ) -> Result<Transport, rustls::Error> {
        let session = ClientConnection::new(Arc::clone(settings), name)?;
        Ok(Transport::Tls(Box::new(Tls::new(socket, session.into()))))
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Transport::Plain(socket) => socket,
            Transport::Tls(tls) => &tls.socket,
        }
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.socket().peer_addr()
    }

    /// Whether nothing is left to read after a read of so many bytes into a buffer of so many, until the socket
    /// reports more.
    pub(crate) fn has_emptied(&self, length: usize, buffer: usize) -> bool {
        match self {
            Transport::Plain(_) => length < buffer,
            Transport::Tls(tls) => tls.plaintext == 0 && tls.has_emptied,
        }
    }

    /// Whether what was written has not reached the socket; a flush tries again.
    pub(crate) fn has_unsent(&self) -> bool {
        match self {
            Transport::Plain(_) => false,
            Transport::Tls(tls) => tls.session.wants_write(),
        }
    }

    /// Whether the two sides have not agreed on keys yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        match self {
            Transport::Plain(_) => false,
            Transport::Tls(tls) => tls.session.is_handshaking(),
        }
    }

    /// The certificate that the other side has proved to be its own.
    pub(crate) fn certificate(&self) -> Option<&CertificateDer<'static>> {
        match self {
            Transport::Plain(_) => None,
            Transport::Tls(tls) => tls.session.peer_certificates()?.first(),
        }
    }

    /// The socket alone, after the other side was told that nothing follows. It may be gone, and then nobody listens.
    pub(crate) fn into_socket(self) -> TcpStream {
        match self {
            Transport::Plain(socket) => socket,
            Transport::Tls(mut tls) => {
                tls.session.send_close_notify();
                let _ = tls.send();
                tls.socket
            }
        }
    }
}

impl Tls {
    fn new(socket: TcpStream, session: Connection) -> Tls {
        Tls { socket, session, plaintext: 0, has_emptied: false }
    }

    /// Takes what the socket holds, one read of it, and decrypts it. False at the end of the stream.
    fn receive(&mut self) -> io::Result<bool> {
        // Whoever dials speaks first.
        self.send_what_fits()?;
        let mut source = Watched { socket: &mut self.socket, has_emptied: false };
        let length = self.session.read_tls(&mut source)?;
        self.has_emptied = source.has_emptied;
        match self.session.process_new_packets() {
            Ok(state) => self.plaintext = state.plaintext_bytes_to_read(),
            Err(error) => {
                // The other side is told what was wrong, if it still listens.
                let _ = self.send();
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        }
        self.send_what_fits()?;
        Ok(length > 0)
    }

    /// Gives the socket what was encrypted.
    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            match self.session.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The same; what the socket does not take waits for the next flush.
    fn send_what_fits(&mut self) -> io::Result<()> {
        match self.send() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            result => result,
        }
    }
}

impl Read for Tls {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // What an earlier read of the socket found says nothing of what has arrived since.
        self.has_emptied = false;
        loop {
            match self.session.reader().read(buffer) {
                Ok(length) => {
                    self.plaintext = self.plaintext.saturating_sub(length);
                    return Ok(length);
                }
                // Ends without a farewell are common; what protocols frame does not need one.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if !self.receive()? && self.session.is_handshaking() {
                return Ok(0);
            }
        }
    }
}

impl Write for Tls {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let mut length = self.session.writer().write(buffer)?;
        self.send_what_fits()?;
        if length == 0 && !self.session.wants_write() && !self.session.is_handshaking() {
            length = self.session.writer().write(buffer)?;
            self.send_what_fits()?;
        }
        if length == 0 && !buffer.is_empty() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(length) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_what_fits()
    }
}

impl Read for Transport {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(socket) => socket.read(buffer),
            Transport::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for Transport {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(socket) => socket.write(buffer),
            Transport::Tls(tls) => tls.write(buffer),
        }
    }

    /// Gives the socket what waits, as far as it takes it: [`Transport::has_unsent`] says whether something is left.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Transport::Plain(_) => Ok(()),
            Transport::Tls(tls) => tls.flush(),
        }
    }
}

impl Source for Transport {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.source().register(registry, token, interests)
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        self.source().reregister(registry, token, interests)
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        self.source().deregister(registry)
    }
}

impl Transport {
    fn source(&mut self) -> &mut TcpStream {
        match self {
            Transport::Plain(socket) => socket,
            Transport::Tls(tls) => &mut tls.socket,
        }
    }
}

/// A socket that notes whether it was emptied: an edge-triggered poll reports what comes later, and no more reads are
/// needed to know that nothing is left.
struct Watched<'a> {
    socket: &'a mut TcpStream,
    has_emptied: bool,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.socket.read(buffer)?;
        self.has_emptied = length < buffer.len();
        Ok(length)
    }
}

#[cfg(test)]
mod tests;
