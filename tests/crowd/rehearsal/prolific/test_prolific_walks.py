"""Random walks through the simulated Prolific, with failing calls: money and places are conserved throughout.

The rules are written again here; of the simulator's own arithmetic only its list of payments is used.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import httpx
import numpy as np
import pytest

from crowd.rehearsal.faults import Faults
from tests.crowd.rehearsal.prolific.prolific_client import DONE, Client, conserved, researcher
from tests.crowd.rehearsal.prolific.prolific_client import study as documented

pytestmark = pytest.mark.pure

STEPS = 300
PLACES = 8
HOLD = {"RESERVED", "ACTIVE", "AWAITING REVIEW", "APPROVED"}
MOVES = {
    ("", "RESERVED"), ("RESERVED", "ACTIVE"), ("", "ACTIVE"), ("ACTIVE", "AWAITING REVIEW"),
    ("ACTIVE", "RETURNED"), ("AWAITING REVIEW", "RETURNED"), ("ACTIVE", "TIMED-OUT"),
    ("AWAITING REVIEW", "APPROVED"), ("AWAITING REVIEW", "REJECTED"),
}  # fmt: skip


def published(client: Client) -> str:
    """Under faults a draft may exist without our knowledge; only a published one is of use."""
    while True:
        try:
            answer = client.post("studies/", documented(total_available_places=PLACES))
            if answer.status_code == 201:
                client.move(answer.json()["id"], "PUBLISH")
        except httpx.RemoteProtocolError:
            continue
        for study in client.sim.world.studies.values():
            if study.status == "ACTIVE":
                return study.id


def steps(client: Client, study: str) -> list[Callable[[str, float], object]]:
    """Possible next steps, each for a submission ("none": none yet) and a number drawn from 0 to 1."""

    def verb(name: str, **members: object) -> None:
        client.http.post(f"/_simulator/{name}", json=members)

    def bonus(submission: str, drawn: float) -> None:
        answer = client.batch(study, f"{submission},{1 + drawn:.2f}")
        if answer.status_code == 201:
            client.post(f"bulk-bonus-payments/{answer.json()['id']}/pay/")

    reject = {"message": "x" * 100, "rejection_category": "NO_DATA"}
    return [
        lambda submission, drawn: verb("take", posting=study),
        lambda submission, drawn: verb("take", posting=study),
        lambda submission, drawn: verb("complete", submission=submission, code=DONE),
        lambda submission, drawn: verb("complete", submission=submission, code=DONE),
        lambda submission, drawn: verb("return", submission=submission) if drawn < 0.5 else None,
        lambda submission, drawn: verb("advance", seconds=300 * drawn),
        lambda submission, drawn: client.post("submissions/bulk-approve/", {"submission_ids": [submission]}),
        lambda submission, drawn: client.decide(submission, "APPROVE"),
        lambda submission, drawn: client.decide(submission, "REJECT", **reject) if drawn < 0.3 else None,
        lambda submission, drawn: client.patch(
            f"studies/{study}/", {"total_available_places": PLACES + int(6 * drawn)}
        ),
        lambda submission, drawn: client.move(study, ("PAUSE", "START")[drawn < 0.7]),
        bonus,
    ]


@pytest.mark.parametrize("seed", range(4))
def test_it_conserves_money_and_places_over_random_walks(seed: int) -> None:
    draw = np.random.default_rng(seed)
    seen: dict[str, str] = {}
    moves: set[tuple[str, str]] = set()
    with researcher(seed, Faults(seed, share=0.15)) as client:
        study = published(client)
        likely = steps(client, study)
        for _ in range(STEPS):
            submission = list(seen)[int(draw.integers(len(seen)))] if seen else "none"
            with suppress(httpx.RemoteProtocolError):  # the answer was lost; the effect remains
                likely[int(draw.integers(len(likely)))](submission, float(draw.random()))
            state = client.verb("state")
            check(state, study)
            for name, work in state["submissions"].items():
                if work["state"] != seen.get(name, ""):
                    moves.add((seen.get(name, ""), work["state"]))
                    seen[name] = work["state"]
        assert client.sim.faults.met
    steps_of_two = {(a, d) for a, b in MOVES for c, d in MOVES if b == c}
    assert moves <= MOVES | steps_of_two  # a submission may pass two states in one step of time
    assert len(moves) >= 4


def check(state: dict[str, object], study: str) -> None:
    works, postings = state["submissions"], state["postings"]
    assert isinstance(works, dict) and isinstance(postings, dict)
    assert conserved(state)
    posting = postings[study]
    held = sum(work["state"] in HOLD for work in works.values())
    assert posting["held"] == held <= posting["places"]
    assert posting["free"] == posting["places"] - held
    for work in works.values():
        assert work["reward_paid_count"] == (work["state"] == "APPROVED")


def test_it_repeats_itself_for_the_same_seed() -> None:
    def story(seed: int) -> dict[str, object]:
        with researcher(seed) as client:
            client.verb("people", count=5)
            study = client.published()
            client.finished(study)
            state = client.verb("state")
            return {name: state[name] for name in ("postings", "submissions", "balance")}

    assert story(7) == story(7)
    assert story(7)["submissions"] != story(8)["submissions"]
