"""Small changes of a Python module, each of which a good test suite notices."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
DELETED = (ast.AugAssign, ast.Raise, ast.Break, ast.Continue)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed module. `place` is its path and line, `change` what stood there and what stands there."""

    path: Path
    line: int
    operator: str
    before: str
    after: str
    source: str

    @property
    def place(self) -> str:
        return f"{self.path.as_posix()}:{self.line}"

    @property
    def change(self) -> str:
        return f"{self.before} → {self.after}"


def mutants_of(path: Path, source: str) -> list[Mutant]:
    """Every mutant of the module, in the order of its text. Docstrings, annotations, imports, and the words
    of messages stay: no test should depend on them."""
    tree = ast.parse(source)
    untouched = _untouched(tree)
    mutants = []
    for number, node in enumerate(ast.walk(tree)):
        for operator, change in _changes(node) if number not in untouched else ():
            changed = copy.deepcopy(tree)
            target = next(other for at, other in enumerate(ast.walk(changed)) if at == number)
            before, after = ast.unparse(node), change(target)
            text = ast.unparse(ast.fix_missing_locations(_replaced(changed, target, after)))
            told = "pass" if isinstance(after, ast.Pass) else ast.unparse(after)
            line = getattr(node, "lineno", 0)
            mutants.append(Mutant(path, line, operator, _short(before), _short(told), text))
    return sorted(mutants, key=lambda mutant: (mutant.line, mutant.operator, mutant.before, mutant.after))


def _short(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= 70 else f"{line[:67]}..."


def _untouched(tree: ast.Module) -> frozenset[int]:
    """Numbers (in the order of `ast.walk`) of the nodes that are never changed."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            parts += [node.returns, *node.decorator_list]
        elif isinstance(node, ast.ClassDef):
            parts += node.decorator_list
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            parts.append(node.annotation)
        elif isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Expr) and _is_text(node.value)):
            parts.append(node)
        elif isinstance(node, ast.Raise):
            parts.append(node.exc)
        elif isinstance(node, ast.Subscript):
            parts.append(node.slice if _is_text(node.slice) else None)
        skipped |= {id(inner) for part in parts if part is not None for inner in ast.walk(part)}
    return frozenset(number for number, node in enumerate(ast.walk(tree)) if id(node) in skipped)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[ast.AST], ast.AST]]]:
    """Names of operators with functions that turn the same node of a copy into its mutant."""
    if isinstance(node, ast.Compare) and len(node.ops) >= 1:
        for at, operator in enumerate(node.ops):
            for other in COMPARISONS[type(operator)]:
                yield "comparison", _with_operator(at, other)
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in ARITHMETIC:
        yield "arithmetic", _with_arithmetic(ARITHMETIC[type(node.op)])
    elif isinstance(node, ast.BoolOp):
        yield "boolean", _flipped
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield "sign", lambda target: target.operand  # type: ignore[attr-defined]
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield "condition", _negated
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "return None", lambda target: ast.Return(ast.Constant(None))
    if isinstance(node, DELETED) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield "deleted", lambda target: ast.Pass()


def _constants(node: ast.Constant) -> Iterator[tuple[str, Callable[[ast.AST], ast.AST]]]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", lambda target: ast.Constant(not value)
    elif isinstance(value, (int, float)):
        yield "constant", lambda target: ast.Constant(value + 1)
        yield "constant", lambda target: ast.Constant(value - 1)
    elif isinstance(value, str) and value and " " not in value:  # with a space it is for people to read
        yield "constant", lambda target: ast.Constant(f"{value}?")


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _with_operator(at: int, other: type[ast.cmpop]) -> Callable[[ast.AST], ast.AST]:
    def change(target: ast.AST) -> ast.AST:
        assert isinstance(target, ast.Compare)
        target.ops[at] = other()
        return target

    return change


def _with_arithmetic(other: type[ast.operator]) -> Callable[[ast.AST], ast.AST]:
    def change(target: ast.AST) -> ast.AST:
        assert isinstance(target, (ast.BinOp, ast.AugAssign))
        target.op = other()
        return target

    return change


def _flipped(target: ast.AST) -> ast.AST:
    assert isinstance(target, ast.BoolOp)
    target.op = ast.Or() if isinstance(target.op, ast.And) else ast.And()
    return target


def _negated(target: ast.AST) -> ast.AST:
    assert isinstance(target, (ast.If, ast.IfExp, ast.While))
    target.test = ast.UnaryOp(ast.Not(), target.test)
    return target


def _replaced(tree: ast.Module, target: ast.AST, by: ast.AST) -> ast.Module:
    """The tree with `by` in the place of `target`."""

    class Replacing(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return by if node is target else self.generic_visit(node)

    result = Replacing().visit(tree)
    assert isinstance(result, ast.Module)
    return result
