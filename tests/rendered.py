"""Pictures that a run renders once: a later test that needs the same stimuli gets copies of rows and links of
files.

A stimulus key names everything that its pictures depend on, so this is what rendering would have made.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from django.conf import settings

from experiments.drafting.store_cleanup import INSTALLATIONS
from stimuli import spec_derivation
from stimuli.build import build, missing
from stimuli.datasets import practice
from stimuli.models import Stimulus
from stimuli.render import png, view_placement
from stimuli.types import Pixels
from tests import worlds

Made = TypeVar("Made")
COLUMNS = [field.name for field in Stimulus._meta.fields if field.name not in ("id", "key")]


def build_once(keys: Sequence[str]) -> None:
    """Does the same as `build`; the pictures may come from an earlier test of this run."""
    is_bucket = settings.STORAGE_URL.startswith("s3:")
    if worlds.folder() is None or is_bucket or not keys or len(missing(keys)) < len(keys):
        build(keys)
        return
    store = Path(settings.STORAGE_URL)
    name = hashlib.sha256("".join(sorted(keys)).encode()).hexdigest()
    with worlds.world("pictures", name) as (kept, is_whole):
        if not is_whole:
            build(keys)
            # Which database names the files is no part of them.
            files = [path for path in store.rglob("*.*") if path.is_file()]
            worlds.keep([path for path in files if path.parent.name != INSTALLATIONS], store, kept)
            rows = list(Stimulus.objects.filter(key__in=keys).values("key", *COLUMNS))
            (kept / "rows").write_bytes(pickle.dumps(rows))
            return
    worlds.fetch(kept, store)
    rows = [Stimulus(**row) for row in pickle.loads((kept / "rows").read_bytes())]
    Stimulus.objects.bulk_create(rows, update_conflicts=True, unique_fields=["key"], update_fields=COLUMNS)


@contextmanager
def drawn_once() -> Iterator[None]:
    """For as long as it is open, a process draws the same practice pictures, enlarges the same picture and
    compresses the same pixels once; and a file is not waited for until it is on the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(png, "encode", _by_pixels(png.encode, 512))
        patch.setattr(spec_derivation, "shown_picture", _by_pixels(view_placement.shown_picture, 64))
        patch.setattr(practice, "practice_pictures", cache(practice.practice_pictures))
        patch.setattr(os, "fsync", lambda file: None)
        yield


def _by_pixels(draw: Callable[..., Made], most: int) -> Callable[..., Made]:
    """A function of pixels first, which remembers what it has returned."""

    class Picture:
        """Compared by what it shows, and kept only for as long as it is drawn."""

        def __init__(self, pixels: Pixels) -> None:
            self.pixels: Pixels | None = pixels
            self.digest = (
                hashlib.sha1(pixels.tobytes()).digest() + repr((pixels.dtype, pixels.shape)).encode()
            )

        def __hash__(self) -> int:
            return hash(self.digest)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Picture) and self.digest == other.digest

    @lru_cache(most)
    def remembered(picture: Picture, *more: object) -> Made:
        pixels, picture.pixels = picture.pixels, None
        made = draw(pixels, *more)
        if isinstance(made, np.ndarray):
            made.setflags(write=False)  # Others get the same one.
        return made

    return lambda pixels, *more: remembered(Picture(pixels), *more)
