"""The flow of participants as a drawing (CONSORT): every box is the sum of the boxes that it leads to."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import partial
from textwrap import wrap
from typing import Any

import pandas as pd

from analysis.facts import SlotFacts, StudyFacts
from analysis.frames import by_hand
from analysis.reports.base import Data, Figure
from analysis.reports.drawing.figure_files import INK
from analysis.reports.drawing.figures import Look, canvas
from experiments.paradigms.screening import rule_word

BEFORE_WORDS = {"declined": "did not consent", "gates": "still at the gates, or gone"}
AFTER_WORDS = {"incomplete": "left", "withdrawn": "withdrew", "screened": "excluded"}
RUNNING = "not finished or not judged yet"
LEFT_OUT = "left out by hand"
WIDTH, LINE, PAD = 7.2, 0.155, 0.14
COLUMNS = ((0.25, 2.05), (2.55, 3.0), (5.8, 1.3))
"""Left end and width, in inches, of the boxes of a group: assigned, lost, analysed."""
LETTERS = 48


def consort_content(
    people: pd.DataFrame, facts: StudyFacts, members: Mapping[str, pd.Series]
) -> dict[str, Any]:
    """Counts of the boxes. `people` are those who count, `members` tells which of them have a slot of each
    group. A person who broke several rules stands under the first.
    """
    claimed = people["claimed_at"].notna()
    refused = _count_reasons(people[~claimed], BEFORE_WORDS)
    groups = [_group(people[claimed & members[group.key]], group) for group in facts.slots]
    return {
        "arrived": len(people),
        "not_assigned": {"n": int((~claimed).sum()), "reasons": refused},
        "assigned": int(claimed.sum()),
        "groups": groups,
        "lost": sum(group["lost"] for group in groups),
        "analysed": sum(group["analysed"] for group in groups),
    }


def _group(people: pd.DataFrame, group: SlotFacts) -> dict[str, Any]:
    is_analysed = (people["status"] == "passed") & ~by_hand(people)
    reasons = _count_reasons(people[~is_analysed], AFTER_WORDS)
    return {
        "group": group.key,
        "label": group.label,
        "assigned": len(people),
        "lost": int((~is_analysed).sum()),
        "reasons": reasons,
        "analysed": int(is_analysed.sum()),
    }


def _count_reasons(people: pd.DataFrame, words: Mapping[str, str]) -> list[dict[str, Any]]:
    pairs = zip(people["status"], people["reasons_detail"], strict=True)
    counts = Counter(_reason(str(status), str(text), words) for status, text in pairs)
    return [{"reason": reason, "n": n} for reason, n in sorted(counts.items(), key=lambda c: (-c[1], c[0]))]


def _reason(status: str, reasons: str, words: Mapping[str, str]) -> str:
    if status == "passed":
        return LEFT_OUT
    broken = json.loads(reasons or "[]")
    if broken and status not in ("incomplete", "withdrawn", "declined"):
        word = rule_word(str(broken[0]["rule"]))
        return word[:1].lower() + word[1:]
    return words.get(status, status.replace("_", " ") if words is BEFORE_WORDS else RUNNING)


def consort_figure(content: Mapping[str, Any], look: Look, note: str = "") -> Figure:
    by = "Each person is counted once, under the first rule that decided."
    return Figure(
        "flow",
        f"Flow of {look.many}; analysed: n = {look.counted(content['analysed'])}. {by} {note}".rstrip(),
        "Flow of participants from arrival to analysis; the numbers stand in the tables below.",
        partial(draw, content, look),
        consort_data(content),
        leads=True,
    )


def consort_data(content: Mapping[str, Any]) -> Data:
    """One row per box, and per reason within a box."""
    refused = content["not_assigned"]
    rows: list[tuple[str | float | None, ...]] = [
        ("", "arrived", "", content["arrived"]),
        ("", "not_assigned", "", refused["n"]),
        *(("", "not_assigned", each["reason"], each["n"]) for each in refused["reasons"]),
        ("", "assigned", "", content["assigned"]),
    ]
    for group in content["groups"]:
        rows.append((group["label"], "assigned", "", group["assigned"]))
        rows.append((group["label"], "lost", "", group["lost"]))
        rows += [(group["label"], "lost", each["reason"], each["n"]) for each in group["reasons"]]
        rows.append((group["label"], "analysed", "", group["analysed"]))
    rows.append(("", "analysed", "", content["analysed"]))
    return Data(("group", "box", "reason", "n"), tuple(rows))


def draw(content: Mapping[str, Any], look: Look) -> Any:
    """Arrival and assignment above; below them one line of boxes per group."""
    groups = content["groups"]
    refused = _reason_lines("Not assigned", content["not_assigned"]["n"], content["not_assigned"]["reasons"])
    lost = [_reason_lines("Lost", group["lost"], group["reasons"]) for group in groups]
    tall = [_height(lines) for lines in lost]
    first = _height(refused)
    height = first + 0.95 + sum(tall) + 0.16 * len(groups) + 0.65
    figure, axes = canvas(WIDTH, height + (0.25 if look.stamp else 0.0), look)
    axes.set_axis_off()
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(height, 0)
    _box(axes, (0.0, 2.3), (0.05, first), [f"Arrived: n = {content['arrived']}"], bold=True)
    _box(axes, (2.8, 4.3), (0.05, first), refused)
    _arrow(axes, (2.3, 0.05 + first / 2), (2.8, 0.05 + first / 2))
    y = first + 0.3
    _arrow(axes, (1.15, first + 0.05), (1.15, y))
    _box(axes, (0.0, 2.3), (y, 0.4), [f"Assigned: n = {content['assigned']}"], bold=True)
    top, y = y + 0.4, y + 0.65
    for group, lines, space in zip(groups, lost, tall, strict=True):
        middle = y + space / 2
        colour = look.colours.get(group["group"], INK)
        (left, wide), (between, broad), (right, narrow) = COLUMNS
        _box(axes, (left, wide), (y, space), [group["label"], f"n = {group['assigned']}"], colour=colour)
        _box(axes, (between, broad), (y, space), lines)
        _box(axes, (right, narrow), (y, space), ["Analysed", f"n = {group['analysed']}"], colour=colour)
        _arrow(axes, (0.1, middle), (left, middle))
        _arrow(axes, (left + wide, middle), (between, middle))
        _arrow(axes, (between + broad, middle), (right, middle))
        y += space + 0.16
    if groups:
        axes.plot([0.1, 0.1], [top, y - 0.16 - tall[-1] / 2], color="#666666", linewidth=0.9)
    _box(axes, (COLUMNS[1][0], WIDTH - 0.1 - COLUMNS[1][0]), (y + 0.04, 0.36), [_sums(content)], bold=True)
    return figure


def _sums(content: Mapping[str, Any]) -> str:
    return f"Lost: n = {content['lost']}   Analysed: n = {content['analysed']}"


def _reason_lines(what: str, n: int, reasons: list[dict[str, Any]]) -> list[str]:
    told = "; ".join(f"{each['reason']} {each['n']}" for each in reasons)
    return [f"{what}: n = {n}", *wrap(told, LETTERS)]


def _height(lines: list[str]) -> float:
    return PAD + LINE * max(2, len(lines)) + 0.04


def _box(
    axes: Any,
    across: tuple[float, float],
    down: tuple[float, float],
    lines: list[str],
    *,
    colour: str = "#666666",
    bold: bool = False,
) -> None:
    from matplotlib.patches import Rectangle

    corner = (across[0], down[0])
    axes.add_patch(Rectangle(corner, across[1], down[1], facecolor="white", edgecolor=colour, linewidth=1.1))
    weight = "bold" if bold else "normal"
    words = {"va": "center", "fontsize": 8.5, "weight": weight, "linespacing": 1.25}
    axes.text(across[0] + 0.09, down[0] + down[1] / 2, "\n".join(lines), **words)


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "#666666", "linewidth": 0.9})
