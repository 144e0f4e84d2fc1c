"""The documentation as a site with search: `make site`, by Sphinx."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[([^\]]+)\]\(([^)#]+)\)")
MARK = "<!-- operations -->"

project = "Legible"
author = "the Legible authors"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    "docs/*.md",
    "docs/evidence/*.md",
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CHANGELOG.md",
]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "Legible"
html_show_sourcelink = False
html_extra_path = ["study.schema.json"]
html_copy_source = False
suppress_warnings = ["myst.header"]
# TOML of a study has dotted tables and our own comments; what the highlighter cannot read stays plain.
highlight_language = "none"


def operations(schema: dict[str, Any]) -> Iterator[str]:
    """Each operation of the document as a section: what it takes, and what it answers."""
    for path, verbs in schema["paths"].items():
        for verb, told in verbs.items():
            yield f"## {verb.upper()} {path}\n"
            yield f"{told.get('description', '').strip()}\n"
            body = told.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            if body:
                yield f"Takes `{_name(body)}`.\n"
            answers: dict[str, list[str]] = {}
            for status, answer in told["responses"].items():
                content = answer.get("content", {}).get("application/json", {}).get("schema")
                said = f"`{_name(content)}`" if content else "nothing"
                answers.setdefault(said, []).append(status)
            yield from (f"- {', '.join(statuses)}: {said}" for said, statuses in answers.items())
            yield ""
    yield "## Parts\n"
    for name, part in sorted(schema["components"]["schemas"].items()):
        yield f"### {name}\n"
        yield f"{part.get('description', '').strip()}\n"
        needed = set(part.get("required", ()))
        rows = [
            f"| `{field}` | {_name(told)} | {'yes' if field in needed else 'no'} | {_told(told)} |"
            for field, told in part.get("properties", {}).items()
        ]
        if rows:
            yield from ("| field | kind | always | |", "|---|---|---|---|", *rows, "")


def _name(part: dict[str, Any]) -> str:
    if "$ref" in part:
        return str(part["$ref"]).rpartition("/")[2]
    for many in ("oneOf", "anyOf", "allOf"):
        if many in part:
            return " or ".join(_name(each) for each in part[many])
    if part.get("type") == "array":
        return f"list of {_name(part.get('items', {}))}"
    return str(part.get("type", "any")) + (" or null" if part.get("nullable") else "")


def _told(part: dict[str, Any]) -> str:
    return " ".join(str(part.get("description", "")).split()).replace("|", "\\|")


def as_read(app: Any, name: str, source: list[str]) -> None:
    """A page as the site has it: folders of the source cannot be followed, so their names stay alone; the
    page about the API gets the operations of the document that `make site` writes."""
    here = (ROOT / name).parent
    source[0] = LINK.sub(lambda m: m[1] if (here / m[2]).is_dir() else m[0], source[0])
    if MARK in source[0]:
        schema = json.loads((ROOT / app.config.openapi).read_text())
        source[0] = source[0].replace(MARK, "\n".join(operations(schema)))


def setup(app: Any) -> dict[str, bool]:
    app.add_config_value("openapi", "var/schema.json", "env")
    app.connect("source-read", as_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
