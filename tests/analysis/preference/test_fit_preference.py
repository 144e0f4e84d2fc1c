"""From ratings to a scorer and from a scorer to predicted ratings, by the commands."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from django.core.management import CommandError, call_command

from analysis.pasta_records import Record, as_text
from analysis.preference import fitting
from analysis.preference.fitting import FitPlan
from analysis.preference.rated_explanations import from_study
from analysis.preference.scorer_commands import at_ends, of_study, predicted_of
from analysis.stored_reports.refresh import make_report, refresh_report
from experiments.models import Item, Rendering, Response, Study
from stimuli.errors import BadRatings
from stimuli.models import Measurement, Stimulus
from stimuli.preference.encoders import open_encoder
from stimuli.preference.scorer_file import load
from stimuli.preference.steering import Predicts
from stimuli.preference.synthetic_twin import draw_twin
from stimuli.render.png import decode
from stimuli.spec import content_key
from stimuli.store.files import keep_attribution, keep_picture
from stimuli.store.media_access import current_store
from stimuli.types import ConceptAttribution
from tests.analysis.drawn import IMAGES, fit, fitted_twin, rated_study
from tests.world import write_study

pytestmark = pytest.mark.usefixtures("few_fit_draws")


@pytest.mark.long(stays="test_records_of_pasta_s_format_are_fitted_and_pictures_scored")
@pytest.mark.pure
def test_a_twin_is_fitted_told_and_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = fit(tmp_path / "a", "--twin", "content", "--images", str(IMAGES), capsys=capsys)
    assert (
        f"{IMAGES * 21} explanations of {IMAGES} images by 21 methods, {IMAGES * 21 * 30:,} ratings" in said
    )
    assert "Simulated, and no result on people" in said and "was never trained" in said
    assert "published, not recomputed" in said and "Own cells stay empty" in said
    scores = pd.read_csv(tmp_path / "a" / "scores.csv")
    assert set(scores["metric"]) == {"MSE", "QWK", "Spearman"} and len(scores) == 3 * 8 * 6
    runs = pd.read_csv(tmp_path / "a" / "runs.csv").query("question == 'Q3'")
    (over,) = scores.query("metric == 'QWK' and source == 'scorer' and question == 'Q3'")["mean"]
    assert over == pytest.approx(runs["kappa"].mean()) and "binned" in runs
    card = load(tmp_path / "a" / "scorer.safetensors").card
    assert json.loads((tmp_path / "a" / "scorer.json").read_text()) == json.loads(card.model_dump_json())
    assert (card.split["name"], card.target, card.label, card.encoder.name) == (
        "strict",
        "mode",
        "none",
        "histograms",
    )
    assert [(head.question, head.seed) for head in card.heads] == [
        (f"Q{q}", s) for s in (0, 1) for q in range(1, 7)
    ]
    fit(tmp_path / "b", "--twin", "content", "--images", str(IMAGES))
    files = [(tmp_path / name / "scorer.safetensors").read_bytes() for name in "ab"]
    assert files[0] == files[1], "the same seed gives the same file"
    with pytest.raises(CommandError, match="already holds a scorer; name another --out"):
        fit(tmp_path / "a", "--twin", "content")


@pytest.mark.long(
    stays="tests/stimuli/preference/test_preference_file.py::test_it_goes_on_after_a_kill_to_the_same_bytes"
)
@pytest.mark.pure
def test_an_interrupted_fit_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ("--twin", "properties", "--images", str(IMAGES))

    def killed(*args: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(fitting, "evaluate", killed)
        with pytest.raises(KeyboardInterrupt):
            fit(tmp_path / "cut", *given)
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cut").rglob("*.safetensors")}
    assert len(kept) > 1
    fit(tmp_path / "cut", *given)
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cut").rglob("*.safetensors")}
    assert kept.items() <= after.items(), "nothing was embedded or trained again"
    files = [(folder / "scorer.safetensors").read_bytes() for folder in (fitted_twin(), tmp_path / "cut")]
    assert files[0] == files[1]


def write_records(folder: Path) -> tuple[Path, Path]:
    """The twin as files in PASTA's format, the first image's explanations as concepts; and their folder."""
    twin, pictures = draw_twin("properties", images=IMAGES), folder / "pictures"
    pictures.mkdir(parents=True)
    records = []
    for row, subject in enumerate(twin.subjects):
        image, method = divmod(row, 21)
        name = f"{'ab'[image % 2]}_{image}_{method}.png"
        if image:
            (pictures / name).write_bytes(subject.picture)
        else:
            weights = {"ears": 0.1 * method, "tail": -1.0}
            (pictures / name).with_suffix(".json").write_text(json.dumps(weights))
        answers = tuple(
            {f"Q{q + 1}": int(point) for q, point in enumerate(points)} for points in twin.ratings[row].T
        )
        records.append(Record(f"{'ab'[image % 2]}_{image}_cat.png", name, "cat", "dog", answers))
    (folder / "records.json").write_text(as_text(records))
    return folder / "records.json", pictures


@pytest.mark.pure
def test_records_of_pasta_s_format_are_fitted_and_pictures_scored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, pictures = write_records(tmp_path)
    given = ("--records", str(records), "--explanations", str(pictures), "--split", "released")
    said = fit(tmp_path / "out", *given, "--label", "predicted", "--licence", "CC0", capsys=capsys)
    assert 'Split "released", 2 runs' in said and "cannot be said" in said
    scorer = tmp_path / "out" / "scorer.safetensors"
    card = load(scorer).card
    assert (card.labels, card.licence, card.label) == (("dog",), "CC0", "predicted")
    labels = tmp_path / "labels.csv"
    names = [path.name for path in sorted(pictures.glob("*.png"))]
    labels.write_text("file,label\n" + "".join(f"{name},dog\n" for name in names))
    out = tmp_path / "scores.csv"
    scored = ("score", str(scorer), "--pictures", str(pictures))
    call_command(*scored, "--labels", str(labels), "--out", str(out))
    said = capsys.readouterr().out
    assert "no person was asked" in said and "Predicts how people would rate" in said
    table = pd.read_csv(out)
    assert len(table) == len(names) * 6 and table["predicted"].between(1, 5).all()
    assert (table["heads"] == 2).all() and (table["sd"] > 0).any()
    with pytest.raises(CommandError, match="takes a label with each explanation"):
        call_command(*scored)
    labels.write_text("file,label\n" + "".join(f"{name},owl\n" for name in names))
    with pytest.raises(CommandError, match="the label 'owl' is none of the scorer's"):
        call_command(*scored, "--labels", str(labels))
    with pytest.raises(CommandError, match="exists; name another --out"):
        call_command(*scored, "--out", str(out))


@pytest.mark.pure
def test_what_cannot_be_fitted_is_told(tmp_path: Path) -> None:
    records, pictures = write_records(tmp_path)
    given = ("--records", str(records), "--explanations", str(pictures))
    for more, said in (
        ((), "Nothing given; name one source"),
        (("a-study", "--twin", "content"), "study and twin given; name one source"),
        (("--records", str(records)), "give their folder by --explanations"),
        ((*given, "--encoder", str(tmp_path / "none")), "there is no encoder"),
        ((*given, "--runs", "0"), "--runs is 0; take 1 to 50"),
    ):
        with pytest.raises(CommandError, match=said):
            fit(tmp_path / "out", *more)
    concepts = pictures / "a_0_3.json"
    whole = concepts.read_text()
    concepts.write_text('{"ears": "large"}')
    with pytest.raises(CommandError, match=r"a_0_3\.json is no JSON of concept to number"):
        fit(tmp_path / "out", *given)
    concepts.write_text(whole)
    (pictures / "b_1_3.png").unlink()
    with pytest.raises(CommandError, match=r"the records name 'b_1_3\.png', which is not in"):
        fit(tmp_path / "out", *given)
    rows = json.loads(records.read_text())
    for change, said in (
        (lambda row: row.update(Annotation=row["Annotation"][:1]), "has one rating per question"),
        (lambda row: [answer.update(Q2=4) for answer in row["Annotation"]], "every rating of Q2 is 4"),
        (lambda row: [answer.update(Q5=None) for answer in row["Annotation"]], "Q5 has no ratings"),
    ):
        (pictures / "b_1_3.png").write_bytes((pictures / "b_1_4.png").read_bytes())
        changed = json.loads(json.dumps(rows))
        for row in changed:
            change(row)
        records.write_text(json.dumps(changed))
        with pytest.raises(CommandError, match=said):
            fit(tmp_path / "out", *given)
    assert not (tmp_path / "out" / "scorer.safetensors").exists()


@pytest.mark.pure
def test_predictions_at_the_ends_are_told() -> None:
    assert at_ends([1.2, 3, 4, 4.9, 5]) == ""
    assert at_ends([[1, 5], [3, 4]]).startswith("2 of 4 predicted ratings lie at an end of the scale")


@pytest.fixture
def study(store_folder: Path) -> Study:
    return rated_study()


def with_copies(study: Study) -> dict[tuple[str, str], bytes]:
    """q2 compares with a light copy, which every explanation has, drawn as a plain colour; the PNG files."""
    asked = {"id": "q2", "pair": "light", "text": "Are they alike?", "low": "no", "high": "yes"}
    study.definition["design"]["wording"] = [asked]
    study.save()
    store, files = current_store(), {}
    for number, row in enumerate(Rendering.objects.exclude(stimulus__spec__explainer=None)):
        named = f"{row.item.key}~light~{row.condition.name}"
        told = Item.objects.get(pk=row.item_id)
        told.pk, told.key, told.copy_of_id, told.perturbation = None, named, row.item_id, {"aim": "light"}
        told.save()
        picture = np.full((32, 32, 3), (number * 5 % 256, number // 51, 90), np.uint8)
        drawn = Stimulus.objects.get(pk=row.stimulus_id)
        drawn.pk, drawn.key = None, content_key(named)
        drawn.explanation_file = keep_picture(store, "pictures", drawn.key, picture)
        drawn.save()
        Rendering.objects.create(item=told, condition=row.condition, stimulus=drawn)
        files[row.item.key, row.condition.name] = store.get(drawn.explanation_file)
    return files


@pytest.mark.long(stays="test_a_study_is_fitted_and_another_scored")
@pytest.mark.django_db
def test_questions_about_a_pair_are_learned_from_both_pictures(study: Study, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no rating compares .* its light copy: leave --pair out"):
        fit(tmp_path / "out", study.slug, "--split", "method_out", "--pair", "light")
    files = with_copies(study)
    made = from_study(study, current_store(), pair="light")
    assert made.questions == ("q2",)
    assert all(
        s.other == files[of]
        for s, of in zip(made.subjects, zip(made.images, made.methods, strict=True), strict=True)
    )
    fit(tmp_path / "out", study.slug, "--split", "method_out", "--pair", "light")
    saved = load(tmp_path / "out" / "scorer.safetensors")
    assert saved.card.inputs == "light" and {head.question for head in saved.card.heads} == {"q2"}
    rows = of_study(study.slug, saved.card)
    assert {(row.name, row.condition): row.shown.other for row in rows} == files
    first = predicted_of(rows, saved, open_encoder("histograms"))
    turned = [replace(row, shown=replace(row.shown, other=rows[-1].shown.other)) for row in rows]
    assert not np.allclose(predicted_of(turned, saved, open_encoder("histograms")), first), (
        "it looks at the copy"
    )
    scorer = str(tmp_path / "out" / "scorer.safetensors")
    call_command("score", scorer, "--study", study.slug, "--out", str(tmp_path / "scores.csv"))
    assert len(pd.read_csv(tmp_path / "scores.csv")) == len(files)
    with pytest.raises(CommandError, match="light copy, which a folder does not hold"):
        call_command("score", scorer, "--pictures", str(tmp_path))
    with pytest.raises(BadRatings, match="fitted without --pair"):
        Predicts(saved, open_encoder("histograms"), "q2")
    Item.objects.exclude(copy_of=None).delete()
    with pytest.raises(CommandError, match="no explanation with a light copy that is rendered"):
        call_command("score", scorer, "--study", study.slug)
    with pytest.raises(CommandError, match="--pair needs the copies of a study"):
        fit(tmp_path / "more", "--twin", "content", "--pair", "light")


@pytest.mark.django_db
def test_a_sealed_study_teaches_nothing(study: Study, tmp_path: Path) -> None:
    """Predictions by condition would tell its results before it is over."""
    study.state = Study.State.OPEN
    study.save()
    with pytest.raises(CommandError, match="would tell them: wait until then"):
        fit(tmp_path / "out", study.slug, "--split", "method_out")
    assert not (tmp_path / "out" / "scorer.safetensors").exists()


@pytest.mark.django_db
def test_a_study_s_ratings_are_those_of_its_kept_people(study: Study) -> None:
    made = fitting_source(study)
    assert made.questions == ("q1", "q2") and set(made.methods) == {"control", "grad_cam"}
    rows = Response.objects.filter(trial__kind="rate", trial__check_kind="")
    assert int(made.raters.sum()) == 2 * rows.count()
    assert made.plain is not None and made.plain.shape == (len(made.subjects), 5)
    by_row = dict(zip(zip(made.images, made.methods, strict=True), made.subjects, strict=True))
    shown = Rendering.objects.select_related("item", "condition", "stimulus").filter(item__study=study)
    for row in shown.exclude(stimulus__explanation_file=""):
        if subject := by_row.get((row.item.key, row.condition.name)):
            assert subject.picture == current_store().get(row.stimulus.explanation_file)
            assert decode(subject.picture).shape == (32, 32, 3)
    place = [m == "grad_cam" for m in made.methods]
    assert np.nanmean(made.ratings[place]) > np.nanmean(made.ratings[~np.array(place)]) + 1


def fitting_source(study: Study) -> Any:
    return from_study(study, current_store(), label="predicted")


@pytest.mark.django_db
def test_concepts_are_embedded_as_their_sentence(study: Study) -> None:
    """T12: with a sign, what speaks against has a minus; distances go by the smallest first."""
    from analysis.preference.rated_explanations import read_explanation
    from stimuli.render.sentences import SentenceSpec

    stimulus = Stimulus.objects.exclude(spec__explainer=None).first()
    assert stimulus is not None
    store = current_store()
    for key, order, values, said in (
        ("a" * 64, "descending", [0.2, -0.9], "−tail, ears"),
        ("b" * 64, "ascending", [0.2, 0.9], "ears, tail"),
    ):
        made = ConceptAttribution(("ears", "tail"), np.array(values, np.float32), order, "")  # type: ignore[arg-type]
        keep_attribution(store, key, made)
        stimulus.attribution_key = key
        subject, plain = read_explanation(stimulus, store, "", SentenceSpec(signed=True))
        assert (subject.text, plain) == (said, None)


@pytest.mark.django_db
def test_a_study_is_fitted_and_another_scored(
    study: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError, match='"strict" leaves 0 explanations'):
        fit(tmp_path / "out", study.slug)
    fit(tmp_path / "out", study.slug, "--split", "method_out", capsys=capsys)
    call_command("score", str(tmp_path / "out" / "scorer.safetensors"), "--study", study.slug,
                 "--out", str(tmp_path / "scores.csv"))  # fmt: skip
    said = capsys.readouterr().out
    assert "grad_cam" in said and "no person was asked" in said
    table = pd.read_csv(tmp_path / "scores.csv")
    done = Rendering.objects.filter(item__study=study).exclude(stimulus__spec__explainer=None).count()
    assert len(table) == 2 * done and set(table["condition"]) == {"control", "grad_cam"}
    with pytest.raises(CommandError, match='There is no study "other" here'):
        call_command("score", str(tmp_path / "out" / "scorer.safetensors"), "--study", "other")
    study.paradigm = "meta_predictor"
    study.save()
    with pytest.raises(CommandError, match="whose trials are no ratings"):
        fit(tmp_path / "more", study.slug)


@pytest.mark.long(stays="test_a_study_is_fitted_and_another_scored")
@pytest.mark.pure
def test_steering_prints_what_it_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_study(tmp_path / "study")
    given = ("steer", str(fitted_twin() / "scorer.safetensors"), str(path), "--pictures", "2")
    call_command(*given, "--masks", "64", "--question", "Q2", "--out", str(tmp_path / "steered"))
    said = capsys.readouterr().out
    assert "Steered RISE, mean over pictures" in said and "only a prediction study tells" in said
    table = pd.read_csv(tmp_path / "steered" / "steering.csv")
    assert sorted(set(table["lambda"])) == [0, 0.25, 0.5, 0.75, 1] and len(table) == 10
    assert table["predicted"].between(1, 5).all() and table["deletion"].between(0, 1).all()
    for name in ("steering.svg", "steering.pdf", "sheet.png"):
        assert (tmp_path / "steered" / name).stat().st_size > 1000
    with pytest.raises(CommandError, match="--pictures takes 1 to 50"):
        call_command(*given[:-1], "0", "--out", str(tmp_path / "more"))


@pytest.mark.django_db
def test_what_is_rated_next_makes_the_next_study(study: Study, tmp_path: Path) -> None:
    """The lines are those of a follow-up study, which rates these and nothing else."""
    fit(tmp_path / "out", study.slug, "--split", "method_out")
    scorer = str(tmp_path / "out" / "scorer.safetensors")
    with pytest.raises(CommandError, match="explanations of .* have ratings: none is left"):
        call_command("rate_next", scorer, study.slug, "--out", str(tmp_path / "next.toml"))
    answers = Response.objects.filter(trial__kind="rate")
    dropped = sorted(set(answers.values_list("trial__item__key", "trial__condition__name")))[:5]
    for item, condition in dropped:
        Response.objects.filter(trial__item__key=item, trial__condition__name=condition).delete()
    call_command("rate_next", scorer, study.slug, "--count", "3", "--out", str(tmp_path / "next.toml"))
    named = [tuple(pair) for pair in tomllib.loads((tmp_path / "next.toml").read_text())["explanations"]]
    assert len(set(named)) == 3 and set(named) <= set(dropped)
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("rate_next", scorer, study.slug, "--out", str(tmp_path / "next.toml"))


@pytest.mark.long(stays="test_an_ablation_varies_the_sentence_of_concepts_and_the_label")
@pytest.mark.pure
def test_an_ablation_leaves_out_one_part_at_a_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whole and "whole" agree with a fit by itself; the cosine as released has no gradient, so leaving it out
    is the same."""
    given = ("--twin", "properties", "--images", str(IMAGES), "--runs", "2", "--epochs", "3")
    call_command("ablate_preference", *given, "--out", str(tmp_path / "parts"))
    assert "Mean over 6 questions" in capsys.readouterr().out
    rows = pd.read_csv(tmp_path / "parts" / "ablation.csv").set_index("name")
    scores = pd.read_csv(fitted_twin() / "scores.csv").query("metric == 'QWK' and source == 'scorer'")
    assert rows.loc["whole", "kappa"] == pytest.approx(scores["mean"].mean())
    assert rows.loc["cosine as released", "kappa"] == rows.loc["without cosine", "kappa"]
    assert not {"label left out", "concepts with sign"} & set(rows.index), "the twin has neither"
    assert rows["kappa"].nunique() > 4
    assert (tmp_path / "parts" / "ablation.svg").stat().st_size > 1000
    with pytest.raises(CommandError, match="already holds an ablation"):
        call_command("ablate_preference", *given, "--out", str(tmp_path / "parts"))


@pytest.mark.pure
def test_an_ablation_varies_the_sentence_of_concepts_and_the_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fit is given its own sentences; one real fit stands for the scores of all."""
    records, pictures = write_records(tmp_path)
    given = ("--records", str(records), "--explanations", str(pictures), "--split", "released",
             "--label", "predicted", "--runs", "1", "--epochs", "1")  # fmt: skip
    fits: list[tuple[str, str]] = []
    made: list[Any] = []

    def once(rated: Any, encoder: Any, plan: FitPlan, *more: Any) -> Any:
        fits.append((rated.subjects[1].text, plan.label))
        made.append(made[0] if made else fitting.fit(rated, encoder, plan, *more))
        return made[0]

    monkeypatch.setattr("analysis.management.commands.ablate_preference.fit", once)
    call_command("ablate_preference", *given, "--out", str(tmp_path / "parts"))
    names = list(pd.read_csv(tmp_path / "parts" / "ablation.csv")["name"])
    told = dict(zip(names, fits, strict=True))
    assert told["whole"] == told["5 concepts"] == told["20 concepts"] == ("tail, ears", "predicted")
    assert told["concepts with sign"][0] == "−tail, ears"
    assert "decision" in told["concepts as reasons"][0] and told["label left out"][1] == "none"


@pytest.mark.long(stays="test_a_study_is_fitted_and_another_scored")
@pytest.mark.django_db
@pytest.mark.usefixtures("undrawn", "few_draws", "without_odds")
def test_kept_predictions_stand_in_the_report_as_predicted(study: Study, tmp_path: Path) -> None:
    """Beside the ratings, under a name of their own, and once."""
    fit(tmp_path / "own", study.slug, "--split", "method_out")
    with pytest.raises(CommandError, match="learned from .* itself"):
        call_command("score", str(tmp_path / "own" / "scorer.safetensors"), "--study", study.slug, "--keep")
    given = ("score", str(fitted_twin() / "scorer.safetensors"), "--study", study.slug, "--keep")
    call_command(*given, "--out", str(tmp_path / "scores.csv"))
    table = pd.read_csv(tmp_path / "scores.csv")
    kept = Measurement.objects.filter(metric="predicted_Q1")
    predicted = sorted(table[table["question"] == "Q1"]["predicted"])
    assert list(kept.order_by("value").values_list("value", flat=True)) == pytest.approx(predicted)
    before = Measurement.objects.count()
    call_command(*given)
    assert Measurement.objects.count() == before == len(table)
    made = refresh_report(study, "human")
    rows = [row for row in made.json["metrics"] if row["metric"].startswith("predicted_")]
    assert {(row["metric"], row["question"]) for row in rows} >= {
        ("predicted_Q1", "q1"),
        ("predicted_Q2", "q2"),
    }
    assert all(row["method"] is None and row["seen"] is not None for row in rows)
    tables = [table for section in make_report(study, "human").sections for table in section.tables]
    (shown,) = (table for table in tables if table.key == "predicted")
    assert [row[0] for row in shown.rows] == ["Q1", "Q2"], "each question beside its own prediction"
    assert "given by no person" in shown.note and "predicted_" not in made.html
    ratings = {(row["name"], row["question"]): row["mean"] for row in made.json["conditions"]}
    answers = Response.objects.filter(trial__kind="rate", trial__condition__name="control")
    wanted = np.mean([value["q1"] for value in answers.values_list("value", flat=True)])
    assert ratings["control", "q1"] == pytest.approx(wanted), "people's ratings stay as they were"
    with pytest.raises(CommandError, match="name it by --study"):
        call_command("score", given[1], "--pictures", str(tmp_path), "--keep")
