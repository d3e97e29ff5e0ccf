//! See `ensue_fuzz::token_reader`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ensue_fuzz::token_reader::run(data));
