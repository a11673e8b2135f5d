//! Streamable HTTP, HTTP+SSE, and the endpoint inside an application.

mod batches;
mod browsers;
mod http_sse;
mod modern;
mod mounted;
mod sessions;
mod statuses;
mod streams;
