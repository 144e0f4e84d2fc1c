"""The sheet of small pictures in an open report shows what was shown, and nothing while it is sealed."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command

from analysis.exports.report_from_package import rebuilt
from analysis.reports.base import Figure
from analysis.reports.output.html import page
from analysis.reports.parts.stimulus_pictures import EXAMPLE, KEY, SIDE_PX, shrink_picture
from analysis.reports.report import Report
from analysis.stored_reports.refresh import make_report
from experiments.models import Rendering, Slot, Study
from stimuli.models import Stimulus
from stimuli.render.png import decode, encode, pixel_key
from stimuli.store.files import picture_file, view_file
from stimuli.store.media_access import current_store
from tests.analysis.stored import full, opened

pytestmark = pytest.mark.django_db


def sheet(report: Report) -> Figure | None:
    figures = [figure for part in report.sections for figure in part.figures if figure.key == KEY]
    return figures[0] if figures else None


@pytest.fixture
def study(db: None) -> Study:
    """Every place kept, and a picture of its own for each stimulus; still open, but for the last person."""
    study = opened(slots=2)
    rng = np.random.default_rng(8)
    for stimulus in Stimulus.objects.order_by("pk"):
        picture = rng.integers(0, 256, (100, 120, 3), dtype=np.uint8)
        digest, content = pixel_key(picture), encode(picture)
        kind, name = ("explanation_file", picture_file(digest))
        if stimulus.spec["explainer"] is None:
            kind, name = ("image_file", view_file(digest))
        current_store().put(name, content)
        Stimulus.objects.filter(pk=stimulus.pk).update(picture_digest=digest, **{kind: name})
    full(study)
    Slot.objects.filter(pk=Slot.objects.earliest("pk").pk).update(kept=False)
    return study


def closed(study: Study) -> Report:
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()
    return make_report(study, "human")


def test_each_cell_is_the_picture_of_its_item_and_condition(study: Study, tmp_path: Path) -> None:
    report = closed(study)
    call_command("export", study.slug, "--out", str(tmp_path / "out"), "--pictures", stdout=StringIO())
    figure = sheet(report)
    assert figure is not None and figure.data is not None
    # The package has each picture under the digest of its pixels; the drawing has them in rows and columns.
    files = {path.stem: decode(path.read_bytes()) for path in (tmp_path / "out" / "pictures").iterdir()}
    drawn = [axes.images[0].get_array() for axes in figure.draw().axes]
    named = [str(row[2]) for row in figure.data.rows]
    assert len(drawn) == len(named) > 10 and len(set(named)) > 10
    for cell, digest in zip(drawn, named, strict=True):
        assert pixel_key(files[digest]) == digest
        assert np.array_equal(cell, shrink_picture(files[digest]))
    # And the digest is that of the row's item and condition, by the database.
    for item, label, drawn_digest, *_ in figure.data.rows:
        rendering = Rendering.objects.get(stimulus__picture_digest=str(drawn_digest))
        assert rendering.item.key == item
        assert rendering.condition.name.replace("_", "-") == str(label).lower()


def test_the_page_opens_with_the_answer_and_one_item_in_every_condition(study: Study) -> None:
    report = closed(study)
    opening = report.sections[0]
    example = next(figure for figure in opening.figures if figure.key == EXAMPLE)
    assert example.data is not None
    (item,) = {row[0] for row in example.data.rows}
    (items,) = (part.content for part in report.sections if part.key == "items")
    shares = {row["item"]: row["accuracy"] for row in items}
    easier = sum(share >= shares[item] for share in shares.values())
    harder = sum(share <= shares[item] for share in shares.values())
    assert easier >= len(shares) / 2 <= harder
    assert len(example.draw().axes) == len(report.facts.conditions)
    text = page(report)
    assert text.index('id="answer"') < text.index("What was shown of one item") < text.index("<nav ")
    assert text.index("<nav ") < text.index('id="flow"')


@pytest.mark.long(stays="test_each_cell_is_the_picture_of_its_item_and_condition")
def test_a_package_with_pictures_gives_the_same_sheet_and_one_without_gives_none(
    study: Study, tmp_path: Path
) -> None:
    report = closed(study)
    for name, words in (("with", ["--pictures"]), ("without", [])):
        call_command("export", study.slug, "--out", str(tmp_path / name), *words, stdout=StringIO())
    again, bare = (rebuilt(tmp_path / name, made_at=report.made_at) for name in ("with", "without"))
    first, second = sheet(report), sheet(again)
    assert first is not None and second is not None and first.data == second.data
    cells = [[axes.images[0].get_array() for axes in made.draw().axes] for made in (first, second)]
    assert all(np.array_equal(stored, packed) for stored, packed in zip(*cells, strict=True))
    assert sheet(bare) is None and report.json() == again.json() == bare.json()


def test_a_sealed_report_shows_no_picture(study: Study) -> None:
    sealed = make_report(study, "human")
    assert sealed.seal.sealed and sheet(sealed) is None and "data:image" not in page(sealed)
    assert "data:image/png" in page(closed(study))


def test_a_picture_that_the_store_lost_leaves_its_cell_empty(study: Study) -> None:
    figure = sheet(closed(study))
    assert figure is not None and figure.data is not None
    lost = str(figure.data.rows[0][2])
    count = sum(row[2] == lost for row in figure.data.rows)
    for stimulus in Stimulus.objects.filter(picture_digest=lost):
        Stimulus.objects.filter(pk=stimulus.pk).update(
            image_file="views/00/lost.png", explanation_file=stimulus.explanation_file and "pictures/lost.png"
        )
    left = sheet(make_report(study, "human"))
    assert left is not None
    full = [len(axes.images) for axes in left.draw().axes]
    assert full.count(0) == count >= 1 and full[0] == 0


@pytest.mark.pure
def test_a_small_picture_keeps_its_form() -> None:
    wide = np.zeros((100, 400, 3), np.uint8)
    wide[:, 200:] = 255
    small = shrink_picture(wide)
    assert small.shape == (SIDE_PX // 4, SIDE_PX, 3)
    assert small[:, : SIDE_PX // 2 - 4].max() == 0 and small[:, SIDE_PX // 2 + 4 :].min() == 255
    tiny = np.arange(300, dtype=np.uint8).reshape(10, 10, 3)
    assert np.array_equal(shrink_picture(tiny), tiny)
