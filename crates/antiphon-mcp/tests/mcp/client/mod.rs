//! The client against servers in this process, and against servers of other projects.

mod http;
mod http_server;
mod http_sse;
mod legacy;
mod legacy_tasks;
mod modern;
mod real_servers;
mod reconnect;
mod scripted;
mod served_tasks;
