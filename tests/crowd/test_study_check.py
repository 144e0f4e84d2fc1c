"""Before any payment the dry plan says what a careful researcher wants to know about the pictures."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from crowd.recruiting import indistinct
from experiments.drafts import build_draft
from experiments.models import Study
from experiments.study_file import load_study
from stimuli.explainers.gradients.gradient import Saliency
from stimuli.models import Measurement, Stimulus
from stimuli.planner.asks import Steps
from stimuli.planner.values import Subject
from tests import world
from tests.experiments.protocols import RATING, TWO_MODELS, write

pytestmark = pytest.mark.django_db
METHODS = """
[[conditions]]
name = "{name}"
role = "method"
explainer = {explainer}
slots = 1
"""


def study_with(folder: Path, predictor: str = "", **explainers: str) -> Path:
    """The small study with further conditions."""
    path = world.write_study(folder / "small", slots=1)
    if predictor:
        world.draw_images(folder / "small", per_cell=20)
    text = path.read_text()
    added = "".join(METHODS.format(name=name, explainer=table) for name, table in explainers.items())
    head, texts = text.split("[texts]", 1)
    text = f"{head}{added}[texts]{texts}"
    if predictor:
        text = text.replace('predictor = { name = "toy", input_px = 32 }', f"predictor = {predictor}")
        text = text.replace("people_share = 1.0", "people_share = 0.5")
        text = text.replace("[stimuli]\n", '[stimuli]\nbalance = "none"\n')
    path.write_text(text)
    return path


Check = Callable[..., str]


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Check:
    """What the command prints, in one line."""

    def run(path: Path, *options: str, refused: str = "") -> str:
        capsys.readouterr()
        with pytest.raises(CommandError, match=refused) if refused else nullcontext():
            call_command("study_check", str(path), *options)
        return " ".join(capsys.readouterr().out.split())

    return run


TWO_STEPS = '{ name = "integrated_gradients", steps = 2 }'
THREE_STEPS = '{ name = "integrated_gradients", steps = 3 }'


def test_it_names_conditions_that_look_alike_before_anything_is_built(
    tmp_path: Path, store_folder: Path, check: Check
) -> None:
    # On a linear network every number of steps gives the same map.
    path = study_with(tmp_path, few=TWO_STEPS, more=THREE_STEPS)
    printed = check(path)
    assert "few and more look alike on 3 of 3 items" in printed and "control and" not in printed
    assert not Stimulus.objects.exists() and not Study.objects.exists()
    assert "look alike" not in check(path, "--pictures", "0")


def test_it_looks_at_more_pictures_once_they_are_there(
    tmp_path: Path, store_folder: Path, check: Check
) -> None:
    path = study_with(tmp_path, few=TWO_STEPS, more=THREE_STEPS)
    call_command("build_stimuli", str(path), stdout=StringIO())
    assert "few and more look alike on 24 of 24 items" in check(path)


def test_it_finds_the_activation_maps_that_are_one_by_algebra(
    tmp_path: Path, store_folder: Path, check: Check
) -> None:
    """Global average pooling and one linear layer: three methods, one picture."""
    tiny = '{ name = "trained_cnn", epochs = 2, width = 4, input_px = 32, train_items = 40 }'
    cams = {name: f'{{ name = "{name}" }}' for name in ("grad_cam", "hires_cam", "xgrad_cam")}
    printed = check(study_with(tmp_path, tiny, **cams), refused="does not know these pictures")
    assert "grad_cam and hires_cam and xgrad_cam look alike on 3 of 3 items" in printed
    assert "saliency and" not in printed and "and saliency" not in printed


def test_it_refuses_methods_that_do_not_apply_all_at_once(tmp_path: Path, store_folder: Path) -> None:
    path = study_with(
        tmp_path, words='{ name = "lime_text" }', parts='{ name = "x_nesyl" }', good='{ name = "saliency" }'
    )
    for command in ("study_check", "build_stimuli", "study_open"):
        with pytest.raises(CommandError) as refused:
            call_command(command, str(path), stdout=StringIO())
        assert "condition 'words'" in str(refused.value) and "condition 'parts'" in str(refused.value)
        assert "'good'" not in str(refused.value)
    assert not Stimulus.objects.exists() and not Study.objects.exists()


POOL = "Pool of items the model says and is items left right 14 left wrong 14 right right 14 right wrong 14"
"""As the small study's files are drawn."""


def test_pool_and_accuracy_come_before_a_method_that_does_not_apply_is_refused(
    tmp_path: Path, store_folder: Path, check: Check
) -> None:
    printed = check(study_with(tmp_path, words='{ name = "lime_text" }'), refused="condition 'words'")
    assert POOL in printed and "Its accuracy on them: 0.50 (28 of 56;" in printed
    assert "Trials of one session" not in printed


def test_pool_and_accuracy_come_before_a_shortage_is_refused(
    tmp_path: Path, store_folder: Path, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All maps of one answer are empty, so that dropping them leaves the other answer alone."""
    honest = Saliency.explain

    def spoilt(self: Saliency, predictor: Any, subject: Subject) -> Steps:
        made = yield from honest(self, predictor, subject)
        return replace(made, values=np.zeros_like(made.values)) if subject.target == 0 else made

    monkeypatch.setattr(Saliency, "explain", spoilt)
    path = study_with(tmp_path)
    path.write_text(path.read_text().replace("[stimuli]\n", '[stimuli]\ndrop_flagged = ["flat"]\n'))
    printed = check(path, refused="28 of 56 items were left out")
    assert POOL in printed and "Its accuracy on them: 0.50 (28 of 56;" in printed


def test_it_measures_what_the_study_names(tmp_path: Path, store_folder: Path) -> None:
    path = study_with(tmp_path, few=TWO_STEPS)
    metrics = '[[metrics]]\nname = "deletion"\nsteps = 5\n[[metrics]]\nname = "method_similarity"\n[texts]'
    path.write_text(path.read_text().replace("[texts]", metrics))
    call_command("build_stimuli", str(path), stdout=StringIO())
    known = Measurement.objects.filter(measured_at__isnull=False, error="").values_list("metric", flat=True)
    explained = Stimulus.objects.exclude(spec__explainer=None).count()
    assert sorted(known) == sorted(["deletion"] * explained + ["method_similarity"] * explained)
    # People never see metrics: another one may be asked for under the same definition.
    digest = Study.objects.get().digest
    path.write_text(path.read_text().replace("[texts]", '[[metrics]]\nname = "sparsity"\n[texts]'))
    call_command("build_stimuli", str(path), stdout=StringIO())
    assert Study.objects.get().digest == digest
    assert Measurement.objects.filter(metric="sparsity", value__isnull=False).count() == explained


@pytest.mark.parametrize(
    ("metric", "sentence"),
    [('name = "delition"', "deletion"), ('name = "deletion"\nsteps = 0', "steps"), ('name = "x"', "x")],
)
def test_it_refuses_metrics_that_there_are_not(
    tmp_path: Path, store_folder: Path, metric: str, sentence: str
) -> None:
    path = study_with(tmp_path)
    path.write_text(path.read_text().replace("[texts]", f"[[metrics]]\n{metric}\n[texts]"))
    with pytest.raises(CommandError, match=sentence):
        call_command("study_check", str(path), stdout=StringIO())


def test_it_counts_a_group_also_where_others_join_it() -> None:
    three, four = ("a", "b", "c"), ("a", "b", "c", "d")
    counts = dict(indistinct._counted([[four], [three], [three, ("e", "f")], [four]]))
    assert counts == {three: 4, four: 2, ("e", "f"): 1}


def test_it_builds_a_draft_anew_whose_methods_have_changed(tmp_path: Path, store_folder: Path) -> None:
    path = study_with(tmp_path)
    draft = build_draft(load_study(path), path.parent, lambda *_: None)
    assert build_draft(load_study(path), path.parent, lambda *_: None).pk == draft.pk
    row = Stimulus.objects.filter(spec__explainer__name="saliency").first()
    assert row is not None
    Stimulus.objects.filter(pk=row.pk).update(spec={**row.spec, "version": 0})
    assert build_draft(load_study(path), path.parent, lambda *_: None).pk != draft.pk


def preregistered(path: Path) -> str:
    out = StringIO()
    call_command("study_check", str(path), "--preregistration", stdout=out)
    return out.getvalue()


def test_it_preregisters_the_analysis_of_the_paradigm_and_of_no_other(
    tmp_path: Path, store_folder: Path
) -> None:
    ours = preregistered(world.write_study(tmp_path / "small"))
    assert "## Conditions (between subjects)" in ours and "One-way ANOVA" in ours and "## Power" in ours
    assert "Explained is the logit of the predicted class." in ours
    rated = preregistered(write(tmp_path / "r", "ratings", "rating", RATING, sources=TWO_MODELS))
    assert "| round-0 | 2 |" in rated and "| round-1 | 2 |" in rated
    assert "ANOVA" not in rated and "Utility" not in rated and "between subjects" not in rated
