//! See `ensue_fuzz::client_port`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ensue_fuzz::client_port::run(data));
