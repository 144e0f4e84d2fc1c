"""What the pages of a study show, and what they must not."""

import re
from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from analysis import reports
from analysis.stored_reports.refresh import refresh_report
from crowd.dashboard.rows.places_and_exclusions import exclusions_of, flows_of, places_of
from crowd.joining.entry_and_exit import preview_query
from crowd.models import Posting
from experiments.models import Rendering, Response, Session, Slot, Study
from stimuli.models import Stimulus
from tests.analysis import stored
from tests.tables import overridden
from tests.world import Person

pytestmark = pytest.mark.usefixtures("undrawn")
ROOT = "/studies/wolf-or-husky/"
CONDITIONS = ("grad_cam", "Grad-CAM", "control", "baseline")


def text_of(client: Client, path: str) -> str:
    reply = client.get(path)
    assert reply.status_code == 200, path
    return reply.content.decode()


def busy(study: Study, people: int) -> None:
    """A cast, and some people who are taking part now."""
    stored.cast(study)
    for number in range(people):
        session = stored.sitting(study, f"now-{number}", condition="control", verdict="", answers=3)
        assert session.slot is not None
        Slot.objects.filter(pk=session.slot.pk).update(
            holder=session, lease_ends_at=timezone.now() + timedelta(hours=1)
        )


def test_it_says_what_to_do_when_there_is_nothing(desk: Client) -> None:
    assert "python manage.py build_stimuli wolf-or-husky" in text_of(desk, "/")


def test_it_lists_studies_with_their_state_and_numbers(study: Study, desk: Client) -> None:
    stored.cast(study)
    page = text_of(desk, "/")
    assert "Can you predict the machine?" in page and 'class="pill open"' in page
    assert re.findall(r'<td class="n">(.*?)</td>', page) == ["4", "–", "1", "12"]


def test_it_counts_places_flow_and_exclusions(study: Study) -> None:
    busy(study, people=2)
    stored.sitting(study, "look", condition="control", origin="preview", verdict="screened")
    rows = {row.role: row for row in places_of(study)}
    assert [(r.passed, r.in_progress, r.free, r.screened, r.left) for r in rows.values()] == [
        (0, 0, 4, 0, 1),
        (0, 2, 2, 1, 0),
        (1, 0, 3, 0, 0),
    ]
    (flow,) = flows_of(study)
    assert (flow.arrived, flow.consented, flow.claimed, flow.finished, flow.passed) == (6, 5, 5, 2, 1)
    (rule,) = exclusions_of(study, ["human"])
    assert (rule.rule, rule.timing, rule.counts) == ("total_minutes", "after", (1,))


def test_it_never_adds_up_origins(study: Study) -> None:
    stored.sitting(study, "a", condition="control")
    stored.sitting(study, "b", condition="control", origin="simulated")
    assert [(flow.origin, flow.arrived) for flow in flows_of(study)] == [("human", 1), ("simulated", 1)]


@pytest.mark.parametrize("people", [0, 1, 4])
def test_it_asks_the_same_questions_for_few_and_many(
    study: Study, desk: Client, people: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    if people:
        busy(study, people)
        stored.sitting(study, "leaves", condition="baseline", verdict="withdrawn", answers=4)
    desk.get(f"{ROOT}participants/")  # caches of the process are warm
    limits = {"": 24, "live/": 23, "participants/": 16, "exclusions/": 15, "stimuli/": 17, "money/": 14}
    for page, limit in limits.items():
        with django_assert_max_num_queries(limit):
            text_of(desk, ROOT + page)


def test_it_serves_the_live_part_alone(study: Study, desk: Client) -> None:
    stored.cast(study)
    page = text_of(desk, f"{ROOT}live/")
    assert "<html" not in page and 'data-state="open"' in page
    assert "<dd>1 <small>of 12 places</small></dd>" in page


def test_it_keeps_results_per_condition_sealed(study: Study, desk: Client) -> None:
    for number in range(3):
        stored.sitting(study, f"weak-{number}", condition="baseline", right=lambda trial: False)
        stored.sitting(study, f"strong-{number}", condition="grad_cam")
    stored_report = refresh_report(study, "human")
    assert stored_report.sealed
    pages = [
        "",
        "live/",
        "report/",
        "report/human/",
        "participants/",
        "exclusions/",
        "money/",
        "downloads/",
        "log/",
    ]
    session = Session.objects.filter(slot__condition__name="grad_cam").first()
    assert session is not None
    for page in [*pages, f"participants/{session.pk}/"]:
        page_text = text_of(desk, ROOT + page)
        # The scores of the two groups are 0 and 100 %, all of them together have 50 %.
        assert not re.search(r"\b100\.0\s*(<small>)?\s*%", page_text), page
        # The stored plan names its tests, and tells nothing of what they find.
        told = re.sub(
            r'<section id="(preregistration|stored_plan)">.*?</section>', "", page_text, flags=re.DOTALL
        )
        assert "Tukey" not in told and "ANOVA" not in told, page
    assert "50.0" in text_of(desk, ROOT)
    for page in ("participants/", "exclusions/", f"participants/{session.pk}/"):
        assert not any(name in text_of(desk, ROOT + page) for name in CONDITIONS), page


def test_it_withholds_an_open_report_of_a_study_that_is_sealed(study: Study, desk: Client) -> None:
    stored.full(study)
    assert not refresh_report(study, "human").sealed
    Slot.objects.filter(study=study, ordinal=0).update(kept=False)
    assert desk.get(f"{ROOT}report/human/").status_code == 404
    assert desk.get(f"{ROOT}downloads/report-human.json").status_code == 404


def test_it_opens_when_every_place_is_kept(study: Study, desk: Client) -> None:
    stored.full(study)
    refresh_report(study, "human")
    assert "Tukey" in text_of(desk, f"{ROOT}report/human/")
    assert "<td>Grad-CAM</td>" in text_of(desk, f"{ROOT}participants/")
    assert "Close the study" in text_of(desk, ROOT)


def test_it_unseals_with_a_reason_only_and_in_the_name_of_the_login(
    study: Study, desk: Client, researcher: User
) -> None:
    stored.cast(study)
    User.objects.filter(pk=researcher.pk).update(first_name="Grace", last_name="<b>")
    for posted in ({}, {"name": "Grace"}, {"name": "Grace", "reason": "short"}):
        assert desk.post(f"{ROOT}report/unseal/", posted).status_code == 400
    study.refresh_from_db()
    assert study.unsealed_at is None
    desk.post(f"{ROOT}report/unseal/", {"name": "Prof. Else", "reason": "The ethics board asks for it."})
    study.refresh_from_db()
    assert study.unsealed_at is not None and study.unsealed_by == "Grace <b>"
    desk.post(f"{ROOT}report/unseal/", {"reason": "I would like to know too."})
    study.refresh_from_db()
    assert (study.unsealed_by, study.unsealed_reason) == ("Grace <b>", "The ethics board asks for it.")
    page = text_of(desk, f"{ROOT}log/")
    assert "Prof. Else" not in page
    assert "Grace &lt;b&gt;: The ethics board asks for it." in page and "grace" in page


def test_it_closes_by_post_once_and_writes_it_down(study: Study, desk: Client) -> None:
    assert "cannot be opened again" in text_of(desk, f"{ROOT}close/")
    study.refresh_from_db()
    assert study.state == "open"
    desk.post(f"{ROOT}close/")
    study.refresh_from_db()
    assert study.state == "open", "closing early opens the results, so it needs a reason"
    for _ in range(2):
        desk.post(f"{ROOT}close/", {"reason": "The money is spent"})
    study.refresh_from_db()
    assert study.state == "closed" and study.closed_at is not None
    assert study.unsealed_by == "grace" and "The money is spent" in study.unsealed_reason
    assert LogEntry.objects.filter(change_message="Closed the study: The money is spent.").count() == 1


def test_it_escapes_what_people_write(study: Study, desk: Client) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    reason = {"rule": evil, "timing": "after", "found": 1.0, "limit": 0.0, "evidence": evil}
    session = stored.sitting(
        study, "x", condition="control", verdict="screened", comment=evil, reasons=[reason]
    )
    session.gates.filter(kind="questions_before").update(value={evil: evil})
    session.events.update(kind="<b>lost</b>")
    Study.objects.filter(pk=study.pk).update(title=evil)
    Session.objects.filter(pk=session.pk).update(simulated_kind="<i>", device={})
    for page in (
        "",
        "live/",
        "participants/",
        f"participants/{session.pk}/",
        "exclusions/",
        "report/",
        "log/",
    ):
        page_text = text_of(desk, ROOT + page)
        assert "<script>alert" not in page_text and "<img src=x" not in page_text, page
        assert "<b>lost" not in page_text and "<i>" not in page_text, page
    assert "&lt;script&gt;alert(1)" in text_of(desk, f"{ROOT}participants/{session.pk}/")


@pytest.mark.both_databases("time")
def test_it_sorts_filters_and_pages(study: Study, desk: Client) -> None:
    stored.cast(study)
    names = re.compile(r"<code>(p-[0-9a-f]{16})</code>")
    by_start = names.findall(text_of(desk, f"{ROOT}participants/?sort=started"))
    assert len(by_start) == 4
    assert names.findall(text_of(desk, f"{ROOT}participants/?sort=-started")) == by_start[::-1]
    assert names.findall(text_of(desk, f"{ROOT}participants/?status=screened")) == [by_start[1]]
    assert "Nobody fits" in text_of(desk, f"{ROOT}participants/?origin=simulated")
    for nonsense in ("?page=9999", "?page=x", "?sort=;drop", "?origin=x&status=%F0%9F", "?sort=-"):
        text_of(desk, f"{ROOT}participants/{nonsense}")


def test_it_names_people_as_the_export_does(study: Study, desk: Client) -> None:
    from analysis.tables.response_reader import read_frames

    stored.cast(study)
    exported = set(read_frames(study).participants["participant"])
    assert (
        set(re.findall(r"<code>(p-[0-9a-f]{16})</code>", text_of(desk, f"{ROOT}participants/"))) == exported
    )


def test_it_shows_how_far_rendering_is(study: Study, desk: Client) -> None:
    Study.objects.filter(pk=study.pk).update(state="draft")
    some = list(Stimulus.objects.values_list("pk", flat=True)[:10])
    Stimulus.objects.filter(pk__in=some[:9]).update(state="missing")
    Stimulus.objects.filter(pk=some[9]).update(state="failed", error="<no> such layer")
    page = text_of(desk, f"{ROOT}stimuli/")
    total = Rendering.objects.count()
    assert f"<strong>{total - 10}</strong> of {total} rendered" in page and "1 failed" in page
    assert "&lt;no&gt; such layer" in page and "Build 10 stimuli" in page
    assert "python manage.py build_stimuli wolf-or-husky" in page
    assert "<html" not in text_of(desk, f"{ROOT}live/rendering/")


def test_it_starts_no_rendering_in_the_web_process(study: Study, desk: Client) -> None:
    Stimulus.objects.update(state="missing")
    desk.post(f"{ROOT}build/")
    assert not Stimulus.objects.exclude(state="missing").exists()


def test_it_sends_what_is_missing_to_the_workers(
    study: Study, desk: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    monkeypatch.setattr("crowd.recruiting.missing_picture_orders.send", sent.extend)
    settings.CELERY_BROKER_URL = "redis://nowhere"
    Study.objects.filter(pk=study.pk).update(state="draft")
    lost = set(Stimulus.objects.values_list("key", flat=True)[:3])
    Stimulus.objects.filter(key__in=lost).update(state="failed", error="out of memory")
    assert 'method="post" action="/studies/wolf-or-husky/build/"' in text_of(desk, ROOT)
    desk.post(f"{ROOT}build/")
    assert set(sent) == lost
    assert set(Stimulus.objects.filter(state="missing").values_list("key", flat=True)) == lost
    assert "Asked the workers for 3 stimuli." in text_of(desk, f"{ROOT}log/")


def test_it_names_identical_pictures(study: Study, desk: Client) -> None:
    Stimulus.objects.filter(renderings__item__key="item-00").update(picture_digest="same")
    page = text_of(desk, f"{ROOT}stimuli/")
    assert "item-00 (Baseline) = item-00 (Control) = item-00 (Grad-CAM)" in page
    assert page.count("same as Baseline") == 2


def test_it_says_the_next_step(study: Study, desk: Client) -> None:
    assert "No platform offers this study" in text_of(desk, ROOT)
    Posting.objects.create(study=study, platform="local")
    assert 'href="/join/wolf-or-husky/"' in text_of(desk, ROOT)
    Study.objects.filter(pk=study.pk).update(state="draft")
    assert "python manage.py study_open wolf-or-husky" in text_of(desk, ROOT)
    Study.objects.filter(pk=study.pk).update(state="closed")
    assert "Read the report" in text_of(desk, ROOT)


def test_it_previews_any_single_trial_without_holding_a_place(small: Study) -> None:
    person = Person("look")
    query = preview_query(small, 0, position=10)
    body = {"study": "small", "platform": "local", "query": query}
    reply = person.call("POST", "/api/sessions/", body, "none").json()
    assert (reply["session"]["step"], reply["session"]["next"]) == ("trials", 10)
    assert reply["session"]["study"]["origin"] == "preview"
    assert not Slot.objects.filter(holder__isnull=False).exists()


@pytest.mark.parametrize("is_sealed", [True, False])
def test_it_shows_a_report_of_any_reporter(
    study: Study, desk: Client, monkeypatch: pytest.MonkeyPatch, is_sealed: bool
) -> None:
    overridden(monkeypatch, reports.REPORTERS, "meta_predictor", "tests.analysis.toy_reporter:report")
    (stored.cast if is_sealed else stored.full)(study)
    assert refresh_report(study, "human").sealed == is_sealed
    answers = Response.objects.filter(session__verdict="passed").count()
    for page in ("", "live/"):
        assert f"{answers} pairs were compared." in text_of(desk, ROOT + page)
    framed = text_of(desk, f"{ROOT}report/human/")
    assert "How often two pictures were called the same" in framed
    assert ("figure-sameness" in framed) is not is_sealed
    assert desk.get(f"{ROOT}downloads/report-human.json").json()["sealed"] == is_sealed


def test_the_report_opens_on_those_who_have_one_and_else_on_people(study: Study, desk: Client) -> None:
    for number in range(3):
        for condition in ("baseline", "control", "grad_cam"):
            name = f"{condition}-{number}"
            stored.sitting(study, name, condition=condition, origin="simulated")
    refresh_report(study, "simulated")
    stored.sitting(study, "one-who-looks", condition="control", verdict="")
    assert 'src="/studies/wolf-or-husky/report/simulated/"' in text_of(desk, f"{ROOT}report/")
    assert "report/simulated/" not in text_of(desk, f"{ROOT}report/?origin=human")
    refresh_report(study, "human")
    assert 'src="/studies/wolf-or-husky/report/human/"' in text_of(desk, f"{ROOT}report/")
