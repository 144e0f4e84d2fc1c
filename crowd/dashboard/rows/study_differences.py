"""What differs between two studies as they are frozen: each value by its place, and texts line by line."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.models import Study
from experiments.selectors import definition_of

NAMED_BY = ("name", "id", "key")
"""What tells the entries of a list apart, if they have it."""
LINES_MAX = 400


@dataclass(frozen=True, slots=True)
class Difference:
    """One place at which they differ. A value that is missing is empty; `lines` are of a text that both have,
    each with what it is: "+", "-", "@" or " "."""

    place: str
    here: str
    there: str
    lines: tuple[tuple[str, str], ...] = ()


def differences(here: Study, there: Study) -> list[Difference]:
    """In the order of the definitions; empty if they ask people the same. How people are recruited is no part
    of a definition, and a study's own name is no difference."""
    mine, theirs = (dict(_places(definition_of(study).as_met())) for study in (here, there))
    for places in (mine, theirs):
        places.pop("slug", None)
    every = [*mine, *(place for place in theirs if place not in mine)]
    return [
        _difference(place, mine.get(place), theirs.get(place))
        for place in every
        if mine.get(place) != theirs.get(place)
    ]


def facts(here: Study, there: Study) -> list[tuple[str, str, str]]:
    """What else tells whether people met the same: state, model and items; each for both."""
    items = [set(study.items.filter(copy_of=None).values_list("key", flat=True)) for study in (here, there)]
    shared = len(items[0] & items[1])
    mine, theirs = (f"{len(each):,}, of which {shared:,} in both" for each in items)
    rows = [("Items", mine, theirs)]
    for word, told in (
        ("State", lambda study: study.get_state_display()),
        ("Opened", lambda study: f"{study.opened_at:%Y-%m-%d}" if study.opened_at else "not yet"),
        ("Definition", lambda study: study.digest[:12]),
        ("Model", lambda study: str(study.predictor.get("key", ""))[:12] or "several or none"),
    ):
        rows.append((word, told(here), told(there)))
    return rows


def _difference(place: str, here: Any, there: Any) -> Difference:
    texts = [value for value in (here, there) if isinstance(value, str) and "\n" in value]
    if len(texts) < 2:
        return Difference(place, _short_text(here), _short_text(there))
    lines = list(difflib.unified_diff(here.splitlines(), there.splitlines(), lineterm="", n=1))[2:]
    return Difference(place, "", "", tuple((line[:1], line[1:]) for line in lines[:LINES_MAX]))


def _short_text(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]} …"


def _places(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that holds no others, by its place: conditions.saliency.slots."""
    if isinstance(value, Mapping) and value:
        parts: Iterator[tuple[str, Any]] = ((str(key), part) for key, part in value.items())
    elif isinstance(value, Sequence) and not isinstance(value, str) and _is_tables(value):
        parts = ((_name(part, at), part) for at, part in enumerate(value, 1))
    else:
        yield place, value
        return
    for name, part in parts:
        yield from _places(part, f"{place}.{name}" if place else name)


def _is_tables(value: Sequence[Any]) -> bool:
    return bool(value) and all(isinstance(part, Mapping) for part in value)


def _name(part: Mapping[str, Any], at: int) -> str:
    return next((str(part[key]) for key in NAMED_BY if key in part), str(at))
