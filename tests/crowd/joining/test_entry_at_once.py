"""People who come twice at the same moment, and many people at once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from django.db import connection

from crowd.models import Identity, Submission
from experiments.models import Participant, Session, Study
from tests.analysis import stored
from tests.crowd.arrivals import Visitor, posting, prolific

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases("constraints")]
ROUNDS = 6


@pytest.fixture
def study() -> Study:
    return stored.opened(slots=4)


def at_once(visitors: list[Visitor]) -> list[tuple[int, str]]:
    """All join together, each over a connection of its own; status and code of each reply."""
    together = Barrier(len(visitors), timeout=60)

    def join(visitor: Visitor) -> tuple[int, str]:
        try:
            connection.ensure_connection()
            together.wait()
            reply: Any = visitor.join()
            return reply.status_code, reply.json().get("error", {}).get("code", "")
        finally:
            connection.close()

    with ThreadPoolExecutor(len(visitors)) as pool:
        return list(pool.map(join, visitors))


def test_it_gives_one_person_one_sitting_however_they_come(study: Study) -> None:
    """Two submissions of one person in the same moment: one begins, the other is refused."""
    spec = posting(study, "prolific")
    for number in range(ROUNDS):
        name = f"twin{number}"
        replies = at_once([prolific(name, spec, f"{name}-{part}") for part in "abc"])
        assert Counter(replies) == {(201, ""): 1, (409, "taken_part"): 2}
    assert Session.objects.count() == Identity.objects.count() == Participant.objects.count() == ROUNDS


def test_it_grants_as_many_sittings_as_the_study_says(study: Study) -> None:
    Study.objects.update(definition={**study.definition, "sittings_max": 2}, digest="two")
    spec = posting(study, "prolific")
    replies = at_once([prolific("ada", spec, f"s{part}") for part in range(4)])
    assert Counter(replies) == {(201, ""): 2, (409, "taken_part"): 2}
    assert Identity.objects.count() == 1 and Session.objects.count() == 2


def test_it_finds_one_session_for_one_submission(study: Study) -> None:
    """The same page loaded twice: both get the session, and the last token counts."""
    spec = posting(study, "prolific")
    for number in range(ROUNDS):
        replies = at_once([prolific(f"ada{number}", spec) for _ in range(3)])
        assert Counter(status for status, _ in replies) == {201: 1, 200: 2}
    assert Session.objects.count() == Submission.objects.count() == Participant.objects.count() == ROUNDS


def test_it_gives_a_submission_to_one_of_two_people_who_claim_it(study: Study) -> None:
    spec = posting(study, "prolific")
    for number in range(ROUNDS):
        replies = at_once([prolific(f"{name}{number}", spec, f"s{number}") for name in ("ada", "bo")])
        assert Counter(replies) == {(201, ""): 1, (403, "not_admitted"): 1}
    assert Session.objects.count() == ROUNDS
