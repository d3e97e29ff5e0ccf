//! Packets of the gateway's own: a raw socket takes them whole, and its mark says where they go without being queued.

use ensue_trods::packet;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddrV4;

/// The mark of packets that passed the gateway; its rules leave them alone.
pub const PASSED_MARK: u32 = 0x7d00_0001;
/// Packets that are sent and not received: the header is the sender's.
const PROTOCOL_RAW: i32 = 255;

#[derive(Debug)]
pub struct Injector {
    socket: Socket,
}

impl Injector {
    /// A socket whose packets have this mark.
    pub fn open(mark: u32) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(PROTOCOL_RAW)))?;
        socket.set_header_included_v4(true)?;
        socket.set_mark(mark)?;
        Ok(Self { socket })
    }

    /// Sends an IPv4 packet where its header says.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        let (_, destination) = packet::ends(bytes).ok_or(io::ErrorKind::InvalidInput)?;
        let address = SocketAddrV4::new(destination.address, 0);
        self.socket.send_to(bytes, &address.into()).map(|_| ())
    }
}
