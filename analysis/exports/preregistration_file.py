"""The stored plan of a study as files of its export."""

from __future__ import annotations

import json
from pathlib import Path

from analysis.facts import StudyFacts
from experiments.opening.preregistration_text import as_markdown
from experiments.opening.timestamps import stamped_files

NAME = "preregistration"
TOLD = ("digest", "stored_at", "registry", "registry_named_at", "timestamp", "looks", "document")


def write_plan(facts: StudyFacts, folder: Path) -> dict[str, int]:
    """Writes the plan as JSON and as Markdown; returns the files with a count of 1, none without a plan.

    SHA-256 of the canonical JSON of `document` (sorted keys, no spaces, UTF-8) is `digest`. With a time stamp
    the response and the text that it stamps stand beside it.
    """
    plan = facts.preregistration
    if not plan.get("stored"):
        return {}
    told = {key: plan[key] for key in TOLD}
    text = json.dumps(told, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    (folder / f"{NAME}.json").write_text(text, encoding="utf-8")
    said = (f"Stored {plan['stored_at']}, SHA-256 `{plan['digest']}`.", plan["witness"])
    (folder / f"{NAME}.md").write_text(as_markdown(plan["document"], said), encoding="utf-8")
    proofs = stamped_files(plan["timestamp"], plan["document"]) if plan["timestamp"] else {}
    for end, data in proofs.items():
        (folder / f"{NAME}{end}").write_bytes(data)
    return {f"{NAME}.json": 1, f"{NAME}.md": 1, **dict.fromkeys((f"{NAME}{end}" for end in proofs), 1)}
