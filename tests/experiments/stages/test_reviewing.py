"""A review over its whole way: one stimulus per solution, what leads meet, what is stored and exported."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.tables.response_reader import read_frames, study_facts
from crowd.joining.ending import outcome_of
from experiments.errors import StudyError
from experiments.models import HandOut, Rendering, Session, Solution, Study, Trial
from experiments.stages.solution_freeze import freeze
from stimuli.regions.grid import mask_of
from stimuli.render import png
from stimuli.render.region import outline_region
from stimuli.store.media_access import current_store
from stimuli.types import Pixels, RegionAttribution
from tests.experiments.protocols import (
    LABELS,
    REVIEW,
    SOLVE,
    USES,
    answer,
    seen,
    solved,
    staged,
    take_part,
    write,
)
from tests.world import Person, draft_study, opened_study

pytestmark = pytest.mark.django_db

SIDE = 4
REVIEWS = 2 * (4 + 2 + 2) + 2


@pytest.fixture
def tasks(tmp_path: Path) -> Study:
    """The solve stage, answered, closed and frozen."""
    study = solved(tmp_path / "s")
    freeze(study)
    return study


@pytest.fixture
def judged(tasks: Study, tmp_path: Path) -> Study:
    return staged(tmp_path / "v", "judged", REVIEW)


def decoded(file: str) -> Pixels:
    return png.decode(current_store().get(file))


def reviews(study: Study, **named: Any) -> list[Trial]:
    rows = Trial.objects.filter(slot__study=study, kind="review", **named)
    return list(rows.select_related("stimulus", "item", "condition").order_by("slot__ordinal", "position"))


def sensible(trial: Any) -> dict[str, Any]:
    """A lead who sees what is there: right answers are accepted, all others are not."""
    return {"accept": bool(trial.extra["value"] == trial.extra["truth"])}


# Stimuli


def test_every_solution_has_a_stimulus_of_its_own_on_one_picture_of_its_item(
    judged: Study, tasks: Study
) -> None:
    rows = Rendering.objects.filter(item__study=judged).select_related("item", "condition", "stimulus")
    shown = Solution.objects.filter(study=tasks).exclude(item__use="tuning")
    regions = {s.key: s.region for s in shown}
    assert sorted(row.variant for row in rows) == sorted(regions)
    pictures: dict[str, set[str]] = {}
    for row in rows:
        pictures.setdefault(row.item.key, set()).add(row.stimulus.image_file)
        plain, mark = decoded(row.stimulus.image_file), decoded(row.stimulus.explanation_file)
        region = RegionAttribution(mask_of(regions[row.variant] or (), SIDE))
        assert np.array_equal(mark, outline_region(plain, region))
    assert all(len(files) == 1 for files in pictures.values())
    assert {item.use for item in judged.items.all()} == {"task", "known", "blank"}


def test_a_trial_shows_the_stimulus_of_the_solution_that_it_names(judged: Study) -> None:
    stimuli = dict(Rendering.objects.filter(item__study=judged).values_list("variant", "stimulus_id"))
    trials = reviews(judged)
    assert len(trials) == 3 * REVIEWS
    for trial in trials:
        assert trial.stimulus_id == stimuli[trial.extra["solution"]]


def test_who_cannot_say_has_a_mark_as_well_that_shows_nothing(tasks: Study, tmp_path: Path) -> None:
    """So that nothing but the picture itself differs on the wire."""
    mute = Solution.objects.filter(study=tasks, use="solution", item__use="task", source="people")
    mute.update(choice="cannot_say", region=None)
    study = staged(tmp_path / "v", "judged", REVIEW)
    lea = Person("lea", slug="judged")
    lea.arrive()
    plain = 0
    while lea.state["step"] == "trials":
        [trial] = lea.state["block"]["trials"]
        row = Trial.objects.select_related("stimulus").get(pk=trial["id"])
        assert (trial["content"]["mark"] is not None) == row.explained
        if row.extra["value"] == "cannot_say":
            assert trial["content"]["answer"] == "Cannot say" and row.stimulus is not None
            assert np.array_equal(decoded(row.stimulus.image_file), decoded(row.stimulus.explanation_file))
            plain += row.explained
        answer(lea, 1)
    assert plain and study.solutions_digest == tasks.frozen_digest


# What leads meet


def test_the_run_without_has_no_mark_and_the_run_with_always_has_one(judged: Study) -> None:
    lea = Person("lea", slug="judged")
    lea.arrive()
    marks: dict[int, set[bool]] = {}
    while lea.state["step"] == "trials":
        [trial] = lea.state["block"]["trials"]
        content = trial["content"]
        assert set(content) == {"image", "mark", "text", "answer", "choices"}
        assert [c["text"] for c in content["choices"]] in (["Accept", "Reject"], ["Reject", "Accept"])
        marks.setdefault(lea.state["block"]["index"], set()).add(content["mark"] is not None)
        answer(lea, 1)
    assert sorted(map(sorted, marks.values())) == [[False], [True]]


def test_no_legend_of_maps_stands_beside_regions(judged: Study) -> None:
    for number in range(2):
        person = Person(f"l{number}", slug="judged")
        person.arrive()
        assert person.state["study"]["legend"] is None


def test_solvers_read_their_own_language(tmp_path: Path) -> None:
    path = write(tmp_path / "g", "aufgaben", "blind_review", SOLVE, uses=USES)
    path.write_text(path.read_text().replace("seed = 3", 'seed = 3\nlanguage = "de"'))
    opened_study(path)
    eva = Person("eva", slug="aufgaben")
    eva.arrive()
    choices = eva.state["block"]["trials"][0]["content"]["choices"]
    assert [c["text"] for c in choices] == ["Left", "Right", "Kann ich nicht sagen"] or [
        c["text"] for c in choices
    ] == ["Right", "Left", "Kann ich nicht sagen"]


def test_known_tasks_of_solvers_know_where_the_figure_is(tmp_path: Path) -> None:
    """Boxes of parts.csv count as planted: the upper left quarter here. A folder without them knows none."""
    path = write(tmp_path / "s", "tasks", "blind_review", SOLVE, uses=USES)
    lines = (tmp_path / "s" / "images" / "uses.csv").read_text().splitlines()[1:]
    known = [line.split(",")[0] for line in lines if line.endswith("known")]
    boxes = ["image,concept,left,top,right,bottom", *(f"{key},light,0,0,16,16" for key in known)]
    (tmp_path / "s" / "images" / "parts.csv").write_text("\n".join(boxes))
    study = opened_study(path)
    planted = {
        use: {tuple(t.extra.get("planted", ("none",))) for t in Trial.objects.filter(extra__use=use)}
        for use in ("known", "task")
    }
    assert planted == {"known": {(0, 1, 4, 5)}, "task": {("none",)}}
    take_part(Person("eve", slug="tasks"), seen)
    assert Session.objects.get(study=study).verdict == "passed"
    other = staged(tmp_path / "o", "others", SOLVE)
    assert {tuple(t.extra.get("planted", ())) for t in Trial.objects.filter(slot__study=other)} == {()}


# Screening


@pytest.mark.parametrize("is_careful", [True, False])
def test_known_tasks_screen_leads_and_never_touch_their_pay(
    tasks: Study, tmp_path: Path, is_careful: bool
) -> None:
    rules = "[screening]\nknown_share_min = 0.75\n[checks]"
    staged(tmp_path / "v", "judged", REVIEW.replace("[checks]", rules))
    lea = Person("lea", slug="judged")
    take_part(lea, sensible if is_careful else lambda trial: {"accept": not sensible(trial)["accept"]})
    session = Session.objects.get(pk=lea.session().pk)
    assert session.verdict == ("passed" if is_careful else "screened")
    assert [reason["rule"] for reason in session.reasons] == ([] if is_careful else ["known_share_min"])
    assert outcome_of(session) == "complete"


# Export


def test_a_review_is_exported_with_what_was_judged(judged: Study, tasks: Study) -> None:
    take_part(Person("lea", slug="judged"), sensible)
    frame = read_frames(judged).trials
    solutions = {s.key: s for s in Solution.objects.filter(study=tasks).select_related("item")}
    assert len(frame) == REVIEWS
    for _, row in frame.iterrows():
        solution = solutions[row["solution"]]
        assert (row["condition"], row["answer"], row["item"]) == (
            solution.source,
            solution.choice,
            solution.item.key,
        )
        truth = solution.item.truth
        if truth:
            assert bool(row["answer_right"]) == (solution.choice == truth) == bool(row["accepted"])
        else:
            assert row["use"] == "alone" and pd.isna(row["answer_right"])
    assert Counter(frame["use"]) == {"task": 8, "lure": 4, "known": 4, "alone": 2}
    assert frame["matches_model"].isna().all() and frame["matches_truth"].isna().all()
    assert study_facts(judged).frozen["source_auc"]["source"] == "saliency"


def test_the_server_s_time_is_exported_and_longer_ones_are_flagged(judged: Study) -> None:
    """Known by hand: each answer is stored two seconds after its handing out, the page says 900 ms; one page
    says more than it can know."""
    lea = Person("lea", slug="judged")
    take_part(lea)
    responses = {r.trial_id: r for r in lea.session().responses.all()}
    rows = list(HandOut.objects.filter(session=lea.session()).order_by("trial__position"))
    for row in rows:
        HandOut.objects.filter(pk=row.pk).update(
            handed_out_at=responses[row.trial_id].received_at - timedelta(seconds=2)
        )
    first, second, third = (responses[row.trial_id] for row in rows[:3])
    type(first).objects.filter(pk=first.pk).update(rt_ms=2001)
    type(second).objects.filter(pk=second.pk).update(rt_ms=2000)
    HandOut.objects.filter(trial_id=third.trial_id).delete()
    frame = read_frames(judged).trials.sort_values("trial_index")
    assert list(frame["server_ms"].fillna(-1).astype(int)) == [2000, 2000, -1] + [2000] * (REVIEWS - 3)
    flags = frame["rt_over_server"]
    assert (bool(flags.iloc[0]), bool(flags.iloc[1]), pd.isna(flags.iloc[2])) == (True, False, True)
    assert not flags.iloc[3:].any()
    # Simulated people say how long they would have taken: their times are kept, and not compared.
    Session.objects.filter(pk=lea.session().pk).update(origin="simulated")
    simulated = read_frames(judged).trials.sort_values("trial_index")
    assert list(simulated["server_ms"].fillna(-1)) == list(frame["server_ms"].fillna(-1))
    assert simulated["rt_over_server"].isna().all()


def test_studies_without_reviews_have_no_such_columns(tasks: Study) -> None:
    frame = read_frames(tasks).trials
    assert "server_ms" not in frame and {"region", "use", "strokes"} <= set(frame.columns)
    assert set(frame["use"]) == {"task", "known", "tuning"}


# Labels


def labelled(folder: Path, annotations: str = "") -> Path:
    path = write(folder, "labels", "blind_review", LABELS, uses=USES)
    if annotations:
        (folder / "images" / "annotations.csv").write_text(annotations)
    return path


def test_a_review_of_labels_needs_no_earlier_stage(tmp_path: Path) -> None:
    study = opened_study(labelled(tmp_path / "l"))
    solutions = {s.key: s for s in Solution.objects.filter(study=study).select_related("item")}
    for solution in solutions.values():
        if solution.use == "solution":
            item = solution.item
            assert solution.choice == (item.truth if solution.source == "labels" else item.predicted)
        assert solution.region is None
    trials = reviews(study)
    assert len(trials) == 3 * (4 + 2 + 2)
    for trial in trials:
        assert not trial.explained and trial.extra["solution"] in solutions
    lea = Person("lea", slug="labels")
    take_part(lea, sensible)
    frame = read_frames(study).trials
    assert Counter(frame["use"]) == {"task": 4, "lure": 2, "known": 2} and not frame["explained"].any()


def test_several_annotators_labels_are_judged_one_at_a_time(tmp_path: Path) -> None:
    lines = ["image,annotator,label"]
    tasks = [
        f"{truth}/{said}-{n:02d}.png"
        for truth in ("left", "right")
        for said in ("left", "right")
        for n in (4, 5)  # of four tasks in each cell
    ]
    for key in tasks:
        other = "right" if key.startswith("left") else "left"
        lines += [f"{key},ann,{key.split('/')[0]}", f"{key},ben,{other}", f"{key},cy,{key.split('/')[0]}"]
    study = opened_study(labelled(tmp_path / "l", "\n".join(lines)))
    by_item = Counter(
        Solution.objects.filter(study=study, use="solution", source="labels", item__use="task").values_list(
            "item__key", flat=True
        )
    )
    assert Counter(by_item.values()) == {3: 8, 1: 8}
    assert not [
        name for name in ("ann", "ben", "cy") if name in str([*Solution.objects.values("key", "made")])
    ]
    for slot in study.slots.all():
        people = [t for t in slot.trials.select_related("item", "condition") if t.extra["use"] == "task"]
        assert len({t.item_id for t in people}) == len(people)


# What is refused


def test_a_review_on_other_pictures_is_refused(tasks: Study, tmp_path: Path) -> None:
    path = write(tmp_path / "v", "judged", "blind_review", REVIEW, uses=USES)
    (tmp_path / "v" / "images" / "left" / "left-03.png").unlink()
    (tmp_path / "v" / "images" / "uses.csv").unlink()
    with pytest.raises(StudyError, match="dataset lacks 1 of the 32 items that were solved.*'left/left-03"):
        draft_study(path)


def test_a_review_on_another_grid_is_refused(tasks: Study, tmp_path: Path) -> None:
    path = write(tmp_path / "v", "judged", "blind_review", REVIEW, uses=USES)
    path.write_text(path.read_text().replace('role = "review"', 'role = "review"\ngrid = 8'))
    with pytest.raises(StudyError, match="design.grid is 8, and the regions of 'tasks' .* 4 x 4 cells"):
        draft_study(path)


def test_a_source_without_solutions_and_solutions_without_source_are_refused(
    tasks: Study, tmp_path: Path
) -> None:
    other = REVIEW.replace('"saliency"', '"occlusion"')
    with pytest.raises(StudyError, match="comes from 'saliency', which is none of the conditions"):
        staged(tmp_path / "v", "judged", other)
    more = REVIEW + '[[conditions]]\nname = "occlusion"\nrole = "method"\nslots = 3\n'
    with pytest.raises(StudyError, match="there are no solutions of occlusion"):
        staged(tmp_path / "w", "judged", more)


def test_too_few_tasks_for_two_runs_are_refused(tasks: Study, tmp_path: Path) -> None:
    more = REVIEW.replace("tasks_per_run = 4", "tasks_per_run = 9")
    with pytest.raises(StudyError, match="needs 18 tasks of different groups per session"):
        staged(tmp_path / "v", "judged", more)


def test_a_damaged_region_is_refused(tasks: Study, tmp_path: Path) -> None:
    Solution.objects.filter(study=tasks, source="people", use="solution").update(region=[15, 16])
    with pytest.raises(Exception, match="cell 16 lies outside the grid of 4 x 4 cells"):
        staged(tmp_path / "v", "judged", REVIEW)


def test_who_solved_does_not_review(tasks: Study, judged: Study) -> None:
    reply = Person("tasks-0", slug="judged").join()
    assert reply.status_code == 409 and reply.json()["error"]["code"] == "taken_part"
    assert Person("somebody else", slug="judged").join().status_code == 201
