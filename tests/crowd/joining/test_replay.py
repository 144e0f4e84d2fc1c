"""A session played again on its record: every trial in order, as long as it took, the key at its moment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from experiments.models import Response, Study
from tests.analysis import stored
from tests.crowd.logins import login

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.django_db, pytest.mark.browser]
SCRIPT = Path(__file__).parents[3] / "crowd" / "dashboard" / "static" / "dashboard" / "replay.js"
TICK_MS, RT_MS, SHOWN_MS, UNANSWERED = 40, 400, 1000, 3
WATCH = """() => {
    window.seen = [];
    const words = name => document.querySelector(`.stage .${name}`).textContent;
    const note = () => {
        const now = `${words('where').split(' · ')[0]}: ${words('pressed').split(' after ').at(-1)}`;
        if (window.seen.at(-1) !== now) window.seen.push(now);
    };
    new MutationObserver(note).observe(document.querySelector('.stage'), {childList: true, subtree: true});
}"""


def begun(study: Study, page: Page, speed: str, answers: int | None = None) -> int:
    """Plays a person's record, on a clock that stands; how many trials it has. The page's own script is not
    needed, and there is no server for it."""
    session = stored.sitting(study, "ada", condition="control", answers=answers)
    Response.objects.filter(session=session).update(rt_ms=RT_MS, shown_ms=SHOWN_MS)
    Response.objects.filter(session=session, position=UNANSWERED - 1).delete()
    address = f"/studies/{study.slug}/participants/{session.pk}/"
    page.clock.install(time=0)
    page.set_content(login("bo", "view").get(address).content.decode())
    page.add_script_tag(path=str(SCRIPT))
    page.evaluate(WATCH)
    page.get_by_label("Speed").select_option(speed)
    page.clock.pause_at(3_600_000)
    page.get_by_role("button", name="Play as it went").click()
    assert session.slot is not None
    return session.slot.trials.count()


def test_it_plays_every_trial_in_order_with_its_answer(study: Study, page: Page) -> None:
    count = begun(study, page, "16")
    page.clock.run_for(count * (SHOWN_MS + 16 * TICK_MS))
    told = dict.fromkeys(range(1, count + 1), f"{RT_MS} ms") | {UNANSWERED: "no answer"}
    expected = [f"Trial {at}: {what}" for at in range(1, count + 1) for what in ("", told[at])]
    assert page.evaluate("window.seen") == expected
    assert page.get_by_role("button", name="Play as it went").is_visible(), "it has stopped by itself"
    assert page.locator("tr[data-now]").count() == 0


def test_it_ends_with_the_last_answer_of_a_person_who_left(study: Study, page: Page) -> None:
    count = begun(study, page, "16", answers=UNANSWERED + 2)
    page.clock.run_for(count * (SHOWN_MS + 16 * TICK_MS))
    seen = page.evaluate("window.seen")
    assert count > UNANSWERED + 2 and seen[-1] == f"Trial {UNANSWERED + 2}: {RT_MS} ms"
    assert page.get_by_role("button", name="Play as it went").is_visible()


def test_nothing_is_played_of_a_person_without_an_answer(study: Study, page: Page) -> None:
    session = stored.sitting(study, "ada", condition="control", answers=0)
    address = f"/studies/{study.slug}/participants/{session.pk}/"
    page.set_content(login("bo", "view").get(address).content.decode())
    page.add_script_tag(path=str(SCRIPT))
    assert page.get_by_role("button", name="Play as it went").count() == 0


def test_the_answer_comes_when_it_was_given(study: Study, page: Page) -> None:
    begun(study, page, "4")
    where, pressed = (page.locator(f".stage .{name}") for name in ("where", "pressed"))
    page.clock.run_for(TICK_MS)
    assert where.inner_text().startswith("Trial 1 ·") and pressed.inner_text() == ""
    # Four times as fast: 400 ms are over after three ticks of 160, 1,000 ms after seven.
    page.clock.run_for(2 * TICK_MS)
    assert pressed.inner_text() == ""
    page.clock.run_for(TICK_MS)
    assert f"after {RT_MS} ms" in pressed.inner_text()
    page.clock.run_for(3 * TICK_MS)
    assert where.inner_text().startswith("Trial 1 ·")
    page.clock.run_for(TICK_MS)
    assert where.inner_text().startswith("Trial 2 ·") and pressed.inner_text() == ""
    page.get_by_role("button", name="Stop").click()
    page.clock.run_for(100 * TICK_MS)
    assert where.inner_text().startswith("Trial 2 ·")


@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_trial_is_seen_as_people_see_it_once_results_are_open(study: Study, is_sealed: bool) -> None:
    session = stored.sitting(study, "ada", condition="control")
    if not is_sealed:
        Study.objects.filter(pk=study.pk).update(state="closed")
    html = login("bo", "view").get(f"/studies/{study.slug}/participants/{session.pk}/").content.decode()
    links = html.count('title="The trial as a participant sees it"')
    assert session.slot is not None
    assert links == (0 if is_sealed else session.slot.trials.count())
