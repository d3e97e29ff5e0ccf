//! One direction of an ordered connection between two cores: what is on its way, and what its receiver was told of it.
//!
//! A broken connection loses what is on its way. Its receiver learns of the break, then of the new connection, in the
//! order of its messages; until its sender has learnt of the new connection too, what it sends is lost.

use super::print::{self, Print, Printer};
use ensue_wire::Envelope;
use std::collections::VecDeque;
use std::sync::Arc;

/// What arrives.
#[derive(Debug, Hash)]
pub enum Packet {
    Message(Envelope),
    Up,
    Down,
}

/// Something on its way, with its fingerprint.
#[derive(Clone, Debug)]
pub struct Sent {
    packet: Arc<Packet>,
    print: Print,
}

impl Sent {
    pub fn message(envelope: Envelope) -> Sent {
        Sent::of(Packet::Message(envelope))
    }

    fn of(packet: Packet) -> Sent {
        let print = print::of_parts(&packet);
        Sent { packet: Arc::new(packet), print }
    }
}

/// One direction.
#[derive(Clone, Debug, Default)]
pub struct Line {
    sent: VecDeque<Sent>,
    /// The receiver has been told that the connection is up, and not since that it is down.
    told_up: bool,
    /// The sender has been told of the present connection.
    pub sender_up: bool,
}

impl Line {
    fn push(&mut self, packet: Packet) {
        self.sent.push_back(Sent::of(packet));
    }

    /// The sender says something: lost if it speaks into a connection that is gone.
    pub fn send(&mut self, message: Sent) {
        if self.sender_up {
            self.sent.push_back(message);
        }
    }

    pub fn first(&self) -> Option<&Packet> {
        self.sent.front().map(|sent| sent.packet.as_ref())
    }

    pub fn pop(&mut self) -> Option<Arc<Packet>> {
        let packet = self.sent.pop_front()?.packet;
        match *packet {
            Packet::Up => self.told_up = true,
            Packet::Down => self.told_up = false,
            Packet::Message(_) => {}
        }
        Some(packet)
    }

    /// The connection is gone, and all that was on its way.
    pub fn clear(&mut self) {
        self.sent.clear();
        self.sender_up = false;
    }

    /// The connection breaks and is made again.
    pub fn renew(&mut self) {
        self.clear();
        if self.told_up {
            self.push(Packet::Down);
        }
        self.push(Packet::Up);
    }

    /// The receiver has died and begun again: it knows of no connection.
    pub fn forget(&mut self) {
        self.told_up = false;
        self.renew();
    }

    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub fn print(&self, printer: &mut Printer) {
        printer.number(self.sent.len() as u64 * 4 + u64::from(self.told_up) * 2 + u64::from(self.sender_up));
        self.sent.iter().for_each(|sent| printer.print(sent.print));
    }
}
