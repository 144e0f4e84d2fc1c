"""Methods that say which words of a text a decision rests on.

What is explained is the subject's target, which studies set to the predicted class. Values are signed, one
per word of the text (see `words` of the predictor), or per unit if the study declares units; those that are
not marked have 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
from pydantic import Field

from stimuli.errors import NotApplicable
from stimuli.explainers.base import Kind, follow_output
from stimuli.explainers.controls.inner_method import OfMethod
from stimuli.explainers.text.lime import agreement, drawn_rows, fit_words
from stimuli.explainers.text.removable_words import Span, Words, largest, says_nothing, scatter_values
from stimuli.explainers.text.shapley import all_coalitions, drawn_coalitions
from stimuli.planner.asks import Steps, TextGradient, TextScores
from stimuli.planner.values import Floats, Operator, Subject, TextTrace
from stimuli.registry import parameters
from stimuli.types import TokenAttribution

MASK_WORD = "UNKWORDZ"
"""What lime puts in the place of a hidden word if the place is to stay."""


class HasWords(Protocol):
    """A text predictor, as far as these methods ask it themselves."""

    def words(self, text: str) -> tuple[Span, ...]: ...


def units_of(predictor: HasWords, subject: Subject) -> tuple[Span, ...]:
    """What can be marked of the subject: the units that its study declares, else the predictor's words."""
    return predictor.words(subject.text) if subject.units is None else subject.units


class AnyText:
    """A method that explains every text predictor."""

    __slots__ = ()
    kind: ClassVar[Kind] = "text"

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable for a predictor of pictures."""
        if not hasattr(predictor, "text_logits"):
            raise NotApplicable(
                "this method explains texts, but the predictor takes pictures: choose another"
            )

    def follow(self, operator: Operator) -> None:
        """Accept every number: what the planner answers is that of the subject."""


@parameters
class LimeText(AnyText):
    """A linear model of the target's probability around the text; its `top` words are marked. Signed.

    `samples` copies hide random words; they count the more, the nearer they are (kernel of `kernel_width` on
    100 times the cosine distance). If all copies have the same score except for rounding, nothing is marked.
    `feature_selection` is lime's: "auto" adds one word after the other up to 6 words, and takes the largest
    weights of the full model above. With `bow` all places of a word are hidden and marked together, and
    hidden words are removed; without, each place is for itself and becomes `mask_word`. The draws are those
    of the package lime 0.2.0.1, seeded by the text's key and the seed.

    Checks: `fit`, the share of variance that the linear model explains; with `stability_runs` more runs with
    other seeds `stability`, the mean share of marked words that two runs have in common, beside
    `stability_by_chance`, what random marks would have. [Ribeiro, Singh and Guestrin 2016]
    """

    version: ClassVar[int] = 2
    output: ClassVar[str] = "probability"
    samples: Annotated[int, Field(ge=10, le=20000)] = 500
    top: Annotated[int, Field(ge=1, le=100)] = 3
    kernel_width: Annotated[float, Field(ge=0.1, le=1000.0)] = 25.0
    feature_selection: Literal["auto", "highest_weights", "forward_selection"] = "auto"
    bow: bool = True
    mask_word: str = MASK_WORD
    stability_runs: Annotated[int, Field(ge=0, le=50)] = 0

    def follow(self, operator: Operator) -> None:
        """NotApplicable unless the study explains the probability."""
        if operator != "probability":
            raise NotApplicable(
                f"LimeText explains the probability, and the study a {operator}: use 'shap_text' with output "
                "= 'log_odds', or 'input_gradient_text'"
            )

    def explain(self, predictor: HasWords, subject: Subject) -> Steps:
        mask = "" if self.bow else self.mask_word
        words = Words(subject.text, units_of(predictor, subject), together=self.bow, mask=mask)
        if not words.count:
            return words.attribution([], {})
        runs = [
            drawn_rows(words.count, self.samples, lime_seed(subject, run))
            for run in range(1 + self.stability_runs)
        ]
        answers = yield tuple(TextScores(words.all_shown(rows)) for rows in runs)
        selection = self.feature_selection
        fits = [
            fit_words(rows, scores[:, subject.target], self.top, self.kernel_width, selection)
            for rows, scores in zip(runs, answers, strict=True)
        ]
        checks = {"fit": fits[0].share}
        if self.stability_runs:
            checks["stability"] = agreement([fit.chosen for fit in fits])
            marked = min(self.top, words.count) / words.count
            checks["stability_by_chance"] = marked if fits[0].chosen else 1.0
        return words.attribution(fits[0].values, checks)


def lime_seed(subject: Subject, run: int) -> int:
    """The seed of run `run`, 0 the one that is shown: a function of the text's key and the study's seed."""
    return int(subject.draws("lime text", run).integers(1 << 32))


@parameters
class ShapText(AnyText):
    """What each word adds to the score, shared fairly (Shapley values). Signed.

    Texts of up to `exact_words` words are scored with every subset of their words; longer ones along
    `orders` random orders and their reverses. Hidden words are removed, or with `hidden` = "masked" become
    `mask_word`. `output` is the explained number: the target's probability, or the log of its odds, which is
    the margin where the study explains that. `top` marks the strongest words only; 0 marks all.

    The values of all words add up to the score of the text less that of the hidden one; the check
    `efficiency_gap` is the deviation from this, as a share of that difference. If all texts have the same
    score except for rounding, all values are 0. [Shapley 1953; Lundberg and Lee 2017; Strumbelj and Kononenko
    2014]
    """

    version: ClassVar[int] = 2
    exact_words: Annotated[int, Field(ge=0, le=14)] = 8
    orders: Annotated[int, Field(ge=1, le=1000)] = 10
    output: Literal["probability", "log_odds"] = "probability"
    hidden: Literal["removed", "masked"] = "removed"
    mask_word: str = MASK_WORD
    top: Annotated[int, Field(ge=0, le=1000)] = 0

    def follow(self, operator: Operator) -> None:
        """NotApplicable unless `output` is that number."""
        follow_output("ShapText", self.output, operator, "log_odds")

    def explain(self, predictor: HasWords, subject: Subject) -> Steps:
        mask = self.mask_word if self.hidden == "masked" else ""
        words = Words(subject.text, units_of(predictor, subject), mask=mask)
        if not words.count:
            return words.attribution([], {})
        if words.count <= self.exact_words:
            coalitions = all_coalitions(words.count)
        else:
            coalitions = drawn_coalitions(words.count, self.orders, subject)
        probabilities = yield TextScores(words.all_shown(coalitions.rows))
        scores = self._scores(probabilities, subject)
        # Probabilities are told apart by their ratios, log odds by their differences.
        if says_nothing(scores, 1.0 if self.output == "log_odds" else 0.0):
            return words.attribution(np.zeros(words.count), {"efficiency_gap": 0.0})
        values = coalitions.values(scores)
        change = float(scores[-1] - scores[0])
        gap = abs(float(values.sum()) - change) / max(abs(change), 1e-12)
        return words.attribution(largest(values, self.top), {"efficiency_gap": gap})

    def _scores(self, probabilities: Floats, subject: Subject) -> Floats:
        wanted = probabilities[:, subject.target]
        if self.output == "probability":
            return wanted
        if subject.against is not None:
            others = probabilities[:, subject.against]
        else:
            # The others are added up: one less the target's would be 0 for a network that is sure.
            others = np.delete(probabilities, subject.target, axis=1).sum(1)
        tiny = np.finfo(np.float64).tiny
        return np.asarray(np.log(np.maximum(wanted, tiny)) - np.log(np.maximum(others, tiny)), np.float64)


@parameters
class InputGradientText(AnyText):
    """Gradient of the explained number times the embedding, summed over the channels and tokens of a word.
    Signed.

    Marks that belong to no word are left out; with declared units the check `left_out` is what they add up
    to, so that it and the values of all units are the sum of all tokens. `top` marks the strongest words
    only; 0 marks all. [Shrikumar et al. 2016; Denil et al. 2014]
    """

    version: ClassVar[int] = 2
    top: Annotated[int, Field(ge=0, le=1000)] = 0

    def explain(self, predictor: HasWords, subject: Subject) -> Steps:
        words = Words(subject.text, units_of(predictor, subject))
        traced: TextTrace = yield TextGradient()
        products = (traced.gradients.astype(np.float64) * traced.embeddings).sum(1)
        values, left_out = np.zeros(words.count), 0.0
        for span, product in zip(traced.spans, products, strict=True):
            at = _word_of(span, words.spans)
            if at is None:
                left_out += float(product)
            else:
                values[at] += product
        checks = {} if subject.units is None else {"left_out": left_out}
        return words.attribution(largest(values, self.top), checks)


def _word_of(token: Span, words: Sequence[Span]) -> int | None:
    """The word that a token is a part of; None if it overlaps none."""
    for at, (start, end) in enumerate(words):
        if token[0] < end and token[1] > start:
            return at
    return None


@parameters
class RandomText(OfMethod):
    """The values of method `of` on random words of the same text: the same greys, no information.

    `parameters` are that method's, as JSON text; those that are not named have their defaults. The words are
    drawn from the text's key and the seed. As many places are marked as there, in the same greys. If the
    method marks all places of a word alike, as LIME does, so does the control: it marks as many different
    words, which occur as often; if there are no others that do, more or fewer different words on as many
    places. [Gonzalez and Søgaard 2020]
    """

    version: ClassVar[int] = 2
    kind: ClassVar[Kind] = "text"
    control: ClassVar[str] = "random_text"
    verb: ClassVar[str] = "scatter"
    of: str = "lime_text"

    def explain(self, predictor: HasWords, subject: Subject) -> Steps:
        source: TokenAttribution = yield from self.method.explain(predictor, subject)
        values = scatter_values(subject.text, source.spans, source.values, subject.draws("random text"))
        return TokenAttribution(source.spans, values)
