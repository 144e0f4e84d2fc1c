"""The contact sheet: items down, conditions across; and the pictures themselves."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.db.models import Avg, Count, F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from analysis.reports.formats import condition_label
from crowd.dashboard.access import researcher_of, study_page
from crowd.dashboard.counts import drawing_of
from crowd.dashboard.layout import choices, page_of, study_response
from crowd.dashboard.measured import LEGEND, measured_of
from crowd.people.seals import printed_name
from crowd.recruiting.measured import acknowledge_as
from experiments.drafts import picture_keys
from experiments.dropping import dropped_rows, dropped_sentence
from experiments.errors import StudyError
from experiments.models import Condition, Item, Rendering, Study
from experiments.quality import REASON_MIN
from stimuli.build import identical_pictures
from stimuli.errors import NotRendered, StoreSilent
from stimuli.models import Stimulus
from stimuli.store.media import read_media

PER_PAGE = 12
FILES = {
    "image": "image_file",
    "explanation": "explanation_file",
    "tile": "image_tile_file",
    "explanation-tile": "explanation_tile_file",
}
GROUPS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Cell:
    """One item under one condition. `same_as` names a condition to the left whose picture is identical."""

    stimulus: Stimulus | None
    label: str
    kind: str
    same_as: str = ""


@dataclass(frozen=True, slots=True)
class StimulusRow:
    item: Item
    is_right: bool
    cells: tuple[Cell, ...]


@study_page("view")
@require_safe
def stimuli(request: HttpRequest, study: Study) -> HttpResponse:
    drawing = drawing_of(study)
    answer = request.GET.get("answer", "")
    items = _chosen(Item.objects.filter(study=study, copy_of=None), answer)
    page = page_of(request, items.order_by("key"), PER_PAGE)
    conditions = list(study.conditions.order_by("ordinal"))
    page.object_list = _lines(list(page.object_list), conditions)
    groups = _identical(study) if drawing.done else []
    measures = _measures(study, conditions)
    content = {
        "measures": measures,
        "drawing": drawing,
        "page": page,
        "columns": [condition_label(condition.name) for condition in conditions],
        "answers": choices(
            request, "answer", {"": "All", "right": "Model right", "wrong": "Model wrong"}, answer
        ),
        "groups": groups[:GROUPS_SHOWN],
        "groups_left": max(0, len(groups) - GROUPS_SHOWN),
        "is_filtered": bool(answer),
        "quality": measured_of(study, conditions),
        "is_draft_with_methods": study.state == Study.State.DRAFT and any(c.explainer for c in conditions),
        "quality_legend": LEGEND,
        "reason_min": REASON_MIN,
        "dropped": dropped_sentence(study.dropped),
        "dropped_rows": dropped_rows(study.dropped) if study.dropped else (),
        "printed_name": printed_name(researcher_of(request)),
    }
    return study_response(request, study, "stimuli", content)


@study_page("run")
@require_POST
def acknowledge(request: HttpRequest, study: Study) -> HttpResponse:
    """The user knows the warnings about the stimuli, and goes on; reports print name and reason."""
    user = researcher_of(request)
    try:
        reason = request.POST.get("reason", "")[:1000]
        count = acknowledge_as(study, user.get_username(), printed_name(user), reason)
    except StudyError as error:
        messages.error(request, str(error))
    else:
        are = "warning is" if count == 1 else "warnings are"
        messages.success(request, f"{count} {are} acknowledged; every report prints your name and reason.")
    return redirect("dashboard:stimuli", slug=study.slug)


@study_page("view")
@require_safe
def picture(request: HttpRequest, study: Study, stimulus: int, kind: str) -> HttpResponse:
    """One stored picture of this study. It never changes, so a browser may keep it, but no shared cache."""
    field = FILES.get(kind, "")
    rows = Stimulus.objects.filter(pk=stimulus, renderings__item__study=study)
    file = rows.values_list(field, flat=True).first() if field else None
    if not file:
        raise Http404("There is no such picture in this study.")
    try:
        content, content_type = read_media(file)
    except (NotRendered, StoreSilent) as error:
        raise Http404("This picture is not in the store.") from error
    response = HttpResponse(content, content_type=content_type)
    response["Cache-Control"] = "private, max-age=86400, immutable"
    return response


def _chosen(items: QuerySet[Item, Item], answer: str) -> QuerySet[Item, Item]:
    if answer == "right":
        return items.filter(predicted=F("truth"))
    if answer == "wrong":
        return items.exclude(predicted=F("truth"))
    return items


def _lines(items: list[Item], conditions: list[Condition]) -> list[StimulusRow]:
    rows = Rendering.objects.filter(item__in=items).select_related("stimulus").order_by("variant")
    by_cell: dict[tuple[int, int], Stimulus] = {}
    for row in rows:
        # Of several solutions of one source the first one stands for all.
        by_cell.setdefault((row.item_id, row.condition_id), row.stimulus)
    lines = []
    for item in items:
        seen: dict[str, str] = {}
        cells = []
        for condition in conditions:
            stimulus = by_cell.get((item.pk, condition.pk))
            label = condition_label(condition.name)
            digest = stimulus.picture_digest if stimulus else ""
            same_as = seen.get(digest, "") if digest else ""
            seen.setdefault(digest, label)
            kind = "explanation" if stimulus and stimulus.explanation_file else "image"
            cells.append(Cell(stimulus, label, kind, same_as))
        lines.append(StimulusRow(item, item.truth == item.predicted, tuple(cells)))
    return lines


@dataclass(frozen=True, slots=True)
class Measure:
    """Means of one metric by condition, in the order of the columns; empty if nothing is measured."""

    metric: str
    settings: str
    unit: str
    better: str
    count: int
    means: tuple[str, ...]


def _measures(study: Study, conditions: list[Condition]) -> list[Measure]:
    """What the automatic metrics say of each condition: no person's answer is in it, so nothing is sealed."""
    of = "stimulus__measurements__"
    names = [f"{of}{name}" for name in ("key", "metric", "parameters", "unit", "better")]
    rows = Rendering.objects.filter(item__study=study, **{f"{of}value__isnull": False})
    by_metric: defaultdict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for row in rows.values("condition_id", *names).annotate(mean=Avg(f"{of}value"), count=Count("pk")):
        by_metric[row[f"{of}key"]][row["condition_id"]] = row
    measures = []
    for by_condition in by_metric.values():
        first = next(iter(by_condition.values()))
        settings = ", ".join(
            f"{name} {json.dumps(value)}" for name, value in first[f"{of}parameters"].items()
        )
        means = tuple(f"{by_condition[c.pk]['mean']:.4g}" if c.pk in by_condition else "" for c in conditions)
        count = sum(row["count"] for row in by_condition.values())
        measures.append(
            Measure(first[f"{of}metric"], settings, first[f"{of}unit"], first[f"{of}better"], count, means)
        )
    return sorted(measures, key=lambda measure: (measure.metric, measure.settings))


def _identical(study: Study) -> list[list[str]]:
    """Stimuli whose pictures are the same to the pixel, as the names of item and condition."""
    groups = identical_pictures(picture_keys(study))
    keys = [key for group in groups for key in group][: GROUPS_SHOWN * 20]
    rows = Rendering.objects.filter(item__study=study, stimulus__key__in=keys)
    names: defaultdict[str, list[str]] = defaultdict(list)
    for key, item, condition in rows.order_by("condition__ordinal").values_list(
        "stimulus__key", "item__key", "condition__name"
    ):
        names[key].append(f"{item} ({condition_label(condition)})")
    return [[name for key in group for name in names[key]] for group in groups]
