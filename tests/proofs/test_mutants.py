"""What is changed in a module, what is left alone, and which tests are asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proofs.mutants import TypeChecker, drawn, files_for, table
from tests.proofs.mutation import mutants_of

pytestmark = pytest.mark.pure
SOURCE = '''"""A docstring of 3 words."""
LIMIT: int = 2


def share(part: int, whole: int = 1) -> float | None:
    """Says 1."""
    if part < 0 or not whole:
        raise ValueError(f"{part} of {whole}, not 4")
    return part / whole
'''


def test_it_changes_one_thing_at_a_time() -> None:
    mutants = mutants_of(Path("room/share.py"), SOURCE)
    assert [(mutant.line, mutant.operator, mutant.change) for mutant in mutants] == [
        (2, "constant", "2 → 1"),
        (2, "constant", "2 → 3"),
        (5, "constant", "1 → 0"),
        (5, "constant", "1 → 2"),
        (7, "boolean", "part < 0 or not whole → part < 0 and (not whole)"),
        (7, "comparison", "part < 0 → part <= 0"),
        (7, "comparison", "part < 0 → part >= 0"),
        (7, "condition", changed_condition()),
        (7, "constant", "0 → -1"),
        (7, "constant", "0 → 1"),
        (7, "sign", "not whole → whole"),
        (8, "deleted", "raise ValueError(f'{part} of {whole}, not 4') → pass"),
        (9, "arithmetic", "part / whole → part * whole"),
        (9, "return None", "return part / whole → return None"),
    ]
    assert len({mutant.source for mutant in mutants}) == len(mutants)
    world: dict[str, object] = {}
    exec(mutants[12].source, world)
    assert world["share"](6, 2) == 12  # type: ignore[operator]


def changed_condition() -> str:
    long = "if part < 0 or not whole: raise ValueError(f'{part} of {whole}, not 4')"
    wrong = "if not (part < 0 or not whole): raise ValueError(f'{part} of {whole}, not 4')"
    return f"{long[:67]}... → {wrong[:67]}..."


def test_it_asks_the_tests_that_import_the_module_before_those_of_its_package(tmp_path: Path) -> None:
    (tmp_path / "tests/journeys").mkdir(parents=True)
    (tmp_path / "tests/test_share.py").write_text("from room.share import share\n")
    (tmp_path / "tests/test_other.py").write_text("from room import rates\n")
    (tmp_path / "tests/journeys/test_all.py").write_text("import room.share\n")
    assert files_for(Path("room/share.py"), tmp_path) == ("tests/test_share.py", "tests/test_other.py")
    assert files_for(Path("room/unnamed.py"), tmp_path) == ("tests/test_other.py", "tests/test_share.py")
    with pytest.raises(SystemExit, match="no test imports hall.share"):
        files_for(Path("hall/share.py"), tmp_path)


def test_it_draws_by_seed_and_tells_what_survived(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room/share.py").write_text(SOURCE)
    folders = [Path("room")]
    chosen = drawn(folders, 3, 5, tmp_path)
    assert chosen == drawn(folders, 3, 5, tmp_path) != drawn(folders, 4, 5, tmp_path)
    assert len(drawn(folders, 3, 99, tmp_path)) == 14
    text = table([(mutant, "survived" if mutant is chosen[2] else "killed") for mutant in chosen], 3)
    assert "5 mutants, 4 killed" in text and "80.0% killed" in text
    assert text.count("room/share.py:") == 1 and f"room/share.py:{chosen[2].line}" in text


def test_it_counts_what_only_the_type_checker_notices(tmp_path: Path) -> None:
    source = "def total(part: int) -> int:\n    return part + int('1')  # type: ignore[str-bytes-safe]\n"
    module = tmp_path / "share.py"
    checker = TypeChecker(tmp_path)
    noticed = {}
    for mutant in mutants_of(Path("share.py"), source):
        module.write_text(mutant.source)
        noticed[mutant.operator] = checker.notices(mutant, source)
        assert module.read_text() == mutant.source
    assert noticed == {"arithmetic": False, "constant": False, "return None": True}
