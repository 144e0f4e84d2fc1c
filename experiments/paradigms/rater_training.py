"""The training of raters: which planted cases a study shows before its ratings, and which answers fit them.

Raters are taught, not normed: a question is trained only with cases whose answer is plain, and no case is
plain for trust. A question of a study's own invention is not trained, for nothing is known of its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from experiments.definition.study import StudyDefinition
from experiments.design.rng import Streams
from experiments.kinds.rate import SCALE
from experiments.paradigms.rating import STANDARD, RatingDesign
from stimuli.explainers import kind_of

if TYPE_CHECKING:
    from stimuli.render.rater_training_cases import Case

Form = Literal["map", "concepts"]
Comparison = Literal["same", "moved"]
"""Both explanations of a pair are equal, or that of the copy marks the other object."""
FITTING = 2
"""Points at an end of the scale that fit: the end itself and its neighbour."""

CASES: Mapping[Form, Mapping[str, tuple[tuple[Case, bool], ...]]] = {
    "map": {
        "q1": (("object", True), ("elsewhere", False), ("empty", False)),
        "q3": (("object", True), ("noise", False)),
        "q4": (("object", True), ("noise", False)),
    },
    "concepts": {"q1": (("object", True), ("elsewhere", False))},
}
"""By form and question the cases, and whether the upper end of the scale fits."""
PAIRS: tuple[tuple[Comparison, bool], ...] = (("same", False), ("moved", True))


@dataclass(frozen=True, slots=True)
class TrainingQuestion:
    """A question of the training: about what it asks, what is shown, and whether the upper end fits."""

    question: str
    form: Form
    case: Case | Comparison
    is_high: bool

    @property
    def accepted(self) -> tuple[str, ...]:
        """The points of the scale that fit."""
        return SCALE[-FITTING:] if self.is_high else SCALE[:FITTING]


def planted_cases(definition: StudyDefinition) -> tuple[TrainingQuestion, ...]:
    """The questions of a study's training, in an order drawn by its seed; none if no case is plain for what
    it asks.

    Only questions that the study asks. The case of a question whose `reverse` differs from PASTA's is judged
    by the other end of the scale. Explanations are of the forms that the study shows, but maps if it shows
    neither maps nor weights of concepts.
    """
    made = list(_training_questions(definition))
    order = Streams(definition.seed)("training").permutation(len(made))
    return tuple(made[place] for place in order)


def _training_questions(definition: StudyDefinition) -> Iterator[TrainingQuestion]:
    rows = {
        row.id: row.reverse != STANDARD[row.id].reverse
        for row in RatingDesign.model_validate(definition.design).rows
        if row.id in STANDARD and row.pair == STANDARD[row.id].pair
    }
    forms = _forms(definition)
    for form in forms:
        for question, cases in CASES[form].items():
            for case, is_high in cases if question in rows else ():
                yield TrainingQuestion(question, form, case, is_high is not rows[question])
    pairs = [name for name in rows if STANDARD[name].pair]
    for place, name in enumerate(pairs):
        # Two questions share the comparisons; a single one gets both, so that no end always fits.
        for comparison, is_high in PAIRS if len(pairs) == 1 else PAIRS[place : place + 1]:
            yield TrainingQuestion(name, forms[0], comparison, is_high is not rows[name])


def _forms(definition: StudyDefinition) -> tuple[Form, ...]:
    kinds = {kind_of(c.explainer.component()) for c in definition.conditions if c.explainer is not None}
    has_concepts = "concept" in kinds
    return (*(("map",) if kinds != {"concept"} else ()), *(("concepts",) if has_concepts else ()))
