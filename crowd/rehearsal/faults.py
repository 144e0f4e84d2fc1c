"""Faults on demand, drawn from a seed: the same run meets the same faults.

What a platform documents, or what its documentation leaves open so that it must be expected:

- `429`: too many requests, no effect. Prolific: rate limits exist, their numbers are not published.
  Mechanical Turk: ThrottlingException.
- `5xx_before`, `5xx_after`: a failure of the platform, without and with effect. Both document 5xx without
  saying which.
- `lost_answer`: the effect without an answer. No platform can exclude it.
- `late_effect`: no answer, and the effect `late_s` later. Prolific: a paid batch is answered 202 and carried
  out "asynchronously", without a bound; bulk approval likewise. Mechanical Turk: a list may lag behind.
- `refused_late`: the call that pays is refused (429, 400, 403 or 422), and is carried out `late_s` later all
  the same. Prolific's pages say of these answers nowhere that the call had no effect.
- `null_amount`, `text_amount`: the answer to announced bonuses has no `amount`, or amounts as digits in
  quotation marks. Prolific: "double or null"; other clients saw text.
- `other_amount`: a bonus is paid, and the list shows a cent more for it for ever. Not documented; the schema
  of amounts is a float, and no rule says how it is rounded.
- `one_sum`: a bonus is paid, and the list shows the sum of it and the person's earlier ones. Prolific:
  `bonus_payments` is a list of numbers, and no text says that each payment has an entry of its own.
- `odd_row`: one row of a list of people lacks its id or its participant, or has members of other types.
  Prolific: nullable and newer members appear in every version of its schema. Mechanical Turk: no member of
  Assignment or BonusPayment is required.
- `slow_body`: the body of the answer drips, for `slow_s` on the simulator's clock. HTTP allows it.
- `half_json`: the body ends in the middle. A proxy that is cut off answers so.
- `repeated_page`: a page of a list names itself as the next one. Both page by an opaque link or token.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from crowd.rehearsal.clock import Clock
from crowd.rehearsal.serving import Answer
from experiments.design.rng import Streams

Fault = Literal[
    "", "429", "5xx_before", "5xx_after", "lost_answer", "late_effect", "refused_late", "other_amount",
    "one_sum", "null_amount", "text_amount", "odd_row", "slow_body", "half_json", "repeated_page",
]  # fmt: skip
KINDS: tuple[Fault, ...] = ("429", "5xx_before", "5xx_after", "lost_answer")
"""What is drawn unless other kinds are asked for: every call can meet them."""
LATER: tuple[Fault, ...] = ("late_effect", "refused_late", "other_amount", "one_sum")
"""What only shows after the call: in people's money."""
MALFORMED: tuple[Fault, ...] = (
    "null_amount", "text_amount", "odd_row", "slow_body", "half_json", "repeated_page",
)  # fmt: skip
"""Answers that are wrong in form."""
ALL: tuple[Fault, ...] = (*KINDS, *LATER, *MALFORMED)
LATE_S, SLOW_S = 3600.0, 90.0


class Faults:
    """Which call fails, and how: `429` and `5xx_before` have no effect; the others do.

    A share (0-1) of calls fails at random, kinds equally likely; `forced` are the kinds of the coming calls,
    for any share; `down` fails every call as an unreachable platform would. A call that cannot meet a kind
    passes: a forced one waits for the first that can.
    """

    def __init__(self, seed: int = 0, share: float = 0.0, kinds: tuple[Fault, ...] = KINDS) -> None:
        self.rng = Streams(seed)("faults")
        self.share, self.kinds = share, kinds
        self.late_s, self.slow_s = LATE_S, SLOW_S
        self.down = False
        self.forced: list[Fault] = []
        self.met: Counter[str] = Counter()
        self._lock = threading.Lock()

    def draw(self, meets: Callable[[Fault], bool] = bool) -> Fault:
        """The fault of this call; empty: none. `meets` says of a kind whether this call can meet it."""
        with self._lock:
            fault = self._draw_fault(meets)
            if fault:
                self.met[fault] += 1
            return fault

    def _draw_fault(self, meets: Callable[[Fault], bool]) -> Fault:
        if self.down:
            return "5xx_before"
        if self.forced:
            return self.forced.pop(0) if not self.forced[0] or meets(self.forced[0]) else ""
        if self.rng.random() < self.share:
            fault = self.kinds[int(self.rng.integers(len(self.kinds)))]
            return fault if meets(fault) else ""
        return ""

    def set(
        self,
        share: float | None = None,
        down: bool | None = None,
        forced: Sequence[Fault] | None = None,
        kinds: Sequence[Fault] | None = None,
        late_s: float | None = None,
    ) -> dict[str, Any]:
        """Changes what is given, and tells how it is now. Raises ValueError for a kind that is none."""
        strange = [kind for kind in (*(forced or ()), *(kinds or ())) if kind not in ("", *ALL)]
        if strange:
            raise ValueError(f"{strange[0]!r} is no fault. A fault is one of {', '.join(ALL)}, or empty.")
        with self._lock:
            self.share = self.share if share is None else share
            self.down = self.down if down is None else down
            self.forced = self.forced if forced is None else list(forced)
            self.kinds = self.kinds if kinds is None else tuple(kinds)
            self.late_s = self.late_s if late_s is None else late_s
            met = dict(self.met)
            return {"share": self.share, "down": self.down, "forced": list(self.forced), "met": met}

    def spoilt(self, fault: Fault, answer: Answer, clock: Clock) -> Answer:
        """The answer as it leaves, if the fault is one of its form."""
        if fault == "half_json":
            return replace(answer, body=answer.body[: len(answer.body) // 2])
        if fault == "slow_body":
            return replace(answer, pause=lambda pieces: clock.advance(self.slow_s / pieces))
        return answer
