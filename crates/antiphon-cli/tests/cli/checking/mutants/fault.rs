//! The faults of the mutants, all found in real servers.

/// A deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Stores ids as doubles.
    IdsAreDoubles,
    /// Stores ids as `i64`; an id that does not fit counts as missing.
    IdsAreSigned,
    /// Stores ids as `u64`; an id that does not fit counts as missing.
    IdsAreUnsigned,
    /// A null id counts as missing.
    NullIdIsNone,
    /// Tests ids for truth: 0 and "" count as missing.
    FalseIdIsNone,
    /// Returns a String of digits as a Number.
    DigitsBecomeNumbers,
    /// Accepts an Array or an Object as an id.
    AnyIdIsTaken,
    /// Stores one id per connection instead of one per call.
    IdOfTheConnection,

    NotificationsAreAnswered,
    /// Responds to Notifications with errors only.
    NotificationErrorsAreReported,

    BatchOfOneIsUnwrapped,
    EmptyBatchGivesEmptyArray,
    BatchIsLostByOneEntry,
    /// Responds to a batch of Notifications with `[]`.
    SilentBatchGivesEmptyArray,
    /// The second of two Requests with one id overwrites the first.
    BatchIsKeyedById,
    /// An Array is read as a Request, by position.
    ArrayIsRequest,

    NullErrorBesideResult,
    NullResultBesideError,
    NoVersionInAnswer,
    /// `"result":null` is left out.
    NullResultIsLeftOut,
    CodeIsString,
    ErrorHasNoMessage,
    ErrorIsText,
    ParseErrorHasNoId,
    AnswerIsArray,

    ParseErrorIsInvalidRequest,
    UnknownMethodIsInvalidRequest,
    WrongParamsAreInvalidRequest,
    InvalidRequestIsIgnored,
    VersionIsNotChecked,
    MethodCaseIsIgnored,
    MethodIsTrimmed,
    /// Ignores everything after the first value of a message.
    TextBehindIsIgnored,
    /// Replaces bytes that are not UTF-8.
    BadTextIsRepaired,

    BadJsonClosesConnection,
    /// Crashes on deep nesting.
    DepthKills,
    /// Stops responding after a while.
    HangsAfterAWhile,
    AnswersTwice,
    /// Sends a stray word after each response.
    StrayText,
    /// Drops the rest of a read after the first message.
    OneMessageAPacket,
    /// Treats one read as one message.
    PacketIsMessage,

    HttpPutIsPost,
    HttpGetIsAnswered,
    HttpTypeIsText,
    HttpSilenceIsNull,
    /// Sends a body with status 204, which HTTP does not allow.
    HttpSilenceHasBody,
    HttpAllowsNothing,
    HttpHeadHasBody,
    HttpHostIsNotChecked,
    HttpFirstLengthCounts,
    HttpLengthBesideChunks,
    HttpChunksAreNotRead,
    HttpNeverCloses,

    WsPingIsIgnored,
    WsCloseIsIgnored,
    WsMaskIsNotChecked,
    WsFragmentsAreMessages,
    WsTextIsNotChecked,
    WsProofIsWrong,
}
