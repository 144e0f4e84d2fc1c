"""How a payout reaches a person, by what the platform shows of their work."""

from typing import Any, get_args

import pytest

from crowd.money.payment_route import Case, way_of
from crowd.platforms.base import Kind, SubmissionState

pytestmark = pytest.mark.pure
STATES = get_args(SubmissionState)
KINDS = get_args(Kind)


@pytest.mark.parametrize(
    ("kind", "state", "fields", "action"),
    [
        ("base", "awaiting", {}, "approve"),
        ("base", "approved", {}, "paid"),
        ("base", "returned", {}, "move"),
        ("base", "timed_out", {}, "move"),
        ("base", "timed_out", {"pays_returned": False}, "fail"),
        ("base", "partly_approved", {}, "wait"),
        ("base", "screened_out", {}, "wait"),
        ("bonus", "awaiting", {}, "bonus"),
        ("bonus", "approved", {}, "bonus"),
        ("bonus", "returned", {}, "bonus"),
        ("bonus", "returned", {"pays_returned": False}, "fail"),
        ("screen_out", "screened_out", {}, "paid"),
        ("screen_out", "approved", {}, "covered"),
        ("screen_out", "returned", {}, "bonus"),
        ("screen_out", "awaiting", {}, "wait"),
        ("screen_out", "awaiting", {"return_requested": True}, "wait"),
        ("compensation", "awaiting", {"return_requested": True}, "wait"),
        ("screen_out", "awaiting", {"cents": 140}, "approve"),
        ("screen_out", "awaiting", {"cents": 140, "has_base": True}, "bonus"),
        ("screen_out", "approved", {"has_base": True}, "bonus"),
        ("compensation", "approved", {}, "covered"),
        ("compensation", "approved", {"has_base": True}, "bonus"),
        ("compensation", "approved", {"cents": 200}, "wait"),
        ("compensation", "screened_out", {}, "wait"),
        ("compensation", "timed_out", {}, "bonus"),
    ],
)
def test_it_finds_the_way(kind: Kind, state: SubmissionState, fields: dict[str, Any], action: str) -> None:
    case = Case(**({"kind": kind, "cents": 70, "state": state, "approval_cents": 140} | fields))
    assert way_of(case).action == action


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", ["reserved", "active", "unknown", "rejected"])
@pytest.mark.parametrize("has_base", [True, False])
def test_it_never_pays_who_is_at_work_or_rejected(kind: Kind, state: SubmissionState, has_base: bool) -> None:
    way = way_of(Case(kind, 70, state, 140, has_base=has_base))
    assert way.action == "wait" and way.why.endswith(".")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("cents", [70, 140, 200])
@pytest.mark.parametrize("extra", [{}, {"has_base": True}, {"return_requested": True}])
def test_it_always_has_an_action_or_a_sentence(
    kind: Kind, state: SubmissionState, cents: int, extra: dict[str, bool]
) -> None:
    way = way_of(Case(kind, cents, state, 140, **extra))
    assert bool(way.why) == (way.action in {"wait", "fail"})
    # While the platform may still pay its reward, no other payment replaces it.
    if (
        state in {"awaiting", "approved"}
        and kind in {"screen_out", "compensation"}
        and not extra.get("has_base")
    ):
        assert way.action != "bonus"
    # Approving pays a fixed amount, so it is used only if exactly that amount is due.
    assert way.action != "approve" or kind == "base" or cents == 140
