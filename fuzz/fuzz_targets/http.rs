//! Drives `antiphon_fuzz::http`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| antiphon_fuzz::http::check(data));
