"""Each operation that a simulator offers has a caller in the adapter, and what the adapter calls is offered.

Read from the adapter's source: the operations that it names and the paths that it writes.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from crowd.rehearsal.mturk.operations import OPERATIONS

pytestmark = pytest.mark.pure

CROWD = Path(__file__).parents[3] / "crowd"
READS = ("get", "rows")
"""Methods of Prolific's wire that only read; `send` names the method of the request first."""


def calls_in(platform: str) -> Iterator[tuple[str, list[ast.expr]]]:
    """Every call of a method that an adapter writes: the method's name, and its arguments."""
    for path in sorted((CROWD / "platforms" / platform).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield node.func.attr, node.args


def written(node: ast.expr) -> str:
    """A text as it stands in the source, with {} for what is filled in."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(written(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def test_it_offers_what_the_adapter_of_prolific_asks_and_nothing_else() -> None:
    described = json.loads((CROWD / "rehearsal/prolific/schema.json").read_text())["operations"].values()
    offered = {f"{each['method']} {re.sub(r'{[a-z]+}', '{}', each['path'])}" for each in described}
    asked = set()
    for name, arguments in calls_in("prolific"):
        texts = [written(argument) for argument in arguments]
        if name == "send" and len(texts) > 1 and texts[1]:
            asked.add(f"{texts[0]} {texts[1]}")
        elif name in READS and texts and texts[0].endswith("/"):
            asked.add(f"GET {texts[0]}")
    assert len(asked) > 20
    assert offered == asked


def test_it_offers_what_the_adapter_of_mturk_asks_and_nothing_else() -> None:
    asked = set()
    for name, arguments in calls_in("mturk"):
        if name in ("call", "pages") and arguments and written(arguments[0]):
            asked.add(written(arguments[0]))
    # The two decisions are one call, by a table.
    for node in ast.walk(ast.parse((CROWD / "platforms/mturk/decisions.py").read_text())):
        if isinstance(node, ast.Dict):
            asked |= {written(value) for value in node.values if written(value).endswith("Assignment")}
    assert len(asked) > 15
    assert set(OPERATIONS) == asked
