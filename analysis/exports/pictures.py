"""The pictures and texts that people were shown, as files of an export."""

from __future__ import annotations

from pathlib import Path

from analysis.exports.base import ExportError
from analysis.tables.stimulus_pictures import FOLDER, files_shown
from experiments.models import Study
from stimuli.errors import NotRendered
from stimuli.store.media_access import current_store


def write_pictures(study: Study, folder: Path) -> dict[str, int]:
    """pictures/DIGEST.SUFFIX for every `picture_digest` of the table `stimuli`; returns 1 per file. Raises
    ExportError if the store lacks one."""
    (folder / FOLDER).mkdir()
    files = {}
    for digest, explanation, image in files_shown(study):
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
