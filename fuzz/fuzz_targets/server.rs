//! Drives `antiphon_fuzz::server`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| antiphon_fuzz::server::check(data));
