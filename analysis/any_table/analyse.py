"""Which procedures a design asks for: a tidy table in, tables of results and sentences out. No Django."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from analysis.any_table.answer_procedures import of_agreement, of_correlation, of_signal, of_utility
from analysis.any_table.assumption_procedures import of_assumptions, of_chance, of_pairs_beside
from analysis.any_table.result_tables import Results, ResultTable, count_text
from analysis.any_table.single_answer_procedures import mixed_model, of_items, of_times
from analysis.any_table.table import BadTable, TidyTable
from analysis.stats.intervals_and_checks import Row, ends_of, mean_interval
from analysis.stats.means.anova import one_way
from analysis.stats.means.dunnett import dunnett
from analysis.stats.means.equivalence import (
    Equivalence,
    equivalent_changes,
    equivalent_means,
    equivalent_shares,
)
from analysis.stats.means.factorial import SumOfSquares, factorial_anova
from analysis.stats.means.paired import Correction, paired_differences
from analysis.stats.means.repeated_measures import repeated_measures
from analysis.stats.means.tukey_and_corrections import tukey_kramer
from analysis.stats.means.welch import games_howell, welch_anova
from analysis.stats.planning.sequential_looks import Answer, LookPlan, look
from analysis.stats.ranks.several_groups import friedman, kruskal_wallis, rank_biserial_interval
from analysis.stats.ranks.two_groups import mann_whitney, signed_rank, signed_rank_interval
from analysis.stats.shares.proportions import compare_rates, newcombe, odds_ratio, wilson

Plan = Literal["dunnett", "tukey", "games_howell"]
Groups = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class AnalysisPlan:
    """What is declared before the data are seen. `plan` "" stands for dunnett with a control, else tukey;
    `margin` 0 for no equivalence test; `chance` None for no test against it; `seed` of permutations and
    random halves."""

    control: str = ""
    plan: Plan | Literal[""] = ""
    separate_variances: bool = False
    margin: float = 0.0
    chance: float | None = None
    sum_of_squares: SumOfSquares = "III"
    correction: Correction = "holm"
    mixed_model: bool = False
    seed: int = 0


def analyse(table: TidyTable, plan: AnalysisPlan) -> Results:
    """The results of the design that the table's roles name. Raises BadTable for a design that is not
    covered, or a control that is no level; a single procedure that is not defined leaves a sentence."""
    roles = table.roles
    _check_design(table, plan)
    results = Results(notes=list(table.notes))
    results.notes.append(
        f"n = {count_text(len(table.people), 'people')}, {count_text(len(table.rows), 'rows')}."
    )
    results.notes.append(_estimand(table))
    if not roles.between and not roles.within:
        _add_means(results, f"{roles.dv}: all people", {"all": table.cells[:, 0]}, plan)
    elif roles.within:
        _within(results, table, plan)
    elif len(roles.between) == 1 and not roles.covariates:
        _between(results, table, plan)
    else:
        _factorial(results, table, plan)
    if roles.item:
        of_items(results, table, plan.seed)
        if roles.subject and not table.is_binary:
            of_agreement(results, table, plan.seed)
    if roles.signal:
        of_signal(results, table)
    if roles.correlate:
        of_correlation(results, table, plan.seed)
    if plan.mixed_model:
        mixed_model(results, table, plan.control)
    if roles.times:
        of_times(results, table)
    return results


def at_look(table: TidyTable, plan: AnalysisPlan, looks: LookPlan, number: int) -> Answer:
    """Whether a study goes on after a look that its plan names: nothing else is told of the data.

    Each contrast with the control has alpha divided by the number of contrasts. Raises BadTable for a design
    without such contrasts, and StatsError as `look` and the tests do.
    """
    _check_design(table, plan)
    if not plan.control:
        raise BadTable("A look tests the planned contrasts with a control: name it by --control.")
    if table.roles.within:
        pairs = paired_differences(table.cells, table.levels[table.roles.within[0]], plan.control)
        told = [(pair.t, float(pairs.df)) for pair in pairs.pairs]
    else:
        variances: Literal["equal", "separate"] = "separate" if plan.separate_variances else "equal"
        made = dunnett(groups_of(table), plan.control, variances=variances)
        told = [(each.t, each.df) for each in made.comparisons]
    least = min(2 * float(student.sf(abs(t), df)) for t, df in told)
    return look(LookPlan(looks.shares, looks.spending, looks.alpha / len(told)), number, least)


def _check_design(table: TidyTable, plan: AnalysisPlan) -> None:
    roles = table.roles
    if plan.seed < 0:
        raise BadTable(f"The seed is {plan.seed}; give 0 or a larger whole number.")
    if len(roles.within) > 2 or (roles.within and len(roles.between) > 1):
        raise BadTable(
            f"{len(roles.within)} factors within and {len(roles.between)} between people are more than is "
            "covered: at most 2 within with 1 between, or 4 between alone."
        )
    if roles.within and roles.covariates:
        raise BadTable(
            "A covariate beside factors within people is not covered, for its slope could differ between the "
            "cells: leave --covariate out, or give each person one value (the difference of two cells, "
            "or their mean) as --dv, and name the covariate beside --between."
        )
    if roles.covariates and not roles.between:
        raise BadTable("A covariate needs a factor between people: add --between.")
    factor = (*roles.between, *roles.within)[:1]
    compared = len(roles.between) + len(roles.within) == 1
    if plan.control and (not compared or plan.control not in table.levels[factor[0]]):
        known = ", ".join(table.levels[factor[0]]) if compared else "none, for there is not one factor"
        raise BadTable(f"The control {plan.control!r} is no level; the levels are: {known}.")
    if plan.chance is not None and not (
        math.isfinite(plan.chance) and (not table.is_binary or 0 <= plan.chance <= 1)
    ):
        raise BadTable(f"--chance is {plan.chance:g}; give a number, from 0 to 1 for answers 0 and 1.")
    if plan.margin and not compared:
        raise BadTable(
            "--margin compares the levels of one factor; with "
            f"{len(roles.between) + len(roles.within)} factors leave it out, or name one factor."
        )
    if (plan.plan or plan.separate_variances) and (roles.within or roles.covariates or not compared):
        raise BadTable(
            "--plan and --separate-variances are of one factor between people without covariates; leave them "
            "out: pairs within people are compared with themselves, corrected by --correction."
        )
    if plan.separate_variances and (not plan.control or plan.plan not in ("", "dunnett")):
        raise BadTable(
            "--separate-variances is of Dunnett's test: name its --control, or leave it out (Games-Howell "
            "has separate variances, Tukey-Kramer has not)."
        )
    if plan.correction != "holm" and (roles.between or not roles.within):
        raise BadTable("--correction is of pairs within people; pairs between people have the --plan.")
    if plan.plan == "dunnett" and not plan.control:
        raise BadTable("Dunnett's test compares with a control: name it by --control.")


def _estimand(table: TidyTable) -> str:
    if table.items:
        return (
            f"Tests of people speak of people on these {table.items} items, not of other items; only the "
            "mixed model takes items as drawn at random."
        )
    return "Tests speak of people like these; no column names the items, so they count as fixed."


def groups_of(table: TidyTable) -> Groups:
    """The people's values by level of the first factor between people."""
    factor = table.roles.between[0]
    codes = table.people[factor].to_numpy()
    return {name: table.cells[codes == name, 0] for name in table.levels[factor]}


def _add_means(
    results: Results, title: str, groups: Mapping[str, NDArray[np.float64]], plan: AnalysisPlan
) -> None:
    rows: list[Row] = [
        {
            "level": name,
            "n": int(values.size),
            "mean": float(values.mean()),
            **ends_of(mean_interval(values)),
            "sd": float(values.std(ddof=1)) if values.size > 1 else None,
            "median": float(np.median(values)),
        }
        for name, values in groups.items()
    ]
    results.add(ResultTable("means", title, rows, "Intervals of means: 95 %, Student's t, each by itself."))
    if plan.chance is not None:
        of_chance(results, groups, plan.chance)


def _between(results: Results, table: TidyTable, plan: AnalysisPlan) -> None:
    groups = groups_of(table)
    factor, dv = table.roles.between[0], table.roles.dv
    _add_means(results, f"{dv} by {factor}", groups, plan)
    title = f"{dv} by {factor}: analysis of variance"
    note = "Equal variances; low and high are the ends of eta squared."
    results.attempt("anova", title, lambda: one_way(groups).table(), note)
    note = "No equal variances are assumed."
    results.attempt("welch", f"{dv} by {factor}: Welch", lambda: welch_anova(groups).table(), note)
    _pairs(results, groups, plan)
    if plan.control and table.cells.min() >= 0 and table.cells.max() <= 1:
        of_utility(results, groups, plan.control, plan.seed)
    _rank_tests(results, groups)
    of_pairs_beside(results, groups)
    of_assumptions(results, table, table.people[factor].to_numpy())
    if table.is_binary and len(table.rows) == len(table.people):
        _shares(results, groups, plan)
    if plan.margin and table.is_binary and len(table.rows) == len(table.people):

        def of_shares(x: NDArray[np.float64], y: NDArray[np.float64]) -> Equivalence:
            return equivalent_shares(int(x.sum()), x.size, int(y.sum()), y.size, plan.margin)

        _equivalence(results, groups, plan, "score test of shares", of_shares)
    elif plan.margin:
        _equivalence(results, groups, plan, "Welch", lambda x, y: equivalent_means(x, y, plan.margin))


def _pairs(results: Results, groups: Groups, plan: AnalysisPlan) -> None:
    chosen = plan.plan or ("dunnett" if plan.control else "tukey")
    simultaneous = "p and intervals hold for all rows at once; g is Hedges' g with an interval of its own."
    if chosen == "dunnett":
        variances: Literal["equal", "separate"] = "separate" if plan.separate_variances else "equal"
        title = f"Planned: each level against {plan.control}, Dunnett, {variances} variances"

        def made() -> list[Row]:
            return dunnett(groups, plan.control, variances=variances).table()

        results.attempt("dunnett", title, made, simultaneous)
    if chosen == "games_howell":
        title = "Planned: all pairs, Games-Howell, separate variances"
        results.attempt("games_howell", title, lambda: games_howell(groups).table(), simultaneous)
    title = "All pairs, Tukey-Kramer" if chosen != "tukey" else "Planned: all pairs, Tukey-Kramer"
    note = "p and intervals hold for all pairs at once; equal variances."
    results.attempt("tukey", title, lambda: tukey_kramer(groups).table(), note)
    if chosen == "tukey":
        title = "Hedges' g of all pairs, with Games-Howell's p"
        results.attempt("games_howell", title, lambda: games_howell(groups).table(), simultaneous)


def _rank_tests(results: Results, groups: Groups) -> None:
    if len(groups) == 2:
        first, second = groups.values()

        def of_two() -> list[Row]:
            test = mann_whitney(first, second)
            ends = ends_of(rank_biserial_interval(test.rank_biserial, first.size, second.size))
            pair: Row = dict(zip(("first", "second"), groups, strict=True))
            return [{**pair, **test.table()[0], **ends}]

        note = "low and high are the ends of the rank-biserial correlation (Newcombe)."
        results.attempt("mann_whitney", "Mann-Whitney", of_two, note)
        return

    def of_more() -> list[Row]:
        test = kruskal_wallis(groups)
        results.notes.append(
            f"Kruskal-Wallis: H({test.df}) = {test.statistic:.2f}, {_p(test.p)}, "
            f"epsilon squared {test.effect:.3f}."
        )
        return test.table()

    note = "p by Holm over all pairs; dominance is the rank-biserial correlation with its own interval."
    results.attempt("dunn", "Ranks: Dunn's pairs after Kruskal-Wallis", of_more, note)


def _p(p: float) -> str:
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")


def _reference(groups: Mapping[str, object], plan: AnalysisPlan) -> str:
    return plan.control or next(iter(groups))


def _shares(results: Results, groups: Groups, plan: AnalysisPlan) -> None:
    counts = {name: (int(values.sum()), int(values.size)) for name, values in groups.items()}
    reference = _reference(groups, plan)
    rows: list[Row] = []
    for name, (count, total) in counts.items():
        row: Row = {"level": name, "count": count, "n": total, "share": count / total}
        row |= ends_of(wilson(count, total))
        if name != reference:
            gap = ends_of(newcombe(count, total, *counts[reference]))
            ratio = odds_ratio(count, total, *counts[reference]).table()[0]
            row |= {"difference": count / total - counts[reference][0] / counts[reference][1]}
            row |= {"difference_low": gap["low"], "difference_high": gap["high"]}
            row |= {"odds_ratio": ratio["odds_ratio"], "odds_low": ratio["low"], "odds_high": ratio["high"]}
        rows.append(row)
    test = compare_rates([c for c, _ in counts.values()], [n for _, n in counts.values()], seed=plan.seed)
    if test.p is not None:
        results.notes.append(
            f"Equal shares, {test.method}: chi-square({test.df}) = {test.statistic:.2f}, {_p(test.p)}."
        )
    note = f"Differences (Newcombe) and odds ratios (Woolf) against {reference}; shares by Wilson."
    results.add(ResultTable("shares", "Shares", rows, note))


def _equivalence(
    results: Results,
    values: Mapping[str, NDArray[np.float64]],
    plan: AnalysisPlan,
    method: str,
    test: Callable[[NDArray[np.float64], NDArray[np.float64]], Equivalence],
) -> None:
    reference = _reference(values, plan)

    def made() -> list[Row]:
        return [
            {"first": name, "second": reference, **test(each, values[reference]).table()[0]}
            for name, each in values.items()
            if name != reference
        ]

    title = f"Equivalence within {plan.margin:g}, two one-sided tests, {method}"
    note = "low and high: 90 %. p is not corrected for several comparisons."
    results.attempt("equivalence", title, made, note, level=0.90)


def _factorial(results: Results, table: TidyTable, plan: AnalysisPlan) -> None:
    roles = table.roles
    factors = {name: table.people[name].tolist() for name in roles.between}
    covariates = {name: table.people[name].to_numpy(dtype=np.float64) for name in roles.covariates}
    labels = table.people[list(roles.between)].agg(" / ".join, axis=1).to_numpy()
    values = table.cells[:, 0]
    cells = {label: values[labels == label] for label in dict.fromkeys(labels)}
    _add_means(results, f"{roles.dv} by {' x '.join(roles.between)}", cells, plan)

    def made() -> list[Row]:
        fit = factorial_anova(values, factors, covariates, sum_of_squares=plan.sum_of_squares)
        rows: list[Row] = [
            {
                "factor": m.factor,
                "level": m.level_name,
                "n": m.n,
                "mean": m.mean,
                "se": m.se,
                **ends_of(m.interval),
            }
            for m in fit.means
        ]
        note = "At the means of the covariates, over the levels of the other factors alike."
        results.add(ResultTable("adjusted", "Adjusted means", rows, note))
        results.notes += [
            f"Slope of {name}: {slope:.4g}, one for all cells." for name, slope in fit.slopes.items()
        ]
        return fit.table()

    title = f"Analysis of {'co' if covariates else ''}variance, type {plan.sum_of_squares} sums of squares"
    note = "low and high are the ends of partial eta squared."
    results.attempt("factorial", title, made, note)
    of_assumptions(results, table, labels)


def _within(results: Results, table: TidyTable, plan: AnalysisPlan) -> None:
    roles = table.roles
    names = [" / ".join(parts) for parts in _product([table.levels[name] for name in roles.within])]
    by_cell = dict(zip(names, table.cells.T, strict=True))
    groups = table.people[roles.between[0]].tolist() if roles.between else None
    if groups is None:
        _add_means(results, f"{roles.dv} by {' x '.join(roles.within)}", by_cell, plan)
    else:
        codes = np.asarray(groups)
        split = {
            f"{group} / {name}": values[codes == group]
            for group in table.levels[roles.between[0]]
            for name, values in by_cell.items()
        }
        _add_means(results, f"{roles.dv} by {' x '.join((*roles.between, *roles.within))}", split, plan)
    factors = {name: table.levels[name] for name in roles.within}
    between = roles.between[0] if roles.between else "group"
    title = "Analysis of variance within people" if groups is None else "Mixed analysis of variance"
    note = (
        "p_gg and p_hf: corrected by Greenhouse and Geisser's and Huynh and Feldt's epsilon, whatever "
        "Mauchly's test says. low and high are the ends of partial eta squared."
    )
    results.attempt(
        "repeated",
        title,
        lambda: repeated_measures(table.cells, factors, groups, between=between).table(),
        note,
    )
    if groups is None:
        _within_pairs(results, table.cells, names, plan)
    if plan.margin:
        _equivalence(results, by_cell, plan, "paired t", lambda x, y: equivalent_changes(x, y, plan.margin))


def _product(levels: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    made: list[tuple[str, ...]] = [()]
    for names in levels:
        made = [(*parts, name) for parts in made for name in names]
    return made


def _within_pairs(
    results: Results, cells: NDArray[np.float64], names: Sequence[str], plan: AnalysisPlan
) -> None:
    control = plan.control or None
    which = f"each level against {control}" if control else "all pairs"
    corrected = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg"}[plan.correction]
    note = f"p by {corrected}; intervals hold for all rows at once; g_z has an interval of its own."
    results.attempt(
        "paired",
        f"Planned: {which}, paired t",
        lambda: paired_differences(cells, names, control, correction=plan.correction).table(),
        note,
    )
    if len(names) > 2:

        def ranked() -> list[Row]:
            test = friedman(cells, names)
            results.notes.append(
                f"Friedman: chi-square({test.df}) = {test.statistic:.2f}, {_p(test.p)}, "
                f"Kendall's W {test.effect:.3f}."
            )
            return test.table()

        note = "p over all pairs; dominance: share with a larger first value less that with a larger second."
        results.attempt("nemenyi", "Ranks: Nemenyi's pairs after Friedman", ranked, note)
        return

    def of_two() -> list[Row]:
        row = signed_rank(*cells.T).table()[0]
        pair: Row = {"first": names[0], "second": names[1]}
        return [{**pair, **row, **ends_of(signed_rank_interval(*cells.T))}]

    note = "low and high are the ends of the rank-biserial correlation."
    results.attempt("signed_rank", "Wilcoxon's signed ranks", of_two, note)
