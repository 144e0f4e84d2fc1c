"""The researcher's pages of a study with few and with many participants: queries and seconds of each.

The people are those of a small study that was answered in full, copied by SQL, each with a submission and a
payment on Prolific: good for the time of pages, not for inference.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from benchmarks import volume
from benchmarks.processes import run
from tests import services

PEOPLE = (12, 10_000)
ANSWERS_EACH = 16
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Page:
    """One page: the first request of a process, then the median of some more."""

    people: int
    name: str
    queries: int
    first_s: float
    usual_s: float
    kilobytes: float


def measure(say: Callable[[str], None]) -> list[Page]:
    """Every page at each number of people, each number in a process and a database of its own."""
    pages = []
    for people in PEOPLE:
        with tempfile.TemporaryDirectory(prefix="legible-desk-") as folder:
            env = volume.environment(folder)
            services.migrate(env)
            say(f"pages with {people:,} people")
            _, told = run(["-m", "benchmarks.desk", str(people)], env)
        pages += [Page(**row) for row in json.loads(told)]
    return pages


def pages_of(people: int) -> Iterator[Page]:
    """A study with about so many people, and each of its pages."""
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext
    from django.urls import reverse

    from analysis.stored_reports.refresh import refresh_report
    from crowd.dashboard.layout import TABS
    from experiments.models import Session, Study

    slug, _ = volume.grow(people * ANSWERS_EACH)
    study = Study.objects.get(slug=slug)
    pay(study)
    refresh_report(study, "human")
    desk = Client(headers={"host": "localhost"})
    desk.force_login(User.objects.create_superuser("grace"))
    addresses = {name: reverse(f"dashboard:{name}", args=[slug]) for name, _ in TABS}
    addresses["live"] = reverse("dashboard:live", args=[slug])
    session = Session.objects.order_by("pk").values_list("pk", flat=True)[0]
    addresses["one participant"] = reverse("dashboard:participant", args=[slug, session])
    addresses["participants, found"] = f"{addresses['participants']}?find=fast"
    count = Session.objects.filter(study=study).count()
    for name, address in addresses.items():
        seconds = []
        for number in range(ROUNDS + 1):
            with CaptureQueriesContext(connection) as asked:
                started = time.perf_counter()
                reply = desk.get(address)
                seconds.append(time.perf_counter() - started)
            if reply.status_code != 200:
                raise RuntimeError(f"{address} answers {reply.status_code}")
            # Some pages work out what they miss when they are first looked at.
            queries = len(asked) if number else 0
        usual_s = statistics.median(seconds[1:])
        yield Page(count, name, queries, seconds[0], usual_s, len(reply.content) / 1000)


def pay(study: object) -> None:
    """Everybody came from Prolific and was paid, and the platform says so."""
    from django.utils import timezone

    from crowd.models import Identity, Payout, Posting, StatementLine, Submission
    from experiments.models import Session

    now = timezone.now()
    posting = Posting.objects.create(
        **{"study": study, "platform": "prolific", "mode": "live", "state": "open", "places": 20_000},
        **{"reward_cents": 140, "currency": "GBP", "cap_cents": 9_000_000, "external_id": "64STUDY"},
    )
    sessions = list(Session.objects.filter(study_id=posting.study_id).order_by("pk"))
    names = [f"{number:08}" for number in range(len(sessions))]
    identities = Identity.objects.bulk_create(
        Identity(
            study_id=posting.study_id,
            platform="prolific",
            person_hash=name,
            participant_id=session.participant_id,
        )
        for name, session in zip(names, sessions, strict=True)
    )
    submissions = Submission.objects.bulk_create(
        Submission(
            posting=posting,
            submission_hash=name,
            external_id=name,
            session=session,
            identity=identity,
            person_hash=name,
            state="approved",
            seen_at=session.finished_at,
        )
        for name, session, identity in zip(names, sessions, identities, strict=True)
    )
    Payout.objects.bulk_create(
        Payout(
            posting=posting,
            session=row.session,
            submission=row,
            kind="base",
            cents=140,
            currency="GBP",
            reason="Passed.",
            state="sent",
            called_at=row.seen_at,
            confirmed_at=row.seen_at,
        )
        for row in submissions
    )
    StatementLine.objects.bulk_create(
        StatementLine(submission=row, kind="reward", cents=140, first_at=now, read_at=now)
        for row in submissions
    )


def main() -> None:
    import django

    django.setup()
    json.dump([asdict(page) for page in pages_of(int(sys.argv[1]))], sys.stdout)


if __name__ == "__main__":
    main()
