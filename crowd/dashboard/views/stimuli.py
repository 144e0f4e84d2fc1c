"""The contact sheet: items down, conditions across; and the pictures themselves."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

from django.contrib import messages
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect

from analysis.any_table.formats import condition_label
from crowd.dashboard.access import refusals, researcher_of, study_act, study_page
from crowd.dashboard.layout import choices, page_of, study_response
from crowd.dashboard.rows.contact_sheet import (
    Measure,
    lines_of,
    measures_of,
    orders_of,
    people_right,
    sort_items,
)
from crowd.dashboard.rows.places_and_exclusions import drawing_of
from crowd.dashboard.rows.stimulus_quality import LEGEND, measured_of
from crowd.people.result_seals import printed_name
from crowd.study_check.quality_record import acknowledge_as
from experiments.drafting.draft_rows import picture_keys
from experiments.drafting.dropped_items import dropped_rows, dropped_sentence
from experiments.drafting.stimulus_warnings import REASON_MIN
from experiments.models import Condition, Item, Rendering, Study
from stimuli.build import identical_pictures
from stimuli.errors import NotRendered, StoreSilent
from stimuli.models import Stimulus
from stimuli.store.media_access import read_media

PER_PAGE, ALL = 12, 400
"""Items on a page; the second is for paper."""
FILES = {
    "image": "image_file",
    "explanation": "explanation_file",
    "tile": "image_tile_file",
    "explanation-tile": "explanation_tile_file",
}
GROUPS_SHOWN = 20


@study_page("view")
def stimuli(request: HttpRequest, study: Study) -> HttpResponse:
    drawing = drawing_of(study)
    conditions = list(study.conditions.order_by("ordinal"))
    groups = _identical(study) if drawing.done else []
    measures = measures_of(study, conditions)
    content = {
        "measures": measures,
        "drawing": drawing,
        "columns": [condition_label(condition.name) for condition in conditions],
        **_sheet(request, study, conditions, measures),
        "groups": groups[:GROUPS_SHOWN],
        "groups_left": max(0, len(groups) - GROUPS_SHOWN),
        "quality": measured_of(study, conditions),
        "is_draft_with_methods": study.state == Study.State.DRAFT and any(c.explainer for c in conditions),
        "quality_legend": LEGEND,
        "reason_min": REASON_MIN,
        "dropped": dropped_sentence(study.dropped),
        "dropped_rows": dropped_rows(study.dropped) if study.dropped else (),
        "printed_name": printed_name(researcher_of(request)),
    }
    return study_response(request, study, "stimuli", content)


@study_act("run")
def acknowledge(request: HttpRequest, study: Study) -> HttpResponse:
    """The user knows the warnings about the stimuli, and goes on; reports print name and reason."""
    user = researcher_of(request)
    with refusals(partial(messages.error, request)):
        reason = request.POST.get("reason", "")[:1000]
        count = acknowledge_as(study, user.get_username(), printed_name(user), reason)
        are = "warning is" if count == 1 else "warnings are"
        messages.success(request, f"{count} {are} acknowledged; every report prints your name and reason.")
    return redirect("dashboard:stimuli", slug=study.slug)


@study_page("view")
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


def _filter_items(items: QuerySet[Item, Item], answer: str) -> QuerySet[Item, Item]:
    if answer == "right":
        return items.filter(predicted=F("truth"))
    if answer == "wrong":
        return items.exclude(predicted=F("truth"))
    return items


def _sheet(
    request: HttpRequest, study: Study, conditions: list[Condition], measures: list[Measure]
) -> dict[str, Any]:
    """The items that were asked for, in their order, and the choices above them."""
    asked = request.GET.get
    answer, length = asked("answer", ""), asked("items", "")
    metrics = {"": "None"} | {m.key: f"{m.metric} {m.settings}".strip() for m in measures}
    metric = asked("metric", "") if asked("metric") in metrics else ""
    people = people_right(study)
    orders = orders_of(metric, people)
    order = asked("order", "") if asked("order") in orders else ""
    items = _filter_items(Item.objects.filter(study=study, copy_of=None), answer)
    keys = sort_items(items, order, metric, people)
    page = page_of(request, keys, ALL if length == "all" else PER_PAGE)
    shown = Item.objects.in_bulk(list(page.object_list))
    rows = lines_of([shown[key] for key in page.object_list], conditions, metric, people)
    page.object_list = rows
    answers = {"": "All", "right": "Model right", "wrong": "Model wrong"}
    lengths = {"": f"{PER_PAGE} on a page", "all": "All, to print"}
    return {
        "page": page,
        # A picture that was not scrolled to may be missing on paper.
        "loading": "eager" if length == "all" else "lazy",
        "filters": (
            ("Items", choices(request, "answer", answers, answer)),
            ("Order", choices(request, "order", orders, order)),
            *([("Metric", choices(request, "metric", metrics, metric))] if measures else []),
            *([("Show", choices(request, "items", lengths, length))] if len(keys) > PER_PAGE else []),
        ),
    }


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
