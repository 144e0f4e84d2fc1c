"""Pictures that are read side by side are those that are read one after the other."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from stimuli.datasets.parallel_reading import side_by_side
from stimuli.datasets.synthetic.cue_scenarios import _draw_scene, open_synthetic
from stimuli.errors import BadSpec
from stimuli.predictors.framing import square_view
from stimuli.predictors.training_pictures import read_views
from stimuli.spec import Component
from stimuli.types import silent

pytestmark = pytest.mark.pure


def test_pictures_come_in_order_and_alike(tmp_path: Path) -> None:
    settings = {"scenario": "biased", "count": 24, "size_px": 96}
    dataset = open_synthetic(Component("synthetic", settings), tmp_path)
    items = dataset.items("people")
    views = read_views(dataset, items, 64, silent)
    _draw_scene.cache_clear()
    assert np.array_equal(views, [square_view(dataset.pixels(item.key), 64) for item in items])
    assert len({view.tobytes() for view in views}) == len(items)


def test_the_first_error_is_told_and_the_rest_is_left_out() -> None:
    asked: list[int] = []
    may_end = threading.Event()

    def read(number: int) -> int:
        asked.append(number)
        if number == 3:
            raise BadSpec("picture 3 is damaged")
        if number > 3:
            may_end.wait(20)
        return number * number

    results = side_by_side(read, range(10_000))
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    threading.Timer(1.0, may_end.set).start()
    with pytest.raises(BadSpec, match="picture 3"):
        next(results)
    assert len(asked) <= 4 + (os.cpu_count() or 1)
