"""A study of ratings whose explanations are drawn, and the fit of a scorer; both small."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command

from experiments.models import Response, Study
from stimuli.models import Stimulus
from stimuli.render.heatmap import overlay
from stimuli.render.recipe import RenderSpec
from stimuli.store.files import keep_attribution, keep_picture
from stimuli.store.media_access import current_store
from stimuli.types import PixelAttribution
from tests.analysis.stored import as_ratings, opened, rater
from tests.snapshots import made_once

IMAGES = 14


def fit(out: Path, *more: str, capsys: pytest.CaptureFixture[str] | None = None) -> str:
    call_command("fit_preference", "--out", str(out), "--runs", "2", "--epochs", "3", *more)
    return capsys.readouterr().out if capsys else ""


@cache
def fitted_twin() -> Path:
    """The folder of a scorer that was fitted on a twin whose ratings follow from plain properties."""
    folder = Path(tempfile.mkdtemp(prefix="twin-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    fit(folder, "--twin", "properties", "--images", str(IMAGES))
    return folder


def rated_study() -> Study:
    """Eight people rate control and Grad-CAM; every explanation is drawn by our renderer."""
    return made_once("rated by eight", _rated_study)


def _rated_study() -> Study:
    made = as_ratings(opened(8), ("q1", "q2"))
    rng = np.random.default_rng(1)
    for number in range(8):
        rater(made, f"low-{number}", {"q1": 2, "q2": 3})
        rater(made, f"high-{number}", {"q1": 4, "q2": 5}, condition="grad_cam")
    # In one order, so that each rating is the same in every run.
    for response in Response.objects.filter(trial__kind="rate").order_by("session__media_id", "position"):
        value = {
            name: int(np.clip(point + rng.integers(-1, 2), 1, 5)) for name, point in response.value.items()
        }
        Response.objects.filter(pk=response.pk).update(value=value)
    store = current_store()
    for stimulus in Stimulus.objects.exclude(spec__explainer=None).order_by("key"):
        view = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
        values = PixelAttribution(rng.random((32, 32), np.float32), signed=False)
        keep_attribution(store, stimulus.attribution_key, values)
        drawn = overlay(view, values, RenderSpec.from_json(stimulus.spec["render"]))
        stimulus.explanation_file = keep_picture(store, "pictures", stimulus.key, drawn)
        stimulus.save()
    made.state = Study.State.CLOSED
    made.save()
    return made
