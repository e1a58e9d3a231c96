//! Deserializes a table from a map only, never from a list.
//!
//! Derived code would accept a list too, its values in the order of the fields, which is
//! undocumented and which no error would name.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A value that must be a table.
#[derive(Clone, Debug)]
pub(super) struct TableValue<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TableValue<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        deserialize_table(reader).map(Self)
    }
}

/// Deserializes a field that must be a table.
pub(super) fn deserialize_table<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    reader: D,
) -> Result<T, D::Error> {
    reader.deserialize_map(TableVisitor(PhantomData))
}

struct TableVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for TableVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(table))
    }
}
