//! The one thing that is wrong with a server: faults that servers of this world have.

/// A deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Ids are kept as doubles.
    IdsAreDoubles,
    /// Ids are kept as `i64`; one that does not fit is none.
    IdsAreSigned,
    /// Ids are kept as `u64`; one that does not fit is none.
    IdsAreUnsigned,
    /// A null id is taken for none.
    NullIdIsNone,
    /// Ids are tested for truth: 0 and "" are none.
    FalseIdIsNone,
    /// A String of digits comes back as a Number.
    DigitsBecomeNumbers,
    /// An id that is an Array or an Object is given back.
    AnyIdIsTaken,
    /// The id is kept by the connection and not by the call.
    IdOfTheConnection,

    NotificationsAreAnswered,
    /// Only their errors are.
    NotificationErrorsAreReported,

    BatchOfOneIsUnwrapped,
    EmptyBatchGivesEmptyArray,
    BatchIsLostByOneEntry,
    /// A batch of Notifications is answered with `[]`.
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
    /// Whatever stands behind the first value of a message is not looked at.
    TextBehindIsIgnored,
    /// Bytes that are no UTF-8 are replaced.
    BadTextIsRepaired,

    BadJsonClosesConnection,
    /// Deep nesting ends the whole server.
    DepthKills,
    /// After a while no message is answered any more.
    HangsAfterAWhile,
    AnswersTwice,
    /// A word follows each answer.
    StrayText,
    /// What arrives with a message and behind it is lost.
    OneMessageAPacket,
    /// What one read gives is taken for a message.
    PacketIsMessage,

    HttpPutIsPost,
    HttpGetIsAnswered,
    HttpTypeIsText,
    HttpSilenceIsNull,
    /// A 204 has a body, which HTTP does not know of.
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
