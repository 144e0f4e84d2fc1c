"""`study_check` writes a page with the explanations that people would see: whole by itself, empty ones
first."""

from __future__ import annotations

import base64
import re
from collections import Counter
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client
from PIL import Image

from experiments.drafting.draft import build_draft, gather
from experiments.models import Rendering
from experiments.study_files.load import load_study
from stimuli.store.files import read_text
from stimuli.store.media_access import current_store, read_media
from tests.crowd.study_check.test_stimulus_quality import turing
from tests.crowd.study_check.test_study_check import Check, check, of_few, study_with
from tests.spoilt import empty_for_the_first_answer
from tests.world import silent

__all__ = ["check"]
pytestmark = pytest.mark.django_db


class Figures(HTMLParser):
    """Per heading of a condition its figures, as (class, item, picture, words); and every address."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[Any]]] = {}
        self.addresses: list[str] = []
        self.heading: list[str] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.addresses += [str(known[name]) for name in ("src", "href", "action") if name in known]
        if tag == "h3":
            self.heading = []
        elif tag == "figure":
            list(self.rows.values())[-1].append([known.get("class") or "", "", b"", ""])
        elif tag == "img":
            _, data = str(known["src"]).split("data:image/png;base64,")
            item = str(known["alt"]).split(",")[0]
            list(self.rows.values())[-1][-1][1:3] = [item, base64.b64decode(data, validate=True)]

    def handle_endtag(self, tag: str) -> None:
        if tag == "h3" and self.heading is not None:
            self.rows["".join(self.heading)] = []
            self.heading = None

    def handle_data(self, data: str) -> None:
        if self.heading is not None:
            self.heading.append(data)
        elif self.rows and list(self.rows.values())[-1]:
            list(self.rows.values())[-1][-1][3] += data


def pixels(data: bytes) -> np.ndarray[Any, Any]:
    return np.asarray(Image.open(BytesIO(data)).convert("RGB"))


@pytest.fixture
def spoilt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted method: for the first answer it makes nothing."""
    empty_for_the_first_answer(monkeypatch)


def test_it_shows_what_was_looked_at_with_the_empty_ones_first(
    tmp_path: Path, store_folder: Path, check: Check, spoilt: None
) -> None:
    path, file = study_with(tmp_path), tmp_path / "looked" / "at.html"
    printed = check(path, "--quality", "20", "--page", str(file))
    assert f"Look at what people would see: {file}" in printed
    page = file.read_text(encoding="utf-8")
    read = Figures(page)
    assert set(read.rows) == {"Control", "Saliency"}
    assert read.addresses and all(address.startswith("data:") for address in read.addresses)
    assert not re.search(r"url\(|@import|<script|https?://", page)
    for figures in read.rows.values():
        assert len({item for _, item, _, _ in figures}) == 20
        # The toy answers as a file is named, and is right if the folder has that name too.
        for _, item, _, words in figures:
            truth, answer = item.split("/")[0], item.split("/")[1].split("-")[0]
            assert f"says {answer}" in words and ("wrong" in words) == (truth != answer)
    assert [kind for kind, *_ in read.rows["Saliency"]] == ["empty-one"] * 10 + [""] * 10
    assert all("says left" in words and "empty" in words for *_, words in read.rows["Saliency"][:10])
    assert Counter(kind for kind, *_ in read.rows["Control"]) == {"": 20}
    assert '<span class="bad strong">left 10/10, right 0/10</span>' in page.replace("\N{NO-BREAK SPACE}", " ")
    assert "Saliency: empty explanations by answer: 10 of 10" in page


def test_its_pictures_are_those_that_are_built(tmp_path: Path, store_folder: Path, check: Check) -> None:
    path = of_few(study_with(tmp_path))
    check(path, "--quality", "6")
    page = (settings.VAR_DIR / "checks" / "small.html").read_text(encoding="utf-8")
    assert "No warning about the stimuli." not in page, "the sources are small, which is told"
    call_command("build_stimuli", str(path))
    rows = Rendering.objects.filter(condition__name="saliency").select_related("item", "stimulus")
    built = {row.item.key: row.stimulus.explanation_tile_file for row in rows}
    shown = Figures(page).rows["Saliency"]
    assert len(shown) == 6
    for _, item, data, _ in shown:
        np.testing.assert_array_equal(pixels(data), pixels(read_media(built[item])[0]))


def test_it_shows_marked_words(tmp_path: Path, store_folder: Path, check: Check) -> None:
    path, file = turing(tmp_path), tmp_path / "page.html"
    check(path, "--quality", "8", "--page", str(file))
    page = file.read_text(encoding="utf-8")
    figures = Figures(page).rows["Gradient"]
    definition, store = load_study(path), current_store()
    gathered = gather(definition, path.parent, store, silent)
    texts = {read_text(store, view.image_key) for views in gathered.views.values() for view in views.values()}
    assert len(figures) == 8 and "--shade: 100%" in page
    for *_, words in figures:
        assert any(words.startswith(text) for text in texts), words


def test_no_page_is_written_without_something_to_look_at(
    tmp_path: Path, store_folder: Path, check: Check
) -> None:
    path, file = study_with(tmp_path), tmp_path / "page.html"
    for option in (["--quality", "0"], ["--preregistration"]):
        assert "Look at what" not in check(path, "--page", str(file), *option)
        assert not file.exists()
    (tmp_path / "taken").write_text("")
    with pytest.raises(CommandError, match=r"cannot be written \(.*\): name another --page"):
        call_command("study_check", str(path), "--quality", "2", "--page", str(tmp_path / "taken" / "a.html"))


def test_the_dashboard_says_where_a_draft_is_looked_at(
    tmp_path: Path, store_folder: Path, desk: Client
) -> None:
    path = study_with(tmp_path)
    build_draft(load_study(path), path.parent, silent)
    page = desk.get("/studies/small/stimuli/").content.decode()
    assert "python manage.py study_check small" in page and "measured when the study is opened" in page
