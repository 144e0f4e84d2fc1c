"""Arrays that are no pictures: what the library says makes one of them does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from stimuli import explain
from stimuli.errors import ShapeMismatch
from stimuli.types import Pixels
from tests.stimuli.render.test_library import SMALL, Tiny

pytestmark = pytest.mark.pure


@pytest.fixture(scope="module")
def network() -> Tiny:
    return Tiny()


GREY = np.arange(0, 256, 4, dtype=np.uint8).reshape(8, 8)
COLOURED = np.stack([GREY, GREY // 2, 255 - GREY], -1)
SHARES = (COLOURED / 255).astype(np.float32)


@pytest.mark.parametrize(
    ("picture", "made"),
    [
        (GREY, np.stack([GREY] * 3, -1)),
        (GREY[..., None], np.stack([GREY] * 3, -1)),
        (GREY.astype(np.uint16), np.stack([GREY] * 3, -1)),
        (np.dstack([COLOURED, GREY]), COLOURED),
        (np.moveaxis(COLOURED, -1, 0), COLOURED),
        (SHARES, COLOURED),
        (torch.from_numpy(SHARES).permute(2, 0, 1).requires_grad_(), COLOURED),
        (255.0 * SHARES, COLOURED),
        (Image.fromarray(GREY), np.stack([GREY] * 3, -1)),
        (Image.fromarray(np.dstack([COLOURED, GREY])), COLOURED),
    ],
)
def test_it_says_how_an_array_becomes_a_picture(network: Tiny, picture: Any, made: Pixels) -> None:
    """What the sentence says is done, and is the picture."""
    with pytest.raises(ShapeMismatch, match=r"picture 0 is .* \(H, W, 3\) is taken: make ") as raised:
        explain(network, [picture, COLOURED], ["none"], preprocess=SMALL)
    done = eval(str(raised.value).partition(": make ")[2], {"np": np, "picture": picture})
    np.testing.assert_array_equal(done, made)
    assert explain(network, [done], ["none"], preprocess=SMALL).names == ("0",)


def test_it_counts_arrays_that_are_no_pictures(network: Tiny) -> None:
    many: list[Any] = [
        np.full((8, 8, 3), 300.5),
        np.zeros((2, 8, 8, 3)),
        np.zeros((8, 8, 5)),
        np.zeros(0),
        COLOURED,
    ]
    words = r"picture 0 is float64 \(8, 8, 3\), picture 1 .*, picture 2 .* and 1 more; .* from 300.5 to 300.5"
    with pytest.raises(ShapeMismatch, match=words):
        explain(network, many, ["none"], preprocess=SMALL)
    for picture in (*many[1:4], {}):
        with pytest.raises(ShapeMismatch, match="bring it to that form"):
            explain(network, [picture], ["none"], preprocess=SMALL)
