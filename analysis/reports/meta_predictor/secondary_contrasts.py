"""Key secondary contrasts of a meta-predictor study: the methods that differ from the baseline, against the
control."""

from __future__ import annotations

from analysis.any_table.formats import NONE, confidence, interval, level, number, p_value, stars
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.reports.base import Section
from analysis.reports.utility.accuracy_anova import Analysis, contrast_content, control_of
from analysis.stats.intervals_and_checks import json_of
from analysis.stats.means.effect_size import MeanDifference

TITLE = "Key secondary contrasts: methods against the control"
WORDS = {None: "not detected", True: "better", False: "worse"}


def contrast_columns(held_at: float) -> tuple[str, ...]:
    """The headings of `contrast_cells`."""
    held = confidence(held_at)
    return ("Difference", f"{held} interval", "t", "df", "p", f"Hedges' g, {held}")


def contrast_cells(each: MeanDifference, alpha: float) -> tuple[str, ...]:
    """A comparison in percentage points, with a star for p < alpha."""
    return (
        number(100 * each.difference, 1),
        interval(each.interval, 1, 100),
        number(each.t),
        number(each.df, 1),
        p_value(each.p) + stars(each.p, alpha),
        f"{number(each.size.g)} {interval(each.size.interval)}",
    )


def secondary_sections(result: Analysis, facts: StudyFacts) -> tuple[Section, ...]:
    """None without a single control, and if the plan declares all pairs."""
    control = control_of(facts)
    if control is None or facts.contrasts != "dunnett":
        return ()
    if result.secondary is None:
        return (Section("secondary", TITLE, None, result.problems),)
    rows, contents = [], []
    columns = contrast_columns(result.secondary.level)
    for method in (c for c in facts.conditions if c.role == "method"):
        first, read = result.planned(method.name), None
        is_better = first.difference > 0 if first and first.p < facts.alpha else None
        if is_better is not None:
            read = result.against_control(method.name)
        told = WORDS[is_better] if first else NONE
        cells = contrast_cells(read, facts.alpha) if read else (NONE,) * len(columns)
        rows.append((method.label, told, *cells))
        against = WORDS[is_better] if first else None
        contrast = contrast_content(read)
        contents.append({"condition": method.name, "against_baseline": against, "contrast": contrast})
    variances = "pooled over them" if result.secondary.variances == "equal" else "separate for each"
    label = next(c.label for c in facts.conditions if c.name == control)
    table = Table(
        "secondary",
        TITLE,
        ("Method", "Against the baseline", *columns),
        tuple(rows),
        f"The method less {label}, in percentage points of accuracy per person. Read only for methods whose "
        f"planned contrast with the baseline has p < {level(facts.alpha)}, in the direction told; a dash: no "
        "such difference was detected, or people are too few. Dunnett's two-sided test over all methods and "
        f"the control, variances {variances}: p and intervals of differences hold for all methods together, "
        "as a family of their own; those of g are of one row alone.",
        left=2,
        short=("Method", "vs base", "Diff.", confidence(result.secondary.level), "t", "df", "p", "g"),
    )
    content = {"control": control, **json_of(result.secondary, "variances", "level"), "contrasts": contents}
    return (Section("secondary", TITLE, content, (), (table,)),)
