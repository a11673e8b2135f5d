//! Drives `antiphon_fuzz::line`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| antiphon_fuzz::line::check(data));
