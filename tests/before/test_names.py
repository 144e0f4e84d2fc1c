"""The names by which the outside holds on to Legible: each of f38355e is still there and means the same, or
the old name still works and says so. More names are no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.urls import Resolver404, resolve

from experiments.study_files.load import STUDIES_DIR, load_study
from tests import services
from tests.before import names
from tests.before.compare import as_drawn_then
from tests.before.restored import json_of, unpack

pytestmark = pytest.mark.pure

RENAMED: dict[str, dict[str, str]] = {}
"""Kind of name -> old name -> test (file::function) that shows that the old name still works and says so."""
MENDED: dict[str, str] = {
    "render.absolute": "a file without it shows evidence for the answer; opened studies keep what they had",
    "device.min_width_px": "computed from the study: 200 % zoom is let in; opened studies keep theirs",
    "device.min_height_px": "the same",
    "simulate --mix": "three observers stand side by side; `learner` is still named by --mix",
    "questions.[].kind.= predict": "is `sort`: no page of a blind review may say that something is predicted",
    "demo --participants": "80, for a report in two minutes; places of the file if trials come one by one",
    "report slug": "required as before, unless --from names a package in its place",
    "report --origin": "human as before; with --from the only one of a package",
    "render.alpha": "at .55 strengths cannot be read (docs/evidence/recipes.md); with absolute it stays .55",
}
"""Old default, choice or value that was a fault -> why it changed: "demo --seed" -> "..."."""


@pytest.fixture(scope="module")
def then() -> dict[str, Any]:
    stored: dict[str, Any] = json_of("names")
    return stored


@pytest.fixture(scope="module")
def now() -> dict[str, Any]:
    return names.collected()


def gone(kind: str, before: Iterable[str], after: Iterable[str]) -> list[str]:
    """Old names that are neither there nor shown to work by a test."""
    left = set(before) - set(after) - set(RENAMED.get(kind, ()))
    return sorted(name for name in left if not name.endswith(tuple(f".{mended}" for mended in MENDED)))


EXAMPLES = {"slug": "a-slug", "int": "7", "uuid": "01234567-89ab-cdef-0123-456789abcdef", "str": "text"}


def examples(pattern: str) -> list[str]:
    """Addresses that the pattern serves: one per alternative, with a value in each place."""
    whole = (
        re.sub(r"<(\w+):\w+>", lambda place: EXAMPLES[place[1]], pattern).replace("^", "").replace("$", "")
    )
    choice = re.search(r"\(\?P<\w+>([\w|]+)\)", whole)
    return [whole.replace(choice[0], word) for word in choice[1].split("|")] if choice else [whole]


def not_served(patterns: Iterable[str]) -> list[str]:
    missing = []
    for address in (example for pattern in patterns for example in examples(pattern)):
        try:
            resolve(f"/{address}")
        except Resolver404:
            missing.append(address)
    return missing


def test_every_address_is_still_served(then: dict[str, Any], now: dict[str, Any]) -> None:
    """By the same pattern, or by a wider one."""
    wider = set(then["addresses"]) - set(now["addresses"])
    assert len(then["addresses"]) > 40 and len(wider) < 5
    assert not_served(then["addresses"]) == []


def test_an_address_that_goes_is_noticed(then: dict[str, Any]) -> None:
    assert not_served([*then["addresses"], "studies/<slug:slug>/nowhere/else/"]) == [
        "studies/a-slug/nowhere/else/"
    ]


@pytest.mark.parametrize("kind", ["environment", "api", "commands", "toml", "design"])
def test_every_name_is_still_there(then: dict[str, Any], now: dict[str, Any], kind: str) -> None:
    assert len(then[kind]) >= 4
    assert gone(kind, then[kind], now[kind]) == []


def changed_options(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Options of commands that are gone, mean something else, or are now required."""
    changes = []
    for command, options in before.items():
        today = after.get(command, {})
        for name, old in options.items():
            new = today.get(name)
            what = f"{command} {name}"
            if new is None:
                changes.append(f"{what} is gone")
            elif (new["default"], new["values"]) != (old["default"], old["values"]):
                changes.append(f"{what} was {old} and is {new}")
            elif new["choices"] is not None and not set(old["choices"] or ()) <= set(new["choices"]):
                changes.append(f"{what} takes less: {new['choices']}")
        changes += [f"{command} demands {n}" for n, o in today.items() if n not in options and o["required"]]
    return [line for line in changes if " ".join(line.split()[:2]) not in MENDED]


def test_every_option_of_a_command_means_the_same(then: dict[str, Any], now: dict[str, Any]) -> None:
    assert changed_options(then["commands"], now["commands"]) == []


def changed_keys(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Keys of a TOML table whose default is another one, or that are demanded now and were not. The default
    of a whole table is the defaults of its keys.
    """
    changes = []
    for name, default in before.items():
        # What no old study could leave out may get any default.
        if default == "required" or isinstance(default, dict) or name not in after:
            continue
        if after[name] != default and name not in MENDED:
            changes.append(f"{name} was {default!r} and is {after[name]!r}")
    demanded = {name for name, default in after.items() if default == "required" and name not in before}
    tables = {name.rsplit(".", 1)[0] for name in before if "." in name}
    return changes + [f"{name} is demanded now" for name in sorted(demanded) if _of(name, tables, before)]


def _of(name: str, tables: set[str], before: Mapping[str, Any]) -> bool:
    """Whether it is required in a table that old studies have."""
    return "." not in name or name.rsplit(".", 1)[0] in tables


def test_every_key_of_study_toml_means_the_same(then: dict[str, Any], now: dict[str, Any]) -> None:
    assert changed_keys(then["toml"], now["toml"]) == []


@pytest.mark.parametrize("paradigm", ["meta_predictor", "reverse_turing", "blind_review", "rating"])
def test_every_key_of_a_design_means_the_same(
    then: dict[str, Any], now: dict[str, Any], paradigm: str
) -> None:
    before, after = then["design"][paradigm], now["design"][paradigm]
    assert set(before) - set(after) == set()
    assert changed_keys(before, after) == []


def test_every_stored_study_has_the_digest_that_it_had(then: dict[str, Any], tmp_path: Path) -> None:
    """The digest identifies an open study: another digest would be another study."""
    files = list(unpack("told", tmp_path).glob("studies/*/study.toml"))
    digests = {path.parent.name: load_study(path, changes=as_drawn_then(path)).digest for path in files}
    # The two others are shipped examples, whose texts, networks and recipe are today's.
    shipped = {path.parent.name for path in STUDIES_DIR.glob("*/study.toml")}
    others = set(then["digests"]) - set(digests)
    assert others <= shipped and len(others) == 2
    assert {slug: then["digests"][slug] for slug in digests} == digests and len(digests) == 4


@pytest.mark.parametrize("kind", ["environment", "api", "commands"])
def test_a_name_that_goes_is_noticed(then: dict[str, Any], kind: str) -> None:
    less = list(then[kind])[1:]
    assert gone(kind, then[kind], less) == [list(then[kind])[0]]


def test_a_meaning_that_changes_is_noticed(then: dict[str, Any]) -> None:
    after = {**then["commands"], "demo": dict(then["commands"]["demo"])}
    after["demo"]["--seed"] = {**after["demo"]["--seed"], "default": 12}
    after["demo"]["--name"] = {"default": None, "choices": None, "values": None, "required": True}
    first, second = changed_options(then["commands"], after)
    assert "demo --seed was" in first and second == "demo demands --name"
    keys = {**then["toml"], "checks.instructed": 3, "ethics.board": "required"}
    assert changed_keys(then["toml"], keys) == [
        "checks.instructed was 2 and is 3",
        "ethics.board is demanded now",
    ]


@pytest.mark.parametrize("proof", sorted(p for proofs in RENAMED.values() for p in proofs.values()) or [""])
def test_each_renamed_name_has_its_proof(proof: str) -> None:
    file, _, function = proof.partition("::")
    assert not proof or f"def {function}(" in (services.ROOT / file).read_text(encoding="utf-8")
