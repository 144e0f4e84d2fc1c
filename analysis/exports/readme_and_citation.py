"""What a package says about itself: README.md, LICENSE, CITATION.cff, dataset_description.json."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from typing import Any

from analysis.columns import TABLES, UNITS
from analysis.exports import scripts
from analysis.exports.delimited import NOTE
from analysis.exports.study_facts_file import NAME as STUDY_FILE
from analysis.exports.study_facts_file import StudyFile
from analysis.seal import seal_of
from analysis.tables.stimulus_pictures import FOLDER as PICTURES
from experiments.definition.study import StudyDefinition

SOFTWARE = "Legible: crowdsourced psychophysics for explainable AI"
PSYCHDS = "Psych-DS 1.5.1"
PROGRAMS = {"simulated": "computational observers", "model": "models"}
"""Who answered, by an origin that is not people's."""
ALONE = {
    "simulated": "Simulated data: computational observers answered, not people.",
    "model": "Data of models: models answered, not people.",
}
MIXED = {
    "simulated": "Holds simulated data: rows with the origin `simulated` are of computational observers, "
    "not of people.",
    "model": "Holds data of models: rows with the origin `model` are of models, not of people.",
}
UNLICENSED = (
    "No licence was given, so all rights are reserved: ask the contact above before you publish or share "
    "any part of it."
)
ROWS = {
    f"{PICTURES}/": "what people saw, named by `picture_digest` of the table `stimuli`",
    "codebook.csv": "one row per column of the tables: type, unit, levels, meaning",
    "codebook.json": "the same, with the note on cells",
    "definition.json": "the study as people met it: design, conditions, model, rules with limits, all texts",
    "preregistration.json": "the plan that was stored when the study opened",
    "preregistration.md": "the same, for people",
    "preregistration.tsr": "the time stamp (RFC 3161) of the plan",
    "preregistration-stamped.json": "the text that it stamps: the plan without the digests of its pictures",
    "study.json": "one entry per origin: what a report needs besides the tables",
    "conditions.csv": "one row per condition, in the order of the study",
    "analysis.py": "the planned analysis, in Python",
    "analysis.R": "the planned analysis, in R",
    "records.json": "one entry per rated explanation, in PASTA's format",
    "index.csv": "one row per name in records.json",
}


@dataclass(frozen=True, slots=True)
class DataPackage:
    """A package to be described: the study, what was written, rows per file, the columns of each table as
    the codebook has them (`column`, `meaning`, `unit`), and the origins of its rows, of which `content`
    may have no facts.
    """

    definition: StudyDefinition
    content: StudyFile
    rows: Mapping[str, int]
    columns: Mapping[str, Sequence[Mapping[str, str]]]
    digest: str
    on: date
    origins: Sequence[str]

    @property
    def title(self) -> str:
        return self.definition.package.title or f"Data of the study: {self.definition.title}"

    @property
    def about(self) -> str:
        """What the data are, in one paragraph."""
        named = ", ".join(condition.label or condition.name for condition in self.definition.conditions)
        return self.definition.package.description or (
            f"Answers of {self.who} in the study '{self.definition.slug}' of the paradigm "
            f"{self.definition.paradigm}. Conditions: {named}."
        )

    @property
    def who(self) -> str:
        return PROGRAMS.get(self.alone, "participants")

    @property
    def alone(self) -> str:
        """The only origin, if it is not people's; else empty."""
        origins = list(self.origins)
        return origins[0] if len(origins) == 1 and origins[0] in PROGRAMS else ""

    @property
    def notices(self) -> list[str]:
        """What must be said first of data that people did not give."""
        if self.alone:
            return [ALONE[self.alone]]
        return [MIXED[origin] for origin in self.origins if origin in MIXED]


def files(package: DataPackage) -> dict[str, str]:
    """Text by file name."""
    made = {"CITATION.cff": citation(package)}
    if package.definition.package.licence:
        made["LICENSE"] = licence(package)
    if package.columns:
        made["dataset_description.json"] = dataset_description(package)
    return {"README.md": readme(package, tuple(made)), **made}


def readme(package: DataPackage, others: Iterable[str]) -> str:
    """The package for a stranger, in Markdown; the first lines say which data are not people's."""
    study, content, shown = package.definition, package.content, _without_pictures(package.rows)
    first = [line for notice in package.notices for line in (notice, "")]
    scope = (
        "the sessions that screening kept, of one origin" if content.cleaned else "every session, kept or not"
    )
    lines = [
        *first,
        f"# {package.title}",
        "",
        package.about,
        "",
        f"Study `{study.slug}`, paradigm {study.paradigm}, seed {study.seed}; digest of the definition "
        f"`{package.digest}`. Exported on {package.on} by Legible {content.code_version}. It holds {scope}.",
        "",
        "## People",
        "",
        *_people(package),
        "",
        "## Files",
        "",
        "| file | rows | what it holds |",
        "|---|---|---|",
        *(f"| `{name}` | {rows:,} | {_row_of(name)} |" for name, rows in sorted(shown.items())),
        f"| `README.md`, {', '.join(f'`{name}`' for name in sorted(others))} | | what the package is |",
        "| `manifest.json` | | every file with its size, rows and SHA-256; what is left out |",
        "",
        "## Cells",
        "",
        NOTE,
        "",
        "## Origins and seals",
        "",
        "Origins are never mixed: choose one in the column `origin` before you compute anything.",
        "",
        *(
            f"- `{origin}`: {seal_of(content.origins[origin].facts, origin).sentence}"
            if origin in content.origins
            else f"- `{origin}`"
            for origin in package.origins
        ),
        "",
        "## Check it, and run it again",
        "",
        *(f"- {line}" for line in _again(package)),
        "",
        "## Licence and citation",
        "",
        *_terms(package),
    ]
    return "\n".join(lines) + "\n"


def _people(package: DataPackage) -> list[str]:
    study = package.definition
    words = study.recruitment.description
    told = (
        f'They were asked with these words: "{words}"' if words else "The study has no words of recruitment."
    )
    pay = (
        f"Those who finished were owed {study.reward.amount_cents / 100:.2f} {study.reward.currency} "
        f"for about {study.reward.expected_minutes:g} minutes."
    )
    ethics = f" Approval: {study.ethics.approval}." if study.ethics.approval else ""
    age = f"The minimum age was {study.ethics.minimum_age}. Contact: {study.ethics.contact}.{ethics}"
    return [told, "", f"{pay} {age} What they read and agreed to stands in `definition.json`."]


def _without_pictures(rows: Mapping[str, int]) -> dict[str, int]:
    """Rows by file, all pictures in one line."""
    count = sum(name.startswith(f"{PICTURES}/") for name in rows)
    shown = {name: n for name, n in rows.items() if not name.startswith(f"{PICTURES}/")}
    return {**shown, f"{PICTURES}/": count} if count else shown


def table_of(name: str) -> str:
    """The table that a file holds, in any format; "" if it holds none."""
    plain = name.removesuffix(".csv").removesuffix(".parquet").rpartition("_description-")[2]
    return next((table for table in TABLES if plain in (table, f"{table}_data")), "")


def _row_of(name: str) -> str:
    if table := table_of(name):
        return UNITS[table]
    if name.startswith("report-"):
        return "the report at the moment of the export"
    if name.startswith("table1-"):
        return "the report's first table, one row per line of it"
    return ROWS.get(name, "see the manifest")


def _again(package: DataPackage) -> list[str]:
    lines = [
        "`manage.py verify FOLDER` names every file that was changed, is missing or does not belong.",
    ]
    if STUDY_FILE not in package.rows:
        lines.append(
            "No report can be made from these files: what a report also needs names people who worked on the "
            "study, and this profile leaves it out."
        )
    elif package.content.tables:
        lines.append(
            "`manage.py report --from FOLDER --out REPORT` makes the report again from these files alone, "
            "without a database."
        )
    if "analysis.py" in package.rows:
        lines.append(
            "Without Legible: `python analysis.py` (numpy, pandas, scipy) or `Rscript analysis.R` (base R) "
            f"print the main table and the planned tests. Not re-run by them: {_not_re_run(package)}."
        )
    elif package.content.tables and not package.content.has_csv:
        lines.append("Scripts of the analysis read CSV: a package of the format csv or psychds has them.")
    else:
        lines.append(f"There is no script of its own for the paradigm {package.content.paradigm}.")
    return lines


def _not_re_run(package: DataPackage) -> str:
    """What the report has and the paradigm's scripts leave out, as they say themselves."""
    script = import_module(f"{scripts.__name__}.{package.content.paradigm}")
    return "; ".join(script.NOT_RE_RUN)


def _terms(package: DataPackage) -> list[str]:
    licence = package.definition.package.licence
    first = f"Licence: `{licence}`, see `LICENSE`." if licence else UNLICENSED
    return [first, "", "`CITATION.cff` says how to cite the data and the software."]


def licence(package: DataPackage) -> str:
    """The name of the licence and the place of its text."""
    name, whose = package.definition.package.licence, ", ".join(package.definition.package.authors)
    where = (
        "Its text comes from the authors: ask the contact in README.md."
        if name.startswith("LicenseRef-")
        else f"Its text: https://spdx.org/licenses/{name}.html"
    )
    lines = [f"SPDX-License-Identifier: {name}", "", f"{package.title}", *([f"By {whose}."] if whose else [])]
    return "\n".join([*lines, where]) + "\n"


def citation(package: DataPackage) -> str:
    """CITATION.cff 1.2.0. A text of JSON is one of YAML too, so that no title can break the file."""
    given = package.definition.package
    authors = given.authors or (f"The people who ran the study {package.definition.slug}",)
    lines = [
        "cff-version: 1.2.0",
        "message: If you use these data, please cite them as below, together with the software.",
        f"title: {_text(package.title)}",
        "type: dataset",
        "authors:",
        *(f"  - name: {_text(author)}" for author in authors),
        f"date-released: {package.on}",
        *(
            [f"license: {given.licence}"]
            if given.licence and not given.licence.startswith("LicenseRef-")
            else []
        ),
        *([f"doi: {_text(given.doi)}"] if given.doi else []),
        "identifiers:",
        "  - type: other",
        f"    value: {_text('sha256:' + package.digest)}",
        "    description: Digest of the study's definition",
        "references:",
        "  - type: software",
        f"    title: {_text(SOFTWARE)}",
        f"    version: {_text(package.content.code_version)}",
        "    authors:",
        "      - name: The Legible authors",
    ]
    return "\n".join(lines) + "\n"


def dataset_description(package: DataPackage) -> str:
    """The data set in the words of schema.org, as Psych-DS asks for it: every column of every table once."""
    given = package.definition.package
    measured: dict[str, dict[str, str]] = {}
    for column in (column for columns in package.columns.values() for column in columns):
        unit = {"unitText": column["unit"]} if column["unit"] else {}
        measured.setdefault(
            column["column"],
            {
                "@type": "PropertyValue",
                "name": column["column"],
                "description": column["meaning"],
                **unit,
            },
        )
    content: dict[str, Any] = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": package.title,
        "description": f"{ALONE[package.alone]} {package.about}" if package.alone else package.about,
        "schemaVersion": PSYCHDS,
        "version": package.digest,
        "dateCreated": str(package.on),
        "keywords": ["explainable AI", "psychophysics", package.content.paradigm],
        "variableMeasured": list(measured.values()),
    }
    if given.authors:
        content["author"] = [{"@type": "Person", "name": name} for name in given.authors]
    if given.licence:
        content["license"] = given.licence
    if given.doi:
        content["identifier"] = f"https://doi.org/{given.doi}"
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
