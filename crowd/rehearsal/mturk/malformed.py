"""Answers that are wrong in form, as faults.py lists them, and the calls that can meet each fault."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crowd.rehearsal.faults import KINDS, Fault
from crowd.rehearsal.mturk.world import TurkWorld

ROWS = {"ListAssignmentsForHIT": "Assignments", "ListBonusPayments": "BonusPayments"}
ODD: tuple[dict[str, Any], ...] = (
    {"AssignmentId": None},
    {"WorkerId": None},
    {"WorkerId": 7},
    {"AssignmentId": "3\u0000\ud800"},
    {"WorkerId": "", "AssignmentStatus": None, "Answer": 7, "BonusAmount": "a lot"},
)


def meets(fault: Fault, operation: str, body: bytes) -> bool:
    """Whether a call can meet a fault."""
    if fault in KINDS or fault in ("slow_body", "half_json"):
        return True
    if fault == "late_effect":
        return not operation.startswith(("Get", "List"))
    if fault == "odd_row":
        return operation in ROWS
    return b"NextToken" in body if fault == "repeated_page" else operation == "SendBonus"


def corrupt_reply(world: TurkWorld, fault: Fault, body: bytes, reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """The reply with an odd row, or with a next page that is itself."""
    if fault == "repeated_page":
        return {**reply, "NextToken": json.loads(body)["NextToken"]}
    key = next((name for name in ROWS.values() if reply.get(name)), "")
    if fault != "odd_row" or not key:
        return reply
    rows = [dict(row) for row in reply[key]]
    rows[int(world.odd.integers(len(rows)))].update(ODD[int(world.odd.integers(len(ODD)))])
    return {**reply, key: rows}
