"""What a scorer predicts of a study's methods and backbones: means by hand, and intervals by closed form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from django.core.management import CommandError, call_command

from analysis.preference.backbone_comparison import mean_of, places, sweeps
from analysis.preference.scorer_commands import explainer_names
from experiments.models import Condition, Item, Rendering, Study
from stimuli.errors import BadRatings
from stimuli.models import Measurement, Stimulus
from stimuli.store.files import keep_picture
from stimuli.store.media_access import current_store
from tests.analysis.drawn import fit, rated_study

pytestmark = pytest.mark.usefixtures("few_fit_draws")


@pytest.fixture
def study(store_folder: Path) -> Study:
    return rated_study()


def with_backbones(study: Study) -> None:
    """Grad-CAM of a second network on all items but one, drawn as plain colours; and another dataset."""
    study.conditions.update(predictor="narrow", dataset="birds")
    Condition.objects.filter(study=study, name="grad_cam").update(explainer={"name": "grad_cam"})
    wide = Condition.objects.create(
        study=study, name="grad_cam_wide", role="method", ordinal=9, slots=4, predictor="broad",
        dataset="birds", explainer={"name": "grad_cam"},
    )  # fmt: skip
    store = current_store()
    rows = Rendering.objects.filter(item__study=study, condition__name="grad_cam").select_related("stimulus")
    for place, row in enumerate(rows.order_by("item__key")[1:]):
        key = f"{place:064x}"
        picture = keep_picture(store, "pictures", key, np.full((32, 32, 3), 5 * place, np.uint8))
        stimulus = row.stimulus
        stimulus.pk, stimulus.key, stimulus.explanation_file = None, key, picture
        stimulus.save()
        Rendering.objects.create(item=row.item, condition=wide, stimulus=stimulus)


def measured(better: str = "grad_cam") -> None:
    for stimulus in Stimulus.objects.exclude(spec__explainer=None):
        Measurement.objects.create(
            stimulus=stimulus, key="deletion", metric="deletion", parameters={"steps": 10}, version=2,
            value=0.25 if stimulus.explainer == better else 0.75, measured_at="2026-11-01T10:00Z",
        )  # fmt: skip


@pytest.mark.pure
def test_a_mean_has_the_interval_of_its_closed_form() -> None:
    values = np.random.default_rng(4).normal(3, 1, 400)
    told = mean_of(values)
    assert told.interval is not None and told.mean == values.mean() and told.images == 400
    half = 1.96 * values.std() / 20
    assert told.interval.low == pytest.approx(values.mean() - half, abs=0.01)
    assert told.interval.high == pytest.approx(values.mean() + half, abs=0.01)
    assert mean_of(values) == told
    assert mean_of([3.0, 3.0, 3.0]).interval is None and mean_of([1.0, 2.0]).interval is None


@pytest.mark.pure
def test_backbones_are_compared_over_the_same_images() -> None:
    """An image that one backbone lacks counts on none; the change is of pairs."""
    rows = pd.DataFrame(
        [(f"i{i}", "cam", name, rating) for name, ratings in {
            "small": [4.0, 3.0, 5.0, 2.0], "middle": [3.0, 2.5, 4.0, 2.0], "large": [2.0, 1.0, 4.0],
        }.items() for i, rating in enumerate(ratings)]
        + [("i0", "rise", "small", 3.0)],
        columns=["item", "explainer", "predictor", "predicted"],
    )  # fmt: skip
    (made,) = sweeps(rows, ["small", "middle", "large"])
    assert made.explainer == "cam" and made.change.images == 3
    assert [each.mean for each in made.means.values()] == pytest.approx([4, 9.5 / 3, 7 / 3])
    assert made.change.mean == pytest.approx(-5 / 3) and made.change.interval is not None
    assert -2 <= made.change.interval.low < made.change.interval.high <= -1
    (pair,) = sweeps(rows, ["small", "middle"])
    assert pair.change.images == 4
    with pytest.raises(BadRatings, match='predictor "huge"; known are small, middle, large'):
        sweeps(rows, ["small", "huge"])
    with pytest.raises(BadRatings, match="at least 2 predictors, each once, and small are named"):
        sweeps(rows, ["small"])
    with pytest.raises(BadRatings, match="no explainer explains the same images on middle, small"):
        sweeps(rows.assign(explainer=rows["predictor"]), ["middle", "small"])


@pytest.mark.pure
def test_methods_stand_where_rating_and_metric_meet() -> None:
    rows = pd.DataFrame(
        [(f"i{i}", c, r) for c, ratings in {"a": [1.0, 2.0, 5.0], "b": [4.0, 5.0, 1.0]}.items()
         for i, r in enumerate(ratings)],
        columns=["item", "condition", "predicted"],
    )  # fmt: skip
    metric = {("i0", "a"): 0.1, ("i1", "a"): 0.3, ("i2", "a"): 0.9, ("i0", "b"): 0.5, ("i1", "b"): 0.7}
    a, b = places(rows, metric)
    assert (a.method, a.predicted.mean, a.metric.images) == ("a", 1.5, 2)
    assert (b.predicted.mean, b.metric.mean) == pytest.approx((4.5, 0.6)) and a.metric.mean == pytest.approx(
        0.2
    )
    assert places(rows, {("i0", "a"): 0.1}) == []


@pytest.mark.long(stays="test_a_mixture_chooses_within_each_dataset")
@pytest.mark.django_db
def test_a_mixture_counts_winners_and_their_faithfulness(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit(tmp_path / "out", study.slug, "--split", "method_out")
    measured()
    given = ("mixture", str(tmp_path / "out" / "scorer.safetensors"), study.slug)
    call_command(*given, "--out", str(tmp_path / "mix"))
    said = capsys.readouterr().out
    assert "not recomputed" in said and ".0627" in said
    table = pd.read_csv(tmp_path / "mix" / "predicted.csv")
    best = table.loc[table.groupby("item")["predicted"].idxmax()]
    assert best["is_chosen"].all() and (table.groupby("item").size() == 2).all()
    (beside,) = pd.read_csv(tmp_path / "mix" / "beside.csv").to_dict("records")
    share = (best["condition"] == "grad_cam").mean()
    assert beside["chosen"] == pytest.approx(0.75 - 0.5 * share) and beside["all"] == pytest.approx(0.5)
    for name in ("winners.svg", "winners.pdf", "placed.svg", "placed.pdf"):
        assert (tmp_path / "mix" / name).stat().st_size > 1000
    with pytest.raises(CommandError, match="does not answer 'q9'; known are q1, q2"):
        call_command(*given, "--out", str(tmp_path / "mix"), "--question", "q9")
    with pytest.raises(CommandError, match="no metric 'road'; known are deletion"):
        call_command(*given, "--out", str(tmp_path / "mix"), "--metric", "road")


@pytest.mark.django_db
def test_a_mixture_chooses_within_each_dataset(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Conditions of two datasets share no image; a choice is among those of the image's own. The figures are
    looked at in another test."""
    monkeypatch.setattr("analysis.management.commands.mixture.write_figure", lambda *given: None)
    fit(tmp_path / "out", study.slug, "--split", "method_out")
    study.conditions.update(dataset="birds")
    leaves = [
        Condition.objects.create(
            study=study, name=f"leaves_{name}", role="method", ordinal=9 + place, slots=4, dataset="leaves"
        )
        for place, name in enumerate(("cam", "control"))
    ]
    moved = Item.objects.filter(study=study, key__gte="item-40")
    for name, condition in zip(("grad_cam", "control"), leaves, strict=True):
        Rendering.objects.filter(item__in=moved, condition__name=name).update(condition=condition)
    call_command(
        "mixture", str(tmp_path / "out" / "scorer.safetensors"), study.slug, "--out", str(tmp_path / "m")
    )
    table = pd.read_csv(tmp_path / "m" / "predicted.csv")
    assert table.groupby("dataset")["item"].nunique().to_dict() == {"birds": 40, "leaves": 8}
    assert table[table["is_chosen"]].groupby("item").size().eq(1).all()
    assert set(table[table["dataset"] == "leaves"]["condition"]) == {"leaves_cam", "leaves_control"}
    assert (tmp_path / "m" / "beside.csv").read_text().count("\n") == 1, "nothing was measured"


@pytest.mark.django_db
def test_backbones_are_compared_by_what_score_predicts(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit(tmp_path / "out", study.slug, "--split", "method_out")
    scorer = str(tmp_path / "out" / "scorer.safetensors")
    with pytest.raises(CommandError, match="at least 2 predictors"):
        call_command("compare_backbones", scorer, study.slug, "--out", str(tmp_path / "b"))
    with_backbones(study)
    assert explainer_names(study)["grad_cam_wide"] == "grad_cam"
    call_command(
        "compare_backbones", scorer, study.slug, "--order", "broad,narrow", "--out", str(tmp_path / "b")
    )
    assert "Not on all of these predictors: control" in capsys.readouterr().out
    call_command("score", scorer, "--study", study.slug, "--out", str(tmp_path / "scores.csv"))
    scores = pd.read_csv(tmp_path / "scores.csv").query("question == 'q1'")
    wide = scores.pivot(index="explanation", columns="condition", values="predicted")
    wide = wide[["grad_cam", "grad_cam_wide"]].dropna()
    rows = pd.read_csv(tmp_path / "b" / "backbones.csv").set_index("predictor")
    assert (rows["images"] == 47).all() and len(wide) == 47
    assert rows.loc["narrow", "predicted"] == pytest.approx(wide["grad_cam"].mean(), abs=1e-4)
    change = (wide["grad_cam"] - wide["grad_cam_wide"]).to_numpy()
    assert rows.loc["last less first", "predicted"] == pytest.approx(change.mean(), abs=1e-4)
    half = 1.96 * change.std() / np.sqrt(47)
    assert rows.loc["last less first", "high"] == pytest.approx(change.mean() + half, abs=0.25 * half)
    for name in ("backbones.svg", "backbones.pdf"):
        assert (tmp_path / "b" / name).stat().st_size > 1000
