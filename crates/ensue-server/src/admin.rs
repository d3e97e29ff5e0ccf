//! The admin port of a dev cluster: one command a line, one answer a line, from this machine only.
//!
//! ```text
//! nodes                        ok dc1/0=127.0.0.1:7001 dc2/0=127.0.0.1:7002
//! link dc1 dc2 cut             ok dc1-dc2 is cut
//! link dc1 dc2 heal            ok dc1-dc2 is whole
//! link dc1 dc2 delay 40        ok dc1-dc2 takes 40 ms
//! links                        ok dc1-dc2=whole,40ms …
//! ```
//!
//! The same lines go from the parent of a dev cluster of several processes to its children. A line that is not
//! understood is answered with `error` and a reason. It serves one connection at a time and gives none long.

use crate::bounds::ADMIN_LINE_BYTES_MAX;
use crate::log;
use crate::shaper::{Shape, Shaper};
use ensue_types::DatacenterId;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// How far the admin port is above the base port for clients.
pub const ADMIN_PORT_OFFSET: u16 = 10_999;
/// Longest delay that a link can be given.
pub const DELAY_MS_MAX: u32 = 60_000;
const PATIENCE: Duration = Duration::from_secs(5);
/// A request is one line from this machine: who does not send it at once is no one who asks.
const LINE_PATIENCE: Duration = Duration::from_millis(200);

/// A change to one link, by the numbers of its datacenters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkChange {
    pub one: DatacenterId,
    pub other: DatacenterId,
    pub shape: Shape,
}

impl LinkChange {
    /// Reads the words after `link`.
    pub fn parse(words: &[&str], datacenters: &[String]) -> Result<LinkChange, String> {
        let find = |name: &str| {
            datacenters
                .iter()
                .position(|known| known == name)
                .map(|index| DatacenterId(index as u8))
                .ok_or_else(|| format!("there is no datacenter '{name}', only {}", datacenters.join(", ")))
        };
        let (one, other, shape) = match words {
            [one, other, "cut"] => (one, other, Shape::Cut),
            [one, other, "heal"] => (one, other, Shape::Heal),
            [one, other, "delay", delay] => (one, other, Shape::DelayMs(delay_ms(delay)?)),
            _ => return Err("write: link A B cut, link A B heal, or link A B delay MS".into()),
        };
        let (one, other) = (find(one)?, find(other)?);
        if one == other {
            return Err("a link has two different ends".into());
        }
        Ok(LinkChange { one, other, shape })
    }

    pub fn apply(self, shaper: &Shaper) {
        shaper.shape(self.one, self.other, self.shape);
    }

    /// The words that [`LinkChange::parse`] reads, with `link` before them.
    pub fn line(self, datacenters: &[String]) -> String {
        let name = |id: DatacenterId| datacenters[usize::from(id.0)].as_str();
        let shape = match self.shape {
            Shape::Cut => "cut".into(),
            Shape::Heal => "heal".into(),
            Shape::DelayMs(delay) => format!("delay {delay}"),
        };
        format!("link {} {} {shape}", name(self.one), name(self.other))
    }
}

/// Reads `40`, `40ms` or `2s`.
pub fn delay_ms(text: &str) -> Result<u32, String> {
    let (digits, factor) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1),
        None => text.strip_suffix('s').map_or((text, 1), |digits| (digits, 1_000)),
    };
    let delay = digits.parse::<u32>().ok().and_then(|delay| delay.checked_mul(factor));
    delay
        .filter(|&delay| delay <= DELAY_MS_MAX)
        .ok_or_else(|| format!("'{text}' is no delay from 0 to {DELAY_MS_MAX} ms"))
}

/// The answer for the operator of a change that was made.
pub fn describe(change: LinkChange, datacenters: &[String]) -> String {
    let name = |id: DatacenterId| datacenters[usize::from(id.0)].as_str();
    let link = format!("{}-{}", name(change.one), name(change.other));
    match change.shape {
        Shape::Cut => format!("{link} is cut"),
        Shape::Heal => format!("{link} is whole"),
        Shape::DelayMs(delay) => format!("{link} takes {delay} ms"),
    }
}

/// Every link and its shape, as `links` answers.
pub fn describe_all(shaper: &Shaper, datacenters: &[String]) -> String {
    let mut links = Vec::new();
    for (one, name) in datacenters.iter().enumerate() {
        for (other, other_name) in datacenters.iter().enumerate().skip(one + 1) {
            let (one, other) = (DatacenterId(one as u8), DatacenterId(other as u8));
            let state = if shaper.is_cut(one, other) { "cut" } else { "whole" };
            links.push(format!("{name}-{other_name}={state},{}ms", shaper.delay_ms(one, other)));
        }
    }
    links.join(" ")
}

/// The admin port of a cluster whose first client port is this.
pub fn address(base_port: u16) -> Option<SocketAddr> {
    Some(SocketAddr::from((Ipv4Addr::LOCALHOST, base_port.checked_add(ADMIN_PORT_OFFSET)?)))
}

/// Serves the port on a thread of its own, until the process ends.
pub fn serve(
    listener: TcpListener,
    mut answer: impl FnMut(&str) -> Result<String, String> + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new().name("ensue-admin".into()).spawn(move || {
        for stream in listener.incoming() {
            // Whoever misbehaves harms only its own connection, and that for a bounded time.
            if let Err(error) = stream.and_then(|stream| serve_one(stream, &mut answer)) {
                log::debug(format_args!("admin connection: {error}"));
            }
        }
    })?;
    Ok(())
}

fn serve_one(stream: TcpStream, answer: &mut impl FnMut(&str) -> Result<String, String>) -> io::Result<()> {
    stream.set_read_timeout(Some(LINE_PATIENCE))?;
    stream.set_write_timeout(Some(LINE_PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&stream).take(ADMIN_LINE_BYTES_MAX)).read_line(&mut line)?;
    if !line.ends_with('\n') {
        // Nothing is done for who is gone: a change that comes late is worse than none.
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let text = match answer(line.trim()) {
        Ok(text) => format!("ok {text}\n"),
        Err(reason) => format!("error {reason}\n"),
    };
    (&stream).write_all(text.as_bytes())
}

/// Asks a cluster's admin port. The inner error is the cluster's own words.
pub fn ask(base_port: u16, line: &str) -> io::Result<Result<String, String>> {
    let address = address(base_port).ok_or(io::ErrorKind::InvalidInput)?;
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    (&stream).write_all(format!("{line}\n").as_bytes())?;
    let mut answer = String::new();
    BufReader::new((&stream).take(16 * ADMIN_LINE_BYTES_MAX)).read_line(&mut answer)?;
    let answer = answer.trim_end();
    match answer.split_once(' ').unwrap_or((answer, "")) {
        ("ok", text) => Ok(Ok(text.into())),
        ("error", reason) => Ok(Err(reason.into())),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "no admin port of a dev cluster answers there")),
    }
}

#[cfg(test)]
mod tests;
