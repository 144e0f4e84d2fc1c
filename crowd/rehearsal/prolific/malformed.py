"""Answers that are wrong in form, as faults.py lists them, and the calls that can meet each fault."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from crowd.rehearsal.faults import KINDS, Fault
from crowd.rehearsal.prolific.world import ProlificWorld
from crowd.rehearsal.serving import Answer, IncomingRequest

CHANGES = frozenset({"POST", "PATCH", "PUT", "DELETE"})
AMOUNTS: tuple[Fault, ...] = ("null_amount", "text_amount")
PAGED = frozenset({"submissions.list", "studies.of_project"})
ODD: tuple[dict[str, Any], ...] = (
    {"id": None},
    {"participant_id": None},
    {"participant_id": 7, "status": 7},
    {"id": ["one", "two"]},
    {"participant_id": "person\u0000\ud800"},
    {"status": None, "started_at": 7, "study_code": {"code": "x"}, "participant_id": ""},
)


def meets(fault: Fault, operation: str, method: str) -> bool:
    """Whether a call can meet a fault."""
    if fault in KINDS or fault in ("slow_body", "half_json"):
        return True
    if fault == "late_effect":
        return method in CHANGES
    if fault == "odd_row":
        return operation == "submissions.list"
    if fault in AMOUNTS:
        return operation == "bonuses.create"
    return operation in PAGED if fault == "repeated_page" else operation == "bonuses.pay"


def corrupt_answer(world: ProlificWorld, fault: Fault, request: IncomingRequest, answer: Answer) -> Answer:
    """The answer with an odd row, with a next page that is itself, or with amounts of another type."""
    if fault not in ("odd_row", "repeated_page", *AMOUNTS) or answer.status not in (200, 201):
        return answer
    page = json.loads(answer.body)
    if fault == "null_amount":
        page["amount"] = None
    if fault == "text_amount":
        page |= {name: str(page[name]) for name in ("amount", "fees", "vat", "total_amount")}
    if fault == "odd_row" and page["results"]:
        draw = world.draw("odd-rows")
        row = page["results"][int(draw.integers(len(page["results"])))]
        row.update(ODD[int(draw.integers(len(ODD)))])
    if fault == "repeated_page":
        page["_links"]["next"] = page["_links"]["self"]
    return replace(answer, body=json.dumps(page).encode())
