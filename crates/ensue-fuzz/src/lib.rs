//! What the fuzzers do with their bytes: one function a door through which strangers' bytes come in.
//!
//! A function returns if all is well and panics if a promise is broken. The targets of `fuzz/` call these, and so does
//! a test that replays the committed corpus without a fuzzer.

pub mod acl_rules;
pub mod client_port;
mod cursor;
pub mod history_reader;
pub mod log_reader;
mod lone;
pub mod peer_port;
pub mod token_reader;

/// A target.
pub type Target = fn(&[u8]);

/// Every target by its name.
pub const TARGETS: [(&str, Target); 6] = [
    ("client_port", client_port::run),
    ("peer_port", peer_port::run),
    ("log_reader", log_reader::run),
    ("token_reader", token_reader::run),
    ("history_reader", history_reader::run),
    ("acl_rules", acl_rules::run),
];
