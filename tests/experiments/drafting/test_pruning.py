"""What no study names goes, and only that: if one of two studies that share a store is gone, what stays is
what the other one alone has."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from experiments.drafting.draft_rows import picture_keys
from experiments.drafting.store_cleanup import find_orphans, remove
from experiments.models import Study
from experiments.opening.picture_lengths import rooms_of
from stimuli.build import missing
from stimuli.models import Measurement, Stimulus
from stimuli.store import LocalStore
from stimuli.store.files import keep_region, region_file
from tests.world import draft_study, opened_study, silent, write_study
from tests.worlds import spoil

pytestmark = pytest.mark.django_db


def other_study(folder: Path, slug: str) -> Study:
    """A study of the same pictures and models, with another method."""
    path = write_study(folder, slug)
    path.write_text(path.read_text().replace('{ name = "saliency" }', '{ name = "gradient_x_input" }'))
    return draft_study(path)


@pytest.fixture
def store(store_folder: Path) -> LocalStore:
    return LocalStore(store_folder)


def prune(*words: str) -> None:
    call_command("prune", "--days", "0", *words)


def aged(store: LocalStore, days: float) -> None:
    """As if all had been made so many days ago."""
    Stimulus.objects.update(recorded_at=timezone.now() - timedelta(days=days))
    for path in (path for path in store.root.rglob("*") if path.is_file()):
        at = path.stat().st_mtime - days * 86_400
        spoil(path, path.read_bytes())
        os.utime(path, (at, at))


@pytest.mark.both_databases("what rows name")
def test_what_stays_is_what_the_other_study_alone_has(tmp_path: Path, store: LocalStore) -> None:
    kept = opened_study(write_study(tmp_path / "kept"))
    prune("--remove")
    alone = list(store.keys())
    gone = other_study(tmp_path / "gone", "gone")
    of_both = set(store.keys())
    shared = set(picture_keys(kept)) & set(picture_keys(gone))
    assert shared and len(of_both) > len(alone)

    prune()
    prune("--remove")
    gone_keys = set(picture_keys(gone))
    assert missing(picture_keys(gone)) == [] and gone_keys - shared
    gone.delete()
    prune("--list", str(tmp_path / "list"))
    assert missing(gone_keys) == []
    before = set(store.keys())
    prune("--remove")

    assert list(store.keys()) == alone
    assert set((tmp_path / "list").read_text().split()) == before - set(alone)
    assert set(Stimulus.objects.values_list("key", flat=True)) == set(picture_keys(kept))
    assert rooms_of(kept, silent) and missing(picture_keys(kept)) == []
    call_command("recheck_stimuli", kept.slug, "--sample", "4")
    assert set(picture_keys(other_study(tmp_path / "gone", "gone"))) == gone_keys


def test_what_is_young_stays(tmp_path: Path, store: LocalStore) -> None:
    draft_study(write_study(tmp_path / "study")).delete()
    aged(store, 8)
    old = set(Stimulus.objects.values_list("key", flat=True))
    young = other_study(tmp_path / "other", "other")
    keys = set(picture_keys(young)) - old
    young.delete()
    before = len(list(store.keys()))
    call_command("prune", "--days", "9", "--remove")
    assert len(list(store.keys())) == before
    call_command("prune", "--days", "7", "--remove")
    assert set(Stimulus.objects.values_list("key", flat=True)) == keys and missing(keys) == []
    assert all(store.has(row.image_file) for row in Stimulus.objects.all())
    assert 0 < len(list(store.keys())) < before
    prune("--remove")
    assert [file.key for file in store.files() if "installations/" not in file.key] == []


def test_a_killed_prune_leaves_no_row_without_its_files(
    tmp_path: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = draft_study(write_study(tmp_path / "kept"))
    other_study(tmp_path / "gone", "gone").delete()
    left = find_orphans(store, 0)
    whole = store.remove

    def killed(keys: list[str]) -> None:
        whole(keys[: len(keys) // 2])
        if any(key.startswith("pictures/") for key in keys):
            raise KeyboardInterrupt

    monkeypatch.setattr(store, "remove", killed)
    with pytest.raises(KeyboardInterrupt):
        remove(left, store, 0)
    monkeypatch.undo()
    assert all(store.has(file) for row in Stimulus.objects.all() for file in (row.image_file,))
    assert rooms_of(kept, silent) and Stimulus.objects.count() == len(picture_keys(kept))
    prune("--remove")
    assert find_orphans(store, 0).files == () and rooms_of(kept, silent)


def test_a_stimulus_that_a_study_took_meanwhile_stays(tmp_path: Path, store: LocalStore) -> None:
    path = write_study(tmp_path / "study")
    draft_study(path).delete()
    left = find_orphans(store, 0)
    assert left.stimuli
    again = draft_study(path)
    remove(left, store, 0)
    assert set(Stimulus.objects.values_list("key", flat=True)) == set(picture_keys(again))


@pytest.mark.both_databases("parameters are JSON")
def test_networks_and_regions_of_a_study_stay_and_unknown_files_are_not_touched(
    tmp_path: Path, store: LocalStore
) -> None:
    study = draft_study(write_study(tmp_path / "study"))
    stimulus = Stimulus.objects.filter(renderings__item__study=study).first()
    assert stimulus is not None
    digests = [f"{number:064x}" for number in range(6)]
    region = np.ones((4, 4), bool)
    for names in digests[:2]:
        keep_region(store, names, stimulus.image_key, region)
    Measurement.objects.create(stimulus=stimulus, key="m", metric="m", parameters={"regions": digests[0]})
    network = store.get(next(store.keys("predictors/")))
    store.put(f"trained/{digests[2]}.bin", network)
    store.put(f"trained/{digests[3]}.bin", b"another network")
    store.put(f"notes/{digests[4]}.txt", b"of a later version")
    store.put("maps/by-hand.npz", b"no digest")
    (store.root / ".incoming").mkdir(exist_ok=True)
    (store.root / ".incoming" / "1234-abcd").write_bytes(b"half")
    prune("--remove")
    stays = {
        region_file(digests[0], stimulus.image_key): True,
        region_file(digests[1], stimulus.image_key): False,
        f"trained/{digests[2]}.bin": True,
        f"trained/{digests[3]}.bin": False,
        f"notes/{digests[4]}.txt": True,
        "maps/by-hand.npz": True,
    }
    assert {key: store.has(key) for key in stays} == stays
    assert not list((store.root / ".incoming").iterdir())


def test_a_store_of_two_databases_is_not_pruned(
    tmp_path: Path, store: LocalStore, capsys: pytest.CaptureFixture[str]
) -> None:
    draft_study(write_study(tmp_path / "study")).delete()
    mark = f"installations/{'a' * 64}.txt"
    store.put(mark, b"2026-01-02T03:04:05+00:00")
    before = list(store.keys())
    with pytest.raises(CommandError, match=r"used by 1 other database.*2026-01-02.*--alone"):
        prune("--remove")
    assert list(store.keys()) == before
    prune("--remove", "--alone")
    assert not store.has(mark) and len(list(store.keys())) == 1
    prune()
    assert "Every file older than 0 days is named by a study" in capsys.readouterr().out
    with pytest.raises(CommandError, match="--days -1"):
        call_command("prune", "--days", "-1")
