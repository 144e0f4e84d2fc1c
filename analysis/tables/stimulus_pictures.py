"""The pictures and texts that people were shown, each once, named by its digest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from experiments.models import Study
from stimuli.errors import NotRendered
from stimuli.models import Stimulus
from stimuli.render import png
from stimuli.store.media_access import current_store
from stimuli.types import Pixels

FOLDER = "pictures"


def stored_pictures(study: Study) -> Callable[[str], Pixels | None]:
    """The study's pictures by `picture_digest`, read from the store; None for a text, and for one that is not
    there."""
    files = {
        digest: explanation or image
        for digest, explanation, image in files_shown(study)
        if (explanation or image).endswith(".png")
    }

    def picture(digest: str) -> Pixels | None:
        try:
            return png.decode(current_store().get(files[digest])) if digest in files else None
        except NotRendered:
            return None

    return picture


def packed_pictures(folder: Path) -> Callable[[str], Pixels | None]:
    """The same of a package, which has pictures if it was exported with them."""

    def picture(digest: str) -> Pixels | None:
        path = folder / FOLDER / f"{digest}.png"
        # A digest is a word; a package made by hand must not lead to other folders.
        return png.decode(path.read_bytes()) if digest.isalnum() and path.is_file() else None

    return picture


def files_shown(study: Study) -> Iterator[tuple[str, str, str]]:
    """Digest, file of the explanation (empty if there is none) and file of the plain picture."""
    shown = Stimulus.objects.filter(renderings__item__study=study, state=Stimulus.State.DONE)
    fields = ("picture_digest", "explanation_file", "image_file")
    yield from shown.values_list(*fields).distinct().order_by(*fields).iterator(5000)
