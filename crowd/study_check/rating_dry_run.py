"""What a dry run says of a study of ratings: explanations, lists, people, questions that are not asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crowd.study_check.stimulus_exposures import exposures
from experiments.drafting.perturbed_copies import copies_sentences

if TYPE_CHECKING:
    from analysis.planning.study_power import SharedItems
    from experiments.paradigms.base import Plan

ITEMS_FEW = 60
"""With fewer items a comparison says little about others than these."""


@dataclass(frozen=True, slots=True)
class RatingPlan:
    """The explanations of the plans: how often each (item, condition) is asked each question, anchors apart;
    the lists of each lane, of which a person may rate `sittings_max`; what pairs of conditions are compared
    on; the showings of changed copies, and what is stored of the search for them."""

    asked: Mapping[tuple[str, str, str], int]
    anchors: frozenset[tuple[str, str]]
    lists: Mapping[str, int]
    sittings_max: int
    shared: SharedItems
    shown_copies: Mapping[tuple[str, str], int]
    copies: Mapping[str, Any]

    @property
    def explanations(self) -> set[tuple[str, str]]:
        return {(item, condition) for item, condition, _ in self.asked}

    def gaps(self) -> list[tuple[str, str, int, int]]:
        """(condition, question, explanations of which it is not asked, explanations) if there are any."""
        questions = list(dict.fromkeys(question for *_, question in self.asked))
        of = Counter(condition for _, condition in self.explanations)
        asked = Counter((condition, question) for _, condition, question in self.asked)
        cells = [(condition, question) for condition in sorted(of) for question in questions]
        return [(c, q, of[c] - asked[c, q], of[c]) for c, q in cells if asked[c, q] < of[c]]


def rated_in(plans: Sequence[Plan], sittings_max: int, copies: Mapping[str, Any]) -> RatingPlan | None:
    """None if nothing is rated."""
    from analysis.planning.study_power import shared_items

    asked: Counter[tuple[str, str, str]] = Counter()
    anchors: set[tuple[str, str]] = set()
    for trial in (trial for plan in plans for trial in plan.trials):
        if "questions" not in trial.extra or trial.item is None:
            continue
        if trial.extra.get("anchor"):
            anchors.add((trial.item, trial.condition))
        else:
            asked.update((trial.item, trial.condition, name) for name in trial.extra["questions"])
    shared = shared_items(plans, sittings_max)
    if shared is None:
        return None
    lists = Counter(plan.lane for plan in plans)
    return RatingPlan(asked, frozenset(anchors), lists, sittings_max, shared, exposures(plans).copies, copies)


def rated_lines(rated: RatingPlan | None) -> Iterator[str]:
    """What the check prints of it; nothing for a study without ratings."""
    if rated is None:
        return
    least, most = rated.shared.people, sum(rated.lists.values())
    yield (
        f"{len(rated.explanations):,} explanations, each asked about by {rated.shared.raters} people; "
        f"{most:,} lists in {len(rated.lists)} rounds, and a person stays in one round. {least:,} to "
        f"{most:,} people are needed, as each may rate up to {rated.sittings_max} lists (sittings_max)."
    )
    if rated.anchors:
        yield (
            f"{len(rated.anchors)} further explanations stand in every list as anchors: who comes again "
            "rates them again."
        )
    yield from copies_sentences(rated.copies)
    if rated.shown_copies:
        yield (
            f"{len(rated.shown_copies):,} explanations of changed copies stand beside those of their "
            f"pictures, {sum(rated.shown_copies.values()):,} times in all; no other table counts them."
        )
    yield (
        "Explanations whose pages coincide to the pixel are rated once, and the rating stands for all: which "
        "ones do is known when they are rendered (build_stimuli prints them)."
    )


def rated_tables(rated: RatingPlan | None) -> Iterator[tuple[str, tuple[str, ...], list[tuple[Any, ...]]]]:
    """Title, columns and rows of the tables that belong to it."""
    if rated is None:
        return
    if gaps := rated.gaps():
        columns = ("condition", "question", "not asked of", "explanations")
        yield "Questions that are not asked, for the copy is missing", columns, list(gaps)


def rated_warnings(rated: RatingPlan | None) -> list[str]:
    """What a careful researcher would correct in a study of ratings."""
    if rated is None:
        return []
    warnings = []
    if rated.anchors and rated.sittings_max == 1:
        warnings.append(
            "anchors are rated again only by those who come again, and with sittings_max = 1 no person "
            "may: set sittings_max, or anchors = 0"
        )
    if rated.shared.pairs and rated.shared.items < ITEMS_FEW:
        warnings.append(
            f"some conditions share only {rated.shared.items} pictures; below {ITEMS_FEW} a comparison says "
            "little about others than these, and finds large differences alone (see the power): raise "
            "[stimuli] items or explanations_per_item"
        )
    for condition, question, left, of in rated.gaps():
        if left > of / 2:
            warnings.append(
                f"{question} is not asked of {left / of:.0%} of the explanations of {condition}, for there "
                "is no such copy: its mean would be that of a chosen minority; widen [design.perturbations]"
            )
    return warnings
