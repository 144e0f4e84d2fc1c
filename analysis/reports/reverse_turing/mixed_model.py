"""Single answers of a reverse Turing test as a mixed model; in the square also what order and subset do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from analysis.any_table.formats import finding, number, p_value, percent, ratio_sentence, stars
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Section
from analysis.reports.reverse_turing.person_scores import scored_tests
from analysis.stats.intervals_and_checks import Floats, StatsError
from analysis.stats.ratings.ordinal_model import CrossedFit, LikelihoodRatio, fit_crossed, likelihood_ratio
from experiments.design.squares import williams

CROSSED_MIN = 6
"""With fewer people a mixed model says nothing about them."""
EFFECTS = {
    "period": "Place in the session",
    "before": "Condition before",
    "sequence": "Order of the conditions",
    "subset": "Subset of texts",
}
CELL = re.compile(r"order-(\d+)/group-(\d+)$")
"""The end of an arm of the square: which order of conditions, and which subset the first condition has."""
Columns = Mapping[str, Mapping[str, Floats]]
"""By effect: its columns by name."""


@dataclass(frozen=True, slots=True)
class MixedTest:
    """A likelihood ratio, the modelled `shares` of answers that agree with the model (0-1, over all people
    and texts) by condition or side, and the SDs of the random intercepts."""

    ratio: LikelihoodRatio
    shares: dict[str, float]
    sds: dict[str, float]


@dataclass(frozen=True, slots=True)
class AnswersModel:
    """The logistic mixed model of single answers: people, texts, and texts by condition are random. `names`
    are the conditions, `conditions` their columns but for the first's, `square` those of EFFECTS, none if
    people met one condition.
    """

    answers: Floats
    names: tuple[str, ...]
    conditions: Mapping[str, Floats]
    square: Columns
    factors: Mapping[str, Sequence[object]]
    whole: CrossedFit

    def without(self, effect: str) -> LikelihoodRatio:
        """The test of one of EFFECTS."""
        rest = {name: columns for name, columns in self.square.items() if name != effect}
        return self._against({**self.conditions, **together(rest)})

    def of_conditions(self) -> MixedTest:
        """Whether conditions differ."""
        beside = together(self.square)
        # At the mean of the columns of the square, which are balanced by it.
        at_mean = {name: float(column.mean()) for name, column in beside.items()}
        shares = {
            name: self.whole.probabilities({**at_mean, **({name: 1.0} if name in self.conditions else {})})[
                -1
            ]
            for name in self.names
        }
        return MixedTest(self._against(beside), shares, self.whole.sds)

    def _against(self, columns: Mapping[str, Floats]) -> LikelihoodRatio:
        return likelihood_ratio(self.whole, fit_crossed(self.answers, columns, self.factors))


def answers_model(frames: Frames, facts: StudyFacts) -> AnswersModel:
    """The model, fitted. Raises StatsError with too few people or no convergence."""
    tests = scored_tests(frames)
    names = tuple(c.name for c in facts.conditions if (tests["condition"] == c.name).any())
    people = tests.groupby("condition")["session"].nunique()
    if len(names) < 2 or int(people.min()) < CROSSED_MIN:
        raise StatsError(
            f"A model of single answers needs at least {CROSSED_MIN} people in each of 2 conditions; wait "
            "for more participants."
        )
    conditions = condition_columns(tests, names)
    square = square_columns(frames, tests, facts, conditions)
    cell = tests["item"].str.cat(tests["condition"], sep="\x1f")
    factors = {"person": list(tests["session"]), "text": list(tests["item"]), "text by condition": list(cell)}
    answers = tests["matches_model"].to_numpy(float)
    whole = fit_crossed(answers, {**conditions, **together(square)}, factors)
    return AnswersModel(answers, names, conditions, square, factors, whole)


def condition_columns(tests: pd.DataFrame, names: Sequence[str]) -> dict[str, Floats]:
    """One column for each condition but the first."""
    return {name: (tests["condition"] == name).to_numpy(float) for name in names[1:]}


def together(effects: Columns) -> dict[str, Floats]:
    return {name: column for columns in effects.values() for name, column in columns.items()}


def square_columns(
    frames: Frames, tests: pd.DataFrame, facts: StudyFacts, beside: Mapping[str, Floats]
) -> Columns:
    """Columns of EFFECTS for these answers; none if people met one condition. What says nothing that
    `beside` and the columns before it do not say is left out, as in data of few people.
    """
    levels = square_levels(frames, tests, facts)
    taken = [np.ones(len(tests)), *beside.values()]
    effects: dict[str, dict[str, Floats]] = {}
    for effect, values in levels.items():
        for level in sorted(set(values) - {""}):
            column = (values == level).to_numpy(float)
            if np.linalg.matrix_rank(np.column_stack([*taken, column])) > len(taken):
                effects.setdefault(effect, {})[f"{effect} {level}"] = column
                taken.append(column)
    return effects


def square_levels(frames: Frames, tests: pd.DataFrame, facts: StudyFacts) -> dict[str, pd.Series]:
    """The level of each answer (or of each row of persons) on EFFECTS, as text; "" before is the first part
    of a session. Nothing if people met one condition; orders and subsets only if arms tell them.
    """
    met = tests.groupby(["session", "block"])["condition"].first().unstack("block")
    if met.shape[1] < 2:
        return {}
    before = met.shift(1, axis=1).fillna("").stack()
    keys = pd.MultiIndex.from_frame(tests[["session", "block"]])
    levels = {
        "period": tests["block"].astype(int).astype(str),
        "before": pd.Series(before.reindex(keys).to_numpy(), index=tests.index),
    }
    cells = _cells(frames)
    if not set(tests["session"]) <= set(cells):
        return levels
    names = [c.name for c in facts.conditions]
    levels["sequence"] = tests["session"].map(lambda session: str(cells[session][0]))
    levels["subset"] = pd.Series(
        [
            str((cells[session][1] + names.index(condition)) % len(names))
            for session, condition in zip(tests["session"], tests["condition"], strict=True)
        ],
        index=tests.index,
        dtype=object,
    )
    return levels


def _cells(frames: Frames) -> dict[str, tuple[int, int]]:
    """Order and group of each session's cell of the square."""
    cells = {}
    for session, arm in zip(frames.participants["session"], frames.participants["arm"], strict=True):
        if cell := CELL.search(str(arm)):
            cells[session] = (int(cell[1]), int(cell[2]))
    return cells


@dataclass(frozen=True, slots=True)
class LevelMean:
    """Mean agreement of the scores (one per person and condition) at a level of an effect, 0-1."""

    effect: str
    level: str
    scores: int
    mean: float


def level_means(frames: Frames, rows: pd.DataFrame, facts: StudyFacts) -> Iterator[LevelMean]:
    """The means at every level of EFFECTS; `rows` as of `person_rows`."""
    for effect, values in square_levels(frames, rows.assign(block=rows["period"]), facts).items():
        for level, part in rows.groupby(values, sort=True):
            yield LevelMean(effect, str(level), len(part), float(part["accuracy"].mean()))


def mixed_sections(frames: Frames, rows: pd.DataFrame, facts: StudyFacts) -> tuple[Section, ...]:
    """The test that may speak of other texts too, and, in the square, what place, order and subset do."""
    title = "Single answers: people and texts at random"
    try:
        model = answers_model(frames, facts)
        test = model.of_conditions()
    except StatsError as error:
        return (Section("single_answers", title, None, (str(error),)), _square(frames, rows, facts, None))
    return (_single(test, tuple(model.square), facts, title), _square(frames, rows, facts, model))


def _single(test: MixedTest, adjusted: Sequence[str], facts: StudyFacts, title: str) -> Section:
    labels = facts.labels
    what = "agreement with the model, over people and texts like these,"
    sentence = f"All conditions alike: {ratio_sentence(test.ratio)}: {finding(test.ratio.p, what)}."
    named = ", ".join(EFFECTS[name].lower() for name in adjusted)
    beside = f"In the model are also: {named}. " if named else ""
    table = Table(
        "single_answers",
        "Modelled agreement",
        ("Condition", "Model %"),
        tuple((labels[name], percent(share)) for name, share in test.shares.items()),
        f"Logistic mixed model (Laplace) with random intercepts of people, texts, and texts by condition; "
        f"likelihood ratio. {beside}The tests above speak of people on these texts.",
    )
    content = {
        **test.ratio.as_json(),
        "shares": test.shares,
        "sds": test.sds,
        "adjusted": list(adjusted),
    }
    return Section("single_answers", title, content, (sentence,), (table,))


def effect_tests(model: AnswersModel) -> tuple[dict[str, LikelihoodRatio], tuple[str, ...]]:
    """The test of each of EFFECTS that is in the model; of those that cannot be fitted the reason."""
    tests, problems = {}, []
    for effect in model.square:
        try:
            tests[effect] = model.without(effect)
        except StatsError as error:
            problems.append(f"{EFFECTS[effect]}: {error}")
    return tests, tuple(problems)


def _square(frames: Frames, rows: pd.DataFrame, facts: StudyFacts, model: AnswersModel | None) -> Section:
    """Whether agreement depends on what the square balances; nothing if people met one condition."""
    levels = list(level_means(frames, rows, facts))
    if not levels:
        return Section("square", "", None)
    effects, problems = ({}, ()) if model is None else effect_tests(model)
    tests = tuple(
        (
            EFFECTS[name],
            number(ratio.statistic),
            number(ratio.f),
            f"{ratio.df}, {ratio.df_error}",
            p_value(ratio.p) + stars(ratio.p),
        )
        for name, ratio in effects.items()
    )
    means = tuple((EFFECTS[m.effect], _level_words(m, facts), str(m.scores), percent(m.mean)) for m in levels)
    columns = ("Effect", "Likelihood ratio", "F", "df", "p")
    note = (
        "Each is left out of the mixed model of single answers in turn; likelihood ratio, not corrected. "
        "While all cells are filled every condition has each of them equally often, but for never following "
        "itself: they blur a difference of conditions, and make none."
    )
    tables = (
        Table("square_tests", "Place, order and subset", columns, tests, note),
        Table(
            "square_means",
            "Agreement with the model by these",
            ("Effect", "Level", "Scores", "Model %"),
            means,
            "Means of one score per person and condition.",
            left=2,
        ),
    )
    content = {
        "tests": {name: ratio.as_json() for name, ratio in effects.items()},
        "means": [asdict(mean) for mean in levels],
    }
    return Section("square", "Effects of the square", content, problems, tables)


def _level_words(mean: LevelMean, facts: StudyFacts) -> str:
    """The level for people to read, counted from one."""
    labels = facts.labels
    if mean.effect == "before":
        return labels.get(mean.level, "No condition, in the first part")
    if mean.effect == "sequence":
        names = [c.label for c in facts.conditions]
        return ", ".join(names[place] for place in williams(len(names))[int(mean.level)])
    return str(int(mean.level) + 1)
