"""What is wrong now: of the installation, and of one study. Read from the rows and the services themselves;
nothing is told by condition, so that the seal holds while a study runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, F, Max, Q
from django.urls import reverse

from crowd.ground.amounts import amount_of
from crowd.ground.readiness import disks, required_parts, workers
from crowd.models import Failure, Payout, Posting
from crowd.money.expense_cap import least_cap
from crowd.platforms import has_service, traits_of
from crowd.recruiting.sync import is_due
from experiments.models import Event, Session, Slot, Study
from stimuli.models import Stimulus

RECENT = 20
"""People of the last share of exclusions, and the fewest before them that it is compared with."""
RARE = 0.001
"""How rarely a share so much higher would come by chance. Every look compares again, so this is an alarm and
no test."""
HIGH = 0.5
"""The share of exclusions among the first people that is told although there are none to compare with."""
UNSYNCED = timedelta(minutes=15)
SHOWN = timedelta(hours=1)
"""How long pages that failed for people, and failed requests, stay told."""
PATIENCE_S = 5.0
"""How long a look waits for a worker: a busy machine is no dead worker."""
PAGE_FAILURES = ("media_failed", "cannot_show")


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that a person has to look at. `subject` tells two of a kind apart; `page` is the address of
    the page about it, within the dashboard."""

    kind: str
    subject: str
    said: str
    remedy: str
    page: str
    study: Study | None = None

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.subject}"

    @property
    def about(self) -> str:
        return self.study.slug if self.study else "the service"


def of_service() -> list[Trouble]:
    """Database, pictures, broker, workers and room on the disks. What depends on a part that is away is not
    accused too."""
    parts = required_parts()
    if all(part.is_ready for part in parts):
        parts.append(workers(PATIENCE_S, at_most=1))
    page = reverse("dashboard:service")
    return [
        Trouble("service", part.name, f"{part.name.capitalize()}: {part.said}.", part.remedy, page)
        for part in [*parts, *disks()]
        if not part.is_ready
    ]


def of_study(study: Study, now: datetime) -> list[Trouble]:
    """What is wrong with a study, in a number of queries that grows with its postings alone."""
    postings = [row for row in Posting.objects.filter(study=study) if has_service(row.platform)]
    return [
        *_idle_postings(study, postings, now),
        *_out_of_step(study, postings, now),
        *_caps(study, postings),
        *_unknown_payments(study),
        *_more_exclusions(study),
        *_pictures(study),
        *_pages(study, now),
        *_requests(study, now),
    ]


def to_watch() -> list[Study]:
    """The studies in which something can go wrong: not closed, or with a posting that is not."""
    offered = Posting.objects.exclude(state=Posting.State.CLOSED).values("study")
    rows = Study.objects.filter(~Q(state=Study.State.CLOSED) | Q(pk__in=offered))
    return list(rows.only("slug", "title", "state", "created_at").order_by("pk"))


def _idle_postings(study: Study, postings: list[Posting], now: datetime) -> Iterator[Trouble]:
    """Offered, with free places, and without an arrival for ALERT_STALLED_H hours."""
    offered = [row for row in postings if row.state == Posting.State.OPEN and row.taken < row.places]
    if not offered or study.state != Study.State.OPEN:
        return
    came = dict(
        Session.objects.filter(submission__posting__in=offered)
        .values_list("submission__posting")
        .annotate(last=Max("started_at"))
        .order_by()
    )
    for row in offered:
        last = max(row.created_at, came.get(row.pk) or row.created_at)
        if now - last < timedelta(hours=settings.ALERT_STALLED_H):
            continue
        if not Slot.objects.filter(study=study, pilot=row.pilot, kept=False).exists():
            continue
        hours = int((now - last).total_seconds() // 3600)
        since = "since it was offered" if row.pk not in came else "since the last person came"
        said = f"On {traits_of(row.platform).title} there are free places, and it is {hours:,} h {since}."
        remedy = "Look whether the platform shows the study, whom it invites, and what it pays."
        yield _of(study, "stalled", said, remedy, "recruitment", row.pk)


def _out_of_step(study: Study, postings: list[Posting], now: datetime) -> Iterator[Trouble]:
    for row in postings:
        if not is_due(row):
            continue
        last = row.synced_at or row.created_at
        title = traits_of(row.platform).title
        if row.sync_error:
            said = f"{title} could not be asked: {row.sync_error}"
        elif now - last > UNSYNCED:
            minutes = int((now - last).total_seconds() // 60)
            said = f"{title} was last heard {minutes:,} minutes ago."
        else:
            continue
        remedy = "Workers and celery beat ask every two minutes; the page Recruitment asks at once."
        yield _of(study, "sync", said, remedy, "recruitment", row.pk)


def _caps(study: Study, postings: list[Posting]) -> Iterator[Trouble]:
    for row in postings:
        if not row.cap_cents or row.state == Posting.State.DRAFT:
            continue
        least = least_cap(row)
        if least > row.cap_cents:
            said = (
                f"What is paid, due and set aside on {traits_of(row.platform).title} comes to "
                f"{amount_of(least, row.currency)}, and the cap is {amount_of(row.cap_cents, row.currency)}."
            )
            remedy = "Raise the cap in your name, or close the posting: payments beyond the cap wait."
            yield _of(study, "cap", said, remedy, "money", row.pk)


def _unknown_payments(study: Study) -> Iterator[Trouble]:
    count = Payout.objects.filter(posting__study=study, state=Payout.State.UNKNOWN).count()
    if count:
        said = f"{count:,} {'payment' if count == 1 else 'payments'} may or may not have been sent."
        remedy = "Run settle again: it asks the platform first, and pays none twice."
        yield _of(study, "unknown", said, remedy, "money")


def _more_exclusions(study: Study) -> Iterator[Trouble]:
    """The share of exclusions among the last people who finished is far above that of those before them."""
    ended = Session.objects.filter(study=study, origin="human", verdict__in=["passed", "screened"])
    last = list(
        ended.order_by(F("finished_at").desc(nulls_last=True), "-pk").values_list("verdict", flat=True)[
            :RECENT
        ]
    )
    if len(last) < RECENT:
        return
    counts = ended.aggregate(all=Count("id"), out=Count("id", filter=Q(verdict="screened")))
    out = last.count("screened")
    before, out_before = counts["all"] - RECENT, counts["out"] - out
    said = f"{out} of the last {RECENT} people who finished were excluded"
    if before >= RECENT:
        # Imported here: SciPy takes a second, and every command imports this module.
        from scipy.stats import fisher_exact

        table = [[out, RECENT - out], [out_before, before - out_before]]
        if fisher_exact(table, alternative="greater").pvalue >= RARE:
            return
        said += f"; of the {before:,} before them, {out_before:,}."
    elif out <= HIGH * RECENT:
        return
    else:
        said += "."
    remedy = "Look at Quality: which check, and since when."
    yield _of(study, "exclusions", said, remedy, "quality")


def _pictures(study: Study) -> Iterator[Trouble]:
    failed = Stimulus.objects.filter(renderings__item__study=study, state="failed").distinct().count()
    if failed:
        said = f"{failed:,} {'picture' if failed == 1 else 'pictures'} could not be made."
        remedy = "Stimuli says why; what failed is tried again by building."
        yield _of(study, "pictures", said, remedy, "stimuli")


def _pages(study: Study, now: datetime) -> Iterator[Trouble]:
    """Pictures that did not load in people's browsers, and pages that could not be shown."""
    events = Event.objects.filter(
        session__study=study, kind__in=PAGE_FAILURES, received_at__gte=now - SHOWN
    ).exclude(session__origin="preview")
    people = events.values("session").distinct().count()
    if people:
        who = "1 person" if people == 1 else f"{people:,} people"
        said = f"In the last hour pictures or pages failed in the browser of {who}."
        remedy = (
            "Quality lists them. Look at Service: are the pictures there, and how slow is the way to them?"
        )
        yield _of(study, "pages", said, remedy, "quality")


def _requests(study: Study, now: datetime) -> Iterator[Trouble]:
    """Requests that ended in an error of ours."""
    count = Failure.objects.filter(study=study, at__gte=now - SHOWN).count()
    if count:
        said = f"{count:,} {'request' if count == 1 else 'requests'} failed in the last hour by our error."
        remedy = "Quality lists where and whom; the page sends an answer again until it is stored."
        yield _of(study, "errors", said, remedy, "quality")


def _of(study: Study, kind: str, said: str, remedy: str, page: str, posting: int = 0) -> Trouble:
    """A trouble of a study, or of one of its postings, with the name of the page about it."""
    address = reverse(f"dashboard:{page}", args=[study.slug])
    return Trouble(kind, str(posting or study.slug), said, remedy, address, study)
