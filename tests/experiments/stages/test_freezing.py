"""A closed stage is frozen whole: rows, settings, digest, and what is printed of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from experiments.errors import StudyError
from experiments.models import Item, Rendering, Response, Session, Solution, Study
from experiments.paradigms.solutions import Settings
from experiments.stages.solution_freeze import freeze, frozen_of, look
from stimuli.regions.grid import cells_of, mask_of, strongest
from stimuli.regions.mark_smoothing import shape_region
from stimuli.regions.network_view_cells import cell_strengths
from stimuli.spec import StimulusSpec
from stimuli.store.files import map_file, read_attribution
from stimuli.store.media_access import current_store
from stimuli.types import PixelAttribution
from tests.experiments.protocols import SOLVE, solved, staged
from tests.world import Person, draft_study

pytestmark = pytest.mark.django_db

SIDE = 4
ITEMS = {"task": 16, "known": 8, "tuning": 4, "blank": 4}


@pytest.fixture
def tasks(tmp_path: Path) -> Study:
    """The solve stage, answered and closed."""
    return solved(tmp_path / "s")


def rows(study: Study, **named: Any) -> list[Solution]:
    return list(Solution.objects.filter(study=study, **named).select_related("item"))


def test_every_source_has_a_solution_of_every_solved_item(tasks: Study) -> None:
    freeze(tasks)
    uses = Counter((s.source, s.item.use) for s in rows(tasks, use="solution"))
    expected = {use: count for use, count in ITEMS.items() if use != "blank"}
    assert uses == {(source, use): n for source in ("people", "saliency") for use, n in expected.items()}
    assert Counter(s.source for s in rows(tasks, use="alone")) == {"people": 4, "saliency": 4}
    assert {s.item.use for s in rows(tasks, use="alone")} == {"blank"}
    assert {s.item.use for s in rows(tasks, use="lure")} == {"task", "known"}


def test_people_s_solutions_are_their_answers_shaped(tasks: Study) -> None:
    freeze(tasks)
    given = {
        r.trial.item.key: r.value
        for r in Response.objects.filter(session__study=tasks).select_related("trial__item")
        if r.trial.item is not None
    }
    for solution in rows(tasks, use="solution", source="people"):
        value = given[solution.item.key]
        assert solution.choice == value["choice"] == solution.item.truth
        assert solution.region == list(cells_of(shape_region(mask_of(value["region"], SIDE), "hull", 1)))


def test_the_model_s_solutions_are_its_predictions_with_its_maps_cut(tasks: Study) -> None:
    """By hand: the stored map, on the grid, cut to the area of the mark that the row names."""
    freeze(tasks)
    painted = {s.key: s for s in rows(tasks, use="solution", source="people")}
    for solution in rows(tasks, use="solution", source="saliency"):
        assert solution.choice == solution.item.predicted
        stimulus = Rendering.objects.get(item=solution.item, condition__name="saliency").stimulus
        spec = StimulusSpec.from_json(stimulus.spec)
        made = read_attribution(current_store(), spec.attribution_key)
        assert isinstance(made, PixelAttribution)
        donor = painted[solution.made["area_of"]]
        assert donor.choice == solution.choice
        cut = strongest(cell_strengths(made, spec.render, spec.canvas, SIDE), donor.made["marked"])
        assert solution.region == list(cells_of(shape_region(cut, "hull", 1)))


def test_settings_are_kept_and_part_of_the_digest(tmp_path: Path) -> None:
    digests = []
    for number, settings in enumerate((None, Settings("strokes", 0), Settings("hull", 0, 0.99))):
        study = solved(tmp_path / str(number), slug=f"tasks-{number}")
        digests.append(freeze(study, settings))
        assert study.frozen["settings"] == (settings or Settings()).as_json() and study.frozen["side"] == SIDE
        assert frozen_of(study) == study.frozen
    assert len(set(digests)) == 3


def test_freezing_again_changes_nothing_and_other_settings_are_refused(tasks: Study) -> None:
    digest = freeze(tasks, Settings("hull", 1))
    before = sorted(Solution.objects.values_list("pk", "key"))
    assert freeze(tasks) == digest == freeze(tasks, Settings("hull", 1))
    assert sorted(Solution.objects.values_list("pk", "key")) == before
    with pytest.raises(StudyError, match="is frozen with region = hull.* cannot be .* region = cells"):
        freeze(tasks, Settings("cells"))


def test_killed_in_the_middle_nothing_is_frozen(tasks: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(rows: list[Solution], **more: Any) -> None:
        Solution.objects.create(study=tasks, key="half", item=rows[0].item, source="people", choice="left")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Solution.objects, "bulk_create", killed)
        with pytest.raises(KeyboardInterrupt):
            freeze(tasks)
    tasks.refresh_from_db()
    assert not Solution.objects.exists() and (tasks.frozen_digest, tasks.frozen) == ("", {})
    assert freeze(tasks) and not Solution.objects.filter(key="half").exists()


def test_two_that_freeze_at_once_make_one_set_of_rows(tasks: Study) -> None:
    """The later one finds the study frozen, and takes what is there."""
    other = Study.objects.get(pk=tasks.pk)
    assert freeze(tasks) == freeze(other)
    count = Solution.objects.count()
    assert count == len({*Solution.objects.values_list("key", flat=True)})


def test_people_who_do_not_count_have_no_solutions(tasks: Study) -> None:
    left_out = Session.objects.filter(study=tasks).order_by("pk")[0]
    Session.objects.filter(pk=left_out.pk).update(excluded={"by": "lab", "reason": "asked"})
    items = set(Response.objects.filter(session=left_out).values_list("trial__item__key", flat=True))
    freeze(tasks)
    assert not items & {s.item.key for s in rows(tasks, use="solution")}


def test_no_row_names_a_person(tasks: Study) -> None:
    freeze(tasks)
    people = {str(p.pseudonym) for p in tasks.participants.all()} | {str(s.pk) for s in tasks.sessions.all()}
    text = str([*Solution.objects.values()]) + str(tasks.frozen)
    assert len(people) > 2 and not [name for name in people if name in text or name.replace("-", "") in text]


def test_a_region_says_nothing_of_its_source_but_by_its_cells(tasks: Study) -> None:
    """Rows of both sources have the same columns filled; what differs says how a cut was made."""
    freeze(tasks)
    filled = {
        source: {name for s in rows(tasks, source=source) for name, value in s.__dict__.items() if value}
        for source in ("people", "saliency")
    }
    assert filled["people"] == filled["saliency"]


# What is refused


def test_nothing_is_frozen_that_still_collects_or_was_not_answered(tmp_path: Path) -> None:
    study = staged(tmp_path / "o", "tasks", SOLVE)
    with pytest.raises(StudyError, match="is open. Close it before its solutions are frozen"):
        freeze(study)
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()
    with pytest.raises(StudyError, match="has no kept answers that could be solutions"):
        freeze(study)
    assert not Solution.objects.exists()


def test_a_source_without_solutions_is_named(tasks: Study) -> None:
    Rendering.objects.filter(condition__name="saliency").delete()
    with pytest.raises(StudyError, match="has no solutions of saliency: every condition is a source"):
        freeze(tasks)


def test_a_map_that_is_gone_is_named(store_folder: Path, tasks: Study) -> None:
    row = Rendering.objects.filter(condition__name="saliency").order_by("item__key")[0]
    (store_folder / map_file(row.stimulus.attribution_key)).unlink()
    with pytest.raises(StudyError, match=rf"no map of 'saliency' of '{row.item.key}' .*Run build_stimuli"):
        freeze(tasks)


def test_an_answer_that_nobody_marked_is_named(tasks: Study) -> None:
    Item.objects.filter(study=tasks, predicted="left").update(predicted="middle")
    with pytest.raises(StudyError, match="saliency answers 'middle' to .* no mark was painted for this"):
        freeze(tasks)


def test_a_mark_of_another_grid_is_refused(tasks: Study) -> None:
    row = Response.objects.filter(session__study=tasks).order_by("pk")[0]
    Response.objects.filter(pk=row.pk).update(value={"choice": "left", "region": [3, 16]})
    with pytest.raises(StudyError, match="cannot be frozen: cell 16 lies outside the grid of 4 x 4 cells"):
        freeze(tasks)


# What is looked at and printed


def test_a_look_at_settings_meets_tuning_tasks_alone_and_stores_nothing(tasks: Study) -> None:
    looked = look(tasks, [Settings("hull", 1), Settings("strokes", 0), Settings("hull", 1, 1.0)])
    assert [each.settings.region for each in looked] == ["hull", "strokes", "hull"]
    for each in looked:
        assert {numbers.source: numbers.solutions for numbers in each.numbers} == {
            "people": ITEMS["tuning"],
            "saliency": ITEMS["tuning"],
        }
    strokes = {numbers.source: numbers for numbers in looked[1].numbers}
    assert strokes["people"].areas is not None and strokes["people"].areas[1] == strokes["people"].marked
    assert {numbers.source: numbers.abstained for numbers in looked[2].numbers} == {
        "people": 0,
        "saliency": 4,
    }
    assert looked[0].overlaps["people"] is None, "each task was solved once"
    assert looked[0].overlaps["saliency"] is not None and 0 <= looked[0].overlaps["saliency"] <= 1
    tasks.refresh_from_db()
    assert not Solution.objects.exists() and tasks.frozen == {}


def test_a_look_needs_tuning_tasks_that_were_solved(tasks: Study) -> None:
    Item.objects.filter(study=tasks, use="tuning").update(use="task")
    with pytest.raises(StudyError, match="has 0 tuning items, and people have solved none of them"):
        look(tasks, [Settings()])


def test_the_command_prints_sources_areas_abstentions_and_what_the_form_tells(
    tasks: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("freeze", "tasks", "--region", "strokes", "--smooth-cells", "0", "--abstain-below", "0.2")
    printed = capsys.readouterr().out
    tasks.refresh_from_db()
    assert "region = strokes, smooth_cells = 0, abstain_below = 0.2" in printed
    told_of = tasks.frozen["told"]["saliency"]
    assert f"AUC {told_of['auc']:.2f} (95 % interval {told_of['low']:.2f} to" in printed
    assert tasks.frozen["source_auc"] == {
        "auc": told_of["auc"],
        "interval": [told_of["low"], told_of["high"]],
        "n": told_of["pictures"],
        "source": "saliency",
    }
    assert tasks.frozen_digest in printed and f"{Solution.objects.count()} solutions" in printed
    areas = [len(s.region) for s in rows(tasks, use="solution", source="people") if s.region]
    [people] = [row for row in tasks.frozen["sources"] if row["source"] == "people"]
    assert people["areas"] == list(np.percentile(areas, [25, 50, 75]))


def test_the_command_looks_without_storing(tasks: Study, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("freeze", "tasks", "--look")
    printed = capsys.readouterr().out
    assert "Tuning tasks alone; nothing is stored" in printed and "Overlap" in printed
    assert all(kind in printed for kind in ("hull", "strokes", "cells")) and not Solution.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--smooth-cells", "9"), "--smooth-cells is 9 and must lie between 0 and 5"),
        (("--abstain-below", "1.5"), "--abstain-below is 1.5 and must lie between 0 and 1"),
    ],
)
def test_the_command_names_settings_that_cannot_be(
    tasks: Study, arguments: tuple[str, ...], words: str
) -> None:
    with pytest.raises(CommandError, match=words):
        call_command("freeze", "tasks", *arguments)
    with pytest.raises(CommandError, match="There is no study 'none' in this database"):
        call_command("freeze", "none")


def test_a_study_that_is_drafted_has_a_map_of_every_item_but_blank_ones(tmp_path: Path) -> None:
    from tests.experiments.protocols import USES, write

    study = draft_study(write(tmp_path / "d", "tasks", "blind_review", SOLVE, uses=USES))
    assert Counter(study.items.values_list("use", flat=True)) == ITEMS
    by_condition = Counter(
        Rendering.objects.filter(item__study=study).values_list("condition__name", "item__use")
    )
    for use, count in ITEMS.items():
        assert by_condition["people", use] == count
        assert by_condition["saliency", use] == (0 if use == "blank" else count)
    assert Person("eve", slug="tasks").join().status_code == 404, "a draft lets no person in"
