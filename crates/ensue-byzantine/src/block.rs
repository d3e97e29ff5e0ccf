//! Requests of clients, and blocks of them: what replicas agree on, one block at each height.

use crate::codec::{Malformed, Reader, push_bytes};
use crate::keys::{Group, Member, Signature, Signer};
use crate::limits::{BLOCK_BYTES_MAX, BLOCK_REQUESTS_MAX, REQUEST_BYTES_MAX, SESSIONS_MAX};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Which session of which client. A session has one request at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session {
    /// The client's number in the group.
    pub client: Member,
    /// The session's number at its client.
    pub number: u32,
}

/// Which request of a session. Later requests compare as higher, also those after a restart of the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestNumber {
    /// Which run of the client: each is higher than all before.
    pub incarnation: u64,
    /// Which request in this run, from 1.
    pub call: u64,
}

/// What a client wants executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asks.
    pub session: Session,
    /// Which of its requests.
    pub number: RequestNumber,
    /// What the application is given.
    pub body: Vec<u8>,
    /// The client's.
    pub signature: Signature,
}

impl Request {
    /// Signs a request.
    pub fn sign(
        group: &Group,
        signer: &Signer,
        session: Session,
        number: RequestNumber,
        body: Vec<u8>,
    ) -> Request {
        let signature = signer.sign(&signed_bytes(group, session, number, &body));
        Request { session, number, body, signature }
    }

    /// Whether it is of the client that it names, and within bounds.
    pub fn is_valid(&self, group: &Group) -> bool {
        let Some(key) = group.client(self.session.client) else { return false };
        self.session.number < SESSIONS_MAX
            && self.body.len() <= REQUEST_BYTES_MAX
            && key.verifies(&signed_bytes(group, self.session, self.number, &self.body), &self.signature)
    }

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.session.client.0.to_le_bytes());
        out.extend_from_slice(&self.session.number.to_le_bytes());
        out.extend_from_slice(&self.number.incarnation.to_le_bytes());
        out.extend_from_slice(&self.number.call.to_le_bytes());
        out.extend_from_slice(&self.signature.0);
        push_bytes(out, &self.body);
    }

    /// Reads one whole request.
    pub fn decode(bytes: &[u8]) -> Result<Request, Malformed> {
        let mut reader = Reader(bytes);
        let request = Request::read(&mut reader)?;
        reader.end()?;
        Ok(request)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Request, Malformed> {
        Ok(Request {
            session: Session { client: Member(reader.u32()?), number: reader.u32()? },
            number: RequestNumber { incarnation: reader.u64()?, call: reader.u64()? },
            signature: Signature(reader.array()?),
            body: reader.bytes(REQUEST_BYTES_MAX)?.to_vec(),
        })
    }
}

fn signed_bytes(group: &Group, session: Session, number: RequestNumber, body: &[u8]) -> Vec<u8> {
    let mut bytes = b"ensue-byzantine 1 request".to_vec();
    bytes.extend_from_slice(group.id());
    bytes.extend_from_slice(&session.client.0.to_le_bytes());
    bytes.extend_from_slice(&session.number.to_le_bytes());
    bytes.extend_from_slice(&number.incarnation.to_le_bytes());
    bytes.extend_from_slice(&number.call.to_le_bytes());
    bytes.extend_from_slice(blake3::hash(body).as_bytes());
    bytes
}

/// The hash of a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockId(pub [u8; 32]);

impl fmt::Debug for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Requests in their order. Copies share one value.
#[derive(Clone, Debug)]
pub struct Block(Arc<Body>);

#[derive(Debug)]
struct Body {
    id: BlockId,
    creator: Member,
    requests: Vec<Request>,
    bytes: Vec<u8>,
}

impl Block {
    /// A block of this replica.
    pub fn new(creator: Member, requests: Vec<Request>) -> Block {
        let mut bytes = creator.0.to_le_bytes().to_vec();
        bytes.extend_from_slice(&(requests.len() as u32).to_le_bytes());
        requests.iter().for_each(|request| request.encode(&mut bytes));
        let id = BlockId(*blake3::hash(&bytes).as_bytes());
        Block(Arc::new(Body { id, creator, requests, bytes }))
    }

    /// Reads one whole block.
    pub fn decode(bytes: &[u8]) -> Result<Block, Malformed> {
        let mut reader = Reader(bytes);
        let creator = Member(reader.u32()?);
        let count = reader.u32()? as usize;
        if count > BLOCK_REQUESTS_MAX || bytes.len() > BLOCK_BYTES_MAX + 2 * REQUEST_BYTES_MAX {
            return Err(Malformed("a block is too long"));
        }
        let requests = (0..count).map(|_| Request::read(&mut reader)).collect::<Result<Vec<_>, _>>()?;
        reader.end()?;
        Ok(Block::new(creator, requests))
    }

    /// Its hash.
    pub fn hash(&self) -> BlockId {
        self.0.id
    }

    /// The replica that made it.
    pub fn creator(&self) -> Member {
        self.0.creator
    }

    /// In their order.
    pub fn requests(&self) -> &[Request] {
        &self.0.requests
    }

    /// What [`Block::decode`] reads.
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl PartialEq for Block {
    fn eq(&self, other: &Block) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Block {}

impl PartialOrd for Block {
    fn partial_cmp(&self, other: &Block) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Block {
    fn cmp(&self, other: &Block) -> Ordering {
        self.0.id.cmp(&other.0.id)
    }
}
