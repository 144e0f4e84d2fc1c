"""Likert ratings of explanations by k distinct raters each (PASTA, AAAI 2026)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from experiments.definition import StudyDefinition
from experiments.design.lists import disjoint_lists
from experiments.design.rng import Streams
from experiments.kinds.base import Choice
from experiments.kinds.rate import SCALE
from experiments.paradigms import base
from experiments.paradigms.material import material_by_condition
from experiments.paradigms.shared import BaseParadigm
from experiments.paradigms.weaving import CheckDraw, draw_instructed, instructed_trial, weave

Pair = Literal["", "light", "strong"]
"""What a question compares the explanation with: nothing, or that of a copy of the picture, changed so
little that the model's answer stays, or so much that it changes."""
Id = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,23}$")]
Explanation = tuple[str, str]
"""(item key, condition name)."""


class RatingQuestion(base.Design):
    """A question with worded ends of its scale. `text`, `low` and `high` are the study's own words; one of
    the six of PASTA has ours if they are empty. `pair` names what is compared. `reverse`: low is good, so
    that the analysis turns it round.
    """

    id: Id
    text: Annotated[str, Field(max_length=300)] = ""
    low: Annotated[str, Field(max_length=60)] = ""
    high: Annotated[str, Field(max_length=60)] = ""
    pair: Pair = ""
    reverse: bool = False


QUESTIONS: tuple[str, ...] = ("q1", "q2", "q3", "q4", "q5", "q6")
STANDARD: Mapping[str, RatingQuestion] = {
    **{name: RatingQuestion(id=name) for name in QUESTIONS[:4]},
    "q5": RatingQuestion(id="q5", pair="light", reverse=True),
    "q6": RatingQuestion(id="q6", pair="strong"),
}
"""PASTA's six: as I would explain it, trust, ease, for all people, and the change under a light and a strong
perturbation."""


class RatingDesign(base.Design):
    """`raters_per_explanation` people rate each explanation, in lists of at most `list_length` explanations.

    `questions`: "together" asks all of `asked` about an explanation in one trial, in an order drawn per list;
    "split" asks one question throughout a list, and has lists for each question. `wording` words questions
    of `asked` and says what they compare; one that is not PASTA's needs it.
    """

    raters_per_explanation: int = Field(5, ge=1, le=100)
    list_length: int = Field(20, ge=1, le=500)
    questions: Literal["together", "split"] = "together"
    asked: tuple[Id, ...] = Field(QUESTIONS, min_length=1, max_length=12)
    wording: tuple[RatingQuestion, ...] = Field((), max_length=12)
    min_view_ms: int = Field(1500, ge=0, le=60_000)
    gap_ms: int = Field(300, ge=0, le=10_000)
    picture_px: int = Field(320, ge=64, le=1024)

    @property
    def rows(self) -> tuple[RatingQuestion, ...]:
        """The questions that are asked, in the order of `asked`."""
        worded = {**STANDARD, **{row.id: row for row in self.wording}}
        return tuple(worded[name] for name in dict.fromkeys(self.asked))


class Rating(BaseParadigm):
    """Each lane is a round over all explanations; a person who stays in one lane rates nothing twice."""

    name: ClassVar[str] = "rating"
    gates: ClassVar[tuple[str, ...]] = (*BaseParadigm.gates[:-1], "training")
    Design: ClassVar[type[base.Design]] = RatingDesign
    kinds: ClassVar[tuple[str, ...]] = ("rate", "instructed")
    roles: ClassVar[Mapping[str, base.Role]] = {"control": base.Role(), "method": base.Role()}

    def plans(self, design: RatingDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
        """The lists of round 0, then of round 1, and so on; their number follows from the explanations.

        The conditions' slot counts are not used. The same (item, condition) is in one list per round (and per
        question if these are split), so k rounds give k distinct raters as long as a person keeps to one
        lane.
        """
        explanations = _explanations(pool)
        _refuse_checks(pool)
        asked = list(dict.fromkeys(design.asked))
        parts = [asked] if design.questions == "together" else [[question] for question in asked]
        ordinal = 0
        for turn in range(design.raters_per_explanation):
            for part, questions in enumerate(parts):
                images = [item for item, _ in explanations]
                lists = disjoint_lists(images, design.list_length, streams("lists", turn, part))
                for number, units in enumerate(lists):
                    rated = [explanations[unit] for unit in units]
                    arm = f"round-{turn}/list-{number}"
                    if design.questions == "split":
                        arm += f"/{questions[0]}"
                    trials = _trials(rated, questions, pool.check_instructed, ordinal, streams)
                    yield base.Plan(ordinal, f"round-{turn}", arm, None, trials)
                    ordinal += 1

    def wording(self, definition: StudyDefinition) -> Mapping[str, str]:
        """Each question and the ends of its scale."""
        made: dict[str, str] = {}
        for question in RatingDesign(**definition.design).wording:
            parts = {"": question.text, "_low": question.low, "_high": question.high}
            made |= {f"rate_{question.id}{part}": text for part, text in parts.items() if text}
        return made

    def scores(self, design: RatingDesign) -> bool:
        """A rating is neither right nor wrong."""
        return False

    def material(
        self, definition: StudyDefinition, surveys: Mapping[base.Source, base.Survey]
    ) -> base.Material:
        """Items of every dataset, and each explanation of each by its condition's own model."""
        return material_by_condition(definition, surveys)

    def pilot_slots(self, design: RatingDesign, pool: base.Pool, count: int) -> int:
        """The lists follow from the explanations; the slots of a condition have no influence."""
        return 1

    def lane(self, route: base.Route) -> str | None:
        """The round of the person's earlier sessions, else the one with most free lists. So no person rates
        an explanation twice."""
        if route.lane:
            return route.lane if route.lane in route.free else None
        return min(route.free, key=lambda lane: (-route.free[lane], lane), default=None)


def _explanations(pool: base.Pool) -> tuple[Explanation, ...]:
    if not pool.explanations:
        methods = [condition.name for condition in pool.conditions if condition.role != "baseline"]
        every = tuple((item.key, method) for item in pool.items for method in methods)
        if not every:
            raise base.NotEnoughItems(
                f"nothing to rate: the pool has {len(pool.items)} items and {len(methods)} conditions with "
                "an explanation; add items, or a condition whose role is not baseline"
            )
        return every
    items = {item.key for item in pool.items}
    conditions = {condition.name for condition in pool.conditions}
    for item, condition in pool.explanations:
        if item not in items or condition not in conditions:
            raise base.BadDesign(
                f"the explanation ({item!r}, {condition!r}) is to be rated, but the pool has no such item or "
                "condition: remove it from the list, or add them"
            )
    return tuple(dict.fromkeys(pool.explanations))


def _refuse_checks(pool: base.Pool) -> None:
    if pool.check_repeat:
        raise base.BadDesign(
            f"[checks] repeat = {pool.check_repeat}: ratings have no repeat checks, as nothing is trained; "
            "set repeat = 0"
        )


def _trials(
    rated: Sequence[Explanation], questions: Sequence[str], instructed: int, ordinal: int, streams: Streams
) -> tuple[base.PlannedTrial, ...]:
    rng = streams("questions", ordinal)
    shown = [questions[int(place)] for place in rng.permutation(len(questions))]
    checks = draw_instructed(instructed, None, streams("checks", ordinal))
    scale = tuple(Choice(point, point, point) for point in SCALE)
    trials: list[base.PlannedTrial] = []
    for entry in weave(rated, checks, streams("check places", ordinal)):
        if isinstance(entry, CheckDraw):
            trials.append(instructed_trial(entry, len(trials), 0, trials[-1].condition))
            continue
        item, condition = entry
        trials.append(
            base.PlannedTrial(
                position=len(trials),
                block=0,
                phase="test",
                kind="rate",
                item=item,
                condition=condition,
                explained=True,
                choices=scale,
                extra={"questions": shown},
            )
        )
    return tuple(trials)
