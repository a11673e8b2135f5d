//! The public items of one crate, from its rustdoc JSON.
//!
//! An item is public if a path from the root of the crate leads to it, with or without a re-export.

use rustdoc_types::{Crate, FORMAT_VERSION, Id, Impl, Item, ItemEnum, StructKind, VariantKind};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub struct CrateDocs {
    pub json: Crate,
    /// The public items, with the shortest path that leads to each.
    pub public: BTreeMap<Id, String>,
}

impl CrateDocs {
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        check_format(&text)?;
        let json: Crate = serde_json::from_str(&text)
            .map_err(|error| format!("cannot parse {}: {error}", path.display()))?;
        let mut docs = Self { public: BTreeMap::new(), json };
        let name = docs.item(docs.json.root).and_then(|root| root.name.clone()).unwrap_or_default();
        docs.visit(docs.json.root, &name);
        Ok(docs)
    }

    pub fn item(&self, id: Id) -> Option<&Item> {
        self.json.index.get(&id)
    }

    /// The implementations of a type.
    pub fn implementations(&self, item: &Item) -> Vec<&Impl> {
        let ids = match &item.inner {
            ItemEnum::Struct(it) => &it.impls,
            ItemEnum::Enum(it) => &it.impls,
            ItemEnum::Union(it) => &it.impls,
            _ => return Vec::new(),
        };
        let items = ids.iter().filter_map(|&id| self.item(id));
        items
            .filter_map(|item| if let ItemEnum::Impl(it) = &item.inner { Some(it) } else { None })
            .collect()
    }

    /// The fields of a struct or of the variants of an enum.
    pub fn fields(&self, item: &Item) -> Vec<&Item> {
        match &item.inner {
            ItemEnum::Struct(it) => self.struct_fields(&it.kind),
            ItemEnum::Enum(it) => {
                let variants = it.variants.iter().filter_map(|&id| self.item(id));
                variants.flat_map(|variant| self.variant_fields(variant)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn struct_fields(&self, kind: &StructKind) -> Vec<&Item> {
        match kind {
            StructKind::Unit => Vec::new(),
            StructKind::Tuple(fields) => {
                fields.iter().flatten().filter_map(|&id| self.item(id)).collect()
            }
            StructKind::Plain { fields, .. } => {
                fields.iter().filter_map(|&id| self.item(id)).collect()
            }
        }
    }

    fn variant_fields(&self, variant: &Item) -> Vec<&Item> {
        let ItemEnum::Variant(variant) = &variant.inner else { return Vec::new() };
        match &variant.kind {
            VariantKind::Plain => Vec::new(),
            VariantKind::Tuple(fields) => {
                fields.iter().flatten().filter_map(|&id| self.item(id)).collect()
            }
            VariantKind::Struct { fields, .. } => {
                fields.iter().filter_map(|&id| self.item(id)).collect()
            }
        }
    }

    fn visit(&mut self, id: Id, path: &str) {
        let shorter = self.public.get(&id).is_none_or(|known| path.len() < known.len());
        let Some(item) = self.json.index.get(&id).filter(|_| shorter) else { return };
        let inner = item.inner.clone();
        match inner {
            ItemEnum::Module(module) => {
                self.public.insert(id, path.to_owned());
                module.items.iter().for_each(|&child| self.visit_child(child, path));
            }
            ItemEnum::Use(import) if import.is_glob => self.visit_glob(import.id, path),
            ItemEnum::Use(import) => {
                if let Some(target) = import.id {
                    self.visit(target, &join(path, &import.name));
                }
            }
            _ => drop(self.public.insert(id, path.to_owned())),
        }
    }

    /// A child of a module; a re-export has its own name, so it gets the path of the module.
    fn visit_child(&mut self, child: Id, module: &str) {
        let Some(item) = self.json.index.get(&child) else { return };
        let path =
            item.name.as_deref().map_or_else(|| module.to_owned(), |name| join(module, name));
        self.visit(child, &path);
    }

    fn visit_glob(&mut self, target: Option<Id>, path: &str) {
        let target = target.and_then(|id| self.json.index.get(&id)).map(|item| item.inner.clone());
        match target {
            Some(ItemEnum::Module(module)) => {
                module.items.iter().for_each(|&child| self.visit_child(child, path))
            }
            Some(ItemEnum::Enum(it)) => {
                it.variants.iter().for_each(|&child| self.visit_child(child, path))
            }
            _ => {}
        }
    }
}

fn join(path: &str, name: &str) -> String {
    format!("{path}::{name}")
}

/// Another compiler may write another format: that is said first, instead of an error of the parser.
fn check_format(text: &str) -> Result<(), String> {
    let format = text.rsplit_once("\"format_version\":").map_or("", |(_, rest)| rest);
    let format: String = format.chars().take_while(char::is_ascii_digit).collect();
    if format == FORMAT_VERSION.to_string() {
        return Ok(());
    }
    Err(format!(
        "this rustdoc writes JSON format {format}, but the tool reads {FORMAT_VERSION}: \
         use the Rust version that api/run names, or update it together with api/Cargo.toml"
    ))
}
