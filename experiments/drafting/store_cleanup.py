"""What the store holds that no study names, and its removal.

A file is named if its digest stands anywhere in the database, stimuli without a study excepted, or in an
answer of a model that stays. Of what is too young nothing is removed: a build stores files before it names
them. Files whose name is no digest, and files of other rooms, are never touched.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.apps import apps
from django.conf import settings
from django.db import connection, models
from django.db.models import Q, QuerySet
from django.utils import timezone

from experiments.errors import StudyError
from experiments.models import OtherStimulus
from stimuli.models import Measurement, Stimulus
from stimuli.store import ListableStore, ListedFile, Store
from stimuli.store.files import region_file

ASKED_AGAIN = ("surveys", "trained")
"""Rooms of what is only kept because it takes long: answers of models, and trained networks."""
ROOMS = (*ASKED_AGAIN, "maps", "pictures", "tiles", "views", "texts", "regions", "recorded", "predictors")
"""In the order of removal: what a killed prune leaves is whole."""
ABANDONED = ".incoming"
INSTALLATIONS = "installations"
BATCH = 500
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Orphans:
    """Stimuli, by primary key, and files that no study names; `kept` is how many files stay."""

    stimuli: tuple[int, ...]
    files: tuple[ListedFile, ...]
    kept: int

    def by_room(self) -> dict[str, tuple[int, int]]:
        """Room -> files and bytes."""
        counts, sizes = Counter[str](), Counter[str]()
        for file in self.files:
            counts[_room(file.key)] += 1
            sizes[_room(file.key)] += file.size_bytes
        return {room: (counts[room], sizes[room]) for room in sorted(counts)}


def note_installation(store: Store) -> None:
    """Says in the store that this database names files of it."""
    store.put(_installation(), timezone.now().isoformat(timespec="seconds").encode())


def other_installations(store: Store) -> list[tuple[str, str]]:
    """Other databases that said so: file, and since when."""
    marks = [key for key in store.keys(f"{INSTALLATIONS}/") if key != _installation()]
    return [(key, store.get(key).decode()) for key in marks]


def find_orphans(store: ListableStore, days: float) -> Orphans:
    """What has no name and is older than so many days. StudyError if another database names files too."""
    if others := other_installations(store):
        raise StudyError(
            f"{settings.STORAGE_URL} is used by {len(others)} other database(s) too, the first since "
            f"{others[0][1]}. What their studies name is not known here, so nothing can be removed. If they "
            "are gone for good, say --alone."
        )
    limit = timezone.now() - timedelta(days=days)
    listed = list(store.files())
    nameless = set(_candidates(listed, time.time() - days * 86_400))
    digests = {_digest(file.key) for file in nameless}
    named = {digest for text in _texts(limit) for digest in _DIGEST.findall(text) if digest in digests}
    named |= {_digest(file) for file in _regions(limit)}
    kept = [file for file in listed if file not in nameless or _digest(file.key) in named]
    named |= _digests_in_kept_files(store, kept, nameless)
    files = tuple(file for file in listed if file in nameless and _digest(file.key) not in named)
    stimuli = tuple(without_study(limit).order_by("pk").values_list("pk", flat=True))
    return Orphans(stimuli, files, len(listed) - len(files))


def remove(left: Orphans, store: ListableStore, days: float) -> None:
    """Rows first, so that no row names a file that is gone. A stimulus that a study names by now stays."""
    limit = timezone.now() - timedelta(days=days)
    for start in range(0, len(left.stimuli), BATCH):
        without_study(limit).filter(pk__in=left.stimuli[start : start + BATCH]).delete()
    for room in (ABANDONED, *ROOMS):
        store.remove([file.key for file in left.files if _room(file.key) == room])


def forget_other_installations(store: ListableStore) -> None:
    store.remove([file for file, _ in other_installations(store)])


def without_study(limit: datetime) -> QuerySet[Stimulus]:
    """Stimuli that were recorded before `limit` and that no study has."""
    others = OtherStimulus.objects.values("stimulus_id")
    rows = Stimulus.objects.filter(Q(recorded_at=None) | Q(recorded_at__lt=limit))
    return rows.filter(renderings=None, trials=None).exclude(pk__in=others)


def _candidates(listed: Iterable[ListedFile], before: float) -> Iterator[ListedFile]:
    """What may go if it has no name."""
    for file in listed:
        room = _room(file.key)
        is_known = room == ABANDONED or (room in ROOMS and _DIGEST.fullmatch(_digest(file.key)))
        if is_known and file.at <= before:
            yield file


def _texts(limit: datetime) -> Iterator[str]:
    """All that the database says in words, without stimuli that have no study."""
    unused = without_study(limit).values("pk")
    for model in apps.get_models():
        names = [field.attname for field in model._meta.concrete_fields if _is_words(field)]
        if not names:
            continue
        rows = model._default_manager.all()
        if model is Stimulus:
            rows = rows.exclude(pk__in=unused)
        elif model is Measurement:
            rows = rows.exclude(stimulus__in=unused)
        for row in rows.values_list(*names).iterator(chunk_size=BATCH):
            yield str(row)


def _is_words(field: models.Field[object, object]) -> bool:
    return isinstance(field, models.CharField | models.TextField | models.JSONField)


def _regions(limit: datetime) -> Iterator[str]:
    """The files of the regions that metrics of named stimuli compare with: no row has their names."""
    rows = Measurement.objects.exclude(stimulus__in=without_study(limit).values("pk"))
    wanted = rows.filter(parameters__has_key="regions").values_list("parameters", "stimulus__image_key")
    for parameters, image_key in wanted.iterator(chunk_size=BATCH):
        if parameters["regions"]:
            yield region_file(parameters["regions"], image_key)


def _digests_in_kept_files(store: Store, kept: Sequence[ListedFile], nameless: set[ListedFile]) -> set[str]:
    """What answers that stay name, and trained networks that are a kept predictor: to train one again might
    give another network."""
    named: set[str] = set()
    contents: set[bytes] = set()
    for file in kept:
        if _room(file.key) == "surveys":
            named.update(_DIGEST.findall(store.get(file.key).decode()))
        elif _room(file.key) == "predictors":
            contents.add(hashlib.sha256(store.get(file.key)).digest())
    for file in nameless:
        if _room(file.key) == "trained" and hashlib.sha256(store.get(file.key)).digest() in contents:
            named.add(_digest(file.key))
    return named


def _installation() -> str:
    wanted = connection.settings_dict
    name = "|".join(str(wanted[part]) for part in ("ENGINE", "HOST", "PORT", "NAME"))
    return f"{INSTALLATIONS}/{hashlib.sha256(name.encode()).hexdigest()}.txt"


def _room(key: str) -> str:
    return key.partition("/")[0]


def _digest(key: str) -> str:
    return key.rpartition("/")[2].partition(".")[0]
