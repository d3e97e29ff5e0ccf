//! A token as a client shows it: any text, or one with the right seal around any content, merged into a session.

use crate::client_port::started;
use crate::cursor::Cursor;
use bytes::Bytes;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The first byte says whether the others are a text or the content of a token.
pub fn run(data: &[u8]) {
    let mut cursor = Cursor::new(data);
    let text = if cursor.byte() % 2 == 0 { cursor.rest().to_vec() } else { sealed(&mut cursor) };
    let mut lone = started();
    lone.connect();
    let words =
        |text: &'static str| text.split(' ').map(|word| Bytes::from_static(word.as_bytes())).collect();
    let merge: Vec<Bytes> =
        ["CAUSAL".into(), "MERGE".into(), text.into(), "TIMEOUT".into(), "10".into()].to_vec();
    let commands = vec![merge, words("SET k v"), words("MGET k other"), words("CAUSAL TOKEN")];
    lone.say(commands);
    lone.await_answers(4);
    assert_eq!((lone.answered, lone.check_replies()), (4, 4), "a token keeps a session from being answered");
}

/// Version, keyspace, time and length as given or as they should be, of this cluster, then facts, then the right seal.
fn sealed(cursor: &mut Cursor<'_>) -> Vec<u8> {
    let (version, keyspace) = (cursor.byte(), cursor.byte());
    let mut bytes = vec![if version < 224 { 2 } else { version }, keyspace % 20];
    bytes.extend_from_slice(&1_u64.to_le_bytes());
    bytes.extend_from_slice(cursor.take(8));
    bytes.resize(18, 0);
    let causes = cursor.rest();
    bytes.extend_from_slice(&(causes.len() as u32).to_le_bytes());
    bytes.extend_from_slice(causes);
    let seal = blake3::keyed_hash(&[0; 32], &bytes);
    bytes.extend_from_slice(&seal.as_bytes()[..16]);
    let mut text = Vec::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        text.extend((0..=chunk.len()).map(|place| ALPHABET[(bits >> (18 - 6 * place) & 0x3f) as usize]));
    }
    text
}
