//! Items of one parsed file: types, functions, constants and the modules that it names.

use std::ops::RangeInclusive;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Block, ImplItem, Item, Signature, TraitItem, UseTree};

use super::place::ModulePlace;
use super::test_code::{
    are_test_only, impl_item_attributes, item_attributes, trait_item_attributes,
};

/// Struct, enum, trait or union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeItem {
    /// Name of the type.
    pub name: String,
    /// Line of its name.
    pub line: usize,
}

impl TypeItem {
    /// Tells if the name has one capitalised part only.
    #[must_use]
    pub fn is_one_word(&self) -> bool {
        let letters: Vec<char> = self.name.chars().collect();
        let begins_part = |pair: &&[char]| !pair[0].is_uppercase() && pair[1].is_uppercase();
        !letters.windows(2).any(|pair| begins_part(&pair))
    }
}

/// Function or method, with or without a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionItem {
    /// Name of the function.
    pub name: String,
    /// Line of its name.
    pub line: usize,
    /// Number of lines from the signature to the closing brace, or `None` without a body.
    pub length: Option<usize>,
}

impl FunctionItem {
    /// Tells if the name has no underscore between words.
    #[must_use]
    pub fn is_one_word(&self) -> bool {
        !self.name.trim_matches('_').contains('_')
    }
}

/// Constant or static.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstantItem {
    /// Name of the constant.
    pub name: String,
    /// Line of its name.
    pub line: usize,
    /// True if it belongs to a type or trait, so that it is read as `Type::NAME`.
    pub is_associated: bool,
}

/// Name at the top level of the crate that a file mentions, as in `crate::name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleReference {
    /// Module, or an item that the crate's root takes from a module.
    pub name: String,
    /// Line of the mention.
    pub line: usize,
}

/// Name that a crate's root takes from one of its modules by `use`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootAlias {
    /// Name in the root.
    pub name: String,
    /// Top-level module that it comes from.
    pub module: String,
}

/// All that the survey keeps of one file's syntax tree.
#[derive(Debug, Default)]
pub(super) struct FileItems {
    pub(super) types: Vec<TypeItem>,
    pub(super) functions: Vec<FunctionItem>,
    pub(super) constants: Vec<ConstantItem>,
    pub(super) references: Vec<ModuleReference>,
    pub(super) aliases: Vec<RootAlias>,
    pub(super) test_lines: Vec<RangeInclusive<usize>>,
}

/// Collects the items of a file, those under `#[cfg(test)]` left out.
pub(super) fn collect_items(place: &ModulePlace, syntax: &syn::File) -> FileItems {
    let mut collector = ItemCollector { items: FileItems::default(), depth: place.modules.len() };
    collector.visit_file(syntax);
    collector.items
}

/// Visitor that fills [`FileItems`].
struct ItemCollector {
    items: FileItems,
    /// Number of modules from the crate's root down to the code that is visited.
    depth: usize,
}

impl ItemCollector {
    fn add_type(&mut self, name: &Ident) {
        self.items.types.push(TypeItem { name: name.to_string(), line: start_line(name.span()) });
    }

    fn add_function(&mut self, signature: &Signature, body: Option<&Block>) {
        let first = start_line(signature.span());
        let length = body.map(|body| body.brace_token.span.close().end().line + 1 - first);
        let (name, line) = (signature.ident.to_string(), start_line(signature.ident.span()));
        self.items.functions.push(FunctionItem { name, line, length });
    }

    fn add_constant(&mut self, name: &Ident, is_associated: bool) {
        let line = start_line(name.span());
        let name = name.to_string();
        self.items.constants.push(ConstantItem { name, line, is_associated });
    }

    /// Remembers the lines of an item that is there for tests only, and tells if it is one.
    fn skips(&mut self, attributes: &[syn::Attribute], span: impl FnOnce() -> Span) -> bool {
        let skips = are_test_only(attributes);
        if skips {
            let span = span();
            self.items.test_lines.push(span.start().line..=span.end().line);
        }
        skips
    }

    /// Adds the mention of a top-level name, if the path begins at the crate's root.
    fn add_reference(&mut self, path: &[&Ident]) {
        let climbs = path.iter().take_while(|segment| **segment == "super").count();
        let from_root = match path.first() {
            Some(first) if *first == "crate" => 1,
            _ if climbs > 0 && climbs == self.depth => climbs,
            _ => return,
        };
        if let Some(name) = path.get(from_root) {
            let reference =
                ModuleReference { name: name.to_string(), line: start_line(name.span()) };
            self.items.references.push(reference);
        }
    }

    /// Adds what the crate's root takes from its modules.
    fn add_alias(&mut self, path: &[&Ident], name: &Ident) {
        let from_root =
            usize::from(path.first().is_some_and(|first| *first == "crate" || *first == "self"));
        if let ([module, _, ..], 0) = (&path[from_root..], self.depth) {
            let (name, module) = (name.to_string(), module.to_string());
            self.items.aliases.push(RootAlias { name, module });
        }
    }

    /// Walks one `use` declaration; `path` is what stands before this part of it.
    fn walk_use<'ast>(&mut self, tree: &'ast UseTree, path: &mut Vec<&'ast Ident>) {
        match tree {
            UseTree::Path(part) => {
                path.push(&part.ident);
                self.walk_use(&part.tree, path);
                path.pop();
            }
            UseTree::Name(part) => self.add_use(path, &part.ident, &part.ident),
            UseTree::Rename(part) => self.add_use(path, &part.ident, &part.rename),
            UseTree::Glob(_) => self.add_reference(path),
            UseTree::Group(group) => {
                for part in &group.items {
                    self.walk_use(part, path);
                }
            }
        }
    }

    /// Adds one name that a `use` declaration brings in, under the name `alias`.
    fn add_use<'ast>(&mut self, path: &mut Vec<&'ast Ident>, name: &'ast Ident, alias: &Ident) {
        path.push(name);
        self.add_reference(path);
        self.add_alias(path, alias);
        path.pop();
    }

    /// Looks for paths in tokens that are not parsed: macro calls and attributes.
    fn scan_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<Ident> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            let is_colon = matches!(&token, TokenTree::Punct(mark) if mark.as_char() == ':');
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.add_scanned_path(&mut path);
                    }
                    path.push(name);
                }
                TokenTree::Group(group) => self.scan_tokens(group.stream()),
                TokenTree::Literal(text) => self.scan_literal(&text),
                TokenTree::Punct(_) => {}
            }
            colons = if is_colon { colons + 1 } else { 0 };
        }
        self.add_scanned_path(&mut path);
    }

    /// Adds the mention that a path in tokens is, and begins a new path.
    fn add_scanned_path(&mut self, path: &mut Vec<Ident>) {
        self.add_reference(&path.iter().collect::<Vec<_>>());
        path.clear();
    }

    /// Adds the module of a path in a string, as in `#[serde(with = "crate::wire::hex")]`.
    fn scan_literal(&mut self, literal: &proc_macro2::Literal) {
        let text = literal.to_string();
        let Some(path) = text.strip_prefix("\"crate::") else { return };
        let name: String = path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let line = start_line(literal.span());
        self.items.references.push(ModuleReference { name, line });
    }
}

impl<'ast> Visit<'ast> for ItemCollector {
    fn visit_item(&mut self, item: &'ast Item) {
        if !self.skips(item_attributes(item), || item.span()) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        if !self.skips(impl_item_attributes(item), || item.span()) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if !self.skips(trait_item_attributes(item), || item.span()) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.depth += 1;
        visit::visit_item_mod(self, module);
        self.depth -= 1;
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add_type(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add_type(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add_type(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.add_type(&item.ident);
        visit::visit_item_union(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add_function(&item.sig, Some(&item.block));
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add_function(&item.sig, Some(&item.block));
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.add_function(&item.sig, item.default.as_ref());
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.add_constant(&item.ident, false);
        visit::visit_item_const(self, item);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.add_constant(&item.ident, false);
        visit::visit_item_static(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.add_constant(&item.ident, true);
        visit::visit_impl_item_const(self, item);
    }

    fn visit_trait_item_const(&mut self, item: &'ast syn::TraitItemConst) {
        self.add_constant(&item.ident, true);
        visit::visit_trait_item_const(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.walk_use(&item.tree, &mut Vec::new());
        visit::visit_item_use(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<&Ident> = path.segments.iter().map(|segment| &segment.ident).collect();
        self.add_reference(&segments);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.scan_tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.scan_tokens(list.tokens.clone());
        visit::visit_meta_list(self, list);
    }
}

fn start_line(span: Span) -> usize {
    span.start().line
}
