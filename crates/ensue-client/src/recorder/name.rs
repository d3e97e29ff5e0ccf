//! Keys and values as the text of a history: short, readable, and never the same for two different ones.
//!
//! A key is its text. A field of a hash or a member of a set is `key[field]`, a key of keyspace 3 is `[3]key`; so that
//! nobody else's name looks like that, `[` and `\` of names are written `\[` and `\\`, and bytes that are no text
//! `\xff`.

/// Longest value that is written out. Of longer ones a history needs no more than that two of them differ.
const VALUE_BYTES_MAX: usize = 96;
const SHOWN_BYTES: usize = 32;

/// A key of a keyspace.
pub(super) fn key(keyspace: u8, name: &[u8]) -> String {
    let mut text = if keyspace == 0 { String::new() } else { format!("[{keyspace}]") };
    escape(name, true, &mut text);
    text
}

/// A field of a hash, or a member of a set.
pub(super) fn element(key: &str, name: &[u8]) -> String {
    let mut text = format!("{key}[");
    escape(name, true, &mut text);
    text.push(']');
    text
}

/// A value, whole or by its beginning, length and hash.
pub(super) fn value(bytes: &[u8]) -> String {
    let mut text = String::new();
    if bytes.len() <= VALUE_BYTES_MAX {
        escape(bytes, false, &mut text);
    } else {
        escape(&bytes[..SHOWN_BYTES], false, &mut text);
        text.push_str(&format!("\\...{} bytes, {:032x}", bytes.len(), hash(bytes)));
    }
    text
}

fn escape(bytes: &[u8], brackets: bool, text: &mut String) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\\' || (brackets && character == '[') {
                text.push('\\');
            }
            text.push(character);
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
}

/// FNV-1a of 128 bits: for telling values apart, not for those who want to confuse us.
pub(super) fn hash(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}
