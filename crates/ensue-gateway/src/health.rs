//! What a gateway tells the monitor: whether its application accepts connections.
//!
//! The monitor's datagram is a number; the answer is the number and `ok` or `failed`. When a connection of the
//! application ended too early, the application is asked at once whether it lives: it may have closed only this one. If
//! it has failed, the monitor is told at once and not when it asks next.

use crate::limits::{HEARTBEAT_BYTES_MAX, PROBE_EVERY, PROBE_MAX};
use crate::spawn;
use std::io;
use std::net::{SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub struct Health {
    socket: UdpSocket,
    healthy: AtomicBool,
    monitor: Mutex<Option<SocketAddr>>,
    /// Wakes who asks the application.
    doubts: SyncSender<()>,
}

impl Health {
    /// Answers the monitor on `listen`, and asks `application` in short intervals whether it accepts connections.
    pub fn watch(listen: SocketAddr, application: SocketAddrV4) -> io::Result<Arc<Self>> {
        let (doubts, doubted) = mpsc::sync_channel(1);
        let health = Arc::new(Self {
            socket: UdpSocket::bind(listen)?,
            healthy: AtomicBool::new(false),
            monitor: Mutex::new(None),
            doubts,
        });
        let probing = Arc::clone(&health);
        spawn("trods-probe", move || probing.probe(application, &doubted))?;
        let answering = Arc::clone(&health);
        spawn("trods-heartbeat", move || answering.answer())?;
        Ok(health)
    }

    /// A connection of the application ended too early just now.
    pub fn on_failure(&self) {
        // If it is full, it will be asked anyway.
        let _ = self.doubts.try_send(());
    }

    fn probe(&self, application: SocketAddrV4, doubted: &Receiver<()>) {
        loop {
            let accepts = TcpStream::connect_timeout(&application.into(), PROBE_MAX).is_ok();
            if self.healthy.swap(accepts, Ordering::Relaxed) && !accepts {
                self.tell_failure();
            }
            // Ends with the process.
            let _ = doubted.recv_timeout(PROBE_EVERY);
        }
    }

    fn tell_failure(&self) {
        let monitor = *self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(monitor) = monitor {
            // Whether it arrives or not, the monitor asks again.
            let _ = self.socket.send_to(&answer(b"0", false), monitor);
        }
    }

    fn answer(&self) {
        let mut buffer = [0; HEARTBEAT_BYTES_MAX];
        loop {
            let Ok((length, from)) = self.socket.recv_from(&mut buffer) else { continue };
            let asked = &buffer[..length];
            if asked.is_empty() || !asked.iter().all(u8::is_ascii_digit) {
                continue;
            }
            *self.monitor.lock().unwrap_or_else(PoisonError::into_inner) = Some(from);
            let _ = self.socket.send_to(&answer(asked, self.healthy.load(Ordering::Relaxed)), from);
        }
    }
}

fn answer(number: &[u8], healthy: bool) -> Vec<u8> {
    let mut text = number.to_vec();
    text.extend_from_slice(if healthy { b" ok" } else { b" failed" });
    text
}

/// Reads an answer: its number, and whether the application is well.
pub fn read_answer(bytes: &[u8]) -> Option<(u64, bool)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (number, word) = text.split_once(' ')?;
    let healthy = match word {
        "ok" => true,
        "failed" => false,
        _ => return None,
    };
    Some((number.parse().ok()?, healthy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        assert_eq!(read_answer(&answer(b"17", true)), Some((17, true)));
        assert_eq!(read_answer(&answer(b"0", false)), Some((0, false)));
        assert_eq!(read_answer(b"17 well"), None);
        assert_eq!(read_answer(b"ok"), None);
    }
}
