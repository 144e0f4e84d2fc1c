"""What a model knows of the pictures or texts that people will see, by its answers alone.

Answers and truths in, numbers out. Accuracy always stands beside what the same answers would get if they were
dealt out to other pictures: a model that says one word throughout is right as often as that word is true.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from stimuli.quality.normalisation_probe import Probe

LEVEL = 0.95
ONE_ANSWER_SHARE = 0.95
"""From here on, a model gives one answer to nearly all items."""
DIM_RANGE = 25
"""Pictures whose levels (0-255) differ by no more show hardly anything."""
FLAT_RANGE = 0.10
"""Answers whose probabilities differ by less than this between any two items hardly depend on the item."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """`right` of `of` items; `low` and `high` are Wilson's 95 % interval of the share, which counts items of
    one group for as many as they are worth. `guessing` (0-1) is the share that the same answers would get if
    they were dealt out to other items. Without items the interval is 0 to 1.
    """

    right: int
    of: int
    low: float
    high: float
    guessing: float

    @property
    def share(self) -> float:
        return self.right / self.of if self.of else float("nan")

    @property
    def is_above_guessing(self) -> bool:
        return self.low > self.guessing

    @property
    def is_below_guessing(self) -> bool:
        return self.high < self.guessing

    def __str__(self) -> str:
        if not self.of:
            return "none"
        interval = f"95 % interval {self.low:.2f} to {self.high:.2f}"
        return f"{self.share:.2f} ({self.right} of {self.of}; {interval})"


@dataclass(frozen=True, slots=True)
class LabelExchange:
    """How often a model would be right if its labels were exchanged as `named` says: (label, what it would
    stand for). The exchange is read off one half of the groups and judged on the other, both ways.
    """

    accuracy: Accuracy
    named: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ColourCounts:
    """Pictures whose colour profile is not sRGB, read the other way too: of `pictures`, `answers` have
    another answer of the model then, and `labels` another label that people see. The study reads them by
    `colour`; `training` is how those of the network's training were read, "" if it is not known."""

    pictures: int
    answers: int
    labels: int
    colour: str
    training: str = ""


@dataclass(frozen=True, slots=True)
class ModelLook:
    """What one model says of people's items, and what is known of it.

    `table` counts items by (truth, answer), in the words of the study. `asked` are the items that people may
    meet; `outside` is the number of those left out, for the model names a class that the study lacks.
    `commonest` is the answer that it gives most, `commonest_share` how often (0-1). `probability_range` is
    the largest difference (0-1) between items in the probability of an answer. `held_out` is (right, of) on
    items that were kept from its training, `published` a declared share; None if not known. `untouched` says
    that all its normalisation layers stand as they are made. `cropped` holds the mean and the largest share
    of a picture that the view leaves out. `dim` is how many of the pictures asked use a tenth of their levels
    at most, with the darkest and the lightest level (0-255) of these. `colours` is what colour profiles
    change, None if no picture has one that is not sRGB. `grey` is how many of the pictures asked have no
    colour. `mean` and `std` are the declared ones, () for texts. `better` is another normalisation under
    which it is right more often, if one was found. `cast_from` names precisions of stored weights that were
    cast to float32, "" if none were, `name_prefix` what was taken off the names of its weights;
    `is_multi_label` says that each label had a yes or no of its own in training.
    """

    labels: tuple[str, ...]
    table: tuple[tuple[str, str, int], ...]
    asked: Accuracy
    outside: int
    commonest: str
    commonest_share: float
    probability_range: float
    held_out: Accuracy | None = None
    published: float | None = None
    untouched: bool = False
    cropped: tuple[float, float] = (0.0, 0.0)
    grey: int = 0
    dim: tuple[int, int, int] = (0, 0, 0)
    colours: ColourCounts | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    relabelled: LabelExchange | None = None
    better: Probe | None = None
    cast_from: str = ""
    name_prefix: str = ""
    is_multi_label: bool = False

    @property
    def is_one_answer(self) -> bool:
        return self.commonest_share >= ONE_ANSWER_SHARE

    @property
    def is_flat(self) -> bool:
        return self.probability_range < FLAT_RANGE

    @property
    def is_unknowing(self) -> bool:
        """Whether the model is right as often as guessing, and shows in another way that it is not meant so:
        a model may be wrong on people's pictures by design, but then its answers differ between them.
        """
        if self.asked.of == 0:
            return self.outside > 0
        parts = [self.asked, *([self.held_out] if self.held_out else [])]
        known = any(part.is_above_guessing for part in parts)
        signs = self.is_one_answer or self.is_flat or self.untouched
        return signs and not known and not self.asked.is_below_guessing


def accuracy_of(truths: Sequence[str], answers: Sequence[str], groups: Sequence[str]) -> Accuracy:
    """How often answers are true. Three sequences of one length: truth, answer and group of each item.

    Items of one group (crops of a photograph) are right or wrong together: the interval has the effective
    number of items [Korn and Graubard 1998], which is all of them if each has a group of its own.
    """
    count = len(truths)
    right = np.array([truth == answer for truth, answer in zip(truths, answers, strict=True)], np.float64)
    said, true = Counter(answers), Counter(truths)
    guessing = sum(said[name] * true[name] for name in said) / count**2 if count else float("nan")
    low, high = _wilson(float(right.sum()), count, effective(right, groups))
    return Accuracy(int(right.sum()), count, low, high, guessing)


def accuracy_of_counts(right: int, of: int, guessing: float) -> Accuracy:
    """The same for counts that were made elsewhere, items taken as independent."""
    low, high = _wilson(right, of, of)
    return Accuracy(right, of, low, high, guessing)


def effective(right: NDArray[np.float64], groups: Sequence[str]) -> float:
    """The number of independent items that tell as much as these: at most all of them."""
    count, share = len(right), float(right.mean()) if len(right) else 0.0
    if not 0 < share < 1:
        return float(len(set(groups)))
    sums: defaultdict[str, float] = defaultdict(float)
    for value, group in zip(right - share, groups, strict=True):
        sums[group] += value
    variance = sum(value**2 for value in sums.values()) / count**2
    return min(float(count), share * (1 - share) / variance) if variance else float(count)


def _wilson(right: float, of: int, worth: float) -> tuple[float, float]:
    """Wilson's score interval of right / of, at a sample size of `worth`."""
    if not of:
        return 0.0, 1.0
    z, share = NormalDist().inv_cdf((1 + LEVEL) / 2), right / of
    centre = share + z**2 / (2 * worth)
    half = z * float(np.sqrt(share * (1 - share) / worth + z**2 / (4 * worth**2)))
    scale = 1 + z**2 / worth
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def confusion(truths: Sequence[str], answers: Sequence[str]) -> tuple[tuple[str, str, int], ...]:
    """(truth, answer, items), sorted; what does not occur is left out."""
    counts = Counter(zip(truths, answers, strict=True))
    return tuple((truth, answer, count) for (truth, answer), count in sorted(counts.items()))


def best_label_exchange(
    truths: Sequence[str], answers: Sequence[str], groups: Sequence[str]
) -> LabelExchange | None:
    """How often the best exchange of labels is right on items that it was not read off; None if the best one
    is to leave the labels alone, or there are fewer than two groups.
    """
    names = list(dict.fromkeys(groups))
    if len(names) < 2:
        return None
    named = _assign_labels(truths, answers)
    if all(answer == truth for answer, truth in named.items()):
        return None
    first = set(names[::2])
    exchanged = [""] * len(truths)
    for side in (True, False):
        learnt = [place for place, group in enumerate(groups) if (group in first) == side]
        exchange = _assign_labels([truths[place] for place in learnt], [answers[place] for place in learnt])
        for place, group in enumerate(groups):
            if (group in first) != side:
                exchanged[place] = exchange.get(answers[place], "")
    return LabelExchange(accuracy_of(truths, exchanged, groups), tuple(sorted(named.items())))


def _assign_labels(truths: Sequence[str], answers: Sequence[str]) -> dict[str, str]:
    """Answer -> truth, one to one, so that most items are right."""
    from scipy.optimize import linear_sum_assignment

    true, said = sorted(set(truths)), sorted(set(answers))
    # Among equally good exchanges, the one that leaves most labels alone.
    table = np.array([[0.5 / len(truths) if answer == truth else 0.0 for truth in true] for answer in said])
    for truth, answer in zip(truths, answers, strict=True):
        table[said.index(answer), true.index(truth)] += 1
    rows, columns = linear_sum_assignment(table, maximize=True)
    return {said[row]: true[column] for row, column in zip(rows, columns, strict=True)}


def probability_range(logits: NDArray[np.float64]) -> float:
    """The largest difference, over answers, between the probabilities (softmax) of an answer for two items.

    `logits` (N, K); 0 for fewer than two items.
    """
    if len(logits) < 2:
        return 0.0
    powers = np.exp(logits - logits.max(1, keepdims=True))
    shares = powers / powers.sum(1, keepdims=True)
    return float(np.ptp(shares, axis=0).max())
