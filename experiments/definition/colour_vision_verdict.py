"""What a person's answers to the plates of the colour check say: pure, from rows and answers.

A screen shows no calibrated colours, so this is no diagnosis. It decides which part of a study a person may
take, and is stored nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Any, Literal

Vision = Literal["ordinary", "reduced", "unclear", "skipped"]
Eyes = Literal["ordinary", "reduced"]
GATE = "plates"
"""The name of the gate that asks, and of its consent."""
FILTER = "filter"
"""The question about filters of the screen, by its id among the answers."""
OFF, ON, UNKNOWN = "off", "on", "unknown"
NOTHING = "nothing"
"""The answer of a person who sees no digit."""
ORDINARY_SHARE_MIN, REDUCED_SHARE_MAX = 0.9, 0.64
"""At least this share of the plates of colours is read by people of ordinary colour vision, and at most that
one by people with a deficiency; a number between the two tells nothing. They are the limits of Ishihara's
test in its edition of 14 plates: of 11, 10 or more are ordinary and 7 or fewer deficient. The lower one is
that of the editions of 24 (9 of 15) and 38 plates (13 of 21) as well; the upper one is stricter than theirs
(13 of 15, 17 of 21), as an expert has to see what other people cannot.
"""
ROUNDING = 1e-9
"""0.9 of 10 plates are 9, although the product of decimal numbers may lie beside it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Shares (0-1) of the plates of colours that are read: the least of ordinary eyes, the most of others."""

    ordinary_share_min: float = ORDINARY_SHARE_MIN
    reduced_share_max: float = REDUCED_SHARE_MAX

    def counts(self, plates: int) -> tuple[int, int]:
        """The fewest that an ordinary person reads of so many, and the most of a person with a deficiency."""
        least = ceil(self.ordinary_share_min * plates - ROUNDING)
        return least, floor(self.reduced_share_max * plates + ROUNDING)


def vision_from_answers(
    rows: Sequence[Mapping[str, Any]], answers: Mapping[str, Any], limits: Limits = Limits()
) -> Vision:
    """What the answers say. `rows` are a study's plates with `id`, `answer` and `control`; `answers` maps ids
    to values, and has none if the check was left out.

    - skipped: there is no answer.
    - unclear: an answer is missing; a control, which differs in lightness and is read by all people, was not
      read; a filter changes the colours of the screen; or the number read lies between the limits.
    - A person who does not know of a filter may have one. It can hide what an ordinary eye sees, and shows no
      eye what it cannot see: then ordinary stays ordinary, and reduced is unclear.
    """
    if not answers:
        return "skipped"
    if answers.get(FILTER) not in (OFF, UNKNOWN) or any(not answers.get(row["id"]) for row in rows):
        return "unclear"
    read = {row["id"]: answers[row["id"]] == row["answer"] for row in rows}
    if not all(read[row["id"]] for row in rows if row["control"]):
        return "unclear"
    coloured = [row["id"] for row in rows if not row["control"]]
    ordinary, reduced = limits.counts(len(coloured))
    count = sum(read[name] for name in coloured)
    if count >= ordinary:
        return "ordinary"
    return "reduced" if count <= reduced and answers[FILTER] == OFF else "unclear"
