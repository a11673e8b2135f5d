//! The protocol errors of a peer, and the close code for each of them. The numbers are sections of RFC
//! 6455.

/// A protocol error of the peer. The connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebSocketError {
    /// The message, or the sum of its fragments, is over the limit.
    #[error(
        "a message is over the limit of {limit} bytes; raise `Limits::frame_bytes` or send less"
    )]
    TooLarge {
        /// The limit that it exceeds.
        limit: usize,
    },
    /// A text message or the reason of a close is not UTF-8 (8.1).
    #[error("a text is not UTF-8; send it as a binary message")]
    NotUtf8,
    /// Bits are set that are reserved for extensions (5.2).
    #[error("reserved bits are set; no extension was agreed on")]
    ReservedBits,
    /// The opcode has no meaning (5.2).
    #[error("opcode {opcode:#x} is unknown")]
    Opcode {
        /// The received opcode.
        opcode: u8,
    },
    /// A client's frame has no mask (5.1).
    #[error("a frame of a client is not masked")]
    NotMasked,
    /// A server's frame has a mask (5.1).
    #[error("a frame of a server is masked")]
    Masked,
    /// The length is written in more bytes than it needs (5.2).
    #[error("the length {length} is written in more bytes than it needs")]
    Length {
        /// The received length.
        length: u64,
    },
    /// The highest bit of the length is set (5.2).
    #[error("the length {length} is over the maximum of 2^63 - 1")]
    LengthTooLarge {
        /// The received length.
        length: u64,
    },
    /// A control frame is fragmented, or is longer than 125 bytes (5.5).
    #[error("a control frame is fragmented or longer than 125 bytes")]
    Control,
    /// A continuation frame without a first fragment (5.4).
    #[error("a continuation frame has no message to continue")]
    NothingToContinue,
    /// A new message inside the fragments of another (5.4).
    #[error("a message began before the last fragment of another")]
    Interrupted,
    /// A close with a payload of one byte (5.5.1).
    #[error("a close frame has one byte; a close code has two")]
    HalfACloseCode,
    /// A close code that must not be sent (7.4).
    #[error("close code {code} must not be sent")]
    CloseCode {
        /// The received code.
        code: u16,
    },
}

impl WebSocketError {
    /// The code to close with (7.4.1).
    pub fn close_code(&self) -> u16 {
        match self {
            Self::TooLarge { .. } => 1009,
            Self::NotUtf8 => 1007,
            _ => 1002,
        }
    }
}
