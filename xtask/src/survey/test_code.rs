//! Test code inside sources: items under `#[cfg(test)]` and the files of such modules.

use syn::punctuated::Punctuated;
use syn::{Attribute, ImplItem, Item, Meta, Token, TraitItem};

use super::place::ModulePlace;

/// Tells if attributes keep an item out of every build but that of tests.
pub(super) fn are_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<Meta>().is_ok_and(|condition| requires_test(&condition))
    })
}

/// Tells if a `cfg` condition can hold in a build of tests only.
fn requires_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else {
        return condition.path().is_ident("test");
    };
    let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    let parts: Vec<Meta> = parts.map(Punctuated::into_iter).into_iter().flatten().collect();
    if list.path.is_ident("all") {
        parts.iter().any(requires_test)
    } else if list.path.is_ident("any") {
        !parts.is_empty() && parts.iter().all(requires_test)
    } else {
        false
    }
}

/// Paths without `.rs` of the files whose modules are declared under `#[cfg(test)]`.
pub(super) fn test_module_files(place: &ModulePlace, syntax: &syn::File) -> Vec<String> {
    let declared = syntax.items.iter().filter_map(|item| {
        let Item::Mod(module) = item else { return None };
        let has_test_file = module.content.is_none() && are_test_only(&module.attrs);
        has_test_file.then(|| place.child_stem(&module.ident.to_string()))
    });
    declared.collect()
}

/// Attributes of an item, whatever its kind.
pub(super) fn item_attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Verbatim(_) | _ => &[],
    }
}

/// Attributes of an item in an `impl` block, whatever its kind.
pub(super) fn impl_item_attributes(item: &ImplItem) -> &[Attribute] {
    match item {
        ImplItem::Const(item) => &item.attrs,
        ImplItem::Fn(item) => &item.attrs,
        ImplItem::Macro(item) => &item.attrs,
        ImplItem::Type(item) => &item.attrs,
        ImplItem::Verbatim(_) | _ => &[],
    }
}

/// Attributes of an item in a trait, whatever its kind.
pub(super) fn trait_item_attributes(item: &TraitItem) -> &[Attribute] {
    match item {
        TraitItem::Const(item) => &item.attrs,
        TraitItem::Fn(item) => &item.attrs,
        TraitItem::Macro(item) => &item.attrs,
        TraitItem::Type(item) => &item.attrs,
        TraitItem::Verbatim(_) | _ => &[],
    }
}
