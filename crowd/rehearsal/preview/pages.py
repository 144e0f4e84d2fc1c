"""The pages of a preview: a bar with what can be chosen above the participant's page itself."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_safe

from analysis.any_table.formats import condition_label
from crowd.dashboard.rows.trials import CHECKS, PHASES
from crowd.joining.entry_and_exit import preview_query
from crowd.rehearsal.preview.drafts import Preview
from experiments.errors import StudyError
from experiments.gates.plan import gate_plan
from experiments.models import Study
from experiments.opening.preview_draft import PreviewDraft
from experiments.paradigms.base import Plan, PlannedTrial
from experiments.sessions.previews import COMMENT
from experiments.wording.sentence_tables import LANGUAGES

DOT = " \N{MIDDLE DOT} "


@dataclass(frozen=True, slots=True)
class ListEntry:
    """An entry of a list: its value in the address, its words, and whether it is shown now."""

    value: str
    words: str
    is_now: bool


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the participant's: that of a gate, a trial at its `position`, or the last. It needs the
    pictures of all parts up to `block`; -1: none."""

    value: str
    words: str
    block: int
    position: int | None = None

    @property
    def kind(self) -> str:
        """Of a page that is no trial."""
        return self.value if self.position is None else ""


def pages_of(preview: Preview, token: str) -> list[Any]:
    """The addresses of a preview, all below its token; any other token is no address."""

    def guarded(page: Callable[[HttpRequest, Preview], HttpResponse]) -> Callable[..., HttpResponse]:
        @require_safe
        @xframe_options_sameorigin
        def view(request: HttpRequest, given: str) -> HttpResponse:
            if not secrets.compare_digest(given.encode(), token.encode()):
                raise Http404("no such preview")
            response = page(request, preview)
            response["Cache-Control"] = "no-store"
            response["Referrer-Policy"] = "no-referrer"
            return response

        return view

    return [
        path("<str:given>/", guarded(frame), name="frame"),
        path("<str:given>/see", guarded(see), name="see"),
        path("<str:given>/now", guarded(now), name="now"),
    ]


def frame(request: HttpRequest, preview: Preview) -> HttpResponse:
    """The bar, and the chosen page below it."""
    context: dict[str, Any] = {"faults": preview.faults, "path": preview.path, "now": now_of(preview)}
    draft = preview.draft
    if draft is not None:
        plan, pages, page, language = chosen(request, preview)
        asked = {"place": plan.ordinal, "page": page.value, "language": language, "reading": preview.drafted}
        places = [ListEntry(str(p.ordinal), place_words(p, draft.plans), p is plan) for p in places_of(draft)]
        tongues = [ListEntry(name, name, name == language) for name in languages_of(draft)]
        context |= {
            "title": draft.definition.title,
            "lists": [
                ("place", "Condition" if plan.condition else "Place", places),
                ("page", "Page", [ListEntry(p.value, p.words, p is page) for p in pages]),
                ("language", "Language", tongues),
            ],
            "notes": draft.notes,
            "see": f"see?{urlencode(asked)}",
        }
    return render(request, "preview/frame.html", context)


def see(request: HttpRequest, preview: Preview) -> HttpResponse:
    """Leads to the participant's page at the chosen place, once its pictures are made."""
    if preview.draft is None:
        return render(request, "preview/wait.html", {"doing": preview.doing, "fails": bool(preview.faults)})
    plan, _, page, language = chosen(request, preview)
    try:
        study = preview.study(preview.view(language, plan.ordinal, page.block))
    except StudyError as error:
        return render(request, "preview/wait.html", {"problem": error})
    if study is None:
        return render(request, "preview/wait.html", {"doing": preview.doing or "drawing pictures"})
    query = preview_query(study, plan.ordinal, page.position, page.kind)
    return HttpResponseRedirect(f"{reverse('join', args=[study.slug])}?{query}")


def now(request: HttpRequest, preview: Preview) -> JsonResponse:
    return JsonResponse(now_of(preview))


def now_of(preview: Preview) -> dict[str, object]:
    """What tells a page that it is out of date, and what is being done."""
    return {"reading": preview.reading, "doing": preview.doing}


def chosen(request: HttpRequest, preview: Preview) -> tuple[Plan, list[Page], Page, str]:
    """What the address names; for what it does not name, or what is no longer there, the first trial of the
    first place with explanations, in the study's language."""
    assert preview.draft is not None and preview.rows is not None
    draft, places = preview.draft, places_of(preview.draft)
    telling = next((p for p in places if any(t.explained for t in p.trials)), places[0])
    plan = next((p for p in places if str(p.ordinal) == request.GET.get("place")), telling)
    pages = pages_of_place(preview.rows, plan)
    first = next(page for page in pages if page.position == 0)
    page = next((page for page in pages if page.value == request.GET.get("page")), first)
    tongue = request.GET.get("language", "")
    return plan, pages, page, tongue if tongue in languages_of(draft) else draft.definition.tag


def places_of(draft: PreviewDraft) -> list[Plan]:
    """In the order of the conditions in the file."""
    order = [condition.name for condition in draft.definition.conditions]
    return sorted(draft.plans, key=lambda p: (order.index(p.condition) if p.condition else 0, p.ordinal))


def place_words(plan: Plan, places: Sequence[Plan]) -> str:
    """The condition of a place; of one that mixes them its number, with its lane if there are several."""
    if plan.condition:
        return condition_label(plan.condition)
    lane = condition_label(plan.lane) if len({place.lane for place in places}) > 1 else ""
    return DOT.join(filter(None, (f"Place {plan.ordinal + 1}", lane)))


def languages_of(draft: PreviewDraft) -> list[str]:
    """The study's own first."""
    return list(dict.fromkeys((draft.definition.tag, *LANGUAGES)))


def pages_of_place(study: Study, plan: Plan) -> list[Page]:
    """Every page that a person in this place meets, in their order."""
    blocks = {b: list(trials) for b, trials in groupby(plan.trials, key=attrgetter("block"))}
    arm = tuple(any(trial.explained for trial in trials) for trials in blocks.values())
    stops = gate_plan(study, arm)
    pages = [Page(stop.kind, _words(stop.kind), -1) for stop in stops if stop.place in ("start", "arm")]
    for block, trials in blocks.items():
        pages += [
            Page(s.kind, _words(s.kind), block) for s in stops if s.place == "block" and s.block == block
        ]
        pages += [Page(f"trial-{t.position}", _trial_words(t, plan), block, t.position) for t in trials]
    last = max(blocks)
    pages += [Page(stop.kind, _words(stop.kind), last) for stop in stops if stop.place == "end"]
    return [*pages, Page(COMMENT, "Comment, then the debrief", last)]


def _words(kind: str) -> str:
    return kind.replace("_", " ").capitalize()


def _trial_words(trial: PlannedTrial, plan: Plan) -> str:
    what = CHECKS.get(trial.check) or PHASES.get(trial.phase, trial.phase)
    condition = "" if plan.condition or not trial.condition else condition_label(trial.condition)
    words = (f"Trial {trial.position + 1}", what[:1].upper() + what[1:], condition)
    return DOT.join(filter(None, words))
