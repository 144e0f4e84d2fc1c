"""Whether results by condition are still sealed, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.facts import StudyFacts

UNSEALED: Mapping[str, str] = {"simulated": "Simulated observers", "model": "Models"}
"""Programs that answer, by origin."""


@dataclass(frozen=True, slots=True)
class Seal:
    """Whether per-condition results are still sealed, and the reason as a sentence."""

    sealed: bool
    sentence: str

    def as_json(self) -> dict[str, Any]:
        return {"sealed": self.sealed, "sentence": self.sentence}


def seal_of(facts: StudyFacts, origin: str) -> Seal:
    """Per-condition results of people stay sealed until the stopping rule is met.

    The rule is met when every wanted slot is kept, for all conditions together, or when the study is closed.
    A named person may break the seal and give a reason, and every report then prints both. Results of
    programs give no motive to stop early, so their reports are open; what compares them with people is not.
    """
    if origin in UNSEALED:
        return Seal(False, f"{UNSEALED[origin]} are never sealed.")
    if facts.unsealed_at and facts.unsealed_by:
        return Seal(False, f"Unsealed by {facts.unsealed_by} on {facts.unsealed_at}: {facts.unsealed_reason}")
    if facts.state == "closed":
        return Seal(False, f"The study is closed, with {facts.kept} of {facts.wanted} places kept.")
    if facts.wanted and facts.kept >= facts.wanted:
        return Seal(False, f"The stopping rule is met: all {facts.wanted} places are kept.")
    progress = f"{facts.kept} of {facts.wanted} places are kept"
    return Seal(True, f"Sealed until the stopping rule is met: {progress}.")
