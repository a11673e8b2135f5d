//! Drives `antiphon_fuzz::header`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| antiphon_fuzz::header::check(data));
