//! Drives `antiphon_fuzz::http_client`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| antiphon_fuzz::http_client::check(data));
