//! Drives `antiphon_fuzz::websocket`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| antiphon_fuzz::websocket::check(data));
