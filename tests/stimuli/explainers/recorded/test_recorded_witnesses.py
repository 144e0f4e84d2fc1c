"""Maps of other libraries, saved and recorded, are drawn as our own methods' where the two agree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from captum.attr import Occlusion
from numpy.typing import NDArray

from stimuli.explainers.recorded import ItemView, record
from stimuli.planner.values import Subject
from stimuli.render.heatmap import overlay
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component
from stimuli.store import LocalStore
from stimuli.store.files import read_recorded
from stimuli.types import PixelAttribution
from tests.stimuli.cam_networks import library_map
from tests.stimuli.explainers.image.test_lime_image import GRID, by_package
from tests.stimuli.tiny import SIDE, Tiny, convolutional_net, maps_of, pictures, pooled_net, subjects_of

pytestmark = pytest.mark.pure
Map = NDArray[np.float32]


def grad_cam(net: Tiny, subject: Subject) -> tuple[Map, Map]:
    return library_map("GradCAM", net, subject.pixels, subject.target), maps_of("grad_cam", net, [subject])[0]


def lime(net: Tiny, subject: Subject) -> tuple[Map, Map]:
    ours = maps_of("lime_image", net, [subject], fill="mean", **GRID)[0]
    return by_package(net, subject, "mean").astype(np.float32), ours


def occlusion(net: Tiny, subject: Subject) -> tuple[Map, Map]:
    values = Occlusion(net.module).attribute(
        subject.pixels[None],
        sliding_window_shapes=(3, 6, 6),
        strides=(3, 6, 6),
        baselines=0.0,
        target=subject.target,
    )
    ours = maps_of("occlusion", net, [subject], patch_share=0.25, stride_share=0.25)[0]
    return values[0, 0].detach().numpy(), ours


WITNESSES: dict[str, tuple[Callable[[Tiny, Subject], tuple[Map, Map]], Callable[[], Tiny]]] = {
    "pytorch-grad-cam": (grad_cam, pooled_net),
    "lime": (lime, convolutional_net),
    "captum": (occlusion, convolutional_net),
}


@pytest.mark.parametrize("library", WITNESSES)
def test_it_draws_a_map_of_another_library_as_ours(tmp_path: Path, library: str) -> None:
    explain, make = WITNESSES[library]
    net = make()
    for at, subject in enumerate(subjects_of(pictures(2))):
        theirs, ours = explain(net, subject)
        (tmp_path / "maps").mkdir(exist_ok=True)
        np.save(tmp_path / "maps" / f"{at}.npy", theirs)
        store, component = LocalStore(tmp_path / "store"), Component("recorded", {"path": "maps"})
        keys = [str(n) for n in range(at + 1)]
        named = record(component, tmp_path, {str(at): ItemView(SIDE, SIDE)}, keys, store)
        made = read_recorded(store, str(named[str(at)].params["digest"]))
        assert isinstance(made, PixelAttribution)
        view = np.asarray(np.rint(subject.pixels.numpy().transpose(1, 2, 0) * 255), np.uint8)
        expected = overlay(view, PixelAttribution(ours, signed=True), RenderSpec())
        apart = np.abs(overlay(view, made, RenderSpec()).astype(int) - expected)
        # Maps that differ in the last digits may pick the next of 256 colours, rarely.
        assert apart.max() <= 3 and (apart == 0).mean() > 0.97 and expected.std() > 0
