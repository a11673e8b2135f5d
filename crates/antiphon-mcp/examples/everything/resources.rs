//! Resources, and a template.

use antiphon_mcp::{RequestContext, RequestError, ServerBuilder, ServerResource, ServerTemplate};
use base64::Engine as _;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Item {
    id: String,
}

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    builder
        .resource(
            ServerResource::new("test://static-text", "static-text", |_cx: RequestContext| async {
                Ok::<_, RequestError>("This is the content of the static text resource.")
            })
            .description("A text.")
            .mime_type("text/plain"),
        )
        .resource(
            ServerResource::new("test://static-binary", "static-binary", |_cx| async {
                let png = base64::engine::general_purpose::STANDARD.decode(super::content::PNG);
                Ok::<Vec<u8>, RequestError>(png?)
            })
            .description("A picture.")
            .mime_type("image/png"),
        )
        .resource(
            ServerResource::new("test://watched-resource", "watched-resource", |_cx| async {
                Ok::<_, RequestError>("Watched resource content")
            })
            .description("A resource to subscribe to.")
            .mime_type("text/plain"),
        )
        .template(
            ServerTemplate::new(
                "test://template/{id}/data",
                "template",
                |Item { id }, _cx| async move {
                    let data = json!({
                        "id": id, "templateTest": true, "data": format!("Data for ID: {id}"),
                    });
                    Ok::<_, RequestError>(data.to_string())
                },
            )
            .expect("the template is valid")
            .description("The data of an item.")
            .mime_type("application/json")
            .complete("id", |typed, _known| async move {
                let known = ["123", "124", "200"].into_iter();
                known.filter(|id| id.starts_with(&typed)).map(str::to_owned).collect()
            }),
        )
}
