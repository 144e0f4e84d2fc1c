"""A draft in the participant's page: what it shows of the file, and that nothing else knows of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import clear_url_caches
from pytest_django.fixtures import Settings

from crowd.models import Posting
from crowd.rehearsal.preview import urls
from crowd.rehearsal.preview.drafts import Preview
from crowd.rehearsal.preview.pages import pages_of, pages_of_place
from crowd.rehearsal.preview.serving import serving
from experiments.drafting.draft import gather
from experiments.drafting.stimulus_specs import specs_of
from experiments.models import Preregistration, Response, Session
from experiments.opening import preview_draft, previewed_items
from experiments.study_files.load import load_study
from stimuli.build import build
from stimuli.models import Stimulus
from stimuli.store import LocalStore, MemoryStore, media_access
from stimuli.store.read_through import TRAINED, ReadThrough
from tests.experiments.protocols import RATING, REVIEW, SENTENCES, SOLVE, TURING, TWO_MODELS, USES, write
from tests.world import opened_study, silent, write_study

pytestmark = pytest.mark.django_db

TOKEN = "a-token"
OTHER_ITEM = """
[[conditions]]
name = "borrowed"
role = "control"
explainer = { name = "other_item", of = "saliency" }
slots = 3
"""


@dataclass
class Looker:
    """A researcher before the preview of a file; the work that another thread does is done as it is asked."""

    preview: Preview
    real: LocalStore
    client: Client = field(default_factory=Client)

    def edit(self, change: Callable[[str], str]) -> str:
        """Saves another text and returns the page that follows it."""
        self.preview.path.write_text(change(self.preview.path.read_text()))
        self.preview._stamps.clear()  # Two changes within one tick of the file system's clock are two.
        self.preview.work()
        return self.page()

    def page(self, **chosen: str) -> str:
        return self.client.get(f"/{TOKEN}/", chosen).content.decode()

    def see(self, **chosen: str) -> str:
        """The address that the frame ends at, made on the way."""
        first = self.client.get(f"/{TOKEN}/see", chosen)
        if first.status_code == 200:
            assert "refresh" in first.content.decode()
            self.preview.work()
            first = self.client.get(f"/{TOKEN}/see", chosen)
        assert first.status_code == 302, first.content
        return str(first.headers["Location"])

    def join(self, **chosen: str) -> dict[str, Any]:
        """What the participant's page is told there."""
        page, _, query = self.see(**chosen).partition("?")
        assert self.client.get(f"{page}?{query}").status_code == 200
        asked = {"study": page.split("/")[2], "platform": "local", "query": query}
        reply = self.client.post("/api/sessions/", asked, content_type="application/json")
        assert reply.status_code == 201, reply.content
        return dict(reply.json()["session"])


@pytest.fixture
def look(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Looker]:
    def at(path: Path) -> Looker:
        real = LocalStore(tmp_path / "real")
        monkeypatch.setattr(media_access, "_given", ReadThrough(real, MemoryStore(), TRAINED))
        preview = Preview(path, tmp_path / "previewed")
        monkeypatch.setattr(urls, "urlpatterns", [*urls.FIXED, *pages_of(preview, TOKEN)])
        settings.ROOT_URLCONF = urls.__name__
        clear_url_caches()
        preview.work()
        return Looker(preview, real)

    return at


def test_its_pictures_are_those_of_a_build(
    look: Callable[..., Looker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked about a part of the items only, whose pictures have the keys of a build and, made again in an
    empty store, the same bytes."""
    monkeypatch.setattr(preview_draft, "STEP", 16)
    path = write_study(tmp_path / "study")
    looker = look(path)
    assert "asked about 32 of 56 items" in looker.page()
    trials = looker.join(page="trial-4")["block"]["trials"]
    assert [trial["position"] for trial in trials] == list(range(10))
    draft = looker.preview.draft
    assert draft is not None
    definition, built = load_study(path), MemoryStore()
    whole = specs_of(definition, gather(definition, path.parent, built, silent))
    assert {whole[place[:2]].picture_key for place in draft.specs} == {
        spec.picture_key for spec in draft.specs.values()
    }
    shown = Stimulus.objects.filter(state="done").values("key", "image_file", "explanation_file")
    before = {row["key"]: row for row in shown}
    files = {name for row in before.values() for name in (row["image_file"], row["explanation_file"]) if name}
    store = media_access.current_store()
    assert len(before) == 8
    contents = {name: store.get(name) for name in files}
    monkeypatch.setattr(media_access, "_given", built)
    Stimulus.objects.update(state="missing")
    build(list(before))
    assert {name: built.get(name) for name in files} == contents


def test_places_of_all_conditions_are_matched(look: Callable[..., Looker], tmp_path: Path) -> None:
    draft = look(write_study(tmp_path / "study")).preview.draft
    assert draft is not None
    shown = {plan.condition: [(t.item, t.phase, t.choices) for t in plan.trials] for plan in draft.plans}
    assert set(shown) == {"baseline", "control", "saliency"}
    assert len({str(trials) for trials in shown.values()}) == 1


def test_what_needs_all_items_is_said_to_be_missing(
    look: Callable[..., Looker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_study(tmp_path / "study")
    path.write_text(path.read_text() + OTHER_ITEM)
    monkeypatch.setattr(preview_draft, "STEP", 16)
    looker = look(path)
    assert "Missing here: borrowed." in looker.page() and "target leak" in looker.page()
    assert looker.preview.draft is not None
    assert {plan.condition for plan in looker.preview.draft.plans} == {"baseline", "control", "saliency"}
    monkeypatch.setattr(preview_draft, "STEP", 1000)
    page = looker.edit(lambda text: text.replace("seed = 11", "seed = 12"))
    assert "Missing here" not in page and "items, so that" not in page
    assert '<option value="' in page and ">Borrowed</option>" in page


def test_every_page_of_a_place_is_opened(look: Callable[..., Looker], tmp_path: Path) -> None:
    path = write_study(tmp_path / "study")
    looker = look(path)
    draft, rows = looker.preview.draft, looker.preview.rows
    assert draft is not None and rows is not None
    plan = next(plan for plan in draft.plans if plan.condition == "saliency")
    pages = pages_of_place(rows, plan)
    place = str(plan.ordinal)
    steps = {}
    for page in pages:
        state = looker.join(place=place, page=page.value)
        assert state["study"]["origin"] == "preview"
        steps[page.value] = (state["step"], state["next"])
    trials = {f"trial-{n}": ("trials", n) for n in range(len(plan.trials))}
    assert steps.items() >= trials.items()
    assert {steps[kind] for kind in ("device", "consent", "quiz", "practice")} == {
        (kind, 0) for kind in ("device", "consent", "quiz", "practice")
    }
    assert steps["comment"] == ("comment", len(plan.trials)) and len(steps) == len(pages)
    german = looker.join(place=place, page="consent", language="de")
    assert german["step"] == "consent" and german["study"]["title"] == "Left or right"
    assert looker.preview._studies["de"].definition["language"] == "de"
    assert looker.preview._studies["en"].definition["language"] == "en"


@pytest.mark.parametrize(
    ("paradigm", "tables", "more", "place"),
    [
        ("rating", RATING, {"sources": TWO_MODELS}, "Place 1 \N{MIDDLE DOT} Round 0"),
        ("blind_review", SOLVE, {"uses": USES}, "People"),
        ("reverse_turing", TURING, {"sources": SENTENCES}, "Plain"),
    ],
)
def test_other_paradigms_are_shown(
    look: Callable[..., Looker], tmp_path: Path, paradigm: str, tables: str, more: dict[str, Any], place: str
) -> None:
    looker = look(write(tmp_path / "study", "other", paradigm, tables, **more))
    assert looker.preview.faults == ()
    assert looker.join()["step"] == "trials" and f">{place}</option>" in looker.page()


def test_a_stage_without_its_solutions_names_the_stage_before(
    look: Callable[..., Looker], tmp_path: Path
) -> None:
    looker = look(write(tmp_path / "study", "judged", "blind_review", REVIEW, uses=USES))
    assert "Preview &#x27;tasks&#x27;" in looker.page()


def test_a_fault_is_shown_with_its_line_until_it_is_mended(
    look: Callable[..., Looker], tmp_path: Path
) -> None:
    path = write_study(tmp_path / "study")
    right = path.read_text()
    looker = look(path)
    line = right.splitlines().index("blocks = 2") + 1
    page = looker.edit(lambda text: text.replace("blocks = 2", "blocks = 21"))
    assert f"line {line}: design.blocks = 21" in page and "less than or equal to 20" in page
    assert "Below is the study as it was read before." in page and "<iframe" in page
    assert looker.join()["step"] == "trials"
    page = looker.edit(lambda text: right.replace("blocks = 2", "blocks = "))
    assert f"line {line}: " in page
    page = looker.edit(lambda text: right.replace("train_per_block = 4", "train_per_block = 90"))
    assert "ask for fewer trials" in page
    page = looker.edit(lambda text: right.replace("train_per_block = 4", "train_per_block = 3"))
    assert 'role="alert"' not in page and looker.join()["total"] == 17


def test_a_fault_at_the_start_waits_for_the_file(look: Callable[..., Looker], tmp_path: Path) -> None:
    path = write_study(tmp_path / "study")
    right = path.read_text()
    path.write_text(right.replace("toy", "tie"))
    looker = look(path)
    assert "<iframe" not in looker.page() and "there is no predictor &#x27;tie&#x27;" in looker.page()
    assert "<iframe" in looker.edit(lambda text: right)


def test_texts_beside_the_file_are_followed(look: Callable[..., Looker], tmp_path: Path) -> None:
    path = write_study(tmp_path / "study")
    looker = look(path)
    assert "Another word" not in looker.join(page="consent")["page"]["html"]
    path.with_name("consent.md").write_text("# Consent\n\nAnother word.\n")
    looker.edit(lambda text: text)
    assert "Another word" in looker.join(page="consent")["page"]["html"]


def test_a_word_of_the_masked_task_is_a_fault(look: Callable[..., Looker], tmp_path: Path) -> None:
    """The scan for words that blind studies may not say runs with each reading."""
    path = write(tmp_path / "study", "tasks", "blind_review", SOLVE, uses=USES)
    looker = look(path)
    assert looker.preview.faults == ()
    path.with_name("instructions.md").write_text("# Compare yourself with the machine\n")
    assert "texts.instructions = &#x27;machine" in looker.edit(lambda text: text)


def test_only_its_token_leads_in_and_it_listens_on_this_machine(
    look: Callable[..., Looker], tmp_path: Path, settings: Settings
) -> None:
    looker = look(write_study(tmp_path / "study"))
    client = looker.client
    assert client.get(f"/{TOKEN}/").headers["Referrer-Policy"] == "no-referrer"
    for path in ("/", "/login/", "/other/", "/other/see", "/other/now", "/studies/small/", "/admin/"):
        assert client.get(path).status_code == 404, path
    assert client.get(f"/{TOKEN}/", headers={"Host": "legible.example"}).status_code == 400
    assert client.get("/join/preview-1-en/").status_code == 404
    with serving(looker.preview, TOKEN) as url:
        assert re.fullmatch(rf"http://127\.0\.0\.1:\d+/{TOKEN}/", url)


def test_it_leaves_no_trace_but_which_items_were_seen(
    look: Callable[..., Looker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the plan of the study lists those of its tests."""
    path = write_study(tmp_path / "study")
    looker = look(path)
    assert looker.preview.draft is not None
    plan = next(plan for plan in looker.preview.draft.plans if plan.condition == "saliency")
    looker.join(place=str(plan.ordinal), page="trial-0")
    assert not list(looker.real.keys()) and not Posting.objects.exists() and not Response.objects.exists()
    assert set(Session.objects.values_list("origin", flat=True)) == {"preview"}
    monkeypatch.setattr(media_access, "_given", None)
    Stimulus.objects.update(state="missing")
    monkeypatch.setattr(previewed_items, "notes_folder", lambda: looker.preview.notes_folder)
    study = opened_study(path)
    seen = {trial.item for trial in plan.trials if trial.block == 0 and trial.explained}
    tests = study.slots.filter(trials__phase="test", trials__check_kind="")
    tested = set(tests.values_list("trials__item__key", flat=True))
    stored = Preregistration.objects.get(study=study).document
    assert seen & tested and json.loads(stored)["previewed"] == sorted(map(str, seen & tested))
