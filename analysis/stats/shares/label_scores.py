"""Answers against labels: accuracy and F1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from analysis.stats import check
from analysis.stats.intervals_and_checks import Row, StatsError


@dataclass(frozen=True, slots=True)
class LabelScores:
    """`f1` is of the declared class, or the mean over all classes (macro) if `positive` is None. `absent`:
    classes that neither were right nor were answered; they count 0 in the macro mean, as in scikit-learn.
    """

    accuracy: float
    f1: float
    positive: str | None
    absent: tuple[str, ...]
    count: int

    def table(self) -> list[Row]:
        """One row, by the names of the fields; the absent classes are one text."""
        return [{**asdict(self), "absent": ", ".join(map(str, self.absent))}]


def label_scores(
    right: Sequence[str], answered: Sequence[str], classes: Sequence[str], positive: str | None = None
) -> LabelScores:
    """Scores of `answered` (n,) against `right` (n,), both among `classes`. F1 is of the `positive` class,
    or macro without such a class.

    Raises StatsError for no or unequal numbers of answers, fewer than two classes, or a label that is none of
    them.
    """
    for what, names in (("labels", right), ("answers", answered), ("classes", classes)):
        check.sequence(names, f"The {what}")
    if len(right) != len(answered) or not len(right):
        raise StatsError(
            f"There are {len(right)} labels and {len(answered)} answers; give as many, at least 1."
        )
    known = list(dict.fromkeys(classes))
    if len(known) < 2:
        raise StatsError(f"F1 needs at least 2 classes, got {len(known)}.")
    unknown = sorted({str(label) for label in (*right, *answered)} - {str(name) for name in known})
    if unknown or (positive is not None and positive not in known):
        strange = unknown[0] if unknown else positive
        raise StatsError(f"{strange!r} is none of the classes {', '.join(map(str, known))}.")
    scores = {name: _f1(right, answered, name) for name in known}
    absent = tuple(name for name in known if name not in right and name not in answered)
    f1 = scores[positive] if positive is not None else sum(scores.values()) / len(known)
    matched = sum(a == b for a, b in zip(right, answered, strict=True))
    return LabelScores(matched / len(right), f1, positive, absent, len(right))


def _f1(right: Sequence[str], answered: Sequence[str], name: str) -> float:
    hits = sum(a == b == name for a, b in zip(right, answered, strict=True))
    named = sum(label == name for label in right) + sum(label == name for label in answered)
    return 2 * hits / named if named else 0.0
