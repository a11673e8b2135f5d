//! Drives `antiphon_fuzz::lsp_text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| antiphon_fuzz::lsp_text::check(data));
