"""What the sources of a stage gave for its items: people's kept answers, and what the models say and mark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from experiments.errors import StudyError
from experiments.kinds import get_kind
from experiments.models import Condition, Item, Rendering, Response, Session, Study
from experiments.paradigms.solutions import SolvedItem, SourceAnswer
from stimuli.errors import StimulusError
from stimuli.regions.grid import cells_of, mask_of
from stimuli.regions.network_view_cells import cell_strengths, cells_of_view
from stimuli.render.recipe import Canvas
from stimuli.spec import StimulusSpec
from stimuli.store.files import read_attribution, read_region
from stimuli.store.media_access import current_store
from stimuli.types import Mask, PixelAttribution, Use

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from numpy.typing import NDArray

    from stimuli.types import Progress


def items_of(study: Study) -> tuple[SolvedItem, ...]:
    """Every item of the stage, in the order of keys."""
    rows = Item.objects.filter(study=study, copy_of=None).order_by("key")
    return tuple(SolvedItem(i.key, i.truth, i.group, cast("Use", i.use)) for i in rows.defer("logits"))


COUNTS = {"session__verdict": "passed", "session__slot__kept": True, "session__excluded": {}}
"""Of whom answers are solutions."""


def _answers(study: Study) -> QuerySet[Response]:
    """Answers to trials that show an item and are no checks."""
    asked = Response.objects.filter(session__study=study, trial__check_kind="", trial__item__isnull=False)
    return asked.exclude(session__origin__in=Session.UNPLACED)


def answers_not_kept(study: Study) -> int:
    """How many answers are no solutions: of people who were screened or excluded, or who left."""
    return _answers(study).count() - _answers(study).filter(**COUNTS).count()


def given_by_people(study: Study) -> tuple[SourceAnswer, ...]:
    """Kept answers to trials that ask for a label, item by item, in the order of slots."""
    rows = _answers(study).filter(**COUNTS).select_related("trial__item", "trial__condition")
    times: Counter[tuple[str, str]] = Counter()
    given = []
    for row in rows.order_by("trial__item__key", "session__slot__ordinal", "position"):
        choice, item = get_kind(row.trial.kind).choice(row.value), row.trial.item
        if choice is None or item is None:
            continue
        source = row.trial.condition.name if row.trial.condition else ""
        mark, side = None, row.trial.extra.get("grid")
        if row.value.get("region") and side:
            mark = _cells_mask(row.value["region"], int(side), item.key)
        given.append(SourceAnswer(item.key, source, choice, times[item.key, source], mark))
        times[item.key, source] += 1
    return tuple(given)


def _cells_mask(cells: Sequence[int], side: int, item: str) -> Mask:
    try:
        return mask_of(cells, side)
    except StimulusError as error:
        raise StudyError(f"an answer to {item!r} cannot be frozen: {error}.") from error


def given_by_models(
    study: Study, items: Sequence[str], side: int | None, progress: Progress
) -> Iterator[SourceAnswer]:
    """What each condition with an explainer says and marks of these items. Raises StudyError for a map that
    is not made, and for a method that marks no places."""
    rows = Rendering.objects.filter(
        item__study=study, item__key__in=items, condition__explainer__isnull=False
    ).select_related("item", "condition", "stimulus")
    total = rows.count()
    for done, row in enumerate(rows.order_by("condition__ordinal", "item__key").iterator(500), 1):
        mark = _marked_by(row, side) if side is not None else None
        yield SourceAnswer(row.item.key, row.condition.name, row.item.predicted, 0, mark, row.item.confidence)
        progress("reading maps", done, total)


def _marked_by(row: Rendering, side: int) -> NDArray[Any]:
    spec = StimulusSpec.from_json(row.stimulus.spec)
    where = f"{row.condition.name!r} of {row.item.key!r}"
    try:
        made = read_attribution(current_store(), spec.attribution_key)
    except StimulusError as error:
        raise StudyError(
            f"there is no map of {where} ({error}). Run build_stimuli with the store that held the maps "
            "of this study."
        ) from error
    if not isinstance(made, PixelAttribution):
        raise StudyError(f"{where} is no map, so it marks no place: a method of kind source needs maps.")
    return cell_strengths(made, spec.render, spec.canvas, side)


def planted_cells(study: Study, side: int, uses: Sequence[Use]) -> dict[str, tuple[int, ...]]:
    """Item -> the cells that are known to hold what decides, of the study's items of these uses; without
    those of which nothing is known."""
    regions = str(study.predictor.get("regions", ""))
    if not regions:
        return {}
    store, canvases = current_store(), _canvases(study)
    planted = {}
    for key, image in Item.objects.filter(study=study, use__in=uses).values_list("key", "image_key"):
        region = read_region(store, regions, image)
        if region is not None and region.any():
            planted[key] = cells_of(cells_of_view(region, canvases.get(key), side))
    return planted


def _canvases(study: Study) -> dict[str, Canvas]:
    """The picture that people see of each item, if it is another than the network's view."""
    specs = Rendering.objects.filter(item__study=study).values_list("item__key", "stimulus__spec")
    return {key: Canvas.from_json(spec["canvas"]) for key, spec in specs.iterator(500) if spec.get("canvas")}


def sources_of(study: Study) -> tuple[list[str], list[str]]:
    """The names of the conditions in which people solve, and of those in which models do."""
    rows = Condition.objects.filter(study=study).order_by("ordinal").values_list("name", "explainer")
    return [n for n, explainer in rows if not explainer], [n for n, explainer in rows if explainer]
