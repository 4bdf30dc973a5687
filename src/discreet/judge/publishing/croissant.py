"""A release for catalogues of datasets: schema.org's Dataset as JSON-LD, and MLCommons' Croissant, which extends it.

Croissant also says which files there are, with their SHA-256, and what the columns of synthetic rows hold. What only
the custodian knows is asked for and never filled in.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from discreet.judge.claim import state_claim
from discreet.judge.publishing.needed import find_words, split_names
from discreet.networks.formats.release import Release, find_document
from discreet.values.about import About
from discreet.values.errors import FormatError
from discreet.values.schema import Attribute, Schema

NEEDED = ("title", "description", "licence", "custodian", "published", "url")
MEDIA = {
    ".json": "application/json",
    ".bif": "text/plain",
    ".html": "text/html",
    ".csv": "text/csv",
    ".parquet": "application/x-parquet",
    ".sig": "text/plain",
}
TYPES = {
    "integer": "sc:Integer",
    "decimal": "sc:Float",
    "boolean": "sc:Boolean",
    "date": "sc:Date",
    "datetime": "sc:DateTime",
    "text": "sc:Text",
}
CROISSANT, RAI = "http://mlcommons.org/croissant/", "http://mlcommons.org/croissant/RAI/"
_PLAIN_TERMS = (
    "citeAs column data examples extract field fileProperty fileObject fileSet format includes jsonPath key md5 "
    "parentField path recordSet references regex repeated replace separator source subField transform "
    "isLiveDataset equivalentProperty samplingRate"
)
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": CROISSANT,
    "rai": RAI,
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    **{term: f"cr:{term}" for term in _PLAIN_TERMS.split()},
    "data": {"@id": "cr:data", "@type": "@json"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
}
"""How Croissant's terms are spelt out, by its specification, version 1.0."""


def describe_dataset(release: Release, more: About | None = None) -> dict[str, Any]:
    """A release as a Dataset of schema.org, which search engines and catalogues read."""
    words = find_words(release, more, NEEDED, "a description for catalogues")
    claim = state_claim(release, more)
    found = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": words.title,
        "description": f"{words.description}\n\n{release.promise}",
        "license": words.licence,
        "url": words.url,
        "creator": [{"@type": "Organization", "name": name} for name in split_names(words.custodian)],
        "datePublished": words.published,
        "temporalCoverage": words.period,
        "spatialCoverage": words.region,
        "variableMeasured": [
            {"@type": "PropertyValue", "name": column.name, "description": _list_levels(column)}
            for column in release.network.declared
        ],
        "measurementTechnique": f"{claim.find('Algorithm')}. {claim.find('Noise')}.",
        "keywords": ["differential privacy", "Bayesian network"],
        "isAccessibleForFree": True,
    }
    return {key: value for key, value in found.items() if value}


def describe_croissant(
    release: Release, path: Path, more: About | None = None, rows: Path | None = None
) -> dict[str, Any]:
    """A release as a dataset of Croissant 1.0: the files beside its document at `path`, and synthetic rows."""
    claim = state_claim(release, more)
    words = (release.about or About()).fill(more)
    found = {**describe_dataset(release, more), "@context": CONTEXT, "@type": "sc:Dataset"}
    for key in ("variableMeasured", "measurementTechnique", "isAccessibleForFree"):
        del found[key]
    document = Path(find_document(path))
    files = [document, *(document.parent / name for name in _list_beside(document))]
    if rows is not None:
        if rows.suffix not in (".csv", ".parquet"):
            raise FormatError(f"{rows}: synthetic rows are described in .csv and .parquet files only")
        files.append(rows)
    year = words.published[:4]
    told = {
        "conformsTo": [f"{CROISSANT}1.0", f"{RAI}1.0"],
        "version": "1.0.0",
        "citeAs": f"{'; '.join(split_names(words.custodian))} ({year}). {words.title}. {words.url}",
        "isLiveDataset": False,
        "rai:personalSensitiveInformation": release.promise,
        "rai:dataCollection": words.collection,
        "rai:dataCollectionTimeframe": words.period,
        "rai:dataBiases": claim.find("Known bias"),
        "rai:dataUseCases": words.use,
        "rai:dataLimitation": claim.find("Expected error"),
        "distribution": [_describe_file(file) for file in dict.fromkeys(files)],
        "recordSet": [
            _describe_attributes(release.network.declared),
            *([] if rows is None else [_describe_rows(release.network.declared, rows)]),
        ],
    }
    return {**found, **{key: value for key, value in told.items() if value not in ("", [], None)}}


def _list_beside(document: Path) -> list[str]:
    """What `Release.write` puts beside a document, as far as it is there."""
    names = ("network.bif", "report.html", "explorer.html") if document.name == "release.json" else ()
    return [name for name in (*names, f"{document.name}.sig") if (document.parent / name).is_file()]


def _describe_file(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from None
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "contentUrl": path.name,
        "contentSize": f"{len(data)} B",
        "encodingFormat": MEDIA.get(path.suffix, "application/octet-stream"),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def _describe_attributes(schema: Schema) -> dict[str, Any]:
    """The attributes and their levels as records that stand in the description itself."""
    names = {"name": "The attribute.", "type": "What its values are.", "levels": "Its levels, in order."}
    return {
        "@type": "cr:RecordSet",
        "@id": "attributes",
        "name": "attributes",
        "description": "The attributes of the network, as they were declared.",
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"attributes/{name}",
                "name": name,
                "description": told,
                "dataType": "sc:Text",
            }
            for name, told in names.items()
        ],
        "data": [
            {
                "attributes/name": column.name,
                "attributes/type": column.type,
                "attributes/levels": _list_levels(column),
            }
            for column in schema
        ],
    }


def _describe_rows(schema: Schema, rows: Path) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": "rows",
        "name": "rows",
        "description": "Synthetic rows, drawn from the network: no row is anybody's.",
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"rows/{column.name}",
                "name": column.name,
                "description": _list_levels(column),
                "dataType": TYPES.get(column.type, "sc:Text"),
                "source": {"fileObject": {"@id": rows.name}, "extract": {"column": column.name}},
            }
            for column in schema
        ],
    }


def _list_levels(column: Attribute) -> str:
    return ", ".join(column)
