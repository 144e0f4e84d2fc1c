"""What a picture's address answers: bytes of its own, of a length that says nothing about the content."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from experiments.errors import StudyError
from experiments.gates import get_gate
from experiments.models import Rendering, Study
from experiments.paradigms import get_paradigm
from experiments.tokens import keyed_hash
from stimuli.errors import StimulusError, StoreSilent
from stimuli.store.media_access import current_store
from stimuli.store.png_padding import LEAST_BYTES, check_whole, pad_png

if TYPE_CHECKING:
    from stimuli.types import Progress

FILES = {
    "image": "image_file",
    "explanation": "explanation_file",
    "tile": "image_tile_file",
    "tile_explanation": "explanation_tile_file",
}
"""Column of a stimulus for each part of a page."""
SPREAD_BYTES = 1024
"""Lengths differ by less than this, drawn from the address alone."""
READERS = 8
SHOWN_EVERY = 100


def serving(content: bytes, reference: str, room_bytes: int) -> bytes:
    """The stored picture as this address serves it. The length follows from the address and `room_bytes`, the
    longest picture of its part in the study, alone; a picture that has become longer since is not cut."""
    seed = bytes.fromhex(keyed_hash("padding", reference))
    spread = int.from_bytes(seed[:2]) % SPREAD_BYTES
    return pad_png(content, seed, max(room_bytes, len(content)) + LEAST_BYTES + spread)


def rooms_of(study: Study, progress: Progress) -> dict[str, int]:
    """Length in bytes of the longest picture of each part of a page, over all conditions alike.

    Reads every picture once; StudyError names one that is not in the store, or not whole.
    """
    store, rooms = current_store(), dict[str, int]()

    def length(place: tuple[str, str]) -> tuple[str, int]:
        content = store.get(place[1])
        check_whole(content, place[1])
        return place[0], len(content)

    places = [(part, file) for part, files in _pictures(study).items() for file in sorted(files)]
    try:
        with ThreadPoolExecutor(READERS) as readers:
            for done, (part, count) in enumerate(readers.map(length, places), 1):
                rooms[part] = max(rooms.get(part, 0), count)
                if done % SHOWN_EVERY == 0 or done == len(places):
                    progress("read pictures", done, len(places))
    except (StimulusError, StoreSilent) as error:
        raise StudyError(
            f"{study.slug!r} cannot be opened: {error}. Is STORAGE_URL the store that it was built in?"
        ) from error
    return rooms


def _pictures(study: Study) -> dict[str, set[str]]:
    """The stored pictures that a page of the study may show, by the part that they are."""
    rendered = Rendering.objects.filter(item__study=study)
    pictures = {
        part: set(rendered.values_list(f"stimulus__{column}", flat=True)) for part, column in FILES.items()
    }
    for name in get_paradigm(study.paradigm).gates:
        pictures[name] = set(get_gate(name).files(study).values())
    return {part: {file for file in files if file.endswith(".png")} for part, files in pictures.items()}
