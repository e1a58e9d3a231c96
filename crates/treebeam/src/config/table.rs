//! A table is read as a table only. A derived reader would take a list too, its values in the order of the fields: an
//! order that nobody knows and that no error would name.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Something that stands in a table of its own.
#[derive(Clone, Debug)]
pub(super) struct TableValue<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TableValue<T> {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        deserialize_table(reader).map(Self)
    }
}

/// For a field that is a table.
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
