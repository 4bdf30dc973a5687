"""The schema: the attributes of a table and the levels of each; declared by people, never read from rows."""

from discreet.values.schema.bins import Bins
from discreet.values.schema.declaration import Attribute, Schema
from discreet.values.schema.taxonomy import Group, Taxonomy

__all__ = ["Attribute", "Bins", "Group", "Schema", "Taxonomy"]
