//! Whom a task belongs to.

use std::sync::{Arc, Weak};

use crate::server::{RequestContext, Session};

/// The owner of a task. Another caller does not learn that the task exists.
#[derive(Clone, Debug)]
pub(super) struct Owner {
    /// The forms of both eras differ, so a task is seen only in its own.
    is_modern: bool,
    identity: Option<Arc<str>>,
    /// The session of a legacy caller, if it has no identity, or a server of its own.
    session: Option<Weak<Session>>,
}

impl Owner {
    /// The caller of a request.
    pub(super) fn of(cx: &RequestContext) -> Self {
        let identity = cx.rpc().identity().map(|identity| Arc::from(identity.name()));
        let session = cx.session().filter(|session| {
            // A server of its own keeps the tasks of one session only.
            let is_owner = identity.is_none() || session.own_server().is_some();
            is_owner && session.link().ended().is_some()
        });
        let session = session.map(Arc::downgrade);
        Self { is_modern: cx.era().is_modern(), identity, session }
    }

    /// Whether its requests can be recognized without an id of a task.
    pub(super) fn is_known(&self) -> bool {
        self.identity.is_some() || self.session.is_some()
    }

    /// Whether its tasks end with its session.
    pub(super) fn is_session(&self) -> bool {
        self.session.is_some()
    }

    pub(super) fn is_modern(&self) -> bool {
        self.is_modern
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        let is_same_session = match (&self.session, &other.session) {
            (Some(one), Some(other)) => one.ptr_eq(other),
            (one, other) => one.is_none() && other.is_none(),
        };
        is_same_session && self.is_modern == other.is_modern && self.identity == other.identity
    }
}
