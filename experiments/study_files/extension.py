"""Extensions: a later study that adds conditions to an earlier one, its parent, and asks the same.

An extension's file names only what is its own: conditions, how people are recruited, and how the two are
compared. All else is the parent's. A few people meet the parent's baseline again, the bridge: without
them nothing could tell the methods from the people who came another time.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from experiments.errors import Problem, StudyError

KEY = "extends"
BRIDGE = 15
"""Places of the baseline in an extension whose file names none."""
PLAN = "preregistration"
"""What an extension declares of its analysis is its own, and what its parent declared is not taken over."""
OWN = frozenset({"slug", "title", KEY, "extension", "conditions", PLAN, "recruitment", "platforms"})
"""What an extension's file may hold; all other tables are the parent's."""
APART = OWN - {"recruitment", "platforms"}
"""Where the stored definitions of parent and extension may differ."""
FOLDERS = "in the folder beside this study's, or among the shipped studies"


def parent_path(path: Path, raw: Mapping[str, Any], shipped: Path) -> Path | None:
    """The parent's file, in the folder beside the extension's or among the shipped studies; None if the study
    extends none. Raises StudyError if there is no such file."""
    slug = raw.get(KEY)
    if not slug:
        return None
    for folder in (path.resolve().parent.parent, shipped):
        if (place := folder / str(slug) / "study.toml").is_file():
            return place
    raise StudyError(
        f"{path}: extends = {slug!r}, but there is no {slug}/study.toml {FOLDERS}. Put the parent's folder "
        "there, or correct the name."
    )


def extend_tables(
    raw: Mapping[str, Any], parent: Mapping[str, Any], problems: list[Problem]
) -> dict[str, Any]:
    """The extension's tables, completed by the parent's; what may not be is added to `problems`."""
    slug = str(raw[KEY])
    if KEY in parent:
        problems.append(
            Problem(
                KEY, repr(slug), f"is an extension itself, of {parent[KEY]!r}", f"Extend {parent[KEY]!r}."
            )
        )
    for key in sorted(set(raw) - OWN):
        problems.append(
            Problem(key, "", f"comes from {slug!r}, which is extended", "Remove it, or start a new study.")
        )
    whole = {
        **{key: value for key, value in parent.items() if key != PLAN},
        **{key: value for key, value in raw.items() if key in OWN},
    }
    problems.extend(_condition_problems(raw, parent))
    rows = [row for row in _rows(raw) if isinstance(row, Mapping)]
    bridge = [{**row, "slots": BRIDGE} for row in _rows(parent) if row.get("role") == "baseline"]
    has_bridge = any(row.get("role") == "baseline" for row in rows)
    whole["conditions"] = rows if has_bridge else [*bridge, *rows]
    recruitment = whole.get("recruitment", {})
    if isinstance(recruitment, Mapping):
        excludes = list(recruitment.get("excludes", ()))
        whole["recruitment"] = {**recruitment, "excludes": list(dict.fromkeys([*excludes, slug]))}
    return whole


def _rows(raw: Mapping[str, Any]) -> list[Any]:
    rows = raw.get("conditions", [])
    return rows if isinstance(rows, list) else []


def _condition_problems(raw: Mapping[str, Any], parent: Mapping[str, Any]) -> Iterator[Problem]:
    """The bridge is the parent's baseline but for its places; all other names are new."""
    known = {row["name"]: row for row in _rows(parent)}
    added = 0
    for index, row in enumerate(row for row in _rows(raw) if isinstance(row, Mapping)):
        name, before = row.get("name"), known.get(row.get("name"))
        if row.get("role") != "baseline":
            added += 1
            if before is not None:
                yield Problem(
                    f"conditions.{index}.name",
                    repr(name),
                    f"is a condition of {raw[KEY]!r} already",
                    "Give what is new a name of its own; only the baseline is met again.",
                )
        elif before is None or {**before, "slots": 0} != {**row, "slots": 0}:
            yield Problem(
                f"conditions.{index}",
                repr(name),
                f"is not the baseline of {raw[KEY]!r}",
                "Copy that row and change its slots alone, or leave it out.",
            )
    if not added:
        yield Problem("conditions", "", f"adds no condition to {raw[KEY]!r}", "Add [[conditions]].")


def read_parent(path: Path) -> dict[str, Any]:
    """The parent's tables. Raises StudyError if they cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StudyError(f"{path}: the extended study cannot be read ({error}). Mend that file.") from error
