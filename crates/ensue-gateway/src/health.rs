//! What a gateway tells the monitor: whether its application accepts connections.
//!
//! The monitor's datagram is a number; the answer is the number and `ok` or `failed`. When the application fails, the
//! monitor is told at once and not when it asks next.

use crate::limits::{HEARTBEAT_BYTES_MAX, PROBE_EVERY, PROBE_MAX};
use std::io;
use std::net::{SocketAddr, SocketAddrV4, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

#[derive(Debug)]
pub struct Health {
    socket: UdpSocket,
    healthy: AtomicBool,
    monitor: Mutex<Option<SocketAddr>>,
}

impl Health {
    /// Answers the monitor on `listen`, and asks `application` in short intervals whether it accepts connections.
    pub fn watch(listen: SocketAddr, application: SocketAddrV4) -> io::Result<Arc<Self>> {
        let health = Arc::new(Self {
            socket: UdpSocket::bind(listen)?,
            healthy: AtomicBool::new(false),
            monitor: Mutex::new(None),
        });
        let probing = Arc::clone(&health);
        thread::Builder::new().name("trods-probe".into()).spawn(move || probing.probe(application))?;
        let answering = Arc::clone(&health);
        thread::Builder::new().name("trods-heartbeat".into()).spawn(move || answering.answer())?;
        Ok(health)
    }

    /// The application failed just now.
    pub fn on_failure(&self) {
        self.healthy.store(false, Ordering::Relaxed);
        let monitor = *self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(monitor) = monitor {
            // Whether it arrives or not, the monitor asks again.
            let _ = self.socket.send_to(&answer(b"0", false), monitor);
        }
    }

    fn probe(&self, application: SocketAddrV4) {
        loop {
            let accepts = TcpStream::connect_timeout(&application.into(), PROBE_MAX).is_ok();
            self.healthy.store(accepts, Ordering::Relaxed);
            thread::sleep(PROBE_EVERY);
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
