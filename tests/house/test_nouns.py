"""Things are called by nouns of the field, and docs/words.md says what they mean."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from setup.figures import House, is_participle, words_of
from tests.house.test_architecture import ROOT

pytestmark = pytest.mark.pure

HOUSE = House(ROOT)
LISTED = re.findall(r"^\| (\w+) \|", (ROOT / "docs/words.md").read_text(), re.MULTILINE)
NOUNS = [word for word in LISTED if word != "word"]
FRAMEWORK = {"command", "meta", "config", "admin"}
"""What Django calls its own."""
CLASSES_MAX, FUNCTIONS_MAX = 0.02, 0.03
COMMON = 4


def heads() -> Counter[str]:
    """The last word of every public class, plurals apart, by how many classes have it."""
    public = {(each.module, each.name) for each in HOUSE.classes if not each.name.startswith("_")}
    return Counter(words_of(name)[-1] for _, name in public)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("Told", True), ("_kept", True), ("MaterialSet", False), ("seed", False), ("read", False)],
)  # fmt: skip
def test_it_knows_a_participle(name: str, is_one: bool) -> None:
    assert is_participle(name) == is_one


def test_few_things_are_called_by_a_participle() -> None:
    """At most 2 % of classes and 3 % of functions."""
    for named, most in ((HOUSE.classes, CLASSES_MAX), (HOUSE.functions, FUNCTIONS_MAX)):
        named_so = [f"{each.module}: {each.name}" for each in named if is_participle(each.name)]
        assert len(named_so) <= most * len(named), f"{len(named_so)} of {len(named)}:\n" + "\n".join(named_so)


def test_a_common_noun_is_explained() -> None:
    common = {word for word, count in heads().items() if count >= COMMON} - FRAMEWORK
    known = {*NOUNS, *(f"{noun}s" for noun in NOUNS)}
    assert not common - known, "add a line to docs/words.md for each"


def test_what_is_explained_is_used() -> None:
    used = {word for each in HOUSE.definitions for word in words_of(each.name)}
    unused = [noun for noun in NOUNS if not {noun, f"{noun}s"} & used]
    assert not unused and len(NOUNS) == len(set(NOUNS))
