//! A message whose handlers can notify the caller: the response becomes a stream of events.
//!
//! The handlers run in the future of the request until the first of them waits, and then in a task.
//! The task ends when the client disconnects, unless the policy lets it run on.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use antiphon_core::decode;
use bytes::Bytes;
use tokio::sync::oneshot;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::event_stream::{EventSender, EventStream};
use super::http_message::HttpMessage;
use super::policy::{EventStreamOptions, HttpOutcome};
use super::policy_exchange::GuardedPolicy;
use super::refusal::HttpRefusal;
use super::request_future::RequestExchange;
use super::response::{Dispatched, HttpResponse, calls, tap_reply};
use crate::BoxFuture;
use crate::call::CallError;
use crate::catch_unwind::guarded;
use crate::connection::Connection;
use crate::context::{Origin, WayBack};
use crate::dialect::Dialect;
use crate::engine::{Drive, Settings};
use crate::error::CloseReason;
use crate::tap::Direction;

/// The way back of a call through the event stream of its response.
struct EventWayBack {
    sender: EventSender,
    options: EventStreamOptions,
    settings: Arc<Settings>,
    /// Held while a message becomes an event and is queued, so that both happen in one order.
    order: Mutex<()>,
}

impl WayBack for EventWayBack {
    fn dialect(&self) -> Option<&Dialect> {
        self.settings.dialect.as_ref()
    }

    fn send<'a>(
        &'a self,
        message: Bytes,
        request: &'a Connection,
    ) -> BoxFuture<'a, Result<(), CallError>> {
        Box::pin(async move {
            let permit = self.sender.reserve(message.len()).await;
            let _order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
            self.settings.tap.message(Direction::Sent, &message, request);
            // If the client is gone, the policy may still keep the event.
            let event = self.options.event_of(message);
            match permit.and_then(|permit| permit.send(event.encode())) {
                // Handlers that run on after the client has disconnected or stalled: a message counts as sent once the
                // policy has seen it. An error would fail the handler, and its reply would carry that error to a client
                // that resumes.
                Err(_gone) if !self.options.cancel_on_disconnect => Ok(()),
                sent => sent.map_err(|error| CallError::Closed(CloseReason::failed(error))),
            }
        })
    }
}

/// The reply of a call, or the reason why it has none.
type StreamedReply = Result<Option<Bytes>, HttpRefusal>;

impl RequestExchange {
    /// Runs the handlers of a message, with a stream of events as their way back.
    pub(super) async fn stream(
        self,
        policy: GuardedPolicy,
        mut connection: Connection,
        message: HttpMessage,
        options: EventStreamOptions,
        admitted: Option<TaskTrackerToken>,
    ) -> HttpResponse {
        let settings = &self.state.dispatcher.settings;
        let (sender, stream) = EventStream::with_limits(options.capacity, &settings.limits);
        let stream = match options.keep_alive {
            Some(period) => stream.keep_alive(period),
            None => stream,
        };
        connection.extensions.insert(sender.clone());
        let payload = decode(message.body(), &settings.rules);
        let way_back = EventWayBack {
            sender: sender.clone(),
            options: options.clone(),
            settings: settings.clone(),
            order: Mutex::new(()),
        };
        let calls = calls(&payload);
        let origin = Origin::with_way_back(connection, way_back);
        let dispatched = Dispatched { origin, calls, _admitted: admitted };
        let ended = match self.enter(payload, &dispatched.origin).await {
            Ok(reply) => {
                tap_reply(&settings.tap, reply.as_ref(), &dispatched.origin);
                Some(Ok(reply))
            }
            Err(drive) => self.drive(drive, &dispatched.origin, &sender, &stream, &options).await,
        };
        let request = dispatched.origin.connection();
        let is_stream = options.is_immediate || stream.has_events();
        match ended {
            Some(Err(refusal)) if !is_stream => policy.refuse(request, refusal),
            Some(Ok(reply)) if !is_stream => {
                let outcome = HttpOutcome::new(reply, dispatched.challenge());
                policy.respond(request, &message, outcome)
            }
            ended => {
                if let Some(ended) = ended {
                    finish(&sender, ended, &options);
                }
                let mut response = stream.into_response();
                response.headers_mut().extend(options.headers);
                response
            }
        }
    }

    /// Drives the handlers in a task until they are done or the stream begins. Then the task sends the
    /// reply, and there is none to return.
    async fn drive(
        &self,
        drive: Drive,
        origin: &Origin,
        sender: &EventSender,
        stream: &EventStream,
        options: &EventStreamOptions,
    ) -> Option<StreamedReply> {
        let (reply, mut replied) = oneshot::channel();
        let (tap, origin) = (self.state.dispatcher.settings.clone(), origin.clone());
        let show = move |reply: Option<&Bytes>| tap_reply(&tap.tap, reply, &origin);
        let expired = self.state.expired();
        let task = drive_in_task(drive, show, sender.clone(), options.clone(), expired, reply);
        match &self.state.peers {
            Some(peers) => drop(peers.spawn(Box::pin(task))),
            None => drop(tokio::spawn(task)),
        }
        let begun =
            poll_fn(|poller| match options.is_immediate || stream.poll_has_events(poller) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            });
        tokio::select! {
            biased;
            ended = &mut replied => return ended.ok(),
            () = begun => {}
        }
        // The task may have replied in the meantime; from here on it cannot.
        replied.close();
        replied.try_recv().ok()
    }
}

async fn drive_in_task(
    mut drive: Drive,
    show: impl FnOnce(Option<&Bytes>) + Send,
    sender: EventSender,
    options: EventStreamOptions,
    expired: impl Future<Output = ()> + Send,
    reply: oneshot::Sender<StreamedReply>,
) {
    let ended = tokio::select! {
        biased;
        reply = poll_fn(|poller| drive.poll(poller)) => Ok(reply),
        () = sender.closed(), if options.cancel_on_disconnect => return,
        () = expired => Err(HttpRefusal::ShuttingDown),
    };
    if let Ok(reply) = &ended {
        show(reply.as_ref());
    }
    if let Err(ended) = reply.send(ended) {
        finish(&sender, ended, &options);
    }
}

/// Sends the reply as the last event. A policy that panics ends the stream without it.
fn finish(sender: &EventSender, ended: StreamedReply, options: &EventStreamOptions) {
    let reply = ended.unwrap_or_else(|refusal| Some(refusal.content().1));
    let name = "the HTTP policy, at the last event of a stream,";
    let last = guarded(name, || reply.map(|reply| options.event_of(reply)));
    sender.finish_with(last.unwrap_or(None));
}
