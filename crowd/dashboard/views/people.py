"""Who took part, by pseudonym: no condition while the results are sealed, and never an outside identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Count, DurationField, ExpressionWrapper, F, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from crowd.dashboard.access import study_page
from crowd.dashboard.counts import ORIGIN_WORDS
from crowd.dashboard.layout import choices, headings, page_of, study_response
from crowd.dashboard.seals import seals
from experiments.models import Response, Session, Study, Trial

PER_PAGE = 50
RUNNING = Q(state__in=["gates", "assigned", "running"])
STATUSES: dict[str, tuple[str, Q]] = {
    "running": ("In progress", RUNNING),
    "passed": ("Passed", Q(verdict="passed")),
    "screened": ("Screened", Q(verdict="screened")),
    "incomplete": ("Left", Q(verdict="incomplete")),
    "withdrawn": ("Withdrew", Q(verdict="withdrawn")),
    "declined": ("Declined", Q(state="declined")),
    "turned_away": ("Turned away", Q(state="turned_away")),
}
ONE_OF = {"human": "person", "simulated": "simulated", "pilot": "pilot", "preview": "preview"}
STATE_WORDS = {"gates": "At the gates", "assigned": "Reading instructions", "running": "In progress"}
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
    ("Reasons", "", False),
    ("Comment", "", False),
)


@dataclass(frozen=True, slots=True)
class Sitting:
    """One row: a session as it may be shown. `condition` is empty while its origin is sealed."""

    session: Session
    name: str
    origin: str
    status: str
    tone: str
    answered: int
    planned: int | None
    minutes: float | None
    rules: tuple[str, ...]
    condition: str


@study_page
@require_safe
def participants(request: HttpRequest, study: Study) -> HttpResponse:
    origin = request.GET.get("origin", "")
    status = request.GET.get("status", "")
    sort = request.GET.get("sort", "-started")
    rows = _sittings(study)
    rows = rows.filter(origin=origin) if origin in ORIGIN_WORDS else rows.exclude(origin="preview")
    rows = rows.filter(STATUSES[status][1]) if status in STATUSES else rows
    page = page_of(request, rows.order_by(*_order(sort)), PER_PAGE)
    page.object_list = named(study, list(page.object_list))
    shows_condition = any(sitting.condition for sitting in page.object_list)
    present = _present(study)
    columns = [*COLUMNS[:2], ("Condition", "", False), *COLUMNS[2:]] if shows_condition else COLUMNS
    content = {
        "page": page,
        "headings": headings(request, columns, sort),
        "shows_condition": shows_condition,
        "origins": choices(request, "origin", {"": "All", **{o: ORIGIN_WORDS[o] for o in present}}, origin),
        "statuses": choices(
            request, "status", {"": "Any", **{k: w for k, (w, _) in STATUSES.items()}}, status
        ),
        "is_filtered": bool(origin or status),
    }
    return study_response(request, study, "participants", content)


@study_page
@require_safe
def exclusions(request: HttpRequest, study: Study) -> HttpResponse:
    """Every decision against a sitting, with its evidence; without condition or score."""
    verdict = request.GET.get("status", "")
    words = {key: STATUSES[key][0] for key in ("screened", "incomplete", "withdrawn")}
    rows = _sittings(study).exclude(origin="preview")
    rows = rows.filter(verdict=verdict) if verdict in words else rows.filter(verdict__in=words)
    origin = request.GET.get("origin", "")
    rows = rows.filter(origin=origin) if origin in ORIGIN_WORDS else rows
    page = page_of(request, rows.order_by("-verdict_at", "-pk"), PER_PAGE)
    page.object_list = named(study, list(page.object_list), blind=True)
    present = [o for o in _present(study) if o != "preview"]
    content = {
        "page": page,
        "origins": choices(request, "origin", {"": "All", **{o: ORIGIN_WORDS[o] for o in present}}, origin),
        "statuses": choices(request, "status", {"": "Any", **words}, verdict),
        "is_filtered": bool(origin or verdict),
    }
    return study_response(request, study, "exclusions", content)


@study_page
@require_safe
def participant(request: HttpRequest, study: Study, session: UUID) -> HttpResponse:
    """One sitting: what was asked before, what happened, why it was judged as it was. No score."""
    row = get_object_or_404(_sittings(study), pk=session)
    answers = list(row.responses.order_by("position").values_list("rt_ms", "late"))
    times = sorted(rt_ms for rt_ms, _ in answers)
    content = {
        "sitting": named(study, [row])[0],
        "gates": [
            {"gate": gate, "values": _plain(gate.value)} for gate in row.gates.order_by("created_at", "id")
        ],
        "events": list(row.events.values_list("kind").annotate(n=Count("id")).order_by("kind")),
        "median_ms": times[len(times) // 2] if times else None,
        "late": sum(late for _, late in answers),
    }
    return study_response(request, study, "participant", content)


def named(study: Study, sessions: list[Session], blind: bool = False) -> list[Sitting]:
    """Sessions as rows, under the names that an export gives them."""
    # Here and not above: it brings pandas along, which a process that serves only participants can spare.
    from analysis.tables import Pseudonyms

    names = Pseudonyms.of(study, "")
    sealed = {origin: kept.sealed for origin, kept in seals(study, set(ORIGIN_WORDS)).items()}
    return [
        _sitting(session, names("p", session.participant.pseudonym), blind or sealed[session.origin])
        for session in sessions
    ]


def _sitting(session: Any, name: str, is_blind: bool) -> Sitting:
    took = session.took
    condition = session.slot.condition if session.slot and not is_blind else None
    return Sitting(
        session=session,
        name=name,
        origin=session.simulated_kind or ONE_OF[session.origin],
        status=status_word(session),
        tone=session.verdict or session.state,
        answered=_answered(session),
        planned=None if session.last_trial is None else session.last_trial + 1,
        minutes=None if took is None else took.total_seconds() / 60,
        rules=tuple(reason["rule"] for reason in session.reasons),
        condition=condition.name if condition else "",
    )


def _answered(session: Any) -> int:
    if session.erased:
        return int(session.erased.get("responses", 0))
    return 0 if session.last_position is None else int(session.last_position) + 1


def status_word(session: Session) -> str:
    for key in ("passed", "screened", "incomplete", "withdrawn"):
        if session.verdict == key:
            return STATUSES[key][0]
    return STATE_WORDS.get(session.state) or STATUSES.get(session.state, (session.state.capitalize(),))[0]


def _sittings(study: Study) -> QuerySet[Session, Session]:
    last_answer = Response.objects.filter(session=OuterRef("pk")).order_by("-position").values("position")[:1]
    last_trial = Trial.objects.filter(slot=OuterRef("slot")).order_by("-position").values("position")[:1]
    return (
        Session.objects.filter(study=study)
        .select_related("participant", "slot__condition")
        .annotate(
            last_position=Subquery(last_answer),
            last_trial=Subquery(last_trial),
            took=ExpressionWrapper(F("finished_at") - F("started_at"), output_field=DurationField()),
        )
    )


def _order(sort: str) -> list[Any]:
    field = SORTS.get(sort.removeprefix("-"), "started_at")
    by = F(field).desc(nulls_last=True) if sort.startswith("-") else F(field).asc(nulls_last=True)
    return [by, "pk"]


def _present(study: Study) -> list[str]:
    found = set(Session.objects.filter(study=study).values_list("origin", flat=True).distinct().order_by())
    return [origin for origin in ORIGIN_WORDS if origin in found]


def _plain(value: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was given at a gate, as text."""
    words = {True: "yes", False: "no"}
    return [
        (key.replace("_", " "), words[given] if isinstance(given, bool) else str(given))
        for key, given in value.items()
    ]
