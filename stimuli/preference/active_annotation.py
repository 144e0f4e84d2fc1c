"""Active annotation: which explanations are rated next.

Those about which an ensemble of heads disagrees most. They are harder than others, so how good a scorer is
must be told by a sample that was drawn at random before.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import BadRatings
from stimuli.preference.prediction_agreement import Floats

Rows = NDArray[np.int64]


def disagreement(answers: Floats, questions: Sequence[str]) -> Floats:
    """How far the heads of a question lie apart, mean over questions: float64 (n,) of predicted ratings
    (n, H). Raises BadRatings if a question has one head."""
    names = list(dict.fromkeys(questions))
    columns = [[place for place, name in enumerate(questions) if name == wanted] for wanted in names]
    if any(len(places) < 2 for places in columns):
        raise BadRatings(
            "the scorer has one head for a question, so nothing can differ: fit it with --runs 5"
        )
    return np.asarray(np.mean([answers[:, places].std(axis=1, ddof=1) for places in columns], axis=0))


def rated_next(spread: Floats, is_rated: NDArray[np.bool_], count: int) -> Rows:
    """The `count` rows without a rating of the largest `spread` (n,), the largest first; equal ones in their
    order."""
    order = np.argsort(-spread, kind="stable")
    return np.asarray([row for row in order if not is_rated[row]][:count], dtype=np.int64)
