//! Links between members: whose end it is, is proved with the key that both ends share, and every frame has a checksum
//! under a key of this link and direction, over its number. So no frame can be made, changed, repeated or left out by
//! somebody else. Nothing is hidden from who listens.
//!
//! The one that connects sends its role and a nonce; the other one answers with a nonce and a proof; the first proves
//! itself, too.

use super::locked;
use super::members::{Role, Secret};
use crate::limits::{GREETING_MAX, LINKS_A_MEMBER_MAX, OUTBOX_BYTES_MAX, WRITE_MAX};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

const MAGIC: &[u8; 16] = b"ensue prophecy 1";
const CHECKSUM: usize = 16;
/// What a frame takes beside its bytes.
const FRAME_BYTES: usize = 64;

/// The end of a link that frames leave by.
pub(super) struct Sealing {
    stream: BufWriter<TcpStream>,
    key: [u8; 32],
    count: u64,
}

/// The end of a link that frames arrive at.
pub(super) struct Opening {
    stream: BufReader<TcpStream>,
    key: [u8; 32],
    count: u64,
    frame_max: usize,
}

/// Connects to a member, and proves to it who this is.
pub(super) fn connect(
    address: SocketAddr,
    secret: &Secret,
    peer: Role,
    frame_max: usize,
) -> io::Result<(Sealing, Opening)> {
    let mut stream = TcpStream::connect_timeout(&address, GREETING_MAX)?;
    set_up(&stream)?;
    let nonce = nonce()?;
    let (kind, number) = secret.role.code();
    let mut greeting = MAGIC.to_vec();
    greeting.push(kind);
    greeting.extend_from_slice(&number.to_le_bytes());
    greeting.extend_from_slice(&nonce);
    stream.write_all(&greeting)?;
    let theirs: [u8; 32] = read_array(&mut stream)?;
    let keys = Keys::new(secret, secret.role, peer, peer, &nonce, &theirs)?;
    if read_array::<CHECKSUM>(&mut stream)? != keys.proof(b"accepts") {
        return Err(refused("the other end is not who it should be"));
    }
    stream.write_all(&keys.proof(b"connects"))?;
    ends(stream, keys.connects, keys.accepts, frame_max)
}

/// Takes a connection of a member, whose role is what it proved.
pub(super) fn accept(
    stream: TcpStream,
    secret: &Secret,
    frame_max: impl FnOnce(Role) -> usize,
) -> io::Result<(Role, Sealing, Opening)> {
    set_up(&stream)?;
    let mut greeting = Greeting { stream: &stream, until: Instant::now() + GREETING_MAX };
    if read_array::<16>(&mut greeting)? != *MAGIC {
        return Err(refused("this is no link of a group"));
    }
    let kind = read_array::<1>(&mut greeting)?[0];
    let number = u32::from_le_bytes(read_array(&mut greeting)?);
    let theirs: [u8; 32] = read_array(&mut greeting)?;
    let peer = Role::from_code(kind, number).ok_or_else(|| refused("an unknown role"))?;
    let nonce = nonce()?;
    let keys = Keys::new(secret, peer, secret.role, peer, &theirs, &nonce)?;
    let mut answer = nonce.to_vec();
    answer.extend_from_slice(&keys.proof(b"accepts"));
    greeting.stream.write_all(&answer)?;
    if read_array::<CHECKSUM>(&mut greeting)? != keys.proof(b"connects") {
        return Err(refused("the other end does not prove who it is"));
    }
    let (sealing, opening) = ends(stream, keys.accepts, keys.connects, frame_max(peer))?;
    Ok((peer, sealing, opening))
}

/// Reads until a time: whoever sends a byte now and then would keep a thread for long.
struct Greeting<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl Read for Greeting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

struct Keys {
    connects: [u8; 32],
    accepts: [u8; 32],
    proofs: [u8; 32],
}

impl Keys {
    fn new(
        secret: &Secret,
        connects: Role,
        accepts: Role,
        peer: Role,
        connecting: &[u8; 32],
        accepting: &[u8; 32],
    ) -> io::Result<Keys> {
        let shared =
            secret.pairs.get(&peer).ok_or_else(|| refused("a member that this one has no key with"))?;
        let mut bytes = shared.to_vec();
        for role in [connects, accepts] {
            let (kind, number) = role.code();
            bytes.push(kind);
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(connecting);
        bytes.extend_from_slice(accepting);
        Ok(Keys {
            connects: blake3::derive_key("ensue-gateway 1 link from the one that connects", &bytes),
            accepts: blake3::derive_key("ensue-gateway 1 link from the one that accepts", &bytes),
            proofs: blake3::derive_key("ensue-gateway 1 link proofs", &bytes),
        })
    }

    fn proof(&self, of: &[u8]) -> [u8; CHECKSUM] {
        cut(&blake3::keyed_hash(&self.proofs, of))
    }
}

fn cut(hash: &blake3::Hash) -> [u8; CHECKSUM] {
    let mut bytes = [0; CHECKSUM];
    bytes.copy_from_slice(&hash.as_bytes()[..CHECKSUM]);
    bytes
}

fn checksum(key: &[u8; 32], count: u64, payload: &[u8]) -> [u8; CHECKSUM] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&count.to_le_bytes()).update(payload);
    cut(&hasher.finalize())
}

fn nonce() -> io::Result<[u8; 32]> {
    let mut nonce = [0; 32];
    SystemRandom::new().fill(&mut nonce).map_err(|_| io::Error::other("no random bytes"))?;
    Ok(nonce)
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

fn set_up(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(GREETING_MAX))?;
    stream.set_write_timeout(Some(WRITE_MAX))
}

fn ends(
    stream: TcpStream,
    sealing: [u8; 32],
    opening: [u8; 32],
    frame_max: usize,
) -> io::Result<(Sealing, Opening)> {
    stream.set_read_timeout(None)?;
    let reading = BufReader::with_capacity(1 << 16, stream.try_clone()?);
    Ok((
        Sealing { stream: BufWriter::with_capacity(1 << 16, stream), key: sealing, count: 0 },
        Opening { stream: reading, key: opening, count: 0, frame_max },
    ))
}

fn read_array<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut array = [0; N];
    stream.read_exact(&mut array)?;
    Ok(array)
}

impl Sealing {
    /// Puts a frame into the buffer.
    fn write(&mut self, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        self.stream.write_all(&length.to_le_bytes())?;
        self.stream.write_all(&checksum(&self.key, self.count, payload))?;
        self.stream.write_all(payload)?;
        self.count += 1;
        Ok(())
    }

    /// Writes what an outbox is given, until the link or the outbox ends.
    pub(super) fn carry(&mut self, outbox: &Outbox) -> io::Result<()> {
        while let Some(frames) = outbox.take() {
            for frame in frames {
                self.write(&frame)?;
            }
            self.stream.flush()?;
        }
        Ok(())
    }
}

impl Drop for Sealing {
    /// The reading end of this side has the same socket, and ends with it.
    fn drop(&mut self) {
        // It may be closed already.
        let _ = self.stream.get_ref().shutdown(std::net::Shutdown::Both);
    }
}

impl Drop for Opening {
    /// Who hears nothing more of a member ends the link, so that it is made anew.
    fn drop(&mut self) {
        // It may be closed already.
        let _ = self.stream.get_ref().shutdown(std::net::Shutdown::Both);
    }
}

impl Opening {
    /// How long the other end may be silent.
    pub(super) fn set_silence_max(&self, max: std::time::Duration) -> io::Result<()> {
        self.stream.get_ref().set_read_timeout(Some(max))
    }

    /// The next frame.
    pub(super) fn read(&mut self) -> io::Result<Vec<u8>> {
        let length = u32::from_le_bytes(read_array(&mut self.stream)?) as usize;
        let sum: [u8; CHECKSUM] = read_array(&mut self.stream)?;
        if length > self.frame_max {
            return Err(refused("a frame is too long"));
        }
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        if checksum(&self.key, self.count, &payload) != sum {
            return Err(refused("a frame is not of the other end"));
        }
        self.count += 1;
        Ok(payload)
    }
}

/// Frames that wait to be written, up to a number of bytes.
#[derive(Default)]
pub(super) struct Outbox {
    state: Mutex<Waiting>,
    ready: Condvar,
}

#[derive(Default)]
struct Waiting {
    frames: VecDeque<Arc<[u8]>>,
    bytes: usize,
    is_closed: bool,
}

impl Outbox {
    /// Lets a frame wait; without room it is lost, as on a network.
    pub(super) fn push(&self, frame: Arc<[u8]>) {
        let mut state = locked(&self.state);
        // What it takes to keep a frame counts, too: one may be empty.
        let bytes = frame.len() + FRAME_BYTES;
        if !state.is_closed && state.bytes + bytes <= OUTBOX_BYTES_MAX {
            state.bytes += bytes;
            state.frames.push_back(frame);
            self.ready.notify_one();
        }
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        locked(&self.state).bytes
    }

    /// Nothing more is written: there is no link.
    pub(super) fn close(&self) {
        let mut state = locked(&self.state);
        *state = Waiting { is_closed: true, ..Waiting::default() };
        self.ready.notify_all();
    }

    /// Forgets what waits: it is of a link that was.
    pub(super) fn clear(&self) {
        let mut state = locked(&self.state);
        state.frames.clear();
        state.bytes = 0;
    }

    /// All frames that wait, as soon as there are some; nothing when it is closed.
    fn take(&self) -> Option<VecDeque<Arc<[u8]>>> {
        let mut state = locked(&self.state);
        while state.frames.is_empty() && !state.is_closed {
            state = self.ready.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        state.bytes = 0;
        if state.is_closed { None } else { Some(std::mem::take(&mut state.frames)) }
    }
}

/// How many links each member has.
#[derive(Default)]
pub(super) struct Links(Mutex<BTreeMap<Role, usize>>);

/// A link that counts for its member until this is dropped.
pub(super) struct Counted<'a>(&'a Links, Role);

impl Links {
    /// Counts a link, unless its member has too many: a faulty member cannot keep the others out.
    pub(super) fn count(&self, role: Role) -> io::Result<Counted<'_>> {
        let mut counts = locked(&self.0);
        let count = counts.entry(role).or_default();
        if *count >= LINKS_A_MEMBER_MAX {
            return Err(refused("a member has too many links"));
        }
        *count += 1;
        Ok(Counted(self, role))
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if let Some(count) = locked(&self.0.0).get_mut(&self.1) {
            *count -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
