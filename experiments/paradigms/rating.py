"""Likert ratings of explanations by k distinct raters each (PASTA, AAAI 2026)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from experiments.definition.study import StudyDefinition
from experiments.design.disjoint_lists import disjoint_lists
from experiments.design.rng import Streams
from experiments.errors import Problem
from experiments.kinds.base import Choice
from experiments.kinds.rate import SCALE
from experiments.paradigms import base
from experiments.paradigms.material import material_by_condition
from experiments.paradigms.shared import BaseParadigm
from experiments.paradigms.weaving import CheckDraw, draw_instructed, instructed_trial, refuse_repeats, weave
from stimuli.errors import BadSpec
from stimuli.perturbing.perturbations import PERTURBATIONS
from stimuli.perturbing.search import LIGHT, STRONG, Rule, Search

AIMS: tuple[base.Aim, ...] = ("light", "strong")
LOOK_SECONDS, QUESTION_SECONDS = 6.0, 5.0
"""How long people look at an explanation before they rate it, and how long one rating takes, as planned."""
POINTS = tuple(Choice(point, point, point) for point in SCALE)
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


class Perturbations(base.Design):
    """How the copies of pictures are looked for that questions with a pair compare: `rule`, magnitudes and
    names as in `Search`. `light_requires`: whether light copies are made of every picture whose prediction
    stays, or only of those that the model is right about too, as PASTA has it.
    """

    rule: Rule = "any"
    light: Annotated[tuple[float, ...], Field(max_length=20)] = LIGHT
    strong: Annotated[tuple[float, ...], Field(max_length=20)] = STRONG
    names: tuple[str, ...] = tuple(PERTURBATIONS)
    light_requires: Literal["kept", "kept_and_correct"] = "kept"

    @model_validator(mode="after")
    def _can_be_searched(self) -> Perturbations:
        try:
            self.search()
        except BadSpec as error:
            raise ValueError(str(error)) from None
        return self

    def search(self) -> Search:
        return Search(self.names, self.light, self.strong, self.rule)


RATERS_MAX = 100


class RatingDesign(base.Design):
    """`raters_per_explanation` people rate each explanation, in lists of at most `list_length` explanations.

    `questions`: "together" asks all of `asked` about an explanation in one trial, in an order drawn per
    person; "split" asks one question throughout a list, and has lists for each question. `wording` words
    questions of `asked` and says what they compare; one that is not PASTA's needs it.

    `explanations_per_item` of an item's explanations are drawn by the seed, every condition as often as any
    other; None: all. With `explanations`, pairs of an item and a condition, these alone are rated. `anchors`
    explanations stand in every list besides, again in later sessions of a
    person, and are no part of the rounds.
    """

    raters_per_explanation: int = Field(5, ge=1, le=RATERS_MAX)
    list_length: int = Field(20, ge=1, le=500)
    questions: Literal["together", "split"] = "together"
    asked: tuple[Id, ...] = Field(QUESTIONS, min_length=1, max_length=12)
    wording: tuple[RatingQuestion, ...] = Field((), max_length=12)
    explanations_per_item: int | None = Field(None, ge=1, le=1000)
    explanations: tuple[tuple[str, str], ...] = Field((), max_length=100_000)
    anchors: int = Field(0, ge=0, le=50)
    perturbations: Perturbations = Perturbations()
    min_view_ms: int = Field(1500, ge=0, le=60_000)
    gap_ms: int = Field(300, ge=0, le=10_000)
    picture_px: int = Field(320, ge=64, le=1024)

    @property
    def rows(self) -> tuple[RatingQuestion, ...]:
        """The questions that are asked, in the order of `asked`. BadDesign for one that has no words."""
        worded = {**STANDARD, **{row.id: row for row in self.wording}}
        if strange := [name for name in self.asked if name not in worded]:
            raise base.BadDesign(
                f"[design] asked: {strange[0]!r} is not PASTA's and has no [[design.wording]]"
            )
        return tuple(worded[name] for name in dict.fromkeys(self.asked))


class Rating(BaseParadigm):
    """Each lane is a round over all explanations; a person who stays in one lane rates nothing twice."""

    name: ClassVar[str] = "rating"
    gates: ClassVar[tuple[str, ...]] = (*BaseParadigm.gates[:-1], "training")
    Design: ClassVar[type[base.Design]] = RatingDesign
    kinds: ClassVar[tuple[str, ...]] = ("rate", "instructed")
    roles: ClassVar[Mapping[str, base.Role]] = {"control": base.Role(), "method": base.Role()}

    merges_coinciding: ClassVar[bool] = True
    planned_test: ClassVar[base.PlannedTest] = "pairs"
    planned_analysis: ClassVar[str] = (
        "By question: conditions are compared in pairs on the pictures that both have, each picture "
        "counting alike, people and pictures both as drawn at random (two-way clustered errors), two-sided, "
        "with Holm's correction over the pairs of a question. Secondary: the methods of saliency together "
        "are compared with those of concepts by the same test, with Holm's correction over the questions. "
        "Sensitivity: a cumulative logit mixed model "
        "with people, pictures and pictures by condition. Reversed questions are turned round first; "
        "questions that could not be asked of an explanation are counted and not filled in."
    )

    def plans(self, design: RatingDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
        """The lists of round 0, then of round 1, and so on; their number follows from the explanations.

        The conditions' slot counts are not used. The same (item, condition) is in one list per round (and per
        question if these are split), so k rounds give k distinct raters as long as a person keeps to one
        lane. A question that compares with a copy is asked of explanations that have one.
        """
        refuse_repeats(pool, "ratings have no repeat checks, as nothing is trained")
        every = explanations_of(pool)
        anchors = drawn_anchors(every, design.anchors, streams)
        apart, items = set(anchors), {item.key: item for item in pool.items}
        rest = [unit for unit in _select_explanations(every, design.explanations) if unit not in apart]
        rated = drawn_explanations(rest, design.explanations_per_item, streams)
        rows = design.rows
        parts = [rows] if design.questions == "together" else [(row,) for row in rows]
        ordinal = 0
        for turn in range(design.raters_per_explanation):
            for part, questions in enumerate(parts):
                units = [unit for unit in rated if any(_has_pair(pool, unit, row) for row in questions)]
                lists = disjoint_lists(
                    [item for item, _ in units], design.list_length, streams("lists", turn, part)
                )
                for number, places in enumerate(lists):
                    arm = f"round-{turn}/list-{number}"
                    if design.questions == "split":
                        arm += f"/{questions[0].id}"
                    entries = _entries([units[place] for place in places], anchors, ordinal, streams)
                    trials = _trials(entries, questions, pool, items, ordinal, streams)
                    yield base.Plan(ordinal, f"round-{turn}", arm, None, trials)
                    ordinal += 1
        if not ordinal:
            raise base.NotEnoughItems(
                f"nothing to rate: none of {len(every)} explanations is left beside {len(anchors)} anchors, "
                "or none has the copy that its questions compare with; add items or other questions"
            )

    def copies(self, definition: StudyDefinition) -> base.CopiesWanted | None:
        """Those that a question of the study compares with."""
        design = RatingDesign(**definition.design)
        pairs = {row.pair for row in design.rows}
        aims = tuple(aim for aim in AIMS if aim in pairs)
        if not aims:
            return None
        table = design.perturbations
        return base.CopiesWanted(aims, table.search(), table.light_requires == "kept_and_correct")

    def check_definition(self, definition: StudyDefinition) -> Iterator[Problem]:
        """Questions without words and words without a question; none that every explanation can be asked;
        checks that ratings cannot have."""
        design = RatingDesign(**definition.design)
        asked = Counter(design.asked)
        worded = Counter(row.id for row in design.wording)
        key = "design.wording"
        for name in [name for name, count in asked.items() if count > 1]:
            yield Problem("design.asked", repr(name), "is asked twice", "Name each question once.")
        for name in [name for name, count in worded.items() if count > 1]:
            yield Problem(key, repr(name), "has two tables", "Keep one table for each question.")
        for name in [name for name in asked if name not in worded and name not in STANDARD]:
            remedy = f'Add [[design.wording]] with id = "{name}", text, low and high.'
            limit = "has no words: only q1 to q6 have words of their own"
            yield Problem("design.asked", repr(name), limit, remedy)
        for row in design.wording:
            if row.id not in asked:
                limit = "is worded and not asked"
                yield Problem(key, repr(row.id), limit, "Add it to asked, or remove its table.")
            missing = [part for part in ("text", "low", "high") if not getattr(row, part)]
            if row.id not in STANDARD and missing:
                limit = f"has no {' and no '.join(missing)}"
                yield Problem(key, repr(row.id), limit, "Write the question and both ends of its scale.")
        known = {**STANDARD, **{row.id: row for row in design.wording}}
        if all(name in known and known[name].pair for name in asked):
            limit = "compares with changed copies alone: what has none is neither asked about nor counted"
            remedy = 'Add a question without a pair, such as "q1".'
            yield Problem("design.asked", ", ".join(asked), limit, remedy)
        if definition.checks.repeat:
            limit = "ratings have no repeat checks, as nothing is trained"
            remedy = "Set repeat = 0; [design] anchors repeats explanations for the same people."
            yield Problem("checks.repeat", str(definition.checks.repeat), limit, remedy)

    def wording(self, definition: StudyDefinition) -> Mapping[str, str]:
        """Each question and the ends of its scale."""
        made: dict[str, str] = {}
        for question in RatingDesign(**definition.design).wording:
            parts = {"": question.text, "_low": question.low, "_high": question.high}
            made |= {f"rate_{question.id}{part}": text for part, text in parts.items() if text}
        return made

    def seconds(self, design: RatingDesign) -> Mapping[str, float]:
        """Longer with every question on the page."""
        asked = len(design.asked) if design.questions == "together" else 1
        return {"rate": LOOK_SECONDS + QUESTION_SECONDS * asked}

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

    def more_places(self, design: RatingDesign) -> Mapping[str, object]:
        """One more round."""
        return {"raters_per_explanation": min(design.raters_per_explanation + 1, RATERS_MAX)}

    def lane(self, route: base.Route) -> str | None:
        """The round of the person's earlier sessions, else the one with most free lists. So no person rates
        an explanation twice."""
        if route.lane:
            return route.lane if route.lane in route.free else None
        return min(route.free, key=lambda lane: (-route.free[lane], lane), default=None)


def explanations_of(pool: base.Pool) -> tuple[Explanation, ...]:
    """The explanations that differ on a page: all, or those that the pool lists, without those for which
    another condition's stands."""
    every = pool.explanations
    if not every:
        methods = [condition.name for condition in pool.conditions if condition.role != "baseline"]
        every = tuple((item.key, method) for item in pool.items for method in methods)
        if not every:
            raise base.NotEnoughItems(
                f"nothing to rate: the pool has {len(pool.items)} items and {len(methods)} conditions with "
                "an explanation; add items, or a condition whose role is not baseline"
            )
    items = {item.key for item in pool.items}
    conditions = {condition.name for condition in pool.conditions}
    for item, condition in every:
        if item not in items or condition not in conditions:
            raise base.BadDesign(
                f"the explanation ({item!r}, {condition!r}) is to be rated, but the pool has no such item or "
                "condition: remove it from the list, or add them"
            )
    return tuple(unit for unit in dict.fromkeys(every) if unit not in pool.shared)


def drawn_anchors(every: Sequence[Explanation], count: int, streams: Streams) -> tuple[Explanation, ...]:
    """`count` explanations of items in a drawn order, the conditions in turn, by the seed alone."""
    if count > len(every):
        raise base.BadDesign(
            f"[design] anchors = {count}, and there are {len(every)} explanations: ask for fewer anchors"
        )
    by_condition: dict[str, list[Explanation]] = defaultdict(list)
    for place in streams("anchors").permutation(len(every)) if count else ():
        by_condition[every[place][1]].append(every[place])
    drawn: list[Explanation] = []
    while len(drawn) < count:
        drawn += [left.pop() for left in by_condition.values() if left][: count - len(drawn)]
    return tuple(drawn)


def drawn_explanations(
    every: Sequence[Explanation], per_item: int | None, streams: Streams
) -> tuple[Explanation, ...]:
    """At most `per_item` explanations of each item, by the seed: of each those of the conditions that were
    drawn least so far, so that their numbers differ by at most one if every item has every condition."""
    if per_item is None:
        return tuple(every)
    by_item: dict[str, list[str]] = defaultdict(list)
    for item, condition in every:
        by_item[item].append(condition)
    names, rng = list(by_item), streams("explanations")
    times: Counter[str] = Counter()
    drawn: set[Explanation] = set()
    for place in rng.permutation(len(names)):
        conditions = by_item[names[place]]
        shuffled = [conditions[at] for at in rng.permutation(len(conditions))]
        chosen = sorted(shuffled, key=times.__getitem__)[:per_item]
        times.update(chosen)
        drawn.update((names[place], condition) for condition in chosen)
    return tuple(unit for unit in every if unit in drawn)


def _select_explanations(every: Sequence[Explanation], named: Sequence[Explanation]) -> Sequence[Explanation]:
    """Those that the design names, or all if it names none. BadDesign for one that the study lacks."""
    if strange := sorted(set(named) - set(every)):
        raise base.BadDesign(
            f"[design] explanations names {list(strange[0])}, and {len(strange)} of {len(named)} are none of "
            "the study's: name pairs of an item and a condition, as rate_next writes them"
        )
    return [unit for unit in every if unit in set(named)] if named else every


def _has_pair(pool: base.Pool, explanation: Explanation, row: RatingQuestion) -> bool:
    """Whether a question can be asked of an explanation: it compares with no copy, or the copy exists."""
    return not row.pair or (*explanation, row.pair) in pool.copies


def _entries(
    listed: Sequence[Explanation], anchors: Sequence[Explanation], ordinal: int, streams: Streams
) -> list[tuple[Explanation, bool]]:
    """The explanations of a list in their order, with the anchors (True) at drawn places."""
    rng = streams("anchor places", ordinal)
    order = [anchors[place] for place in rng.permutation(len(anchors))]
    total = len(listed) + len(anchors)
    places = {int(place) for place in rng.choice(total, len(anchors), replace=False)} if anchors else set()
    ordinary, repeated = iter(listed), iter(order)
    return [(next(repeated), True) if at in places else (next(ordinary), False) for at in range(total)]


def _trials(
    entries: Sequence[tuple[Explanation, bool]],
    questions: Sequence[RatingQuestion],
    pool: base.Pool,
    items: Mapping[str, base.PoolItem],
    ordinal: int,
    streams: Streams,
) -> tuple[base.PlannedTrial, ...]:
    checks = draw_instructed(pool.check_instructed, None, streams("checks", ordinal))
    trials: list[base.PlannedTrial] = []
    askable = [e for e in entries if any(_has_pair(pool, e[0], row) for row in questions)]
    for entry in weave(askable, checks, streams("check places", ordinal)):
        if isinstance(entry, CheckDraw):
            trials.append(instructed_trial(entry, len(trials), 0, trials[-1].condition))
            continue
        (item, condition), is_anchor = entry
        rows = [row for row in questions if _has_pair(pool, (item, condition), row)]
        pairs = {row.id: ["", row.pair] for row in rows if row.pair}
        roles = dict.fromkeys(row.pair for row in rows if row.pair)
        trials.append(
            base.PlannedTrial(
                position=len(trials),
                block=0,
                phase="test",
                kind="rate",
                item=item,
                condition=condition,
                explained=True,
                choices=POINTS,
                label=pool.predicted(items[item], condition),
                others={role: (pool.copies[item, condition, role], condition) for role in roles},
                extra={
                    "questions": [row.id for row in rows],
                    "order": "person",
                    **({"pairs": pairs} if pairs else {}),
                    **({"anchor": True} if is_anchor else {}),
                },
            )
        )
    return tuple(trials)
