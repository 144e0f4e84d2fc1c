"""One table of names for the core and for what installed packages offer; listing names imports nothing."""

import sys
from pathlib import Path
from typing import Any

import pytest

from stimuli.errors import BadSpec, OtherPackage, UnknownName
from stimuli.registry import Table, refuse_other_package

pytestmark = pytest.mark.pure

CORE = {"fraction": "fractions:Fraction", "decimal": "decimal:Decimal"}
GROUP = "legible.shapes"


def table(group: str | None = GROUP) -> Table[Any]:
    return Table("number", CORE, group)


def install(
    folder: Path, name: str, version: str, points: dict[str, str], source: str = "", module: str = ""
) -> None:
    """A distribution as an installer leaves it: its metadata, its entry points and perhaps a module."""
    stem = name.replace("-", "_")
    info = folder / f"{stem}-{version}.dist-info"
    info.mkdir(parents=True)
    info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = "".join(f"{point} = {path}\n" for point, path in points.items())
    info.joinpath("entry_points.txt").write_text(f"[{GROUP}]\n{lines}")
    if module:
        folder.joinpath(f"{module}.py").write_text(source)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder at the front of the path, as of a fresh process."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_it_imports_a_name_on_first_use() -> None:
    from fractions import Fraction

    numbers = table()
    assert numbers.load("fraction") is Fraction
    assert numbers.names == tuple(numbers) == ("fraction", "decimal")
    assert "decimal" in numbers and "complex" not in numbers and len(numbers) == 2
    assert numbers.origin("fraction") is None


def test_it_refuses_an_unknown_name_with_the_closest_and_all_known_ones() -> None:
    with pytest.raises(UnknownName) as refused:
        table().load("fractoin")
    assert isinstance(refused.value, BadSpec)
    assert str(refused.value) == (
        "there is no number 'fractoin' (did you mean 'fraction'?): known are fraction, decimal"
    )


@pytest.mark.parametrize("name", ["fractions:Fraction", "os:system", "legible:os", "", ":", "legible:"])
def test_it_imports_nothing_that_a_study_names_by_module(name: str) -> None:
    assert name not in table()
    with pytest.raises(UnknownName, match="there is no number"):
        table().load(name)


def test_it_takes_an_entry_more_for_a_test() -> None:
    numbers = table()
    with numbers.added("complex", "builtins:complex"), numbers.added("answer", 42):
        assert numbers.load("complex") is complex
        assert numbers.load("answer") == 42
        assert "answer" in numbers.names
    assert "complex" not in numbers
    with pytest.raises(UnknownName):
        numbers.load("answer")


def test_it_replaces_an_entry_for_a_test_and_brings_it_back() -> None:
    from fractions import Fraction

    numbers = table()
    assert numbers.load("fraction") is Fraction
    with numbers.added("fraction", 7):
        assert numbers.load("fraction") == 7
    assert numbers.load("fraction") is Fraction


def test_it_knows_what_packages_offer_without_importing_them(packages: Path) -> None:
    install(
        packages, "Toy_Numbers", "1.2", {"surreal": "toy_surreal:Surreal"}, "Surreal = 'up'", "toy_surreal"
    )
    numbers = table()
    assert numbers.names == ("fraction", "decimal", "surreal")
    assert "surreal" in numbers and "toy-numbers:surreal" in numbers
    assert numbers.full_name("surreal") == numbers.full_name("Toy.Numbers:surreal") == "toy-numbers:surreal"
    assert numbers.origin("surreal") == ("toy-numbers", "1.2")
    assert str(numbers.origin("toy-numbers:surreal")) == "toy-numbers==1.2"
    assert "toy_surreal" not in sys.modules
    assert numbers.load("surreal") == numbers.load("toy-numbers:surreal") == "up"
    del sys.modules["toy_surreal"]


def test_it_looks_at_no_package_for_a_table_without_a_group(packages: Path) -> None:
    install(packages, "toy-numbers", "1.2", {"surreal": "toy_surreal:Surreal"})
    with pytest.raises(UnknownName):
        table(group=None).load("toy-numbers:surreal")


def test_it_refuses_a_name_that_two_packages_claim(packages: Path) -> None:
    install(packages, "toy-a", "1", {"surreal": "toy_a:A"}, "A = 'a'", "toy_a")
    install(packages, "toy-b", "1", {"surreal": "toy_b:B"}, "B = 'b'", "toy_b")
    numbers = table()
    with pytest.raises(UnknownName) as refused:
        numbers.load("surreal")
    assert str(refused.value) == (
        "the number 'surreal' is offered by toy-a and toy-b: write 'toy-a:surreal' or 'toy-b:surreal'"
    )
    assert numbers.names[2:] == ("toy-a:surreal", "toy-b:surreal")
    assert (numbers.load("toy-a:surreal"), numbers.load("toy-b:surreal")) == ("a", "b")


def test_it_refuses_a_name_of_the_core_that_a_package_claims(packages: Path) -> None:
    from fractions import Fraction

    install(packages, "toy-a", "1", {"fraction": "toy_a2:A"}, "A = 'a'", "toy_a2")
    numbers = table()
    with pytest.raises(
        UnknownName, match="is offered by legible and toy-a: write 'legible:fraction' or 'toy-"
    ):
        numbers.full_name("fraction")
    assert numbers.full_name("legible:fraction") == "fraction"
    assert numbers.load("toy-a:fraction") == "a"
    # What is stored as the core's stays the core's, with any packages installed.
    assert numbers.load("fraction") is Fraction
    assert numbers.origin("fraction") is None


def test_it_says_which_package_is_missing() -> None:
    with pytest.raises(UnknownName, match="no installed package 'toy-gone' offers one: install it here"):
        table().load("toy-gone:surreal")


def test_it_names_the_package_that_cannot_be_imported(packages: Path) -> None:
    install(packages, "toy-broken", "3", {"broken": "toy_broken:X"}, "import no_such_module", "toy_broken")
    with pytest.raises(UnknownName, match="of toy-broken==3 cannot be imported .*no_such_module.*reinstall"):
        table().load("broken")


def test_it_refuses_a_package_that_is_missing_or_has_another_version(packages: Path) -> None:
    install(packages, "toy-numbers", "1.2", {})
    refuse_other_package("toy-numbers==1.2", "the map")
    with pytest.raises(OtherPackage) as refused:
        refuse_other_package("toy-numbers==1.0", "the map")
    assert str(refused.value) == (
        "the map was made with toy-numbers==1.0, but toy-numbers is 1.2 here: install toy-numbers==1.0 here, "
        "or build the study again"
    )
    with pytest.raises(OtherPackage, match="no toy-gone is installed here: install toy-gone==2 here"):
        refuse_other_package("toy-gone==2", "the map")
