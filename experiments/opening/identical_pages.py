"""Explanations of one item whose pages are the same to the pixel under several conditions: one is met, and
stands for all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from experiments.models import Rendering, Study

Explanation = tuple[str, str]
"""(item key, condition name)."""
Group = tuple[str, ...]
"""Names of conditions, in the study's order."""


def coinciding(study: Study) -> dict[Explanation, str]:
    """(item, condition) -> the first condition whose page of the item is the same: the picture, its
    explanation, the class that is explained, and all of that of its changed copies. What is not rendered yet
    coincides with nothing.
    """
    shared: dict[Explanation, str] = {}
    first: dict[tuple[str, object], str] = {}
    for (item, condition), page in _pages(study).items():
        if not all(digest for *_, digest in page.values()):
            continue
        holder = first.setdefault((item, frozenset(page.items())), condition)
        if holder != condition:
            shared[item, condition] = holder
    return shared


def _pages(study: Study) -> dict[Explanation, dict[str, tuple[str, ...]]]:
    """What stands on the page of an explanation, by role, in the order of the conditions."""
    said = {
        (key, predictor): predicted
        for key, predictor, predicted in study.items.filter(predictions__isnull=False).values_list(
            "key", "predictions__predictor", "predictions__predicted"
        )
    }
    rows = Rendering.objects.filter(item__study=study, condition__explainer__isnull=False)
    pages: dict[Explanation, dict[str, tuple[str, ...]]] = defaultdict(dict)
    fields = ("item__key", "item__copy_of__key", "item__perturbation", "item__predicted", "condition__name")
    more = ("condition__predictor", "stimulus__image_file", "stimulus__picture_digest")
    for key, of, how, predicted, condition, predictor, image, digest in (
        rows.order_by("condition__ordinal", "item__key").values_list(*fields, *more).iterator(5000)
    ):
        label = "" if of else said.get((key, predictor), predicted)
        role = str(how.get("aim", ""))
        pages[of or key, condition][role] = (label, image, digest)
    return pages


def groups_of(shared: Mapping[Explanation, str]) -> list[Group]:
    """Per item the groups of conditions that coincide."""
    groups: dict[Explanation, list[str]] = {}
    for (item, condition), holder in shared.items():
        groups.setdefault((item, holder), [holder]).append(condition)
    return [tuple(group) for group in groups.values()]


def coinciding_sentences(shared: Mapping[Explanation, str], items: int) -> list[str]:
    """Which conditions coincide, and on how many of `items` pictures; none if none do."""
    sentences = []
    for names, count in sorted(Counter(groups_of(shared)).items()):
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        stands = "both" if len(names) == 2 else "all"
        sentences.append(
            f"{listed} coincide to the pixel on {count} of {items} pictures: such a page is rated once, and "
            f"the rating stands for {stands}."
        )
    return sentences


def mark(study: Study, shared: Mapping[Explanation, str]) -> None:
    """Writes down whose rating stands for which explanation."""
    by_pair: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (item, condition), holder in shared.items():
        by_pair[condition, holder].append(item)
    for (condition, holder), items in by_pair.items():
        for some in _chunks(items):
            rows = Rendering.objects.filter(
                item__study=study, item__key__in=some, condition__name=condition, condition__study=study
            )
            rows.update(rated_as=holder)


def _chunks(items: Sequence[str], size: int = 500) -> Iterable[Sequence[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))
