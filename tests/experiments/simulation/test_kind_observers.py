"""What each kind lets a computational observer do on its page."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from experiments.kinds import base, get_kind
from experiments.kinds.solve import CANNOT_SAY
from experiments.simulation.people import Located
from tests.experiments.kinds.test_kind_values import CHOICES, STAGE, TRIAL, TRIALS, kind_of

pytestmark = pytest.mark.pure


@dataclass
class Watcher:
    """An observer that always picks the last option, and notes what it was asked to do."""

    acts: list[str] = field(default_factory=list)

    def _reply(self, act: str) -> base.Reply:
        self.acts.append(act)
        return base.Reply({"choice": "fox"}, 11, 12)

    def study(self, trial: Mapping[str, Any]) -> base.Reply:
        return self._reply("study")

    def decide(self, trial: Mapping[str, Any]) -> base.Reply:
        return self._reply("decide")

    def obey(self, trial: Mapping[str, Any]) -> base.Reply:
        return self._reply("obey")

    def rate(self, trial: Mapping[str, Any], question: Mapping[str, Any]) -> int:
        self.acts.append(question["id"])
        return 5

    def pick(self, trial: Mapping[str, Any], name: str, options: Sequence[Hashable]) -> Any:
        self.acts.append(name)
        return options[-1]

    def locate(self, trial: Mapping[str, Any], nothing: str) -> Located:
        self.acts.append("locate")
        last = trial["content"]["choices"][-1]["value"]
        return Located(last, None if last == nothing else (trial["content"]["grid"] ** 2 - 1,), 700)

    def judge(self, trial: Mapping[str, Any]) -> tuple[bool, int]:
        self.acts.append("judge")
        return False, 700

    def linger_ms(self, trial: Mapping[str, Any], part: str = "") -> int:
        return 700


@pytest.mark.parametrize(
    ("name", "acts", "reply"),
    [
        ("learn", ["study"], base.Reply({"choice": "fox"}, 11, 12)),
        ("predict", ["decide"], base.Reply({"choice": "fox"}, 11, 12)),
        ("instructed", ["obey"], base.Reply({"choice": "fox"}, 11, 12)),
        ("decide", ["decide"], base.Reply({"choice": "fox"}, 11, 12)),
        ("decide, again", ["decide"], base.Reply({"choice": "fox"}, 11, 12)),
        ("review", ["judge"], base.Reply({"accept": False}, 700, 700)),
        (
            "solve",
            ["locate"],
            base.Reply(
                {"choice": "fox", "region": [8]},
                700,
                700,
                {"strokes": 1, "undos": 0, "first_stroke_ms": 700, "marked_with": "mouse"},
            ),
        ),
        (
            "rate",
            ["q2", "q1"],
            base.Reply(
                {"q2": 5, "q1": 5},
                1400,
                1400,
                {
                    "questions": [
                        {"id": "q2", "ms": 700, "changes": 0},
                        {"id": "q1", "ms": 1400, "changes": 0},
                    ]
                },
            ),
        ),
    ],
)
def test_an_observer_does_what_the_kind_permits(name: str, acts: list[str], reply: base.Reply) -> None:
    trial, watcher = TRIALS[name], Watcher()
    wire = {"content": kind_of(trial).content(trial, STAGE).model_dump()}
    assert kind_of(trial).answer(watcher, wire) == reply
    assert watcher.acts == acts
    if "choice" not in reply.value or name in ("solve", "predict", "instructed"):
        kind_of(trial).check(trial, reply.value)


def test_an_observer_obeys_an_old_check_and_says_when_it_cannot_solve() -> None:
    old = replace(TRIAL, check="instructed", expected="fox")
    watcher = Watcher()
    kind_of(old).answer(watcher, {"content": kind_of(old).content(old, STAGE).model_dump()})
    assert watcher.acts == ["obey"]
    buttons = (*STAGE.buttons, base.Button(value=CANNOT_SAY, text="Cannot say", key="l"))
    trial = TRIALS["solve, or not"]
    content = kind_of(trial).content(trial, replace(STAGE, buttons=buttons)).model_dump()
    assert kind_of(trial).answer(Watcher(), {"content": content}).value == {
        "choice": CANNOT_SAY, "region": None
    }  # fmt: skip


@pytest.mark.parametrize(
    ("earlier", "advice", "seen", "decided"),
    [
        ("Wolf", "Husky", "husky", "husky"),
        ("Wolf", "Husky", "wolf", "wolf"),
        ("Wolf", "Wolf", "husky", "wolf"),
        ("Wolf", None, "wolf", "wolf"),
        ("Wolf", None, "husky", "husky"),
        ("Wolf", "Husky", "fox", "fox"),
        (None, "Husky", "husky", "husky"),
    ],
)
def test_an_observer_of_advice_takes_the_majority_of_three_opinions(
    earlier: str | None, advice: str | None, seen: str, decided: str
) -> None:
    """Its first decision, what it sees now, and the advice, if any; with no two alike, what it sees."""

    class Sees(Watcher):
        def decide(self, trial: Mapping[str, Any]) -> base.Reply:
            return base.Reply({"choice": seen}, 11, 12)

    content: dict[str, Any] = {"step": "second", "earlier": earlier, "advice": advice, "choices": []}
    content["choices"] = [{"value": value, "text": value.title()} for value in CHOICES]
    assert get_kind("decide").answer(Sees(), {"content": content}).value == {"choice": decided}
