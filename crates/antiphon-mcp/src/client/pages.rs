//! Lists that come in pages.
//!
//! The pages of a list are bounded, and a cursor that comes twice ends the list with an error: otherwise a server
//! could keep the client busy forever.

use std::collections::HashSet;

use antiphon::RawJson;
use serde::de::DeserializeOwned;

use super::call::{CallOptions, decoded};
use super::core::Core;
use super::error::McpError;
use crate::types::tasks::legacy::{ListTasksResult, Task};
use crate::types::{
    Cacheable, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedParams, Prompt, Resource, ResourceTemplate, Tool, methods,
};

/// The most pages of a list.
const MAX_PAGES: usize = 1_000;
/// The most bytes of a list.
const MAX_LIST_BYTES: usize = 64 << 20;

/// One page of a list.
pub(super) trait Page: DeserializeOwned {
    const METHOD: &'static str;
    type Item;

    fn next_cursor(&self) -> Option<&str>;
    /// How long the page stays fresh; `None` if the list has no cache.
    fn cache(&self) -> Option<&Cacheable>;
    fn into_items(self) -> Vec<Self::Item>;
}

macro_rules! page {
    ($page:ident, $items:ident: $item:ident, $method:expr) => {
        impl Page for $page {
            const METHOD: &'static str = $method;
            type Item = $item;

            fn next_cursor(&self) -> Option<&str> {
                self.next_cursor.as_deref()
            }

            fn cache(&self) -> Option<&Cacheable> {
                Some(&self.cache)
            }

            fn into_items(self) -> Vec<$item> {
                self.$items
            }
        }
    };
}

page!(ListToolsResult, tools: Tool, methods::LIST_TOOLS);
page!(ListPromptsResult, prompts: Prompt, methods::LIST_PROMPTS);
page!(ListResourcesResult, resources: Resource, methods::LIST_RESOURCES);
page!(
    ListResourceTemplatesResult,
    resource_templates: ResourceTemplate,
    methods::LIST_RESOURCE_TEMPLATES
);

impl Page for ListTasksResult {
    const METHOD: &'static str = methods::LIST_TASKS;
    type Item = Task;

    fn next_cursor(&self) -> Option<&str> {
        self.next_cursor.as_deref()
    }

    fn cache(&self) -> Option<&Cacheable> {
        None
    }

    fn into_items(self) -> Vec<Task> {
        self.tasks
    }
}

impl Core {
    /// Returns one page, which may come from the cache.
    pub(super) async fn page<P: Page>(&self, cursor: Option<&str>) -> Result<P, McpError> {
        self.sized_page(cursor).await.map(|(page, _)| page)
    }

    /// Returns one page, and its size in bytes.
    pub(super) async fn sized_page<P: Page>(
        &self,
        cursor: Option<&str>,
    ) -> Result<(P, usize), McpError> {
        // An empty cursor is a cursor.
        let key = &cursor.map_or_else(String::new, |cursor| format!("={cursor}"));
        if let Some(cached) = self.inbox.cache.fresh(P::METHOD, key) {
            return Ok((decoded(P::METHOD, &cached)?, cached.as_bytes().len()));
        }
        let epoch = self.inbox.cache.epoch();
        let mut params = PaginatedParams::new();
        params.cursor = cursor.map(str::to_owned);
        let encode = |source| McpError::Encode { method: P::METHOD.to_owned(), source };
        let params = RawJson::encode(&params).map_err(encode)?;
        let result = self.request(P::METHOD, params, &CallOptions::default()).await?;
        let page: P = decoded(P::METHOD, &result)?;
        if let Some(cache) = page.cache() {
            self.inbox.cache.keep(P::METHOD, key, &result, cache, epoch);
        }
        Ok((page, result.as_bytes().len()))
    }

    /// Returns the items of all pages.
    pub(super) async fn all_pages<P: Page>(&self) -> Result<Vec<P::Item>, McpError> {
        self.sized_list::<P>().await.map(|(items, _)| items)
    }

    /// Returns the items of all pages, and their size in bytes.
    pub(super) async fn sized_list<P: Page>(&self) -> Result<(Vec<P::Item>, usize), McpError> {
        match self.walk::<P>().await {
            // A cursor of a cached page may have expired.
            Err(McpError::Rpc(error)) if error.code == -32602 => {
                self.inbox.cache.forget(P::METHOD);
                self.walk::<P>().await
            }
            outcome => outcome,
        }
    }

    async fn walk<P: Page>(&self) -> Result<(Vec<P::Item>, usize), McpError> {
        let too_much = |what| McpError::Protocol(format!("`{}` has more than {what}", P::METHOD));
        let (mut items, mut bytes) = (Vec::new(), 0);
        let mut seen = HashSet::new();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let (page, size): (P, _) = self.sized_page(cursor.as_deref()).await?;
            bytes += size;
            if bytes > MAX_LIST_BYTES {
                return Err(too_much(format!("{MAX_LIST_BYTES} bytes")));
            }
            cursor = page.next_cursor().map(str::to_owned);
            items.extend(page.into_items());
            let Some(next) = &cursor else { return Ok((items, bytes)) };
            if !seen.insert(next.clone()) {
                let method = P::METHOD;
                return Err(McpError::Protocol(format!(
                    "`{method}` returned the cursor {next:?} twice"
                )));
            }
        }
        Err(too_much(format!("{MAX_PAGES} pages")))
    }
}
