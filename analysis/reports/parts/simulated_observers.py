"""The simulated population, its frozen versions, and the results of each kind of observer side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from analysis.any_table.formats import NONE, percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Section
from experiments.simulation.versions import version_of, version_with, versions


def population(frames: Frames) -> list[Section]:
    """The mix of simulated people with version and digest of the observers, so that no reader has to guess
    it."""
    people = frames.participants[frames.participants["simulated_kind"] != ""]
    if people.empty:
        return []
    content: dict[str, dict[str, Any]] = {}
    rows = []
    for kind, same in people.groupby("simulated_kind"):
        content[str(kind)] = {"sittings": len(same), "kept": _kept_count(same)}
        for digest, answered in same.groupby("simulated_digest"):
            version = version_with(str(digest))
            number = version.number if version else None
            if digest:
                told = {"digest": str(digest), "version": number, "sittings": len(answered)}
                content[str(kind)].setdefault("answered", []).append(told)
            cells = (len(answered), _kept_count(answered), number or NONE, str(digest)[:12] or NONE)
            rows.append((str(kind), *map(str, cells)))
    table = Table(
        "population",
        "Observers by kind",
        ("Kind", "Sittings", "Kept", "Version", "Digest"),
        tuple(rows),
        "The digest is over the source and parameters that answered, taken when they came. With a version, "
        "they were frozen before the observers met these stimuli, if they were: what had been seen before "
        "stands with the version. A digest without a version was never frozen.",
    )
    return [Section("population", "The simulated population", content, _version_notes(content), (table,))]


def _kept_count(people: pd.DataFrame) -> int:
    return int((people["status"] == "passed").sum())


def _version_notes(content: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """What had been seen before each version that answered was frozen."""
    answered = {told["version"] for kind in content.values() for told in kind.get("answered", ())}
    return tuple(
        f"Version {version.number} ({', '.join(version.kinds)}), frozen {version.frozen}. "
        f"Seen before: {'; '.join(version.seen)}."
        for version in versions()
        if version.number in answered
    )


def by_observer(frames: Frames, facts: StudyFacts) -> list[Section]:
    """Accuracy by condition and observer, and whether the observers rank the methods alike; none if fewer
    than two kinds of observers were kept."""
    kept = frames.kept()
    scored = kept.trials[kept.trials["scored_index"].notna()]
    accuracy = scored.groupby("session")["matches_model"].mean().rename("accuracy")
    people = kept.participants.set_index("session")[["simulated_kind", "condition"]].join(
        accuracy, how="inner"
    )
    kinds = [k for k in sorted(people["simulated_kind"].unique()) if version_of(str(k)) is not None]
    if len(kinds) < 2:
        return []
    cells = {(c.name, kind): _cell(people, c.name, kind) for c in facts.conditions for kind in kinds}
    methods = [c.name for c in facts.conditions if c.role == "method"]
    means = {kind: {name: cells[name, kind]["accuracy"] for name in methods} for kind in kinds}
    content = [
        {"condition": c.name, "observers": {kind: cells[c.name, kind] for kind in kinds}}
        for c in facts.conditions
    ]
    rows = tuple(
        (c.label, *(_accuracy_cell(cells[c.name, kind]) for kind in kinds)) for c in facts.conditions
    )
    table = Table(
        "observers",
        "Accuracy (%) by observer, n in brackets",
        ("Condition", *kinds),
        rows,
        "Of the sittings that were kept.",
    )
    return [Section("observers", "Observers side by side", content, (agreement(means),), (table,))]


def _cell(people: pd.DataFrame, condition: str, kind: str) -> dict[str, Any]:
    values = people.loc[
        (people["condition"] == condition) & (people["simulated_kind"] == kind), "accuracy"
    ].astype("float64")
    return {"n": len(values), "accuracy": float(values.mean()) if len(values) else None}


def _accuracy_cell(cell: Mapping[str, Any]) -> str:
    return f"{percent(cell['accuracy'])} ({cell['n']})"


def agreement(means: Mapping[str, Mapping[str, float | None]]) -> str:
    """Whether all observers rank the methods alike: mean accuracy by observer and method."""
    methods = list(next(iter(means.values()), {}))
    pairs = list(combinations(methods, 2))
    rows = list(means.values())
    alike = sum(_is_alike([row[a] for row in rows], [row[b] for row in rows]) for a, b in pairs)
    if not pairs:
        return "There is one method at most, so nothing is ranked."
    if alike == len(pairs):
        return "All observers rank the methods alike."
    return (
        f"The observers rank the methods differently ({alike} of {len(pairs)} pairs stand in one order for "
        "all of them): the ranking is undecided."
    )


def _is_alike(first: Sequence[float | None], second: Sequence[float | None]) -> bool:
    """Whether every observer has the same one of two methods ahead; no value or a tie is no order."""
    signs = {
        0 if a is None or b is None or a == b else (1 if a > b else -1)
        for a, b in zip(first, second, strict=True)
    }
    return len(signs) == 1 and 0 not in signs
