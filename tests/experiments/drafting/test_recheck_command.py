"""recheck_stimuli on an open study: equal if nothing was changed, else an error that names the change."""

import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from experiments.models import Study
from stimuli.models import Stimulus
from stimuli.spec import StimulusSpec
from stimuli.store import LocalStore
from stimuli.store.files import map_file, read_attribution, write_attribution
from stimuli.store.media_access import current_store
from stimuli.types import PixelAttribution
from tests.worlds import spoil


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("recheck_stimuli", "small", *arguments, stdout=out)
    return out.getvalue()


def explained() -> list[StimulusSpec]:
    specs = (StimulusSpec.from_json(spec) for spec in Stimulus.objects.values_list("spec", flat=True))
    return [spec for spec in specs if spec.explainer is not None]


def test_it_finds_an_untouched_study_equal(small: Study, capsys: pytest.CaptureFixture[str]) -> None:
    assert "None is further" in run("--sample", "0")
    table = capsys.readouterr().out
    keys = {spec.attribution_key for spec in explained()}
    counts = [tuple(map(int, pair)) for pair in re.findall(r"(\d+)\s+(\d+)\s+0\.0e\+00", table)]
    assert counts and all(total == equal for total, equal in counts)
    assert sum(total for total, _ in counts) == len(keys)


def test_it_names_what_was_touched(store_folder: Path, small: Study) -> None:
    spec = explained()[0]
    store = current_store()
    assert isinstance(store, LocalStore)
    made = read_attribution(store, spec.attribution_key)
    assert isinstance(made, PixelAttribution)
    path = store.root / map_file(spec.attribution_key)
    spoil(path, write_attribution(replace(made, values=np.float32(1.25) * made.values)))
    with pytest.raises(CommandError) as caught:
        run("--sample", "0")
    assert "1 differ by more than 0.001" in str(caught.value)
    assert f"{spec.picture_key}: differs by 2.0e-01" in str(caught.value)
    assert "None is further" in run("--sample", "0", "--tolerance", "0.3")


def test_it_draws_the_same_sample_again_by_its_seed(small: Study, capsys: pytest.CaptureFixture[str]) -> None:
    run("--sample", "3")
    first = capsys.readouterr().out
    (seed,) = re.findall(r"sample seed (\d+)", first)
    run("--sample", "3", "--seed", seed)
    assert capsys.readouterr().out == first
    assert "small: 3 explanations once more" in first


@pytest.mark.parametrize("wrong", [("--sample", "-1"), ("--tolerance", "1"), ("--tolerance", "-0.1")])
def test_it_refuses_numbers_that_mean_nothing(small: Study, wrong: tuple[str, str]) -> None:
    with pytest.raises(CommandError, match=r"must be (0 or more|at least 0)"):
        run(*wrong)
