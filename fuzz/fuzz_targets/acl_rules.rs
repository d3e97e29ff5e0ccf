//! See `ensue_fuzz::acl_rules`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ensue_fuzz::acl_rules::run(data));
