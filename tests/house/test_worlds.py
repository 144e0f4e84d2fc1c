"""What is kept for other tests is whole, is what was made, and stays while a run needs it."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from tests import worlds

pytestmark = pytest.mark.pure


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of worlds, of this test alone."""
    monkeypatch.setattr(worlds, "folder", lambda: tmp_path / "worlds")
    return tmp_path / "worlds"


def test_it_is_made_once(kept: Path) -> None:
    with worlds.world("studies", "a") as (here, is_whole):
        assert not is_whole and list(here.iterdir()) == []
        (here / "rows").write_text("rows")
    with worlds.world("studies", "a") as (here, is_whole):
        assert is_whole and (here / "rows").read_text() == "rows"
    with worlds.world("studies", "b") as (_, is_whole):
        assert not is_whole


def test_what_was_left_unfinished_is_made_again(kept: Path) -> None:
    with pytest.raises(ZeroDivisionError), worlds.world("studies", "a") as (here, _):
        (here / "rows").write_text("half of the rows")
        raise ZeroDivisionError
    with worlds.world("studies", "a") as (here, is_whole):
        assert not is_whole and list(here.iterdir()) == []


def _make(folder: Path) -> None:
    worlds.folder = lambda: folder  # type: ignore[assignment]
    with worlds.world("studies", "a") as (here, is_whole):
        if not is_whole:
            (here / f"made-{os.getpid()}").touch()


def test_processes_that_need_it_at_the_same_time_make_it_once(tmp_path: Path) -> None:
    started = [multiprocessing.get_context("fork").Process(target=_make, args=(tmp_path,)) for _ in range(6)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0] * 6
    assert len(list((tmp_path / "studies" / "a").glob("made-*"))) == 1


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Kept files of one world: a/one and a/b/two."""
    made = tmp_path / "made"
    (made / "a" / "b").mkdir(parents=True)
    (made / "a" / "one").write_bytes(b"one")
    (made / "a" / "b" / "two").write_bytes(b"two")
    worlds.keep([made / "a" / "one", made / "a" / "b" / "two"], made, tmp_path / "kept")
    return tmp_path / "kept"


def test_files_come_back_and_stay_where_they_are(source: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    (store / "a").mkdir(parents=True)
    (store / "a" / "one").write_bytes(b"own")
    worlds.fetch(source, store)
    assert (store / "a" / "one").read_bytes() == b"own", "what a store has is not replaced"
    assert (store / "a" / "b" / "two").read_bytes() == b"two"


def test_a_test_spoils_its_own_file_alone(source: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        worlds.fetch(source, tmp_path / name)
        worlds.spoil(tmp_path / name / "a" / "one", b"spoilt")
    worlds.fetch(source, tmp_path / "third")
    assert (tmp_path / "third" / "a" / "one").read_bytes() == b"one"


def test_a_file_that_was_spoilt_for_all_is_named(source: Path, tmp_path: Path) -> None:
    worlds.fetch(source, tmp_path / "first")
    (tmp_path / "first" / "a" / "one").write_bytes(b"spoilt")
    with pytest.raises(
        worlds.SpoiltWorld, match=r"a/one was changed by a test: it must use tests\.worlds\.spoil"
    ):
        worlds.fetch(source, tmp_path / "second")


def test_worlds_of_other_code_go_unless_a_run_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "KEPT", tmp_path)
    digests = iter(["old", "new", "newest"])
    monkeypatch.setattr(worlds, "code_digest", lambda: next(digests))
    with worlds.prepared() as old:
        with worlds.prepared() as new:
            assert old.is_dir() and new.is_dir(), "a run of older code goes on"
        worlds.remove(old)
        assert old.is_dir()
    with worlds.prepared() as newest:
        assert newest.is_dir() and not old.exists() and not new.exists()


def test_other_code_has_worlds_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "ROOT", tmp_path)
    for name in ("stimuli/render.py", "tests/world.py", "tests/test_x.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    first = worlds.code_digest()
    (tmp_path / "tests" / "test_x.py").write_text("a test makes its world by its own name")
    assert worlds.code_digest() == first
    for name in ("stimuli/render.py", "tests/world.py"):
        (tmp_path / name).write_text("other code")
        assert worlds.code_digest() != first
        first = worlds.code_digest()
