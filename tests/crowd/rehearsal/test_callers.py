"""Each operation that a simulator offers has a caller in the adapter, and each call of the adapter is offered.

Read from the adapter's source: the operations that it names and the paths that it writes.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import crowd.platforms.mturk
import crowd.platforms.prolific
from crowd.rehearsal.mturk.operations import OPERATIONS
from crowd.rehearsal.prolific.schema import operations
from crowd.rehearsal.prolific.simulation import Simulator

pytestmark = pytest.mark.pure

VERBS = {"get": "GET", "rows": "GET"}
"""Methods of Prolific's wire that only read; `send` names the method of the request first."""
QUEUE = {"UpdateNotificationSettings"}


def source_of(package: object) -> Iterator[ast.Call]:
    """Every call that is written in a package."""
    for path in sorted(Path(str(package.__file__)).parent.glob("*.py")):  # type: ignore[attr-defined]
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield node


def written(node: ast.expr) -> str:
    """A text as it stands in the source, with {} for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(written(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def prolific_calls() -> set[str]:
    calls = set()
    for call in source_of(crowd.platforms.prolific):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name == "send" and len(call.args) > 1 and written(call.args[1]):
            calls.add(f"{written(call.args[0])} {written(call.args[1])}")
        elif name in VERBS and call.args and written(call.args[0]).endswith("/"):
            calls.add(f"{VERBS[name]} {written(call.args[0])}")
    return calls


def test_it_offers_what_the_adapter_of_prolific_asks_and_nothing_else() -> None:
    schema = Path(crowd.platforms.prolific.__file__).parents[2] / "rehearsal/prolific/schema.json"
    offered = set()
    for said in json.loads(schema.read_text())["operations"].values():
        path = "".join(
            "{}" if part[0] == "{" else part
            for part in said["path"].replace("}", "}\0").replace("{", "\0{").split("\0")
            if part
        )
        offered.add(f"{said['method']} {path}")
    assert offered == prolific_calls()


def test_it_answers_what_it_describes() -> None:
    from crowd.rehearsal import prolific

    with prolific.simulator() as sim:
        assert isinstance(sim, Simulator)
        assert set(sim.handlers) == {operation.name for operation in operations()}


def test_it_offers_what_the_adapter_of_mturk_asks_and_nothing_else() -> None:
    named = set()
    for call in source_of(crowd.platforms.mturk):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name in ("call", "pages") and call.args and written(call.args[0]):
            named.add(written(call.args[0]))
    assert set(OPERATIONS) == named
