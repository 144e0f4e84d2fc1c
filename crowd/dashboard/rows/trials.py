"""One session trial by trial: what was shown, asked and answered, and what happened beside it. While results
are sealed the picture stands without its explanation, and only checks say whether the answer is the expected
one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Min
from django.urls import reverse

from crowd.dashboard.charts import Bar, Chart, Mark
from crowd.joining.entry_and_exit import preview_query
from experiments.kinds import get_kind
from experiments.kinds.base import INSTRUCTED, REPEAT, TrialView
from experiments.kinds.scoring import is_as_asked
from experiments.models import Event, Rendering, Response, Session, Trial
from experiments.selectors import cards_of

EVENT_WORDS = {
    "focus_lost": "left the page",
    "reservoir_opened": "looked at examples",
    "tile_enlarged": "enlarged an example",
    "reload": "loaded the page again",
    "offline": "was offline",
    "paste": "pasted",
    "media_failed": "a picture failed",
    "cannot_show": "could not be shown",
    "resized": "changed the window",
    "fullscreen_left": "left the full screen",
}
"""Events that are told beside a trial; others only say how a page works."""
PHASES = {"train": "Learning", "test": "Test"}
CHECKS = {INSTRUCTED: "instructed check", REPEAT: "repeat check"}
SLOWEST = 0.95


@dataclass(frozen=True, slots=True)
class ShownItem:
    """The item of a trial, and the stimulus (primary key) and which file of it by which it is shown here."""

    item: str
    picture: int | None
    part: str


@dataclass(frozen=True, slots=True)
class TrialLine:
    """One trial. `verdict` is "yes" or "no" for a check (and, once results are open, for an answer that
    counts), else empty; `seen` where the trial is seen as people see it, once results are open.
    """

    number: int
    seen: str
    block: int
    phase: str
    check: str
    shown: ShownItem
    told: str
    asked: str
    given: str
    key: str
    rt_ms: int | None
    shown_ms: int | None
    late: bool
    verdict: str
    events: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SessionTrials:
    lines: Sequence[TrialLine]
    chart: Chart | None
    checks_passed: int
    checks: int


def session_trials(session: Session, is_sealed: bool) -> SessionTrials:
    """All trials of the session's slot in order, those without an answer too."""
    if session.slot is None or session.erased:
        return SessionTrials((), None, 0, 0)
    cards = cards_of(session.slot, session.study)
    given = {row.position: row for row in Response.objects.filter(session=session)}
    events: dict[int, Counter[str]] = defaultdict(Counter)
    seen = Event.objects.filter(session=session, trial__isnull=False, kind__in=EVENT_WORDS)
    for position, kind in seen.values_list("trial__position", "kind"):
        events[position][kind] += 1
    study, slot, page = session.study, session.slot, reverse("join", args=[session.study.slug])
    shown, nothing = _trial_pictures(session, is_sealed), ShownItem("", None, "")
    views = [(card.view, shown.get(card.view.position, nothing)) for card in cards]
    lines = [
        _line(
            view,
            given.get(view.position),
            events[view.position],
            of,
            "" if is_sealed else f"{page}?{preview_query(study, slot.ordinal, view.position)}",
            is_sealed,
        )
        for view, of in views
    ]
    checks = [line for line in lines if line.check and line.verdict]
    passed = sum(line.verdict == "yes" for line in checks)
    return SessionTrials(lines, _chart(lines, events), passed, len(checks))


def _trial_pictures(session: Session, is_sealed: bool) -> dict[int, ShownItem]:
    """By position. While results are sealed an item has the same picture under every condition."""
    trials = list(
        Trial.objects.filter(slot=session.slot, item__isnull=False).values_list(
            "position", "item", "item__key", "stimulus", "stimulus__explanation_file", "explained"
        )
    )
    rows = Rendering.objects.filter(item__in={item for _, item, *_ in trials})
    rows = rows.exclude(stimulus__image_file="").order_by()
    plain: dict[int, int] = dict(rows.values_list("item").annotate(first=Min("stimulus")))
    made = {}
    for position, item, key, stimulus, drawn, is_explained in trials:
        if not is_sealed and is_explained and drawn:
            made[position] = ShownItem(key, stimulus, "explanation")
        else:
            made[position] = ShownItem(key, plain.get(item), "image")
    return made


def _line(
    view: TrialView,
    answer: Response | None,
    events: Counter[str],
    shown: ShownItem,
    seen: str,
    is_sealed: bool,
) -> TrialLine:
    kind = get_kind(view.kind)
    verdict = ""
    if answer is not None and view.check:
        verdict = "yes" if is_as_asked(view, answer.value) else "no"
    elif answer is not None and not is_sealed and view.phase == "test" and view.right is not None:
        verdict = "yes" if kind.choice(answer.value) == view.right else "no"
    context = answer.context if answer is not None else {}
    return TrialLine(
        number=view.position + 1,
        seen=seen,
        block=view.block + 1,
        phase=PHASES.get(view.phase, view.phase),
        check=CHECKS.get(view.check, view.check),
        shown=shown,
        # What the model says stands beside a scored answer only once results are open.
        told=(view.label or "") if not is_sealed or view.phase == "train" else "",
        asked=view.expected if view.check else "",
        given=", ".join(kind.answers(answer.value)) if answer is not None else "",
        key=str(context.get("key") or ", ".join(map(str, context.get("keys") or ()))),
        rt_ms=answer.rt_ms if answer is not None else None,
        # An answer that is given after the page has gone on is never before it was shown.
        shown_ms=max(answer.shown_ms, answer.rt_ms) if answer is not None else None,
        late=answer.late if answer is not None else False,
        verdict=verdict,
        events=tuple(
            EVENT_WORDS[name] if n == 1 else f"{EVENT_WORDS[name]} {n} times" for name, n in events.items()
        ),
    )


def _chart(lines: Sequence[TrialLine], events: dict[int, Counter[str]]) -> Chart | None:
    """The response time of every trial, with lines where the page was left or examples were looked at."""
    times = sorted(line.rt_ms for line in lines if line.rt_ms is not None)
    if not times:
        return None
    most = max(1, times[int(SLOWEST * (len(times) - 1))])
    count = len(lines)
    bars = [
        Bar(
            100 * place / count,
            92 / count,
            min(100.0, 100 * line.rt_ms / most),
            f"Trial {line.number}: {line.rt_ms} ms" + (f", {line.check}" if line.check else ""),
            {"": "free" if line.phase == "Learning" else "passed", "yes": "check", "no": "failed"}[
                line.verdict if line.check else ""
            ],
        )
        for place, line in enumerate(lines)
        if line.rt_ms is not None
    ]
    marks = [
        Mark(100 * (position + 0.5) / count, f"{word} at trial {position + 1}", tone)
        for position, counts in sorted(events.items())
        for kind, tone, word in (
            ("focus_lost", "limit", EVENT_WORDS["focus_lost"]),
            ("reservoir_opened", "tried", EVENT_WORDS["reservoir_opened"]),
        )
        if counts[kind]
    ]
    rows = [(str(line.number), str(line.rt_ms)) for line in lines if line.rt_ms is not None]
    note = f"Bars end at {most} ms: a longer answer fills the box." if times[-1] > most else ""
    title, ends = "Response time of each trial", ("trial 1", f"trial {count}")
    top = f"up to {most} ms"
    return Chart("times", title, bars, ends, ("trial", "ms"), rows, marks, note, top, tells_marks=False)
