//! The steps of one handshake, for either side: bytes arrive, bytes leave, and in the end the other side is known.
//!
//! ```text
//!   dialler                                        accepter
//!      |  hello                                       |
//!      | -------------------------------------------> |  compares
//!      |                              hello, proof    |
//!      | <------------------------------------------- |
//!      |  compares, checks the proof                  |
//!      |  proof, settings in frame 0                  |
//!      | -------------------------------------------> |  checks the proof, compares
//!      |                       settings in frame 0    |
//!      | <------------------------------------------- |
//!      |  compares                                    |
//! ```
//!
//! Whoever refuses has said before what the other one needs to come to the same verdict, as far as that is theirs to
//! know:
//! what is left to send after an error is sent if the socket takes it, and then the connection is closed.

use super::key::{Derived, PROOF_BYTES, SharedKey, Side, derive};
use super::settings::{SETTINGS_BYTES_MAX, Settings};
use super::{CoreName, HandshakeError, Hello, NONCE_BYTES, Speaker, negotiate, negotiate_dialled};
use crate::frame::{FrameReader, FrameWriter};
use bytes::{Buf, BytesMut};
use ensue_types::{CoreId, DatacenterId};
use std::collections::BTreeMap;

/// The keys of this side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// There is no secret: whoever may connect is believed.
    Open,
    /// By the other side's datacenter, our own included.
    Secret(BTreeMap<String, SharedKey>),
}

/// What all handshakes of a core share.
#[derive(Clone, Debug)]
pub struct Identity {
    /// What it says of itself; the nonce is another one each time.
    pub hello: Hello,
    pub settings: Settings,
    pub keys: Keys,
    /// Every datacenter in order, with its cores, by our configuration.
    pub datacenters: Vec<(String, u16)>,
}

impl Identity {
    /// A core in words.
    pub fn speaker(&self, name: CoreName) -> Speaker {
        let datacenter = match self.datacenters.get(usize::from(name.datacenter.0)) {
            Some((datacenter, _)) => datacenter.clone(),
            None => name.datacenter.to_string(),
        };
        Speaker { datacenter, core: name.core }
    }

    fn core_named(&self, speaker: &Speaker) -> Result<CoreName, HandshakeError> {
        let place = self.datacenters.iter().position(|(name, _)| *name == speaker.datacenter);
        let Some(place) = place else {
            let names: Vec<&str> = self.datacenters.iter().map(|(name, _)| name.as_str()).collect();
            let (theirs, known) = (speaker.datacenter.clone(), names.join(", "));
            return Err(HandshakeError::NoSuchDatacenter { theirs, known });
        };
        if speaker.core >= CoreId(self.datacenters[place].1) {
            return Err(HandshakeError::NoSuchCore { theirs: speaker.clone() });
        }
        Ok(CoreName { datacenter: DatacenterId(place as u8), core: speaker.core })
    }

    fn key_for(&self, datacenter: &str) -> Result<SharedKey, HandshakeError> {
        match &self.keys {
            Keys::Open => Ok(SharedKey::PUBLIC),
            Keys::Secret(keys) => {
                let no_key = || HandshakeError::NoKey { theirs: datacenter.to_owned() };
                keys.get(datacenter).cloned().ok_or_else(no_key)
            }
        }
    }
}

/// A connection on which both sides know each other.
#[derive(Debug)]
pub struct Joined {
    /// By our configuration. Where there is a secret, its datacenter is proven.
    pub peer: CoreName,
    pub version: u16,
    pub reader: FrameReader,
    pub writer: FrameWriter,
}

/// One handshake under way.
#[derive(Debug)]
pub struct Handshake {
    ours: Hello,
    dialled: Option<Speaker>,
    /// Who the other side says it is, if there is such a core.
    claimed: Option<CoreName>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// The other side has said nothing yet.
    Silent,
    /// It has said who it is.
    Claimed(Box<Claimed>),
    /// It has proved it.
    Proven(Box<Joined>),
    /// It is over.
    Over,
}

#[derive(Debug)]
struct Claimed {
    theirs: Hello,
    peer: CoreName,
    version: u16,
    derived: Derived,
}

impl Handshake {
    /// On a connection that we dialled; says hello.
    pub fn dial(identity: &Identity, nonce: [u8; NONCE_BYTES], to: CoreName, out: &mut Vec<u8>) -> Handshake {
        let ours = Hello { nonce, ..identity.hello.clone() };
        out.extend_from_slice(&ours.encode());
        Handshake { ours, dialled: Some(identity.speaker(to)), claimed: None, stage: Stage::Silent }
    }

    /// On a connection that we accepted.
    pub fn accept(identity: &Identity, nonce: [u8; NONCE_BYTES]) -> Handshake {
        let ours = Hello { nonce, ..identity.hello.clone() };
        Handshake { ours, dialled: None, claimed: None, stage: Stage::Silent }
    }

    /// Who the other side says it is, true or not, also after an error.
    pub fn claimed(&self) -> Option<CoreName> {
        self.claimed
    }

    /// Takes what has arrived and appends what is to be sent, also where it ends in an error.
    pub fn advance(
        &mut self,
        identity: &Identity,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<Option<Joined>, HandshakeError> {
        loop {
            self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Silent => {
                    let Some(theirs) = Hello::next(input)? else {
                        self.stage = Stage::Silent;
                        return Ok(None);
                    };
                    Stage::Claimed(self.on_hello(identity, theirs, out)?)
                }
                Stage::Claimed(claimed) => {
                    let Some(&proof) = input.first_chunk::<PROOF_BYTES>() else {
                        self.stage = Stage::Claimed(claimed);
                        return Ok(None);
                    };
                    input.advance(PROOF_BYTES);
                    Stage::Proven(self.on_proof(identity, *claimed, &proof, out)?)
                }
                Stage::Proven(mut joined) => match read_settings(&mut joined.reader, input)? {
                    Some(theirs) => {
                        let own = identity.core_named(&self.ours.speaker())?;
                        let is_neighbour = own.datacenter == joined.peer.datacenter;
                        identity.settings.compare(&theirs, is_neighbour)?;
                        return Ok(Some(*joined));
                    }
                    None => {
                        self.stage = Stage::Proven(joined);
                        return Ok(None);
                    }
                },
                Stage::Over => return Ok(None),
            };
        }
    }

    fn on_hello(
        &mut self,
        identity: &Identity,
        theirs: Hello,
        out: &mut Vec<u8>,
    ) -> Result<Box<Claimed>, HandshakeError> {
        let side = match &self.dialled {
            Some(_) => Side::Dialler,
            None => {
                out.extend_from_slice(&self.ours.encode());
                Side::Accepter
            }
        };
        let peer = identity.core_named(&theirs.speaker());
        self.claimed = peer.as_ref().ok().copied();
        let version = match &self.dialled {
            Some(dialled) => negotiate_dialled(&self.ours, &theirs, dialled)?,
            None => negotiate(&self.ours, &theirs)?,
        };
        let peer = peer?;
        let key = identity.key_for(&theirs.datacenter)?;
        let derived = derive(&key, side, &self.ours, &theirs);
        if side == Side::Accepter {
            out.extend_from_slice(&derived.our_proof.0);
        }
        Ok(Box::new(Claimed { theirs, peer, version, derived }))
    }

    fn on_proof(
        &self,
        identity: &Identity,
        claimed: Claimed,
        proof: &[u8; PROOF_BYTES],
        out: &mut Vec<u8>,
    ) -> Result<Box<Joined>, HandshakeError> {
        let Claimed { theirs, peer, version, derived } = claimed;
        if self.dialled.is_some() {
            out.extend_from_slice(&derived.our_proof.0);
        }
        if !derived.their_proof.is(proof) {
            let (ours, theirs) = (self.ours.datacenter.clone(), theirs.datacenter);
            return Err(HandshakeError::NotProven { ours, theirs });
        }
        let mut writer = FrameWriter::new(derived.sealing);
        let text = identity.settings.text();
        writer.write(text.as_bytes(), out).expect("settings are far below the longest frame");
        let mut reader = FrameReader::new(derived.opening);
        reader.set_body_bytes_max(SETTINGS_BYTES_MAX);
        Ok(Box::new(Joined { peer, version, reader, writer }))
    }
}

fn read_settings(reader: &mut FrameReader, input: &mut BytesMut) -> Result<Option<Settings>, HandshakeError> {
    let Some(body) = reader.next(input).map_err(|_| HandshakeError::NoSettings)? else { return Ok(None) };
    let text = std::str::from_utf8(&body).map_err(|_| HandshakeError::NoSettings)?;
    let settings = Settings::parse(text).ok_or(HandshakeError::NoSettings)?;
    reader.set_body_bytes_max(usize::MAX);
    Ok(Some(settings))
}
