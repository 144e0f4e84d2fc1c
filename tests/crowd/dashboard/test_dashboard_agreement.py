"""Platform, server and browser side by side, and what the participants' pages show of the platform."""

import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from crowd.models import Identity, Posting, Submission
from experiments.models import Session, Study
from experiments.sessions.pseudonyms import namer
from tests.analysis import stored
from tests.crowd import paid

ROOT = "/studies/wolf-or-husky/"


@pytest.fixture
def posting(study: Study) -> Posting:
    return Posting.objects.create(
        study=study,
        platform="prolific",
        mode="live",
        state="open",
        external_id="64SECRET",
        codes={"complete": "GOOD"},
        synced_at=timezone.now(),
    )


def text_of(client: Client, path: str) -> str:
    reply = client.get(path)
    assert reply.status_code == 200, path
    return reply.content.decode()


def work(posting: Posting, number: int, session: Session | None, **more: Any) -> Submission:
    """Work as the platform lists it."""
    identity = None
    if session is not None:
        identity = Identity.objects.create(
            study=posting.study,
            platform="prolific",
            person_hash=f"{number:064}",
            external_id=f"RAW-PERSON-{number}",
            participant=session.participant,
        )
    row = {
        **{"state": "awaiting", "raw_state": "AWAITING REVIEW", "code": "GOOD", "seen_at": timezone.now()},
        **{"person_hash": f"{number:064}", "external_id": f"RAW-WORK-{number}" if session else ""},
    }
    return Submission.objects.create(
        posting=posting,
        identity=identity,
        session=session,
        submission_hash=f"{number:064}",
        **{**row, **more},
    )


def test_it_puts_disagreements_first_each_with_its_remedy(
    study: Study, posting: Posting, desk: Client
) -> None:
    for number in range(3):
        session = stored.sitting(study, f"ok{number}", condition="control")
        work(posting, number, session)
    gone = stored.sitting(study, "gone", condition="baseline")
    work(posting, 50, gone, state="returned", raw_state="RETURNED")
    work(posting, 60, None)
    page = text_of(desk, f"{ROOT}recruitment/agreement/")
    assert "<strong>2</strong> of 5" in page
    rows = page[page.index("<tbody>") :].split("<tr")[1:]
    assert ["differs" in row.split(">")[0] for row in rows] == [True, True, False, False, False]
    assert "without ever having been here" in page and "run settle, which pays it as compensation" in page
    assert "RAW-" not in page and "64SECRET" not in page
    assert len(re.findall(r"<code>p-[0-9a-f]{16}</code>", page)) == 4
    (kind,) = re.findall(r'href="\?kind=([a-z_]+)"[^>]*>Finished here', page)
    assert page.count("<tr") - 1 == 5
    assert text_of(desk, f"{ROOT}recruitment/agreement/?kind={kind}").count("<tr") - 1 == 1
    assert "None of this kind" in text_of(desk, f"{ROOT}recruitment/agreement/?kind=nonsense")


def test_it_pages_in_a_fixed_number_of_questions(
    study: Study, posting: Posting, desk: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    path = f"{ROOT}recruitment/agreement/"
    assert "Nothing to compare yet" in text_of(desk, path)
    for number in range(60):
        work(posting, number, stored.sitting(study, f"p{number}", verdict="screened"))
        if number in (1, 59):
            with django_assert_max_num_queries(18):
                page = text_of(desk, path)
    assert "1–50 of 60" in page and "51–60 of 60" in text_of(desk, f"{path}?page=2")
    for nonsense in ("?page=0", "?page=x", "?page=999999999999", "?page=-1", "?page=²"):
        text_of(desk, path + nonsense)


def test_participants_show_the_platform_s_state_and_payouts_and_no_outside_id(
    study: Study, posting: Posting, desk: Client
) -> None:
    session = stored.sitting(study, "ada", condition="control")
    work(posting, 1, session, return_requested=True)
    paid.payout(
        posting=posting,
        session=session,
        kind="base",
        cents=140,
        currency="GBP",
        reason="Consented.",
        state="sent",
    )
    paid.payout(
        posting=posting, session=session, kind="compensation", cents=60, currency="GBP", reason="Granted."
    )
    listed = text_of(desk, f"{ROOT}participants/")
    assert "submitted" in listed and "1.40 of 2.00 GBP" in listed and ">due<" in listed
    detail = text_of(desk, f"{ROOT}participants/{session.pk}/")
    assert "AWAITING REVIEW" in detail and "Prolific" in detail and "to return the submission" in detail
    assert "Granted." in detail and namer(study)(session.participant.pseudonym) in detail
    for page in (listed, detail, text_of(desk, f"{ROOT}exclusions/?status=kept")):
        assert "RAW-" not in page and "64SECRET" not in page and f"{1:064}" not in page
    before = text_of(desk, f"{ROOT}participants/?origin=simulated")
    assert "Nobody fits" in before
