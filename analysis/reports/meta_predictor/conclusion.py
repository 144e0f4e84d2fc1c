"""The answer to the question of a meta-predictor study: one sentence, one figure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from analysis.any_table.formats import confidence, interval, number, p_sentence
from analysis.facts import StudyFacts
from analysis.reports.base import ANSWER, Data, Figure, Mark, Section
from analysis.reports.drawing import figures
from analysis.reports.utility.accuracy_anova import LEVEL, Analysis, condition_rows, utility_note
from analysis.stats.intervals_and_checks import Interval

TESTS = {"dunnett": "Dunnett", "tukey": "Tukey-Kramer"}
MARKS: dict[str, dict[str, Mark]] = {
    "dunnett": {"planned": "planned", "secondary": "planned", "tukey": "paper"},
    "tukey": {"tukey": "planned"},
}
"""What is planned, by the contrasts that the plan declares; the ANOVA stands as in the paper."""
ALWAYS: dict[str, Mark] = {
    ANSWER: "planned",
    "conditions": "planned",
    "smallest_effect": "planned",
    "anova": "paper",
}
OF_THE_STUDY = ("pooled", "flow", "preregistration", "population", "stimuli", "answers", "display", "arrival")
"""Sections without a mark: how the study went, and no result of it."""


def mark_of(key: str, facts: StudyFacts) -> Mark:
    """What a section is; exploratory is all that was neither planned nor is repeated from the paper."""
    if key in OF_THE_STUDY:
        return ""
    return (ALWAYS | MARKS[facts.contrasts]).get(key, "exploratory")


@dataclass(frozen=True, slots=True)
class BaselineContrast:
    """A condition less the baseline, in shares of accuracy, as the plan compares them."""

    condition: str
    label: str
    difference: float
    interval: Interval
    p: float


def contrasts(result: Analysis, facts: StudyFacts) -> tuple[BaselineContrast, ...]:
    """The planned comparisons with the baseline, in the order of the conditions."""
    made = []
    for condition in facts.conditions:
        name = condition.name
        each = result.planned(name)
        if facts.contrasts == "dunnett" and each is not None:
            made.append(BaselineContrast(name, condition.label, each.difference, each.interval, each.p))
        elif facts.contrasts == "tukey" and result.tukey_p(name, facts.baseline) is not None:
            assert result.tukey is not None
            pair = result.tukey.between(name, facts.baseline)
            made.append(BaselineContrast(name, condition.label, pair.difference, pair.interval, pair.p))
    return tuple(made)


def answer_section(result: Analysis, facts: StudyFacts, look: figures.Look) -> Section:
    """The sentence, and the figure of Utility if there is some."""
    sentence, compared = answer_sentence(result, facts, look), contrasts(result, facts)
    content = {
        "sentence": sentence,
        "contrasts": facts.contrasts,
        "differ": [each.condition for each in compared if each.p < facts.alpha],
        "not_detected": [each.condition for each in compared if each.p >= facts.alpha],
    }
    drawn = (_forest(result, facts, look),) if len(result.utilities) > 1 else ()
    return Section(ANSWER, "The answer", content, (sentence,), (), drawn)


def answer_sentence(result: Analysis, facts: StudyFacts, look: figures.Look) -> str:
    """Which conditions changed how well the model was predicted, each with its p; nothing that no p says."""
    compared = contrasts(result, facts)
    baseline = next(c.label for c in facts.conditions if c.role == "baseline")
    if not compared:
        why = " ".join(result.problems)
        return f"No answer yet: no condition can be compared with {baseline}. {why}".rstrip()
    parts = []
    for word, sign in (("better", 1), ("worse", -1)):
        clear = [each for each in compared if each.p < facts.alpha and sign * each.difference > 0]
        if clear:
            parts.append(f"{word} with {'; '.join(_contrast_text(each, result) for each in clear)}")
    rest = [each for each in compared if each.p >= facts.alpha]
    if not parts:
        return (
            f"No condition was detected in which {look.many} predicted the model better or worse than with "
            f"{baseline}: smallest {p_sentence(min(each.p for each in rest))} of {len(rest)} "
            f"({TESTS[facts.contrasts]})."
        )
    said = f"Against {baseline}, {look.many} predicted the model {', and '.join(parts)}"
    if rest:
        names = ", ".join(each.label for each in rest)
        said += f"; no difference was detected for {names} (smallest {p_sentence(min(e.p for e in rest))})"
    return f"{said}. p and intervals: {TESTS[facts.contrasts]}, for all together."


def _contrast_text(each: BaselineContrast, result: Analysis) -> str:
    utility = result.utilities.get(each.condition)
    ratio = f", Utility {number(utility.utility)}" if utility else ""
    plus = "+" if each.difference > 0 else ""
    return (
        f"{each.label} (accuracy {plus}{number(100 * each.difference, 1)} points, "
        f"{confidence(each.interval.level)} {interval(each.interval, 1, 100)}, {p_sentence(each.p)}{ratio})"
    )


def _forest(result: Analysis, facts: StudyFacts, look: figures.Look) -> Figure:
    rows = condition_rows(result, facts)
    caption = (
        "Utility: mean accuracy over blocks divided by the baseline's. Line: simultaneous "
        f"{confidence(facts.level)} intervals, which hold together. Pale band: the {confidence(LEVEL)} "
        f"interval of one condition alone, Fieller's over {look.many}. {sizes(rows)}. "
        f"{utility_note(result, facts)}"
    )
    return Figure(
        "utility",
        caption.rstrip(),
        "Forest plot of Utility with intervals; the numbers stand in the table of accuracy and Utility.",
        partial(figures.forest, rows, look),
        _forest_data(rows),
    )


def _forest_data(rows: list[dict[str, Any]]) -> Data:
    def ends(row: dict[str, Any], key: str) -> tuple[float | None, ...]:
        return tuple(row["intervals"][key] or (None, None))

    return Data(
        ("condition", "n", "utility", "together_low", "together_high", "alone_low", "alone_high"),
        tuple(
            (r["label"], r["n"], r["utility"], *ends(r, "utility_simultaneous"), *ends(r, "utility"))
            for r in rows
            if r["role"] != "baseline" and r["utility"] is not None
        ),
    )


def sizes(rows: list[dict[str, Any]]) -> str:
    """n of the conditions that have people, as "n = 28–30 per condition"."""
    n = [r["n"] for r in rows if r["n"]] or [0]
    return f"n = {min(n)}" + (f"\N{EN DASH}{max(n)}" if min(n) < max(n) else "") + " per condition"
