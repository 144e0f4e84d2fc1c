"""The short form of the proof `plates`: fewer plates of one axis, drawn small."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stimuli.datasets.plates.colours import EYES, Pair
from tests.proofs.plates import (
    CUES,
    LINES,
    NETWORK_READS,
    SEVERITIES,
    Cue,
    Drawn,
    Read,
    best_read,
    contrasts,
    drawn_for_training,
    faults_of,
    is_as_it_should,
    of_use,
    plates,
    reads,
    taught,
    through_eyes,
)

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("line", LINES)
def test_contrast_falls_with_severity_and_keeps_to_its_bounds(line: Any) -> None:
    colours = plates(axis=line).colours
    for axis in EYES[line]:
        assert not faults_of(contrasts(colours, axis), line, 0.6)


def test_it_notices_colours_that_such_eyes_tell_apart() -> None:
    tritan = plates(axis="tritan").colours
    vivid = Pair(np.array((0.6, 0.2, 0.3)), np.array((0.1, 0.36, 0.3)))
    assert "is read by dichromats" in faults_of(contrasts(tritan, "protan"), "protan", 0.6)
    assert "is out of bounds" in faults_of(contrasts(vivid, "deutan"), "deutan", 0.6)
    assert "does not fall" in faults_of([float(step) for step in range(len(SEVERITIES))], "protan", 0.6)


@pytest.fixture(scope="module")
def drawn() -> list[Drawn]:
    return drawn_for_training(plates(model_count=800, known=0))


SHORT = {"size of dots", "size of dots, planted", "colour of dots"}
MORE = pytest.mark.long(stays="test_only_colour_and_what_is_planted_tells_the_digit")


@pytest.mark.parametrize(
    "cue",
    [pytest.param(cue, id=cue[0], marks=[] if cue[0] in SHORT else [MORE]) for cue in CUES],
)
def test_only_colour_and_what_is_planted_tells_the_digit(cue: Cue, drawn: list[Drawn]) -> None:
    name, feature, change, should_be_found = cue
    read = best_read(drawn, feature, change)
    assert is_as_it_should(read, name, should_be_found), read


def test_it_draws_the_line_at_the_limits_of_the_interval() -> None:
    """Wilson's limits by hand: 130 of 1000 reaches to .152, 120 of 1000 to .142."""
    assert is_as_it_should(Read(120, 1000), "lightness", False)
    assert not is_as_it_should(Read(130, 1000), "lightness", False)
    assert not is_as_it_should(Read(160, 1000), "lightness, planted", True)


@pytest.mark.long(
    stays="tests/stimuli/predictors/test_training.py::test_it_learns_what_is_plain_and_says_how_well"
)
def test_a_network_learns_to_read_plates_and_not_through_other_eyes() -> None:
    """A shorter training reads fewer than NETWORK_READS, but most, and next to none where both colours of a
    plate look alike."""
    dataset = plates(size_px=96, count=80)
    network = taught(dataset, 0, epochs=10, learning_rate=0.005)
    read = reads(network, dataset, of_use(dataset, "task"))
    assert read.limits[0] > 0.5 and read.share <= NETWORK_READS[1]
    seen = {axis: row[0] for axis, row in through_eyes(network, dataset, [1.0]).items()}
    assert max(seen["protan"].limits[1], seen["deutan"].limits[1]) < seen["tritan"].limits[0]
