"""The pictures and texts that people were shown, each once, named by its digest."""

from __future__ import annotations

from pathlib import Path

from analysis.exports.base import ExportError
from experiments.models import Study
from stimuli.errors import NotRendered
from stimuli.models import Stimulus
from stimuli.store.media import current_store

FOLDER = "pictures"


def write_pictures(study: Study, folder: Path) -> dict[str, int]:
    """pictures/DIGEST.SUFFIX for every `picture_digest` of the table `stimuli`; returns 1 per file. Raises
    ExportError if the store lacks one."""
    (folder / FOLDER).mkdir()
    shown = Stimulus.objects.filter(renderings__item__study=study, state=Stimulus.State.DONE)
    fields = ("picture_digest", "explanation_file", "image_file")
    files = {}
    for digest, explanation, image in shown.values_list(*fields).distinct().order_by(*fields).iterator(5000):
        stored = explanation or image
        name = f"{FOLDER}/{digest}.{stored.rpartition('.')[2]}"
        if name in files:
            continue
        try:
            content = current_store().get(stored)
        except NotRendered as error:
            raise ExportError(
                f"{stored}: the store has not got this picture; run build_stimuli {study.slug}, "
                "or export without --pictures."
            ) from error
        (folder / name).write_bytes(content)
        files[name] = 1
    return files
