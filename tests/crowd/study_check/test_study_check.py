"""Before any payment the dry plan says what a careful researcher wants to know about the pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from django.core.management import CommandError, call_command

from analysis.reports.utility import faithfulness
from analysis.tables.response_reader import read_frames, study_facts
from crowd.study_check import condition_look_alikes
from crowd.study_check.signed_maps import signs_sentence
from experiments.drafting.draft import build_draft
from experiments.models import Study
from experiments.study_files.load import load_study
from stimuli.errors import NotApplicable
from stimuli.explainers.gradients.pixel_gradients import GradientXInput
from stimuli.explainers.perturbation.occlusion import Occlusion
from stimuli.models import Measurement, Stimulus
from stimuli.planner.asks import Steps
from stimuli.render.attribution_field import drawn_field
from stimuli.spec import StimulusSpec
from stimuli.store.files import read_attribution
from stimuli.store.media_access import current_store
from stimuli.training import small_network
from stimuli.types import PixelAttribution
from tests import world
from tests.spoilt import empty_for_the_first_answer

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


def of_few(path: Path) -> Path:
    """The study with as few items as can be planned."""
    path.write_text(path.read_text().replace("[stimuli]\n", "[stimuli]\nitems = 24\n"))
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


@pytest.mark.long(stays="test_it_says_so_if_a_method_cannot_be_looked_at")
def test_it_names_conditions_that_look_alike_before_anything_is_built(
    tmp_path: Path, store_folder: Path, check: Check
) -> None:
    # On a linear network every number of steps gives the same map.
    path = study_with(tmp_path, few=TWO_STEPS, more=THREE_STEPS)
    printed = check(path)
    assert "few and more look alike on 3 of 3 items" in printed and "control and" not in printed
    assert not Stimulus.objects.exists() and not Study.objects.exists()
    assert "look alike" not in check(path, "--pictures", "0")


@pytest.mark.long(stays="test_it_says_so_if_a_method_cannot_be_looked_at")
def test_it_looks_at_more_pictures_once_they_are_there(
    tmp_path: Path, store_folder: Path, check: Check
) -> None:
    path = of_few(study_with(tmp_path, few=TWO_STEPS, more=THREE_STEPS))
    call_command("build_stimuli", str(path), stdout=StringIO())
    assert "few and more look alike on 24 of 24 items" in check(path)


@pytest.mark.long(stays="test_it_says_so_if_a_method_cannot_be_looked_at")
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


@pytest.mark.long(stays="test_it_says_so_if_a_method_cannot_be_looked_at")
def test_it_refuses_both_sides_of_methods_without_a_sign(
    tmp_path: Path, store_folder: Path, check: Check
) -> None:
    path = study_with(tmp_path, plain='{ name = "saliency" }', parts='{ name = "occlusion" }')
    text = path.read_text()
    path.write_text(f'{text}[render]\nsign = "diverging"\n')
    check(path, refused="methods of control, saliency, plain have no sign")
    path.write_text(f'{text}[render]\nsign = "diverging"\nunsigned = "for"\n')
    printed = check(path)
    assert "The form of explanations" in printed and "could be made and drawn" not in printed


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64", "float32"])
def test_it_says_from_which_precision_weights_were_cast(
    tmp_path: Path, store_folder: Path, check: Check, kind: str
) -> None:
    network = """{ name = "torch_image", weights = "w.safetensors", input_px = 32, labels = ["left", "right"],
        builder = "stimuli.training:small_network", builder_params = { width = 4, classes = 2 } }"""
    path = study_with(tmp_path, " ".join(network.split()))
    state = small_network(4, 2).state_dict()
    prefix = "module." if kind == "float16" else ""
    cast = {prefix + n: v.to(getattr(torch, kind)) if v.is_floating_point() else v for n, v in state.items()}
    safetensors.torch.save_file(cast, path.parent / "w.safetensors")
    printed = check(path, "--pictures", "0", "--quality", "0", refused="does not know these pictures")
    told = f"Weights that are stored in {kind} were cast to float32."
    assert (told in printed) == (kind != "float32") and ("were cast" in printed) == (kind != "float32")
    assert ('read without "module.", a wrapper\'s prefix.' in printed) == (kind == "float16")


@pytest.mark.long(stays="test_it_says_so_if_a_package_does_not_say_whether_its_maps_have_a_sign")
def test_it_says_which_maps_have_a_sign_and_what_is_cut_away(
    tmp_path: Path, store_folder: Path, check: Check
) -> None:
    """A map (-x, x) of a planted method loses half of its mass under "positive", and nothing under others."""
    path = study_with(tmp_path, parts='{ name = "occlusion" }', ramp='{ name = "gradient_x_input" }')

    def planted(self: GradientXInput, predictor: Any, subject: Any) -> Steps:
        height, width = subject.pixels.shape[1:]
        row = np.linspace(-1, 1, width, dtype=np.float32)
        return PixelAttribution(np.tile(row, (height, 1)), signed=True)
        yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GradientXInput, "explain", planted)
        printed = check(path)
        unsigned = "without (their strength is drawn): control, saliency."
        assert "With a sign (their evidence for the answer is drawn): parts" in printed
        assert f"ramp (0.50 of it cut away); {unsigned}" in printed
        path.write_text(f'{path.read_text()}[render]\nsign = "magnitude"\n')
        assert f"With a sign (their magnitudes are drawn): parts, ramp; {unsigned}" in check(path)


def test_it_says_so_if_a_package_does_not_say_whether_its_maps_have_a_sign() -> None:
    said = signs_sentence({"rings": None, "cam": False}, "signed_range", {})
    assert said == (
        "With a sign (their whole range is drawn): none; without (their strength is drawn): cam; not said "
        "by their package: rings."
    )


def test_it_says_so_if_a_method_cannot_be_looked_at(
    tmp_path: Path, store_folder: Path, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(self: Occlusion, predictor: Any, subject: Any) -> Steps:
        raise NotApplicable("this picture has nothing to hide")
        yield

    monkeypatch.setattr(Occlusion, "explain", none)
    printed = check(study_with(tmp_path, parts='{ name = "occlusion" }'))
    assert "no explanation of parts could be made and drawn" in printed


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
    empty_for_the_first_answer(monkeypatch)
    path = study_with(tmp_path)
    path.write_text(path.read_text().replace("[stimuli]\n", '[stimuli]\ndrop_flagged = ["flat"]\n'))
    printed = check(path, refused="28 of 56 items were left out")
    assert POOL in printed and "Its accuracy on them: 0.50 (28 of 56;" in printed


@pytest.mark.long(stays="test_it_refuses_metrics_that_there_are_not")
def test_it_measures_what_the_study_names(tmp_path: Path, store_folder: Path) -> None:
    path = of_few(study_with(tmp_path, few=TWO_STEPS))
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


@pytest.mark.long(stays="test_it_refuses_metrics_that_there_are_not")
def test_the_report_has_faithfulness_of_the_map_and_of_what_was_seen(
    tmp_path: Path, store_folder: Path
) -> None:
    path = of_few(study_with(tmp_path, parts='{ name = "occlusion" }'))
    asked = "".join(f'[[metrics]]\nname = "{name}"\n' for name in ("deletion", "deletion_drawn"))
    path.write_text(path.read_text().replace("[texts]", f"{asked}[texts]"))
    call_command("build_stimuli", str(path), stdout=StringIO())
    study = Study.objects.get()
    (section,) = faithfulness.sections(read_frames(study), study_facts(study))
    rows = {row["condition"]: row for row in section.content[0]["conditions"]}
    assert set(rows) == {"control", "saliency", "parts"}
    for name, row in rows.items():
        stimuli = Stimulus.objects.filter(renderings__condition__name=name)
        specs = [StimulusSpec.from_json(spec) for spec in stimuli.values_list("spec", flat=True)]
        assert row["n"] == len(specs) > 0
        for column, metric in (("method", "deletion"), ("seen", "deletion_drawn")):
            known = Measurement.objects.filter(stimulus__in=stimuli, metric=metric, value__isnull=False)
            values = [measurement.value or 0.0 for measurement in known]
            assert row[column] == pytest.approx(sum(values) / len(specs))
        for column in ("method", "seen"):
            shares = []
            for spec in specs:
                made = read_attribution(current_store(), spec.attribution_key)
                assert isinstance(made, PixelAttribution)
                plane = made.values if column == "method" else drawn_field(made, spec.render)
                counts = Counter(plane.ravel().tolist())
                shares.append(sum(counts[value] > 1 for value in plane.ravel().tolist()) / plane.size)
            assert row[f"tied_{column}"] == pytest.approx(np.mean(shares))


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
    counts = dict(condition_look_alikes._count_groups([[four], [three], [three, ("e", "f")], [four]]))
    assert counts == {three: 4, four: 2, ("e", "f"): 1}


def test_it_builds_a_draft_anew_whose_methods_have_changed(tmp_path: Path, store_folder: Path) -> None:
    path = study_with(tmp_path)
    draft = build_draft(load_study(path), path.parent, lambda *_: None)
    assert build_draft(load_study(path), path.parent, lambda *_: None).pk == draft.pk
    row = Stimulus.objects.filter(spec__explainer__name="saliency").first()
    assert row is not None
    Stimulus.objects.filter(pk=row.pk).update(spec={**row.spec, "version": 0})
    assert build_draft(load_study(path), path.parent, lambda *_: None).pk != draft.pk
