"""Sessions of an expert and of a lead in Chromium against the production server, by keyboard, by mouse and by
touch alone: what was pressed is what is stored and exported, and no page tells who else answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.tables.response_reader import read_frames
from experiments.models import HandOut, Response, Session, Study
from experiments.stages.solution_freeze import freeze
from tests.experiments.protocols import REVIEW, SOLVE, solved, staged
from tests.journeys.pages.blind_words import told
from tests.journeys.sessions.hands import Fingers, Mouse
from tests.journeys.sessions.visitor import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.journeys.conftest import Site

pytestmark = pytest.mark.browser

CHECKED = "instructed = 2"
GAP_MS = 300
"""Between two trials, if the study says nothing else."""
FRAME_MS = 40
"""Two frames of the display: what is put into the page or taken out is seen with the next one."""
WATCH = """
window.gaps = [];
let was = null;
const look = () => {
    const board = document.querySelector(".board"), page = document.querySelector("[data-page]");
    const now = page ? "page" : board ? board : document.querySelector(".wait") ? "wait" : "blank";
    const name = typeof now === "string" ? now : now.querySelector(".ask").textContent.split(":")[0];
    if (now !== was) gaps.push([name, performance.now()]);
    was = now;
    requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


class Blind(Visitor):
    """Reads every page for words that would tell."""

    def step(self) -> None:
        self.settle()
        assert told(self.page) == []
        super().step()


class BlindMouse(Blind, Mouse):
    """The same by the mouse."""


class BlindFingers(Blind, Fingers):
    """The same by touch."""


HANDS: dict[str, type[Blind]] = {"keyboard": Blind, "mouse": BlindMouse, "touch": BlindFingers}


@pytest.fixture
def study(
    request: pytest.FixtureRequest, transactional_db: None, store_folder: Path, tmp_path: Path
) -> Study:
    if request.param == "solve":
        return staged(tmp_path / "s", "tasks", SOLVE.replace("instructed = 0", CHECKED))
    freeze(solved(tmp_path / "s"))
    return staged(tmp_path / "v", "judged", REVIEW.replace("instructed = 0", CHECKED))


def walked(study: Study, server: Site, page: Page, hand: str) -> Blind:
    """A whole session, from the first page to the last."""
    practice = [row["answer"] for row in study.practice if not row["example"]]
    person = HANDS[hand](page, practice, {})
    person.arrive(f"{server.url}/join/{study.slug}/?person=ada&submission=s1")
    assert page.title() == study.definition["title"]
    person.walk("finish")
    assert told(page) == []
    assert Session.objects.filter(study=study).latest("started_at").state == "finished"
    return person


def exported(study: Study, kind: str) -> list[dict[str, Any]]:
    table = read_frames(study).trials
    rows = table[table["kind"] == kind].sort_values("trial_index")
    return list(rows.tail(len(rows)).to_dict("records"))


@pytest.mark.parametrize("study", ["solve"], indirect=True)
def test_an_expert_s_session(study: Study, server: Site, place: Page, hand: str) -> None:
    expert = walked(study, server, place, hand)
    rows = list(Response.objects.order_by("position").select_related("trial"))
    assert [row.value["choice"] for row in rows] == expert.pressed[-len(rows) :]
    tasks = [row for row in rows if row.trial.kind == "solve"]
    assert len(tasks) >= 8 and len(rows) - len(tasks) == 2
    assert {row.value["choice"] for row in tasks} == {"left", "right"}
    strokes = 2 if hand == "keyboard" else 1
    for row in tasks:
        # The frame begins in the middle of the grid; its cell was marked, and the one to its right: by the
        # keyboard each alone, by a pointer both in one stroke.
        assert row.value["region"] == [10, 11]
        noted = row.context
        assert (noted["strokes"], noted["undos"]) == (strokes, 0)
        assert (noted["marked_with"], noted["input"]) == (hand, hand)
        assert 0 <= noted["first_stroke_ms"] <= row.rt_ms <= row.shown_ms
    for cells, row in zip(exported(study, "solve"), tasks, strict=True):
        assert (cells["region_cells"], cells["strokes"], cells["marked_with"]) == (2, strokes, hand)
        assert json.loads(cells["region"]) == row.value["region"]
        assert cells["first_stroke_ms"] == row.context["first_stroke_ms"]


@pytest.mark.parametrize("study", ["review"], indirect=True)
def test_a_lead_s_session(study: Study, server: Site, place: Page, hand: str) -> None:
    place.add_init_script(WATCH)
    lead = walked(study, server, place, hand)
    session = Session.objects.get(study=study)
    rows = list(Response.objects.filter(session=session).order_by("position").select_related("trial"))
    judged = [row for row in rows if row.trial.kind == "review"]
    pressed = [value for value in lead.pressed if value in ("accept", "reject")]
    assert [row.value for row in judged] == [{"accept": value == "accept"} for value in pressed]
    assert len(rows) - len(judged) == 2 and set(pressed) == {"accept", "reject"}
    # Each was handed out alone, and its time on the page lies within the server's own.
    handed = dict(HandOut.objects.filter(session=session).values_list("trial_id", "handed_out_at"))
    assert set(handed) == {row.trial_id for row in judged}
    for row in judged:
        server_ms = (row.received_at - handed[row.trial_id]).total_seconds() * 1000
        assert 0 < row.rt_ms <= row.shown_ms <= server_ms + 1 and row.context["input"] == hand
    for cells, row in zip(exported(study, "review"), judged, strict=True):
        assert bool(cells["accepted"]) is row.value["accept"]
    # Between two of them in a part the page was blank, no shorter than the study says, and nothing else came.
    seen: list[tuple[str, float]] = place.evaluate("gaps")
    blanks = [
        after - now
        for (before, _), (between, now), (following, after) in zip(seen, seen[1:], seen[2:], strict=False)
        if (before, between, following) == ("Answer", "blank", "Answer")
    ]
    pairs = [(row.trial.block, after.trial.block) for row, after in zip(rows, rows[1:], strict=False)
             if row.trial.kind == after.trial.kind == "review"]  # fmt: skip
    assert len(blanks) == sum(block == following for block, following in pairs) > 10
    assert min(blanks) >= GAP_MS - FRAME_MS
