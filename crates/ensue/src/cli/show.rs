//! An answer as text: numbered and quoted for people, bare for programs.

use ensue_client::Reply;

/// As redis-cli prints to a terminal.
pub(super) fn for_people(reply: &Reply, out: &mut Vec<u8>) {
    write_shown(reply, "", out);
}

/// As redis-cli prints to a file: values alone, one a line.
pub(super) fn raw(reply: &Reply, out: &mut Vec<u8>) {
    write_raw(reply, out);
    out.push(b'\n');
}

fn write_shown(reply: &Reply, indent: &str, out: &mut Vec<u8>) {
    match reply {
        Reply::Status(words) => line(words, out),
        Reply::Error(words) => line(&format!("(error) {words}"), out),
        Reply::Integer(value) => line(&format!("(integer) {value}"), out),
        Reply::Double(value) => line(&format!("(double) {value}"), out),
        Reply::Boolean(value) => line(if *value { "(true)" } else { "(false)" }, out),
        Reply::Nil | Reply::NilArray => line("(nil)", out),
        Reply::BigNumber(digits) => line(&format!("(big number) {}", String::from_utf8_lossy(digits)), out),
        Reply::Bulk(bytes) => line(&quoted(bytes), out),
        Reply::Verbatim(bytes) => {
            out.extend_from_slice(bytes);
            out.push(b'\n');
        }
        Reply::Array(items) => write_items(items, ')', "(empty array)", indent, out),
        Reply::Set(items) => write_items(items, '~', "(empty set)", indent, out),
        Reply::Map(pairs) | Reply::Pairs(pairs) | Reply::Keyed(pairs) => write_pairs(pairs, indent, out),
    }
}

fn write_items(items: &[Reply], mark: char, empty: &str, indent: &str, out: &mut Vec<u8>) {
    if items.is_empty() {
        return line(empty, out);
    }
    let width = items.len().to_string().len();
    let deeper = format!("{indent}{:width$}  ", "");
    for (index, item) in items.iter().enumerate() {
        let number = format!("{:>width$}{mark} ", index + 1);
        out.extend_from_slice(if index == 0 { "" } else { indent }.as_bytes());
        out.extend_from_slice(number.as_bytes());
        write_shown(item, &deeper, out);
    }
}

fn write_pairs(pairs: &[(Reply, Reply)], indent: &str, out: &mut Vec<u8>) {
    if pairs.is_empty() {
        return line("(empty hash)", out);
    }
    let width = pairs.len().to_string().len();
    let deeper = format!("{indent}{:width$}  ", "");
    for (index, (key, value)) in pairs.iter().enumerate() {
        let mut shown_key = Vec::new();
        write_shown(key, &deeper, &mut shown_key);
        out.extend_from_slice(if index == 0 { "" } else { indent }.as_bytes());
        out.extend_from_slice(format!("{:>width$}# ", index + 1).as_bytes());
        out.extend_from_slice(shown_key.trim_ascii_end());
        out.extend_from_slice(b" => ");
        write_shown(value, &deeper, out);
    }
}

fn write_raw(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Status(words) | Reply::Error(words) => out.extend_from_slice(words.as_bytes()),
        Reply::Integer(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Reply::Double(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Reply::Boolean(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Reply::Nil | Reply::NilArray => {}
        Reply::Bulk(bytes) | Reply::Verbatim(bytes) | Reply::BigNumber(bytes) => out.extend_from_slice(bytes),
        Reply::Array(items) | Reply::Set(items) => write_raw_lines(items.iter(), out),
        Reply::Map(pairs) | Reply::Pairs(pairs) | Reply::Keyed(pairs) => {
            write_raw_lines(pairs.iter().flat_map(|(key, value)| [key, value]), out);
        }
    }
}

fn write_raw_lines<'a>(items: impl Iterator<Item = &'a Reply>, out: &mut Vec<u8>) {
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b'\n');
        }
        write_raw(item, out);
    }
}

fn line(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
}

fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            b' '..=b'~' => text.push(char::from(byte)),
            other => text.push_str(&format!("\\x{other:02x}")),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests;
