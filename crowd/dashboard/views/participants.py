"""Who took part, by pseudonym: no condition while the results are sealed, and never an outside identity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from statistics import median
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Count, F, Q
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from analysis.rater_review import LIMITS
from crowd.dashboard.access import refusals, researcher_of, study_act, study_page
from crowd.dashboard.layout import Choice, choices, headings, page_of, study_response
from crowd.dashboard.rows.places_and_exclusions import ORIGIN_WORDS, UNPLACED
from crowd.dashboard.rows.rater_review import has_raters, raters_of
from crowd.dashboard.rows.sessions import STATUSES, SessionRow, filters_of, listed_sessions, session_rows
from crowd.dashboard.rows.trials import session_trials
from crowd.dashboard.views.submission_actions import work_content
from crowd.models import PersonNote
from crowd.people.interim_look_log import note_record
from crowd.people.manual_exclusions import can_be_left_out, events_of, medians_of
from crowd.people.notes import TEXT_MAX, note_on
from crowd.people.result_seals import seal
from crowd.people.saved_filters import filters_saved, remove_filter, save_filter
from crowd.platforms import has_service
from experiments.gates.plates import ANSWERS
from experiments.models import Session, Study
from experiments.paradigms.screening import rule_word
from experiments.sessions.pseudonyms import is_called, namer

PER_PAGE = 50
SORTS = {
    "started": "started_at",
    "minutes": "took",
    "status": "verdict",
    "origin": "origin",
    "answers": "last_position",
}
COLUMNS = (
    ("Participant", "", False),
    ("Origin", "origin", False),
    ("Status", "status", False),
    ("Answers", "answers", True),
    ("Started (UTC)", "started", False),
    ("Minutes", "minutes", True),
)
OUTSIDE_COLUMNS = (("Platform", "", False), ("Pay", "", True))
TO_REVIEW = "kept"
"""The list of sessions that passed screening, for decisions by hand."""


@study_page("view")
def participants(request: HttpRequest, study: Study) -> HttpResponse:
    origin = request.GET.get("origin", "")
    status, filters = request.GET.get("status", ""), filters_of(study)
    sort = request.GET.get("sort", "-started")
    rows = listed_sessions(study)
    rows = rows.filter(origin=origin) if origin in ORIGIN_WORDS else rows.exclude(origin__in=UNPLACED)
    rows = rows.filter(filters[status][1]) if status in filters else rows
    asked = request.GET.get("q", "").strip()
    rows = rows.filter(pk__in=_find_sessions(study, asked)) if asked else rows
    page = page_of(request, rows.order_by(*_order(sort)), PER_PAGE)
    shown = session_rows(study, list(page.object_list))
    page.object_list = shown
    shows_condition = any(row.condition for row in shown)
    shows_outside = any(_is_listed(row) or row.pay for row in shown)
    columns = [*COLUMNS[:2], ("Condition", "", False), *COLUMNS[2:]] if shows_condition else [*COLUMNS]
    columns += OUTSIDE_COLUMNS if shows_outside else ()
    content = {
        "page": page,
        "headings": headings(request, columns, sort),
        "shows_condition": shows_condition,
        "shows_outside": shows_outside,
        "origins": _origins(request, study, origin),
        "statuses": choices(
            request, "status", {"": "Any", **{k: w for k, (w, _) in filters.items()}}, status
        ),
        "is_filtered": bool(origin or status or asked),
        "asked": asked,
        "kept": [(key, value) for key, value in request.GET.items() if key in ("origin", "status", "sort")],
        "has_raters": has_raters(study),
        "saved": filters_saved(study, researcher_of(request)),
        "query": request.GET.urlencode(),
    }
    return study_response(request, study, "participants", content)


@study_act("view")
def save(request: HttpRequest, study: Study) -> HttpResponse:
    """Keeps the filter that the page shows, for this login."""
    chosen = QueryDict(request.POST.get("query", ""))
    query = chosen.urlencode()
    with refusals(partial(messages.error, request)):
        query = save_filter(study, researcher_of(request), request.POST.get("name", ""), chosen.dict()).query
    return redirect(f"{reverse('dashboard:participants', args=[study.slug])}?{query}")


@study_act("view")
def unsave(request: HttpRequest, study: Study, number: int) -> HttpResponse:
    remove_filter(study, researcher_of(request), number)
    return redirect("dashboard:participants", study.slug)


def _is_listed(row: SessionRow) -> bool:
    """Whether a platform's machine could tell something of them."""
    return row.outside is not None and has_service(row.outside.submission.posting.platform)


def _find_sessions(study: Study, asked: str) -> list[UUID]:
    """The sessions of people whose name holds what is asked for, of
    those with such a note, and of those whom such a rule excluded. All names are keyed hashes, so they are
    worked out here."""
    name, word = namer(study), asked.casefold()
    rows = Session.objects.filter(study=study).values_list("pk", "participant__pseudonym", "reasons")
    noted = set(
        PersonNote.objects.filter(session__study=study, text__icontains=asked).values_list(
            "session", flat=True
        )
    )
    return [
        pk
        for pk, pseudonym, reasons in rows.iterator(5000)
        if is_called(name(pseudonym), pseudonym, word)
        or pk in noted
        or any(word in rule_word(reason["rule"]).casefold() for reason in reasons)
    ]


@study_page("view")
def raters(request: HttpRequest, study: Study) -> HttpResponse:
    """How each rater works so far, for a person to look at; the same whether results are sealed or not."""
    origin = request.GET.get("origin", "")
    origin = origin if origin in ORIGIN_WORDS and origin != "preview" else ""
    rows = raters_of(study, origin)
    content = {
        "page": page_of(request, rows, PER_PAGE),
        "flagged": sum(bool(row.rater.flags) for row in rows),
        "origins": _origins(request, study, origin, but="preview"),
        "limits": LIMITS,
        "has_raters": has_raters(study),
    }
    return study_response(request, study, "raters", content, current="participants")


@study_page("view")
def exclusions(request: HttpRequest, study: Study) -> HttpResponse:
    """Every exclusion of a session, with its evidence; without condition or score. And the sessions that
    passed screening, with signs of quality, for decisions by hand.
    """
    chosen = request.GET.get("status", "")
    words = {key: STATUSES[key][0] for key in ("screened", "by_hand", "incomplete", "withdrawn")}
    reviews = chosen == TO_REVIEW
    rows = listed_sessions(study).exclude(origin="preview")
    if reviews:
        rows = rows.filter(verdict="passed")
    elif chosen in words:
        rows = rows.filter(STATUSES[chosen][1])
    else:
        rows = rows.filter(STATUSES["by_hand"][1] | Q(verdict__in=["screened", "incomplete", "withdrawn"]))
    origin = request.GET.get("origin", "")
    rows = rows.filter(origin=origin) if origin in ORIGIN_WORDS else rows.exclude(origin__in=UNPLACED)
    page = page_of(request, rows.order_by("-verdict_at", "-pk"), PER_PAGE)
    sessions = list(page.object_list)
    page.object_list = session_rows(study, sessions, blind=True)
    content = {
        "page": page,
        "reviews": reviews,
        "lines": _review_lines(page.object_list, sessions) if reviews else [],
        "origins": _origins(request, study, origin, but="preview"),
        "statuses": choices(
            request, "status", {"": "Not kept", **words, TO_REVIEW: "Kept, to review"}, chosen
        ),
        "is_filtered": bool(origin or chosen),
    }
    return study_response(request, study, "exclusions", content)


def _review_lines(rows: list[SessionRow], sessions: list[Session]) -> list[dict[str, Any]]:
    """One page of kept sessions with signs of quality; two queries, for any number of sessions."""
    events, medians, nothing = events_of(sessions), medians_of(sessions), Counter[str]()
    return [
        {
            "row": row,
            "focus_losses": events.get(row.session.pk, nothing)["focus_lost"],
            "median_s": medians.get(row.session.pk),
            "is_driven": bool(row.session.device.get("webdriver")),
        }
        for row in rows
    ]


@study_page("view")
def participant(request: HttpRequest, study: Study, session: UUID) -> HttpResponse:
    """One session: every trial, the answers at the gates, the verdict and its reasons. No condition, no
    explanation and no score while results are sealed; who looked is noted."""
    row = get_object_or_404(listed_sessions(study), pk=session)
    is_sealed = seal(study, row.origin).sealed
    name = namer(study)(row.participant.pseudonym)
    note_record(study, row, researcher_of(request).get_username(), name, is_sealed)
    answers = list(row.responses.order_by("position").values_list("rt_ms", "late"))
    tests = row.responses.filter(trial__phase="test", trial__check_kind="").values_list("rt_ms", flat=True)
    shown = session_rows(study, [row])[0]
    content: dict[str, Any] = {
        "sitting": shown,
        "can_be_left_out": can_be_left_out(row),
        "gates": _gates(row),
        "trialled": session_trials(row, is_sealed),
        "is_sealed": is_sealed,
        "device": _plain({k: v for k, v in row.device.items() if not isinstance(v, (dict, list))}),
        "events": list(row.events.values_list("kind").annotate(n=Count("id")).order_by("kind")),
        "median_ms": round(median(tests)) if tests else None,
        "tests": len(tests),
        "late": sum(late for _, late in answers),
        "notes": list(row.notes.order_by("at", "pk")),
        "note_max": TEXT_MAX,
    }
    if shown.outside is not None and has_service(shown.outside.submission.posting.platform):
        content |= work_content(request, study, shown.outside.submission)
    return study_response(request, study, "participant", content)


@study_act("run")
def note(request: HttpRequest, study: Study, session: UUID) -> HttpResponse:
    row = get_object_or_404(listed_sessions(study), pk=session)
    by, name = researcher_of(request).get_username(), namer(study)(row.participant.pseudonym)
    with refusals(partial(messages.error, request)):
        note_on(row, name, by, request.POST.get("text", ""))
    return redirect(f"{reverse('dashboard:participant', args=[study.slug, row.pk])}#notes")


def _gates(session: Session) -> list[dict[str, Any]]:
    """The answers at the gates. Not those of the colour check, nor whether it was left out: they are health
    data, and stand beside no person."""
    rows = session.gates.exclude(kind__in=ANSWERS).order_by("created_at", "id")
    return [
        {"gate": row, "values": _plain({k: v for k, v in row.value.items() if k not in ANSWERS})}
        for row in rows
    ]


def _order(sort: str) -> list[Any]:
    field = SORTS.get(sort.removeprefix("-"), "started_at")
    by = F(field).desc(nulls_last=True) if sort.startswith("-") else F(field).asc(nulls_last=True)
    return [by, "pk"]


def _origins(request: HttpRequest, study: Study, origin: str, but: str = "") -> list[Choice]:
    """The origins that have come."""
    present = set(Session.objects.filter(study=study).values_list("origin", flat=True).distinct().order_by())
    words = {name: word for name, word in ORIGIN_WORDS.items() if name in present - {but}}
    return choices(request, "origin", {"": "All", **words}, origin)


def _plain(value: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The answers at a gate, as text."""
    words = {True: "yes", False: "no"}
    return [
        (key.replace("_", " "), words[given] if isinstance(given, bool) else str(given))
        for key, given in value.items()
    ]
