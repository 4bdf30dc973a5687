"""Metadata for others: the registry's record and Croissant, held against their own rules; nothing is filled in."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import discreet as dc
from discreet.doors.cli import main
from discreet.doors.publishing import describe
from discreet.judge.publishing import croissant, registry
from discreet.networks.formats.release import read_release

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # releases from memory are simulations

SCHEMA = json.loads(Path(__file__).with_name("registry.schema.json").read_text("utf-8"))
"""The fields, types and choices of the registry's record, as they stood in 2026."""
WORDS = {
    "title": 'Lungs: the "north" table',
    "description": "A made-up clinic.\nTwo lines, a back\\slash, and # no comment.",
    "population": "visitors",
    "period": "2024",
    "collection": "by the textbook",
    "contact": "board@clinic.example",
    "licence": "https://creativecommons.org/publicdomain/zero/1.0/",
    "custodian": "North Clinic; South Clinic",
    "use": "yes",  # which plain YAML would take for a truth value
    "region": "NO",
    "sector": "Healthcare",
    "published": "2026-11-17",
    "url": "https://clinic.example/lungs",
    "preparation": "none",
    "reasons": "the board chose them",
    "authors": "A. Author; B. Author",
}


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("published")
    clinic = dc.examples.asia()
    made = dc.release(
        clinic.sample(500, rng=1).arrow(), clinic.schema, clinic.dag, epsilon=1, account="c", about=WORDS
    )
    made.write(place / "out")
    made.sample(50, rng=1).write(place / "out" / "rows.csv")
    return place / "out"


def check(record: Any) -> list[str]:
    checker = jsonschema.Draft7Validator(SCHEMA, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)
    return [problem.message for problem in checker.iter_errors(record)]


def test_the_record_is_valid_yaml_by_the_registry_s_rules(published: Path) -> None:
    text = describe(published, "registry")
    record = yaml.safe_load(text)
    assert check(record) == []
    assert record == registry.make_record(read_release(published))  # the writer of YAML changes nothing
    basic = record["deployment"]["basic"]
    assert (basic["name"], basic["intended_use"], basic["data_product_region"]) == (
        WORDS["title"],
        "yes",
        "NO",
    )
    assert basic["description"] == WORDS["description"]
    assert basic["data_curators"] == ["North Clinic", "South Clinic"] and record["tier"] == 3
    assert record["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1}
    styles = {token.style for token in yaml.scan(text) if isinstance(token, yaml.ScalarToken)}
    assert styles <= {None, '"'}  # the registry refuses text that is folded


@pytest.mark.parametrize(
    ("amounts", "variant", "parameters"),
    [
        ({"rho": "1/8"}, "Zero-concentrated DP", {"rho": 0.125}),
        ({"epsilon": 1, "delta": "1e-6"}, "Approximate DP", {"epsilon": 1, "delta": 1e-6}),
    ],
)
def test_the_record_has_the_account_s_variant(
    amounts: dict[str, Any], variant: str, parameters: dict[str, float], tmp_path: Path
) -> None:
    clinic = dc.examples.asia()
    made = dc.release(clinic.sample(99, rng=1).arrow(), clinic.schema, clinic.dag, account="c", **amounts)
    made.write(tmp_path / "r.json")
    some = {name: text for name, text in WORDS.items() if name not in ("reasons", "sector")}
    record = yaml.safe_load(describe(tmp_path / "r.json", "registry", about=some))
    assert check(record) == [] and record["tier"] == 2
    assert record["deployment"]["dp_variant"]["variant_name"] == variant
    assert record["deployment"]["privacy_loss"]["privacy_parameters"] == parameters


def test_a_planted_wrong_record_is_caught(published: Path) -> None:
    record = yaml.safe_load(describe(published, "registry"))
    for path, value in [("tier", 4), ("status", "Done"), ("url_slug", None)]:
        assert check({**record, path: value}), path
    record["deployment"]["basic"]["publication_date"] = "17.11.2026"
    assert check(record) == ["'17.11.2026' is not a 'date'"]


@pytest.mark.parametrize(
    ("form", "name"),
    [
        *(("registry", name) for name in registry.NEEDED),
        *(("croissant", name) for name in croissant.NEEDED),
        *(("json-ld", name) for name in croissant.NEEDED),
    ],
)
def test_what_only_the_custodian_knows_is_asked_for(
    form: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(Path(__file__).parents[1] / "golden" / "planned-rho.json", tmp_path / "r.json")
    lines = [f"{key} = {json.dumps(text)}" for key, text in WORDS.items() if key != name]
    (tmp_path / "about.toml").write_text("\n".join(lines), "utf-8")
    told = ["statement", str(tmp_path / "r.json"), "--about", str(tmp_path / "about.toml"), "--format", form]
    assert main(told) == 2
    assert f"only the custodian knows: {name}; put it" in capsys.readouterr().err
    (tmp_path / "about.toml").write_text("\n".join([*lines, f"{name} = {json.dumps(WORDS[name])}"]), "utf-8")
    assert main(told) == 0


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ({"sector": "Health"}, "knows the sectors"),
        ({"published": "2026-13-01"}, "is a day"),
        ({"url": "javascript:alert(1)"}, "begins with https://"),
        ({"cat": "x"}, "cat"),
    ],
)
def test_words_that_no_record_takes_are_refused(words: dict[str, str], what: str, published: Path) -> None:
    with pytest.raises(dc.errors.FormatError, match=what):
        describe(published, "registry", about=words)


def test_croissant_lists_the_files_and_their_digests(published: Path) -> None:
    found = json.loads(describe(published, "croissant", rows=published / "rows.csv"))
    files = {file["name"]: file["sha256"] for file in found["distribution"]}
    assert set(files) == {"release.json", "network.bif", "report.html", "explorer.html", "rows.csv"}
    for name, digest in files.items():
        assert digest == hashlib.sha256((published / name).read_bytes()).hexdigest()
    assert found["license"] == WORDS["licence"] and found["rai:dataCollection"] == WORDS["collection"]
    fields = [field["name"] for field in found["recordSet"][1]["field"]]
    assert fields == list(dc.examples.asia().nodes)
    with pytest.raises(dc.errors.FormatError, match="cannot be read"):
        describe(published, "croissant", rows=published / "missing.csv")
    with pytest.raises(dc.errors.FormatError, match=r"\.csv and \.parquet"):
        describe(published, "croissant", rows=published / "network.bif")


def test_a_dataset_for_search_engines_has_what_they_require(published: Path) -> None:
    found = json.loads(describe(published, "json-ld"))
    assert found["@context"] == "https://schema.org/" and found["@type"] == "Dataset"
    assert 50 <= len(found["description"]) <= 5000 and found["name"] == WORDS["title"]
    assert [column["name"] for column in found["variableMeasured"]] == list(dc.examples.asia().nodes)


@pytest.mark.slow
def test_croissant_is_valid_by_its_own_validator(published: Path) -> None:
    """`mlcroissant` reads the description without a complaint, checks the digests, and reads the rows by it."""
    import mlcroissant

    (published / "croissant.json").write_text(
        describe(published, "croissant", rows=published / "rows.csv"), "utf-8"
    )
    dataset = mlcroissant.Dataset(published / "croissant.json")
    issues = dataset.metadata.ctx.issues
    assert not issues.errors and not issues.warnings, issues.report()
    rows = list(dataset.records("rows"))
    assert len(rows) == 50 and set(rows[0]) == {f"rows/{name}" for name in dc.examples.asia().nodes}
    assert len(list(dataset.records("attributes"))) == 8
    broken = json.loads((published / "croissant.json").read_text("utf-8"))
    broken["recordSet"][1]["field"][0]["source"]["fileObject"]["@id"] = "nowhere.csv"
    (published / "broken.json").write_text(json.dumps(broken), "utf-8")
    with pytest.raises(mlcroissant.ValidationError):
        mlcroissant.Dataset(published / "broken.json")
