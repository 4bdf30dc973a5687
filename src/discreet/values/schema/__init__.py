"""The schema: the attributes of a table and the levels of each; declared by people, never read from rows."""

from discreet.values.schema.bins import Bins
from discreet.values.schema.constraints import Follows, Implied, Listed, Ordered
from discreet.values.schema.dates import Dates
from discreet.values.schema.declaration import Attribute, Schema
from discreet.values.schema.reading import Reading
from discreet.values.schema.taxonomy import Group, Taxonomy

__all__ = [
    "Attribute",
    "Bins",
    "Dates",
    "Follows",
    "Group",
    "Implied",
    "Listed",
    "Ordered",
    "Reading",
    "Schema",
    "Taxonomy",
]
