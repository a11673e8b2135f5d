//! Drives `antiphon_fuzz::values`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| antiphon_fuzz::values::check(data));
