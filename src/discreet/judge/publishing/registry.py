"""A release as a record of OpenDP's registry of deployments: one YAML file, by the registry's schema of 2026.

The registry asks for three tiers. All that follows from the release is derived from its claim (`judge.claim`); what
only the custodian knows is taken from the custodian's words, and a field that nobody has spoken to is left out. The
tier is the highest whose fields are all there. `judge.publishing.needed` refuses a record without the required ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from discreet.judge.claim import Claim, state_claim
from discreet.judge.publishing.needed import find_words, split_names
from discreet.networks.formats.release import Release
from discreet.values.about import About
from discreet.values.budget import ZCDP, ApproxDP, Finite, Infinite, PureDP
from discreet.values.errors import FormatError
from discreet.values.text import show

NEEDED = ("title", "custodian", "description", "use", "region", "published", "authors")
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
VARIANTS: dict[type[Finite], str] = {
    PureDP: "Pure DP",
    ZCDP: "Zero-concentrated DP",
    ApproxDP: "Approximate DP",
}
PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9 _-]*")
"""Text that YAML takes for nothing else, but for a few words."""
RESERVED = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})


def make_record(release: Release, more: About | None = None) -> dict[str, Any]:
    """The record of a release, its keys in the registry's order."""
    words = find_words(release, more, NEEDED, "the registry")
    if words.sector and words.sector not in SECTORS:
        raise FormatError(f"the registry knows the sectors {', '.join(SECTORS)}, not {show(words.sector)}")
    claim = state_claim(release, more)
    curators = split_names(words.custodian)
    kept = _keep(
        {
            "basic": {
                "name": words.title,
                "data_curators": curators,
                "intended_use": words.use,
                "data_product_type": "Machine learning model",
                "data_product_region": words.region,
                "description": words.description,
                "publication_date": words.published,
                "data_product_sector": words.sector,
            },
            **_describe_privacy(release, claim, words),
            "administrative": {
                "sources": words.url,
                "notes": _note(claim),
                "registry_authors": split_names(words.authors),
            },
        }
    )
    name, year = _slug(words.title), words.published[:4]
    return {
        "url_slug": f"{name}-{_slug('-'.join(curators))}-{year}",
        "status": "Draft",
        "tier": 3 if words.preparation and words.reasons and words.population else 2,
        "deployment": kept,
    }


def format_record(record: Mapping[str, Any]) -> str:
    """The record as YAML: maps and lists in blocks, text in double quotes, which YAML reads as JSON does."""
    return "\n".join(_write(record, 0)) + "\n"


def _describe_privacy(release: Release, claim: Claim, words: About) -> dict[str, Any]:
    parameters, variant = _name_parameters(release)
    known = release.provenance
    levels = "; ".join(f"{column.name} ({column.size} levels)" for column in release.network.declared)
    about = f"Rows about {words.population}. " if words.population else ""
    others = claim.find("Other releases")
    return {
        "dp_variant": {
            "variant_name": variant,
            "data_domain": f"{about}All tables over the declared attributes: {levels}.",
            "unprotected_quantities": _name_unprotected(release, claim),
        },
        "privacy_loss": {
            "privacy_unit": "Person" if known.unit.person else "Row",
            "privacy_unit_details": claim.find("What is protected"),
            "privacy_parameters": parameters,
            "privacy_parameters_details": f"{claim.find('The promise')} For comparison: "
            f"{claim.find('For comparison')}.",
        },
        "deployment_model": {
            "model_name": "Federated" if known.parts else "Central",
            "actors": claim.find("Against whom"),
            "release_type": "One release" if "none from this account" in others else "Many releases",
            "release_type_details": f"Other releases: {others}. Whole budget: "
            f"{claim.find('Whole budget of the account')}.",
            "access_type": "Non-interactive",
            "access_type_details": " ".join(filter(None, [claim.find("Who may ask what"), words.licence])),
        },
        "accounting": {
            "post_processing": f"{claim.find('Known bias')} {claim.find('Expected error')}.",
            "composition": f"Sequential, in exact fractions: {claim.find('Spent when this was released')}. "
            f"{claim.find('Where the budget is kept')}.",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": words.preparation,
            "mechanisms": f"{claim.find('Algorithm')}. {claim.find('Noise')}. Software: {claim.find('Software')}. "
            f"{claim.find('Side channels')}",
            "justification": words.reasons,
        },
    }


def _name_parameters(release: Release) -> tuple[dict[str, float], str]:
    match release.provenance.promised:
        case PureDP(epsilon=epsilon):
            return {"epsilon": float(epsilon)}, VARIANTS[PureDP]
        case ZCDP(rho=rho):
            return {"rho": float(rho)}, VARIANTS[ZCDP]
        case ApproxDP(epsilon=epsilon, delta=delta):
            return {"epsilon": float(epsilon), "delta": float(delta)}, VARIANTS[ApproxDP]
        case Infinite():
            raise FormatError("rows of this account were looked at without noise: there is no ε to register")


def _name_unprotected(release: Release, claim: Claim) -> str:
    told = "The schema, the graph if it was given, and the custodian's words are public."
    if release.provenance.rows is not None:
        told += f" The number of rows is public: {release.provenance.rows}."
    looks = claim.find("Looks without privacy")
    return told if looks == "none" else f"{told} {looks}."


def _note(claim: Claim) -> str:
    missing = ", ".join(point.heading for point in claim.open)
    return f"Not stated by the custodian: {missing}." if missing else ""


def _keep(found: Any) -> Any:
    """The same without what is empty."""
    if not isinstance(found, Mapping):
        return found
    kept = {key: _keep(value) for key, value in found.items()}
    return {key: value for key, value in kept.items() if value not in ("", [], {}, None)}


def _slug(text: str) -> str:
    return re.sub(r"\W+", "_", text.lower()).replace("_", "-")


def _write(value: Any, depth: int) -> list[str]:
    pad = "  " * depth
    lines = []
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            lines += [f"{pad}{key}:", *_write(inner, depth + 1)]
        elif isinstance(inner, list):
            lines += [f"{pad}{key}:", *(f"{pad}  - {_spell(one)}" for one in inner)]
        else:
            lines.append(f"{pad}{key}: {_spell(inner)}")
    return lines


def _spell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.12g}" if "e" not in f"{value:.12g}" else f"{value:.12e}"
    if isinstance(value, str) and PLAIN.fullmatch(value) and value.lower() not in RESERVED:
        return value
    return json.dumps(value, ensure_ascii=False)
