"""What a study's planned test can find: its power for the people whom the file asks for, by paradigm."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from analysis.planning.significance_levels import planned_levels
from analysis.stats.planning.anova_power import anova_power, minimal_detectable_f
from analysis.stats.planning.contrast_power import (
    CONTRASTS_MAX,
    SIZE_MAX,
    detectable_contrast,
    dunnett_power,
    equivalence_power,
    paired_power,
    utility_power,
)
from analysis.stats.planning.rank_power import PEOPLE_MAX, people_needed, rank_power
from analysis.stats.planning.rating_power import EFFECTS as POINTS
from analysis.stats.planning.rating_power import (
    EXPLANATION_SD,
    ITEMS_MIN,
    PEOPLE_MIN,
    PERSON_SHARE,
    POWER,
    RATER_SD,
    RATINGS_MAX,
    pair_power,
)
from experiments.definition.preregistration_table import ALPHA
from experiments.definition.study import StudyDefinition
from experiments.kinds.rate import SCALE
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Plan

EFFECTS = ((0.10, "small"), (0.25, "medium"), (0.40, "large"))
DIFFERENCES = ((0.20, "small"), (0.50, "medium"), (0.80, "large"))
"""Differences of two means in standard deviations of people's own means (Cohen 1988)."""
PUBLISHED_SHARES = (0.557, 0.694)
"""Agreement with the model without and with LIME, SST (Gonzalez and Søgaard 2020, Table 1)."""
ACCURACY, CONCENTRATION = 0.6, 8.0
"""Assumed of people without explanations: mean accuracy, and ability beta-distributed with a standard
deviation of sqrt(m (1 - m) / 9), as in the calibration of the tests."""
UTILITIES = (1.10, 1.25)
MARGIN = 0.5
"""In standard deviations of people, if the file declares no smallest effect."""
SPREADS = (0.0, 0.10)
"""Standard deviations of people's own expected shares: none is published, so two are shown."""


@dataclass(frozen=True, slots=True)
class PlannedPower:
    """`rows`: an effect and the probability (0-1) that it is told, or a number that the row names."""

    title: str
    rows: tuple[tuple[str, float | int], ...]


def power_of(definition: StudyDefinition, plans: Sequence[Plan]) -> PlannedPower | None:
    """The power of the test that the paradigm's reporter plans; None if there is none for these plans."""
    makers = {"anova": _anova, "ranks": _rank_tests, "pairs": _pairs, "contrasts": _contrasts}
    return makers[get_paradigm(definition.paradigm).planned_test](definition, plans)


def _anova(definition: StudyDefinition, plans: Sequence[Plan]) -> PlannedPower | None:
    sizes = [condition.slots for condition in definition.conditions]
    if not all(plan.condition for plan in plans) or len(sizes) < 2 or sum(sizes) <= len(sizes):
        return None
    plan = definition.preregistration.as_met() if definition.preregistration else {}
    alpha = planned_levels(plan, sizes)[-1]
    declared = plan.get("alpha") or plan.get("looks")
    rows: list[tuple[str, float | int]] = [
        (f"f = {f:.2f} ({word})", anova_power(sizes, f, alpha=alpha)) for f, word in EFFECTS
    ]
    rows.append(("smallest f found with power .80", minimal_detectable_f(sizes, alpha=alpha)))
    rows += _of_baseline(definition, plans, alpha)
    told = ", ".join(sorted({str(size) for size in sizes})) + (f", alpha {alpha:.3g}" if declared else "")
    return PlannedPower(f"Power of the ANOVA over {len(sizes)} conditions of {told}", tuple(rows))


def _of_baseline(
    definition: StudyDefinition, plans: Sequence[Plan], alpha: float
) -> list[tuple[str, float | int]]:
    """Power of what is compared with the baseline; nothing without a single one, or with fewer than two
    people or more conditions than are computed."""
    base = [c.slots for c in definition.conditions if c.role == "baseline"]
    others = [c.slots for c in definition.conditions if c.role != "baseline"]
    if len(base) != 1 or not 0 < len(others) <= CONTRASTS_MAX or not min(*base, *others) >= 2:
        return []
    if max(*base, *others) > SIZE_MAX:
        return []
    control, least, many = base[0], min(others), len(others)
    family = f"Dunnett over {many} contrast{'s' if many > 1 else ''}"
    rows: list[tuple[str, float | int]] = []
    for d, word in DIFFERENCES:
        power = dunnett_power(control, others, [d] * many, alpha=alpha)
        rows.append((f"{family}: one, d = {d:.2f} ({word})", min(power.each)))
        rows.append((f"{family}: any, all d = {d:.2f}", power.any))
    detectable = detectable_contrast(control, others, alpha=alpha)
    rows.append((f"{family}: smallest d of one with power .80", detectable))
    trials = sum(trial.phase == "test" and not trial.check for trial in plans[0].trials)
    for utility in UTILITIES:
        means = (ACCURACY * utility, ACCURACY)
        spreads = (_accuracy_sd(means[0], trials), _accuracy_sd(means[1], trials))
        made = utility_power((least, control), means, spreads, alpha=alpha)
        text = (
            f"Utility {utility:.2f}, baseline {ACCURACY:.2f} assumed, by simulation, error {made.error:.3f}"
        )
        rows.append((text, made.power))
    pairs = min(control, least)
    paired = paired_power(pairs, 0.5, tests=many, alpha=alpha)
    rows.append((f"paired by {pairs} plans, d_z = 0.50, alpha by {many}", paired))
    margin = _margin(definition, trials)
    text = f"equivalence within d = {margin:.2f}, no difference, alpha by {many}"
    return [*rows, (text, equivalence_power(least, control, margin, alpha=alpha / many))]


def _margin(definition: StudyDefinition, trials: int) -> float:
    """The declared smallest effect in standard deviations of people, which are assumed if it is in points."""
    declared = definition.preregistration.smallest_effect if definition.preregistration else None
    if declared is None:
        return MARGIN
    if declared.d is not None:
        return declared.d
    return float(declared.points or 0) / 100 / _accuracy_sd(ACCURACY, trials)


def _accuracy_sd(mean: float, trials: int) -> float:
    """The standard deviation of people's accuracies over so many trials: of their abilities and by chance."""
    ability = mean * (1 - mean) / (CONCENTRATION + 1)
    return float((ability + (mean * (1 - mean) - ability) / max(1, trials)) ** 0.5)


def _contrasts(definition: StudyDefinition, plans: Sequence[Plan]) -> PlannedPower | None:
    """Each other condition against the baseline, one mean per person, at the first step of Holm's correction:
    a t test of two groups, which is the F test of two."""
    baseline = [c.slots for c in definition.conditions if c.role == "baseline"]
    others = [c.slots for c in definition.conditions if c.role != "baseline"]
    if len(baseline) != 1 or not others or sum(sizes := [baseline[0], min(others)]) <= len(sizes):
        return None
    alpha = ALPHA / len(others)
    # Cohen's f of two groups, weighted by their sizes; half of d if these are equal.
    f_of_d = (sizes[0] * sizes[1]) ** 0.5 / sum(sizes)
    rows: list[tuple[str, float | int]] = [
        (f"d = {d:.2f} ({word})", anova_power(sizes, d * f_of_d, alpha=alpha)) for d, word in DIFFERENCES
    ]
    rows.append(("smallest d found with power .80", minimal_detectable_f(sizes, alpha=alpha) / f_of_d))
    who = f"{sizes[1]} people against {sizes[0]}"
    title = f"Power of a contrast with the baseline, {who}, alpha {alpha:.3g} ({ALPHA:g} by {len(others)})"
    return PlannedPower(title, tuple(rows))


def _rank_tests(definition: StudyDefinition, plans: Sequence[Plan]) -> PlannedPower | None:
    """A method against the baseline, one score per person and condition; None with a single person, and with
    more than are simulated."""
    sizes = [condition.slots for condition in definition.conditions]
    within = any(plan.condition is None for plan in plans)
    people = len(plans) if within else min(sizes)
    if len(sizes) < 2 or not 2 <= people <= PEOPLE_MAX:
        return None
    first = plans[0].trials
    scored = [trial for trial in first if trial.phase == "test" and not trial.check]
    tests = sum(trial.condition == scored[0].condition for trial in scored)
    rows: list[tuple[str, float | int]] = []
    low, high = PUBLISHED_SHARES
    for spread in SPREADS:
        effect = f"agreement {low:.3f} against {high:.3f} (SST, published), people differ by SD {spread:.2f}"
        rows.append((effect, rank_power(PUBLISHED_SHARES, tests, people, spread=spread, within=within)))
        needed = people_needed(PUBLISHED_SHARES, tests, spread=spread, within=within)
        rows.append((f"{'people' if within else 'people per condition'} for power .80", needed))
    name = "Wilcoxon's signed ranks" if within else "Mann-Whitney's test"
    who = f"{people} people under all conditions" if within else f"{people} people per condition"
    title = f"Power of {name}, {who}, {tests} test texts, by simulation"
    return PlannedPower(title, tuple(rows))


@dataclass(frozen=True, slots=True)
class SharedItems:
    """What pairs of conditions are compared on: `pairs` of conditions share items, the fewest `items`; each
    explanation and question has `raters`, and the study as few as `people`."""

    pairs: int
    items: int
    raters: int
    people: int


def shared_items(plans: Sequence[Plan], sittings_max: int) -> SharedItems | None:
    """Anchors apart. None if nothing is rated."""
    asked: Counter[tuple[str, str, str]] = Counter()
    items: dict[str, set[str]] = defaultdict(set)
    for trial in (trial for plan in plans for trial in plan.trials):
        if "questions" in trial.extra and trial.item is not None and not trial.extra.get("anchor"):
            items[trial.condition].add(trial.item)
            asked.update((trial.item, trial.condition, name) for name in trial.extra["questions"])
    if not asked:
        return None
    shared = [count for a, b in combinations(items.values(), 2) if (count := len(a & b))]
    lists = Counter(plan.lane for plan in plans)
    people = sum(-(-count // sittings_max) for count in lists.values())
    return SharedItems(len(shared), min(shared, default=0), min(asked.values()), people)


def _pairs(definition: StudyDefinition, plans: Sequence[Plan]) -> PlannedPower | None:
    """Two conditions on the items that they share; None if no two share enough of them, or people are too
    few, or so many that nothing is simulated."""
    told = shared_items(plans, definition.sittings_max)
    if told is None or told.items < ITEMS_MIN or told.people < max(PEOPLE_MIN, told.raters):
        return None
    if 2 * told.items * told.raters > RATINGS_MAX:
        return None
    power = pair_power(told.items, told.raters, told.people, pairs=told.pairs, seed=definition.seed)
    rows: list[tuple[str, float | int]] = [(f"{size:g} points", power.of(size)) for size in POINTS]
    least = power.detectable()
    if is_found := least is not None and least <= int(SCALE[-1]) - int(SCALE[0]):
        rows.append((f"smallest difference found with power {POWER:.2f}", least))
    none = "" if is_found else f"; no difference that the scale allows is found with power {POWER:.2f}"
    pairs = f"{told.pairs} pair{'s' if told.pairs > 1 else ''}"
    title = (
        f"Power of the planned comparison of two conditions: {told.items} items that they share, "
        f"{told.raters} raters each, {told.people} people, Holm over {pairs}, by simulation (SD of single "
        f"ratings {RATER_SD:g}, as published, {PERSON_SHARE:.0%} of its variance people's level; of "
        f"explanations {EXPLANATION_SD:g}, assumed){none}"
    )
    return PlannedPower(title, tuple(rows))
