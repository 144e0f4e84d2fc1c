"""Plain English, counted: what a non-native reader stumbles over may only become rarer in each room."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.trees import walked

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"found", "one", "own"}
SUSPECT = re.compile(r"#.*\b(?:who|whos|what|where|somebody|nobody)(?:so)?(?:ever)?\b", re.IGNORECASE)
DIRECTIVE = re.compile(r"#\s*(type:|noqa|fmt:)")
PERSONS = re.compile(r"\b(?:who(?:so)?ever|whosever|whatever|somebody|nobody)\b", re.IGNORECASE)
WHERE = re.compile(
    r"(?:^|(?<=[.;] ))[Ww]here (?!(?:is|are|was|were|does|do|did)\b)[^.?:;]*,"  # "Where it has none, …"
    r"|, where (?:there|no|nothing|it|they|that|this|one|an?|the)\b"
    r"|\b(?:None|False|True|[Ee]mpty|infinite|[01]|NaN|[Oo]nly|but|except|even|also|else|[Rr]efused"
    r"|Unsupported|[A-Z][a-z]+[A-Z]\w+) where\b"
)
"""Places where the word means "if": it opens a sentence with a main clause behind it, follows a comma, or
follows a value, an error or an adverb of condition."""
FRAGMENT_WORDS = 2
BUDGET = {
    "stimuli": (0, 0, 0, 0),
    "experiments": (0, 0, 1, 0),  # Reason.found is a key of stored verdicts
    "analysis": (0, 0, 0, 0),
    "crowd": (0, 0, 0, 0),
    "setup": (0, 0, 0, 0),
    "benchmarks": (0, 0, 0, 0),
    "tests": (0, 0, 0, 0),
    "docs": (0, 0, 0, 0),
}
"""Room: PERSONS, WHERE, NAMES, fragments. Lower a number after an improvement; never raise it."""
KINDS = ("persons", "where", "names", "fragments")


@dataclass(frozen=True, slots=True)
class Fault:
    """One place that is hard to read: what stands there, and in which line."""

    kind: str
    line: int
    text: str


def faults(source: str) -> Iterator[Fault]:
    """Every fault of a module; the prose is that of docstrings, of constants too, and of comments."""
    lines = [line.encode() for line in source.splitlines()]
    inner: set[int] = set()
    for node in walked(source):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield from _in_prose(node.lineno, str(node.value.value))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NAMES:
            yield Fault("names", node.lineno, node.id)
        elif isinstance(node, ast.arg) and node.arg in NAMES:
            yield Fault("names", node.lineno, node.arg)
        elif isinstance(node, ast.JoinedStr):
            inner |= {id(part) for part in node.values}
            yield from _fragments(node, lines)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield from _fragments(node, lines)
    yield from _in_comments(source)


def _in_prose(line: int, text: str) -> Iterator[Fault]:
    text = " ".join(text.split())
    for kind, pattern in (("persons", PERSONS), ("where", WHERE)):
        yield from (Fault(kind, line, hit[0]) for hit in pattern.finditer(text))


def _in_comments(source: str) -> Iterator[Fault]:
    # Reading tokens takes longer than all the rest, and few modules have such a comment.
    if not SUSPECT.search(source):
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not DIRECTIVE.match(token.string):
            yield from _in_prose(token.start[0], token.string.lstrip("# "))


def _fragments(node: ast.JoinedStr | ast.Constant, lines: list[bytes]) -> Iterator[Fault]:
    """The parts of a text over several lines that have at most two words, and only words."""
    last = node.end_lineno or node.lineno
    if last == node.lineno:
        return
    cut = {line: lines[line - 1] for line in range(node.lineno, last + 1)}
    cut[last] = cut[last][: node.end_col_offset]
    cut[node.lineno] = cut[node.lineno][node.col_offset :]
    parts = {line: text.decode().strip().lstrip("frFR") for line, text in cut.items()}
    if parts[node.lineno].startswith(('"""', "'''")):
        return
    for line, part in parts.items():
        is_plain = not re.search(r"[{<\\/=]", part) and re.search(r"[^\W\d_]", part)
        if is_plain and len(part.strip("\"'").split()) <= FRAGMENT_WORDS:
            yield Fault("fragments", line, part)


def of_pages() -> Iterator[tuple[str, Fault]]:
    """The faults of the documentation, where code in fences is left out."""
    for path in sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md"]):
        text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        for block in re.split(r"\n\s*\n|\n(?=[|#-])", text):
            yield from ((path.name, fault) for fault in _in_prose(0, block))


def of_room(room: str) -> Iterator[tuple[str, Fault]]:
    if room == "docs":
        yield from of_pages()
        return
    for path in sorted((ROOT / room).rglob("*.py")):
        if "migrations" not in path.parts:
            yield from ((str(path.relative_to(ROOT)), fault) for fault in faults(path.read_text()))


@pytest.mark.parametrize("room", BUDGET)
def test_it_becomes_no_harder_to_read(room: str) -> None:
    hits: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name, fault in of_room(room):
        hits[fault.kind].append(f"{name}:{fault.line}: {fault.text}")
    for kind, allowed in zip(KINDS, BUDGET[room], strict=True):
        text = "\n".join(hits[kind])
        assert len(hits[kind]) <= allowed, f"{len(hits[kind])} {kind} in {room}, at most {allowed}:\n{text}"


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("persons", 'def f():\n    """Whoever comes, whatever for."""\n'),
        ("persons", "x = 1\n'''For somebody.'''\n"),
        ("persons", "x = 1  # nobody reads this\n"),
        ("where", '"""The map. Where there is none, an error."""\n'),
        ("where", '"""A colour, where the map has none."""\n'),
        ("where", '"""Raises StudyError where it is closed."""\n'),
        ("where", '"""The mean; None where there is no value."""\n'),
        ("names", "for one in rows:\n    pass\n"),
        ("names", "def f(found):\n    return [own for own in found]\n"),
        ("fragments", 'raise Error(\n    "The study is closed and cannot be opened "\n    "again."\n)\n'),
        ("fragments", 'print(\n    f"{n} people came, and all of them took "\n    "part."\n)\n'),
    ],
)
def test_it_finds_a_planted_fault(kind: str, source: str) -> None:
    assert {fault.kind for fault in faults(source)} == {kind}


def test_it_lets_plain_text_pass() -> None:
    source = (
        '"""Where is it decided? The page that says where a person goes.\n\n'
        'If there is none, the place where it stands."""\n'
        "for row in rows:  # noqa: nobody\n"
        '    first = 1 if row == "whoever" else 2\n'
        '    print("a text over two lines whose parts "\n          f"are long enough {row}")\n'
    )
    assert not list(faults(source))


def test_it_knows_every_room() -> None:
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert rooms | {"docs"} == set(BUDGET)
