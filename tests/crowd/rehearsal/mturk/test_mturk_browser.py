"""The worker's pages in a real browser: frame, preview, accept, submit, return."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from crowd.rehearsal import mturk
from crowd.rehearsal.mturk import TurkSimulator
from crowd.rehearsal.serving import Answer, IncomingRequest, serving
from tests.crowd.rehearsal.mturk.mturk_requester import client, hit, offer, question

if TYPE_CHECKING:
    from playwright.sync_api import FrameLocator, Page

pytestmark = [pytest.mark.pure, pytest.mark.browser]
STUDY_PAGE = """<!doctype html><meta charset="utf-8"><title>Study</title><p id="who"></p><p id="storage"></p>
<form method="post"><input type="hidden" name="assignmentId"><input type="hidden" name="completion"
value="DONE"><button id="finish">Finish</button></form>
<script>
const query = new URLSearchParams(location.search), form = document.querySelector("form");
document.querySelector("#who").textContent = query.get("workerId") || "preview";
form.assignmentId.value = query.get("assignmentId");
form.action = (query.get("turkSubmitTo") || "SIMULATOR") + "/mturk/externalSubmit";
let storage = "open";
try { localStorage.setItem("a", "b"); } catch { storage = "closed"; }
document.querySelector("#storage").textContent = storage;
</script>"""


@pytest.fixture
def sim() -> Iterator[TurkSimulator]:
    with mturk.simulator(seed=6) as running:
        yield running


@pytest.fixture
def turk(sim: TurkSimulator) -> Any:
    return client(sim)


@pytest.fixture
def study(sim: TurkSimulator) -> Iterator[str]:
    """A study's page of one form, on a server of its own."""

    def app(asked: IncomingRequest) -> Answer:
        text = STUDY_PAGE.replace("SIMULATOR", sim.url)
        return Answer(200, text.encode(), {"Content-Type": "text/html; charset=utf-8"})

    with serving(app) as url:
        yield f"{url}/join/?via=abc"


def task(page: "Page") -> "FrameLocator":
    return page.frame_locator("#task")


def test_it_shows_a_preview_then_takes_the_work(
    sim: TurkSimulator, turk: Any, study: str, page: "Page"
) -> None:
    hit_id = offer(turk, Question=question(study, "640"), MaxAssignments=1)
    page.goto(f"{sim.url}/projects/{hit(turk, hit_id)['HITGroupId']}/tasks")
    assert task(page).locator("#who").inner_text() == "preview"
    assert page.locator("#task").get_attribute("height") == "640"
    task(page).locator("#finish").click()
    assert "preview" in task(page).locator("#refused").inner_text()
    page.goto(f"{sim.url}/worker/{hit_id}")
    page.locator("#accept").click()
    page.wait_for_url("**assignment=**")
    worker = task(page).locator("#who").inner_text()
    (work,) = sim.control.state()["submissions"].values()
    assert (worker, work["state"]) == (work["person"], "Accepted")
    task(page).locator("#finish").click()
    assert task(page).locator("#submitted").inner_text() == "Submitted"
    (work,) = sim.control.state()["submissions"].values()
    assert (work["state"], work["code"]) == ("Submitted", "DONE")


@pytest.mark.parametrize(("sandbox", "storage"), [("", "open"), ("strict", "closed")])
def test_it_frames_as_strictly_as_asked(
    sim: TurkSimulator, turk: Any, study: str, page: "Page", sandbox: str, storage: str
) -> None:
    offer(turk, Question=question(study))
    page.goto(f"{sim.control.take()['page']}&sandbox={sandbox}")
    assert task(page).locator("#storage").inner_text() == storage
    with page.expect_event("framenavigated"):
        task(page).locator("#finish").click()
    assert task(page).locator("#submitted").inner_text() == "Submitted"
    (work,) = sim.control.state()["submissions"].values()
    assert work["state"] == "Submitted"


def test_it_gives_work_back_by_a_button(sim: TurkSimulator, turk: Any, study: str, page: "Page") -> None:
    offer(turk, Question=question(study), Title="<b>Bold & co</b>")
    page.goto(sim.control.take()["page"])
    assert page.locator("h1").inner_text() == "<b>Bold & co</b>"
    page.locator("#return").click()
    page.wait_for_url(lambda url: "assignment" not in url)
    (work,) = sim.control.state()["submissions"].values()
    assert work["state"] == "Returned"
