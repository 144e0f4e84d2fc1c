"""Plain English, counted: what a non-native reader stumbles over may only become rarer in each room."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parent.parent
NAMES = {"found", "one", "own"}
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
BUDGET = {}
"""Room: PERSONS, WHERE, NAMES, fragments. Lower a number after an improvement; never raise it."""
KINDS = ("persons", "where", "names", "fragments")


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each docstring (of constants too) and each comment."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                yield node.lineno, " ".join(node.value.value.split())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not DIRECTIVE.match(token.string):
            yield token.start[0], token.string.lstrip("# ")


def names(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each binding that says nothing of its value."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in NAMES:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg) and node.arg in NAMES:
            yield node.lineno, node.arg


def fragments(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each part of a text over several lines that has at most two words, and only words."""
    lines = [line.encode() for line in source.splitlines()]
    tree = ast.parse(source)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner
        )
        if not is_text or node.end_lineno == node.lineno:  # type: ignore[attr-defined]
            continue
        parts = _parts(node, lines)  # type: ignore[arg-type]
        if any(part.lstrip("frFR").startswith(('"""', "'''")) for _, part in parts):
            continue
        yield from ((line, part) for line, part in parts if _is_short(part))


def _parts(node: ast.expr, lines: list[bytes]) -> list[tuple[int, str]]:
    last = node.end_lineno or node.lineno
    cut = {line: lines[line - 1] for line in range(node.lineno, last + 1)}
    cut[last] = cut[last][: node.end_col_offset]
    cut[node.lineno] = cut[node.lineno][node.col_offset :]
    return [(line, text.decode().strip()) for line, text in cut.items()]


def _is_short(part: str) -> bool:
    words = part.lstrip("frFR").strip("\"'").split()
    is_plain = not re.search(r"[{<\\/=]", part) and re.search(r"[^\W\d_]", part.lstrip("frFR"))
    return bool(is_plain) and len(words) <= FRAGMENT_WORDS


def faults(source: str, kind: str) -> list[tuple[int, str]]:
    """Line and what stands there, for one of `KINDS`."""
    if kind == "names":
        return list(names(source))
    if kind == "fragments":
        return list(fragments(source))
    pattern = PERSONS if kind == "persons" else WHERE
    return [(line, hit[0]) for line, text in prose(source) for hit in pattern.finditer(text)]


def pages(kind: str) -> list[str]:
    """The faults of the documentation, which has prose only; code in fences is left out."""
    if kind not in ("persons", "where"):
        return []
    pattern, hits = (PERSONS if kind == "persons" else WHERE), []
    for path in sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md"]):
        text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
        for block in re.split(r"\n\s*\n|\n(?=[|#-])", text):
            hits += [f"{path.name}: {hit[0]}" for hit in pattern.finditer(" ".join(block.split()))]
    return hits


def room_faults(room: str, kind: str) -> list[str]:
    if room == "docs":
        return pages(kind)
    paths = [path for path in sorted((ROOT / room).rglob("*.py")) if "migrations" not in path.parts]
    return [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in paths
        for line, text in faults(path.read_text(), kind)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("room", BUDGET)
def test_it_becomes_no_harder_to_read(room: str, kind: str) -> None:
    hits, allowed = room_faults(room, kind), BUDGET[room][KINDS.index(kind)]
    assert len(hits) <= allowed, f"{len(hits)} {kind} in {room}, at most {allowed}:\n" + "\n".join(hits)


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
    assert faults(source, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_it_lets_plain_text_pass(kind: str) -> None:
    source = (
        '"""Where is it decided? The page that says where a person goes.\n\n'
        'If there is none, the place where it stands."""\n'
        "for row in rows:  # noqa: nobody\n"
        '    found = 1 if row == "whoever" else 2\n'
        '    print("a text over two lines whose parts "\n          f"are long enough {row}")\n'
    ).replace("found", "first")
    assert not faults(source, kind)


def test_it_knows_every_room() -> None:
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert rooms | {"docs"} == set(BUDGET)
