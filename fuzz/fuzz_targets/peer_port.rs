//! See `ensue_fuzz::peer_port`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ensue_fuzz::peer_port::run(data));
