"""The observers are what was frozen: a change of their source or parameters needs a new version."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from experiments.simulation import OBSERVERS, PEOPLE
from experiments.simulation.versions import ROOM, Version, digest_of, version_of, versions

pytestmark = pytest.mark.pure

ROOT = Path(__file__).parents[3]
REMEDY = "add a version to experiments/simulation/versions.toml, with what has been seen by now"


def test_the_newest_version_of_every_observer_has_the_digest_that_was_frozen() -> None:
    for kind in ("learner", *OBSERVERS):
        version = version_of(kind)
        assert version is not None, kind
        assert digest_of(version.files) == version.digest, f"{kind} differs from {version.name}: {REMEDY}."


def has_history() -> bool:
    """Whether this is a checkout with all of its commits."""
    if not (ROOT / ".git").exists():
        return False
    asked = ["git", "rev-parse", "--is-shallow-repository"]
    return (
        subprocess.run(asked, cwd=ROOT, capture_output=True, check=True, text=True).stdout.strip() == "false"
    )


@pytest.mark.parametrize("version", versions(), ids=lambda version: str(version.number))
def test_the_commit_that_froze_a_version_holds_the_same_files(version: Version) -> None:
    if not version.commit or not has_history():
        # A version that has just been made has no commit yet, an installed copy no history.
        assert version.digest and version.files
        return

    def committed(name: str) -> bytes:
        place = f"{version.commit}:experiments/simulation/{name}"
        return subprocess.run(["git", "show", place], cwd=ROOT, capture_output=True, check=True).stdout

    assert digest_of(version.files, committed) == version.digest


def test_every_version_says_what_was_seen_before() -> None:
    assert [version.number for version in versions()] == list(range(1, len(versions()) + 1))
    for version in versions():
        assert version.seen and re.fullmatch(r"\d{4}-\d\d-\d\d", version.frozen)
        assert set(version.kinds) <= set(PEOPLE)
    assert version_of("guesser") is None


def test_the_page_has_every_version_with_its_observers() -> None:
    page = (ROOT / "docs" / "science.md").read_text(encoding="utf-8")
    rows = page.split("| version | observers |")[1].split("\n\n")[0].splitlines()[2:]
    told = [(int(number), tuple(re.findall(r"`(\w+)`", kinds))) for _, number, kinds, *_ in
            (row.split("|") for row in rows)]  # fmt: skip
    assert told == [(version.number, version.kinds) for version in versions()]


@pytest.mark.parametrize("name", version_of("exemplar").files)  # type: ignore[union-attr]
def test_one_changed_byte_changes_the_digest(name: str) -> None:
    version = version_of("exemplar")
    assert version is not None

    def changed(wanted: str) -> bytes:
        content = (ROOM / wanted).read_bytes()
        return content.replace(b"o", b"0", 1) if wanted == name else content

    assert digest_of(version.files, changed) != version.digest


def test_the_digest_is_the_hash_of_names_lengths_and_contents(tmp_path: Path) -> None:
    texts = {"b.py": b"two\r\n", "a.py": b"one\n"}
    wanted = hashlib.sha256(b"a.py\x1f4\x1fone\nb.py\x1f4\x1ftwo\n").hexdigest()
    assert digest_of(["b.py", "a.py"], texts.__getitem__) == wanted
