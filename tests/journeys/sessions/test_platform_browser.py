"""People of the simulated platforms in Chromium, against a server: preview, frame, every exit."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings

from crowd.rehearsal import mturk, prolific
from crowd.rehearsal.serving import Answer, IncomingRequest, serving
from tests import open_world, services
from tests.journeys.conftest import Site
from tests.journeys.sessions.visitor import Visitor, violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Frame, Page

pytestmark = pytest.mark.browser

AXE = services.ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
LINES = (
    *("blocks = 1", "train_per_block = 2", "test_per_block = 2", "repeat = 0", "slots = 12"),
    "min_view_ms = 20\ngap_ms = 0",
    # A submitted piece of work is always paid whole on Mechanical Turk, so no smaller share may be promised.
    'expected_minutes = 4\n[policy]\nturned_away_share = 0.0\nwithdrawn = "none"',
)
PHONE: Any = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@dataclass
class Stage:
    """One served study. `offer` publishes it; the posting of another platform ends with that."""

    told: dict[str, Any]

    def offer(self, platform: str, site: str) -> dict[str, Any]:
        """The posting that is open there now."""
        open_world.offer(platform, site)
        posting: dict[str, Any] = open_world.tell()["postings"][platform]
        return posting

    def visitor(self, page: Any) -> Visitor:
        return Visitor(page, self.told["practice"], self.told["quiz"])

    def session(self) -> dict[str, Any]:
        """The latest session as it is stored."""
        latest: dict[str, Any] = open_world.tell()["sessions"][-1]
        return latest


@pytest.fixture(scope="module")
def stage(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "BASE_URL", site.url)
        yield Stage(open_world.opened(tmp_path_factory.mktemp("stage") / "small", *LINES))


@dataclass
class PostingCard:
    """The study on one simulated platform."""

    stage: Stage
    sim: Any
    posting: str
    codes: dict[str, str]

    def take(self) -> dict[str, Any]:
        """A participant takes a place: their address, submission, page."""
        taken: dict[str, Any] = self.sim.control.take(posting=self.posting)
        return taken


@pytest.fixture(scope="module")
def on_prolific(stage: Stage) -> Iterator[PostingCard]:
    with prolific.simulator(
        seed=3, start=datetime.now(UTC), options=prolific.ProlificWorldOptions(currency="USD")
    ) as sim:
        posting = stage.offer("prolific", sim.url)
        yield PostingCard(stage, sim, posting["external_id"], posting["codes"])


@pytest.fixture(scope="module")
def on_mturk(stage: Stage) -> Iterator[PostingCard]:
    with mturk.simulator(seed=4) as sim:
        posting = stage.offer("mturk", sim.url)
        yield PostingCard(stage, sim, "", posting["codes"])


def return_to(page: "Page") -> str:
    """Goes back by the button, and reads what the platform received."""
    page.get_by_role("button", name="Return to the platform").click()
    page.wait_for_url("**/submissions/complete?cc=*")
    return page.locator("h1").inner_text()


class Careless(Visitor):
    """Ignores instructions: every check is answered with another key than the one asked for."""

    def pick(self, values: list[str]) -> str:
        right = super().pick(values)
        return next(value for value in values if value != right) if len(values) > 2 else right


def fails_the_quiz(visitor: Visitor) -> None:
    visitor.walk("quiz")
    wrong = {"task": "truth"}
    visitor.quiz = wrong
    visitor.do_page("quiz")
    visitor.settle()
    visitor.do_page("quiz")
    visitor.settle()


def leaves(visitor: Visitor) -> None:
    visitor.walk("finish", answers=2)
    visitor.page.get_by_role("button", name="Leave the study").click()
    visitor.page.locator("dialog .danger").click()
    visitor.page.wait_for_selector("[data-page=finish]")


def declines(visitor: Visitor) -> None:
    visitor.walk("consent")
    visitor.page.get_by_role("button", name="I do not agree").click()
    visitor.page.wait_for_selector("[data-page=finish]")


def meets_a_fault(visitor: Visitor) -> None:
    """Our server's replies are unusable for the page, again and again."""
    visitor.walk("instructions")
    visitor.page.route("**/api/session/instructions/", lambda route: route.fulfill(status=422, body="{}"))
    visitor.press_primary()
    visitor.page.get_by_role("button", name="It keeps failing").click()
    visitor.page.wait_for_selector("[data-page=finish]")


WAYS = {"screened": fails_the_quiz, "withdrawn": leaves, "declined": declines, "failure": meets_a_fault}


@pytest.mark.parametrize(("kind", "outcome"), [(Visitor, "complete"), (Careless, "failed_checks")])
def test_it_sends_people_who_finish_back_with_the_code_of_their_outcome(
    on_prolific: PostingCard, page: "Page", kind: type[Visitor], outcome: str
) -> None:
    opened = on_prolific.stage.told
    visitor = kind(page, opened["practice"], opened["quiz"])
    seen: list[str] = []
    page.on("response", lambda reply: seen.append(reply.url) if "/api/" not in reply.url else None)
    visitor.arrive(on_prolific.take()["url"])
    visitor.walk("comment")
    assert not any(code in page.content() for code in on_prolific.codes.values())
    visitor.press_primary()
    assert visitor.settle() == "finish"
    assert page.locator(".code").inner_text() == on_prolific.codes[outcome]
    assert on_prolific.codes[outcome] in return_to(page)
    assert page.context.cookies() == [] and seen
    assert on_prolific.stage.session()["state"] == "finished"


@pytest.mark.parametrize("outcome", WAYS)
def test_it_sends_leavers_back_with_the_code_of_their_outcome(
    on_prolific: PostingCard, page: "Page", outcome: str
) -> None:
    visitor = on_prolific.stage.visitor(page)
    visitor.arrive(on_prolific.take()["url"])
    WAYS[outcome](visitor)
    assert violations(page, AXE.read_text()) == []
    assert on_prolific.codes[outcome] in return_to(page)


def test_it_sends_people_with_only_a_phone_back(on_prolific: PostingCard, browser: "Browser") -> None:
    """Refused before consent, with an exit that does the person's account no harm."""
    context = browser.new_context(**PHONE)
    try:
        page = context.new_page()
        visitor = on_prolific.stage.visitor(page)
        visitor.arrive(on_prolific.take()["url"])
        assert visitor.settle() == "device"
        wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert not wide and "390 by 844" in page.locator("[data-page=device]").inner_text()
        page.get_by_role("button", name="I will not take part").tap()
        page.wait_for_selector("[data-page=finish]")
        assert violations(page, AXE.read_text()) == []
        assert on_prolific.codes["device"] in return_to(page)
    finally:
        context.close()
    assert on_prolific.stage.session()["state"] == "withdrawn"


def test_it_hands_over_from_a_phone_to_a_computer_by_the_same_link(
    on_prolific: PostingCard, page: "Page", browser: "Browser"
) -> None:
    """ "Not now" excludes no person: the link that the phone shows starts the study, with one session."""
    context = browser.new_context(**PHONE)
    try:
        phone = context.new_page()
        visitor = on_prolific.stage.visitor(phone)
        visitor.arrive(on_prolific.take()["url"])
        assert visitor.settle() == "device"
        link = phone.locator(".address").inner_text()
        phone.get_by_role("button", name="Not now").tap()
        phone.wait_for_selector("[data-page=later]")
        assert violations(phone, AXE.read_text()) == []
        assert phone.locator(".address").inner_text() == link == phone.url
        assert not phone.evaluate("document.documentElement.scrollWidth > innerWidth")
    finally:
        context.close()
    before = len(open_world.tell()["sessions"])
    desktop = on_prolific.stage.visitor(page)
    desktop.arrive(link)
    assert desktop.settle() == "consent"
    assert len(open_world.tell()["sessions"]) == before
    assert on_prolific.stage.session()["state"] == "gates"


def test_it_goes_on_after_the_signature_is_over_and_in_no_other_browser(
    on_prolific: PostingCard, page: "Page", browser: "Browser"
) -> None:
    open_world.sign()
    on_prolific.sim.world.study(on_prolific.posting).sent["is_external_study_url_secure"] = True
    address = on_prolific.take()["url"]
    visitor = on_prolific.stage.visitor(page)
    visitor.arrive(address)
    visitor.walk("instructions")
    assert "resume=" in page.url and "prolific_token" not in page.url and "PROLIFIC_PID" not in page.url
    page.reload()
    assert visitor.settle() == "instructions"
    other = browser.new_context()
    try:
        second = other.new_page()
        second.goto(address)
        trouble = second.wait_for_selector('[data-page="trouble"][data-code="not_admitted"]')
        assert trouble is not None and "another browser" in trouble.inner_text()
        assert second.get_by_role("button", name="Return to the platform").count() == 0
    finally:
        other.close()
    visitor.page.get_by_role("button", name="Leave the study").click()
    visitor.page.locator("dialog .danger").click()
    assert on_prolific.codes["withdrawn"] in return_to(page)


class InFrame:
    """A visitor's page whose content is in a frame."""

    def __init__(self, page: "Page", frame: "Frame") -> None:
        self.page, self.frame, self.keyboard = page, frame, page.keyboard

    def __getattr__(self, name: str) -> Any:
        return getattr(self.frame, name)


def frame_of(page: "Page") -> "Frame":
    """The frame of the task; it takes the keyboard as after a click into it."""
    element = page.wait_for_selector("#task")
    frame = element.content_frame() if element else None
    assert frame is not None
    frame.wait_for_selector("body")
    frame.locator("body").click(position={"x": 3, "y": 3})
    return frame


def test_it_shows_a_worker_a_preview_and_makes_no_session(on_mturk: PostingCard, page: "Page") -> None:
    before = len(open_world.tell()["sessions"])
    page.goto(on_mturk.sim.control.preview()["page"])
    frame = frame_of(page)
    frame.wait_for_selector("h1")
    text = frame.locator("body").inner_text()
    for shown in ("Preview", "Left or right", "about 4 minutes", "1.00 USD", "Text of Left or right"):
        assert shown in text
    assert frame.locator("button, form, input, script").count() == 0
    assert page.context.cookies() == []
    assert len(open_world.tell()["sessions"]) == before


@pytest.mark.parametrize(
    "sandbox",
    [
        "strict",
        pytest.param("", marks=pytest.mark.long(stays="test_it_takes_a_whole_session_inside_the_frame")),
    ],
)
def test_it_takes_a_whole_session_inside_the_frame(on_mturk: PostingCard, page: "Page", sandbox: str) -> None:
    """In a sandbox without an origin: no storage, no database, no history, requests from abroad."""
    taken = on_mturk.take()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{taken['page']}&sandbox={sandbox}")
    frame = frame_of(page)
    visitor = on_mturk.stage.visitor(InFrame(page, frame))
    visitor.walk("practice")
    pictures = frame.locator("img").all()
    assert pictures
    for picture in pictures:
        picture.evaluate("image => image.decode()")  # fails if the frame may not load the picture
    visitor.walk("comment")
    visitor.press_primary()
    assert visitor.settle() == "finish"
    frame.get_by_role("button", name="Hand in on the platform").click()
    frame.wait_for_selector("#submitted")
    work = on_mturk.sim.control.state()["submissions"][taken["submission"]]
    assert (work["state"], work["code"]) == ("Submitted", on_mturk.codes["complete"])
    assert page.context.cookies() == [] and problems == []
    assert on_mturk.stage.session()["state"] == "finished"


def test_it_asks_a_worker_who_declines_to_give_the_work_back(on_mturk: PostingCard, page: "Page") -> None:
    page.goto(f"{on_mturk.take()['page']}&sandbox=strict")
    frame = frame_of(page)
    visitor = on_mturk.stage.visitor(InFrame(page, frame))
    visitor.walk("consent")
    frame.get_by_role("button", name="I do not agree").click()
    frame.wait_for_selector("[data-page=finish]")
    assert "give the task back" in frame.locator("main").inner_text()
    assert frame.locator("button").count() == 0


def test_only_the_platform_may_frame_it(on_mturk: PostingCard, page: "Page") -> None:
    address = on_mturk.take()["url"].replace("&", "&amp;")

    def foreign(asked: IncomingRequest) -> Answer:
        text = f'<!doctype html><title>Other</title><iframe id="task" src="{address}"></iframe>'
        return Answer(200, text.encode(), {"Content-Type": "text/html; charset=utf-8"})

    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    with serving(foreign) as url:
        page.goto(url)
        element = page.wait_for_selector("#task")
        frame = element.content_frame() if element else None
        assert frame is not None and frame.locator("#app").count() == 0
        assert frame.url.startswith("chrome-error://")
    assert any("frame-ancestors" in text for text in messages)


def test_it_sends_people_back_if_every_place_is_taken(on_mturk: PostingCard, page: "Page") -> None:
    """This test is the last, because it fills the study. The person did no work that could be submitted."""
    open_world.fill(kept=True)
    page.goto(f"{on_mturk.take()['page']}&sandbox=strict")
    frame = frame_of(page)
    trouble = frame.wait_for_selector('[data-page="trouble"][data-code="full"]')
    assert trouble is not None and "give the task back" in trouble.inner_text()


def test_it_leads_people_who_come_too_late_back_to_prolific(stage: Stage, page: "Page") -> None:
    with prolific.simulator(
        seed=5, start=datetime.now(UTC), options=prolific.ProlificWorldOptions(currency="USD")
    ) as sim:
        open_world.fill(kept=False)
        posting = stage.offer("prolific", sim.url)
        open_world.fill(kept=True)
        page.goto(sim.control.take(posting=posting["external_id"])["url"])
        page.wait_for_selector('[data-page="trouble"][data-code="full"]')
        assert violations(page, AXE.read_text()) == []
        assert posting["codes"]["turned_away"] in return_to(page)
