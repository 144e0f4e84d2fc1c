"""Raters on this machine: a scorer of preferences, and a model of a local folder."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from analysis.preference.scorer_commands import of_study, predicted_of
from analysis.stored_reports.refresh import make_report
from experiments.asking.choice_dialogue import UnansweredQuestion
from experiments.asking.preference_scorer_session import ScorerObserver, ScorerRater
from experiments.errors import StudyError
from experiments.models import Prediction, Response, Slot, Study
from stimuli.preference.embedding import ShownExplanation, embed
from stimuli.preference.encoders import open_encoder
from stimuli.preference.scorer_estimator import PreferenceScorer
from stimuli.preference.scorer_file import load, save, scorer_parameters
from stimuli.render.png import encode
from tests.crowd.commands.test_ask_model import ALLOWED, UNTAUGHT, models, path, study
from tests.stimuli.hub_models import save_llava
from tests.world import CLASSES, opened_study

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["path", "study"]
NEUTRAL = f'[stimuli]\nclasses = {list(CLASSES)}\nlabel_names = "neutral"\n'
"""A page says Class 1, and the study's data class_1."""


# A scorer in place of a model


@cache
def fitted() -> bytes:
    """The file of a scorer of nothing in particular, which knows the questions."""
    with TemporaryDirectory() as folder:
        call_command("fit_preference", "--twin", "content", "--images", "14", "--runs", "1", "--epochs", "1",
                     "--out", folder)  # fmt: skip
        return (Path(folder) / "scorer.safetensors").read_bytes()


def fitted_in(folder: Path) -> Path:
    path = folder / "fitted.safetensors"
    path.write_bytes(fitted())
    return path


def scorer_of(study: Study, folder: Path, label: str = "none") -> Path:
    """Fitted on the study's own pictures with drawn ratings, so that it tells them apart; with `label`
    "predicted" also what the model says of each."""
    card = load(fitted_in(folder)).card
    labels = () if label == "none" else tuple(sorted(set(study.items.values_list("predicted", flat=True))))
    card = card.model_copy(update={"label": label, "labels": labels})
    shown = [row.shown for row in of_study(study.slug, card)]
    vectors = embed(shown, open_encoder("histograms"), card.labels)
    ratings = np.random.default_rng(0).integers(1, 6, (len(vectors), 2)).astype(float)
    made = PreferenceScorer(seed=[0, 1], epochs=30).fit(vectors, ratings, validation=(vectors, ratings))
    told = {"heads": card.heads[:2], "parameters": scorer_parameters(made)}
    save(folder / "scorer.safetensors", made, card.model_copy(update=told))
    return folder / "scorer.safetensors"


BESIDE = pytest.mark.long(stays="test_a_scorer_rates_by_its_predictions_and_reads_nothing")


@pytest.mark.parametrize("label", [pytest.param("none", marks=BESIDE), "predicted"])
def test_a_scorer_rates_by_its_predictions_and_reads_nothing(
    label: str, study: Study, path: Path, live_server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each stored point is the rounded prediction for the very picture of the trial, and for what the model
    that is explained says of it, which a page tells in other words."""
    if label == "predicted":
        told = path.read_text().replace('slug = "ratings"', 'slug = "named"')
        path.write_text(told.replace("[stimuli]\n", NEUTRAL, 1))
        study = opened_study(path)
        assert set(study.items.values_list("predicted", flat=True)) == {"class_1", "class_2"}
    scorer = scorer_of(study, tmp_path, label)
    given = ("ask_model", str(path), "--scorer", str(scorer), "--url", live_server.url)
    path.write_text(path.read_text().replace(ALLOWED, "\n"))
    call_command(*given)
    said = capsys.readouterr().out
    assert "nothing leaves this machine" in said and "It reads no page" in said and "Sent:" not in said
    sessions = models()
    assert len(sessions) == Slot.objects.filter(study=study, lane="round-0").count()
    assert {s.verdict for s in sessions} == {"passed"}
    assert {(s.asked["host"], s.asked["prompt"], s.asked["prompt_digest"]) for s in sessions} == {
        ("this machine", "none", "")
    }
    saved = load(scorer)
    rows = of_study(study.slug, saved.card)
    heads = dict(zip([h.question.lower() for h in saved.card.heads], predicted_of(
        rows, saved, open_encoder("histograms")).T, strict=True))  # fmt: skip
    place = {(row.name, row.condition): at for at, row in enumerate(rows)}
    rated = Response.objects.filter(session__in=sessions, trial__kind="rate").select_related(
        "trial__item", "trial__condition"
    )
    points: set[int] = set()
    for answer in rated:
        assert answer.trial.item is not None and answer.trial.condition is not None
        at = place[answer.trial.item.key, answer.trial.condition.name]
        wanted = {q: round(float(heads[q][at])) for q in ("q1", "q2")}
        assert answer.value == wanted
        points |= set(wanted.values())
    assert len(rated) == len(rows) and len(points) > 2, "it tells pictures apart"
    report = make_report(study, "model")
    (manner,) = next(s.content for s in report.sections if s.key == "models")["manners"]
    assert manner["model"].startswith("scorer ") and manner["trained_on_data"] == "unknown"
    call_command(*given)
    assert "has ended" in capsys.readouterr().out and len(models()) == len(sessions)


def test_beside_a_scorer_the_training_is_answered_by_what_it_told(
    study: Study, path: Path, live_server: Any, tmp_path: Path
) -> None:
    scorer = scorer_of(study, tmp_path)
    path.write_text(path.read_text().replace(UNTAUGHT, "").replace('slug = "ratings"', 'slug = "taught"'))
    opened_study(path)
    call_command("ask_model", str(path), "--scorer", str(scorer), "--url", live_server.url, "-n", "1")
    (session,) = models()
    tries = session.gates.filter(kind="training").order_by("attempt").values_list("passed", flat=True)
    assert list(tries) == [False, True] and session.verdict == "passed"


def test_a_scorer_that_cannot_take_the_study_is_refused(study: Study, path: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="Name who rates"):
        call_command("ask_model", str(path))
    with pytest.raises(CommandError, match="Name who rates"):
        call_command("ask_model", str(path), "--scorer", "s", "--model", "m", "--address", "http://here")
    with pytest.raises(CommandError, match="none.safetensors"):
        call_command("ask_model", str(path), "--scorer", str(tmp_path / "none.safetensors"))
    saved, encoder = load(fitted_in(tmp_path)), open_encoder("histograms")
    with pytest.raises(StudyError, match="does not answer 'q9'; it knows q1"):
        ScorerRater(saved, encoder, ["q1", "q9"])
    pair = replace(saved, card=saved.card.model_copy(update={"inputs": "light"}))
    with pytest.raises(StudyError, match="more than a page shows"):
        ScorerRater(pair, encoder, ["q1"])
    assert not models()


def test_the_label_beside_an_explanation_is_what_its_own_model_says(study: Study, tmp_path: Path) -> None:
    other = next(iter(Prediction.objects.filter(item__study=study)))
    Prediction.objects.filter(pk=other.pk).update(predicted="owl")
    scorer = scorer_of(study, tmp_path)
    card = load(scorer).card.model_copy(update={"label": "predicted"})
    rows = of_study(study.slug, card)
    models_of = dict(study.conditions.values_list("name", "predictor"))
    for row in rows:
        is_other = row.name == other.item.key and models_of[row.condition] == other.predictor
        assert (row.shown.label == "owl") == is_other, row.condition
    assert any(row.shown.label == "owl" for row in rows)


def test_a_picture_of_concepts_is_read_as_their_sentence_and_a_page_without_picture_is_not_rated(
    tmp_path: Path,
) -> None:
    saved, encoder = load(fitted_in(tmp_path)), open_encoder("histograms")
    chart, other = (encode(np.full((8, 8, 3), shade, np.uint8)) for shade in (40, 200))
    sentence = "muzzle and fur, and not the ears"
    rater = ScorerRater(saved, encoder, ["q1"], sentences={hashlib.sha256(chart).hexdigest(): sentence})
    for picture, shown in ((chart, ShownExplanation(text=sentence)), (other, ShownExplanation(other))):
        wanted = saved.predict(embed([shown], encoder), encoder).reshape(-1)[rater.heads["q1"]].mean()
        assert rater.point(picture, "", "q1") == round(float(wanted))
    observer = ScorerObserver(rater, lambda url: other)
    page = {"content": {"mark": None, "image": None, "label": None}}
    with pytest.raises(UnansweredQuestion, match="shows no picture"):
        observer.rate(page, {"id": "q1"})


# A model of a local folder


def test_a_model_of_a_folder_rates_by_likelihood_and_nothing_leaves(
    study: Study, path: Path, live_server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_llava(tmp_path / "tiny")
    path.write_text(path.read_text().replace(ALLOWED, "\n"))
    given = ("ask_model", str(path), "--folder", str(tmp_path / "tiny"), "--url", live_server.url,
             "-n", "1", "--orders", "given,reversed")  # fmt: skip
    call_command(*given)
    said = capsys.readouterr().out
    assert (
        "nothing leaves this machine. Asked as plain/given, plain/reversed; it answers with the most" in said
    )
    sessions = models()
    assert len(sessions) == 2 and len({s.participant_id for s in sessions}) == 2
    assert {(s.asked["host"], s.asked["answering"]) for s in sessions} == {("this machine", "likeliest")}
    assert all(s.asked["model"].startswith("tiny ") and s.asked["faults"] == {} for s in sessions)
    # A random network does as it is told by chance alone: it is screened as every rater.
    assert {s.verdict for s in sessions} <= {"passed", "screened"}
    rated = Response.objects.filter(session__in=sessions, trial__kind="rate")
    assert rated and {
        point for value in rated.values_list("value", flat=True) for point in value.values()
    } <= {*range(1, 6)}
    report = make_report(study, "model")
    manners = next(s.content for s in report.sections if s.key == "models")["manners"]
    assert [row["answering"] for row in manners] == ["likeliest", "likeliest"]
    call_command(*given)
    assert "has ended" in capsys.readouterr().out and len(models()) == 2


def test_options_of_another_rater_are_refused(study: Study, path: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="Name who rates"):
        call_command("ask_model", str(path), "--folder", str(tmp_path), "--model", "m")
    with pytest.raises(CommandError, match="--temperature is of models at an address"):
        call_command("ask_model", str(path), "--folder", str(tmp_path), "--temperature", "0.5")
    with pytest.raises(CommandError, match="reads no prompt"):
        call_command("ask_model", str(path), "--scorer", "s", "--orders", "reversed")
    with pytest.raises(CommandError, match=r"holds no config\.json"):
        call_command("ask_model", str(path), "--folder", str(tmp_path))
    assert not models()
