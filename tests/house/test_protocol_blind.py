"""The engine knows no protocol: checked on the syntax tree, so that no spelling hides a decision.

Trial kinds and gates are compared with literals only in their own rooms and in the paradigms; a paradigm's
name stands only in its module, its reporter and the tables.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.gates import GATES
from experiments.kinds import KINDS
from experiments.paradigms import PARADIGMS
from tests.trees import walked

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("stimuli", "experiments", "analysis", "crowd")
AT_HOME = (
    *("experiments/kinds/", "experiments/gates/", "experiments/paradigms/", "/migrations/"),
    # Each is of one paradigm, and is read without this project.
    "analysis/exports/scripts/",
)
TABLES = ("experiments/paradigms/__init__.py", "analysis/reports/__init__.py")
KIND_NAMES, GATE_NAMES = frozenset(KINDS.names), frozenset(GATES.names)
ABOUT_GATES = {"kind", "step", "gate", "stop"}
"""Names of what holds a gate: "device" and "practice" are words of other vocabularies as well."""


def literals(node: ast.AST) -> Iterator[str]:
    """The string constants of an operand, those in a tuple, list or set included."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def called(node: ast.AST) -> str:
    """What an operand is called: the last part of a name, attribute or subscript."""
    if isinstance(node, ast.Subscript):
        return next(iter(literals(node.slice)), "")
    if isinstance(node, ast.Call):
        return called(node.func)
    return getattr(node, "attr", getattr(node, "id", ""))


def plain(nodes: list[ast.expr]) -> Iterator[str]:
    """Constants among the operands themselves, not within calls or subscripts."""
    for node in nodes:
        parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
        yield from (p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str))


def decided(node: ast.AST) -> set[str]:
    """Kinds and gates that this node decides by."""
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        words = set(plain(operands))
        is_gate = any(called(operand) in ABOUT_GATES for operand in operands)
        return words & KIND_NAMES | (words & GATE_NAMES if is_gate else set())
    if isinstance(node, ast.MatchValue):
        return set(literals(node)) & (KIND_NAMES | GATE_NAMES)
    if isinstance(node, ast.keyword) and (node.arg or "").split("__")[-1] in ABOUT_GATES:
        return set(plain([node.value])) & (KIND_NAMES | GATE_NAMES)
    if isinstance(node, ast.Set | ast.Dict):
        keys = [k for k in (node.keys if isinstance(node, ast.Dict) else node.elts) if k is not None]
        words = set(plain(keys))
        gates = words & GATE_NAMES
        return words & KIND_NAMES | (gates if len(gates) > 1 else set())
    return set()


def decisions(source: str, path: str) -> list[str]:
    """Every place of a file that decides by the literal name of a kind or gate."""
    if any(home in path for home in AT_HOME):
        return []
    return [
        f"{path}:{getattr(node, 'lineno', getattr(getattr(node, 'value', None), 'lineno', 0))} {name}"
        for node in walked(source)
        for name in sorted(decided(node))
    ]


def namings(source: str, path: str) -> list[str]:
    """Every place of a file that names a paradigm and is not at home there."""
    if path in TABLES or "/migrations/" in path or "/studies/" in path:
        return []
    return [
        f"{path}:{node.lineno} {node.value}"
        for node in walked(source)
        if isinstance(node, ast.Constant) and node.value in PARADIGMS.names
        and path != f"experiments/paradigms/{node.value}.py"
        and not path.startswith(f"analysis/reports/{node.value}/")
    ]  # fmt: skip


def files() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def test_it_decides_by_kinds_and_gates_only_where_they_live() -> None:
    faults = [f for p in files() for f in decisions(p.read_text(), p.relative_to(ROOT).as_posix())]
    assert faults == []


def test_it_names_a_paradigm_only_at_its_home() -> None:
    faults = [f for p in files() for f in namings(p.read_text(), p.relative_to(ROOT).as_posix())]
    assert faults == []


@pytest.mark.parametrize(
    "line",
    [
        'trial.kind == "learn"',
        '"predict" != trial["kind"]',
        'if trial.kind in ("rate", "solve"): pass',
        'rows.exclude(trial__kind="learn")',
        'match kind:\n    case "review": pass',
        'match stop:\n    case "quiz" | "practice": pass',
        'PLUGINS = {"learn": 1, "predict": 2}',
        'SCORED = {"predict"}',
        'Gate.objects.filter(kind="consent")',
        'gate.kind == "consent"',
        'page["step"] in {"device"}',
        'PAGES = {"device": 1, "consent": 2}',
    ],
)
def test_it_finds_a_planted_decision(line: str) -> None:
    assert decisions(line, "crowd/planted.py")
    assert not decisions(line, "experiments/kinds/planted.py")


@pytest.mark.parametrize(
    "line",
    ['texts["consent"]', 'outcome in {"device", "failure"}', 'phase == "practice"', 'kind == "choice"'],
)
def test_it_leaves_other_vocabularies_alone(line: str) -> None:
    assert not decisions(line, "crowd/planted.py")


def test_it_finds_a_planted_name_of_a_paradigm() -> None:
    assert namings('MATERIAL = {"meta_predictor"}', "experiments/definition/study.py")
    assert namings('if study.paradigm == "rating": pass', "analysis/tables/response_reader.py")
    assert not namings('name = "rating"', "experiments/paradigms/rating.py")
