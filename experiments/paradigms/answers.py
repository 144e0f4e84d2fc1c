"""What a response value may be, per trial kind; cheap, for it runs on every response."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

from experiments.paradigms.base import InvalidResponse, TrialKind

SCALE = ("1", "2", "3", "4", "5")
"""The points of a rating, as choice values; answers carry them as integers."""

Question = Literal["q1", "q2", "q3", "q4", "q5", "q6"]
QUESTIONS: tuple[Question, ...] = ("q1", "q2", "q3", "q4", "q5", "q6")
GRID_CELLS_MAX = 64 * 64
"""A marked region is a list of cell indices, row by row, of a grid of at most 64 x 64 cells."""


def check_choice(choices: Sequence[str], value: Mapping[str, Any]) -> None:
    """Accepts exactly {"choice": one of the choices}."""
    if len(value) != 1 or "choice" not in value:
        raise InvalidResponse(f'expected {{"choice": …}}, got the keys {_keys(value)}')
    _check_member(choices, value["choice"])


def check_seen(value: Mapping[str, Any]) -> None:
    """Accepts exactly {"seen": true}."""
    if len(value) != 1 or value.get("seen") is not True:
        raise InvalidResponse(f'expected {{"seen": true}}, got the keys {_keys(value)} or another value')


def check_review(value: Mapping[str, Any]) -> None:
    """Accepts exactly {"accept": true} or {"accept": false}."""
    if len(value) != 1 or not isinstance(value.get("accept"), bool):
        raise InvalidResponse(
            f'expected {{"accept": true or false}}, got the keys {_keys(value)} or another value'
        )


def check_solve(choices: Sequence[str], value: Mapping[str, Any]) -> None:
    """Accepts {"choice"} with an optional "region": null, or distinct cell indices in ascending order."""
    if "choice" not in value or not value.keys() <= {"choice", "region"}:
        raise InvalidResponse(f'expected {{"choice": …, "region": […] or null}}, got the keys {_keys(value)}')
    _check_member(choices, value["choice"])
    region = value.get("region")
    if region is None:
        return
    if not isinstance(region, list) or len(region) > GRID_CELLS_MAX:
        raise InvalidResponse(f"region must be null or a list of at most {GRID_CELLS_MAX} cell indices")
    last = -1
    for cell in region:
        if type(cell) is not int or not last < cell < GRID_CELLS_MAX:
            raise InvalidResponse(
                f"region must hold distinct whole numbers from 0 to {GRID_CELLS_MAX - 1} in ascending order"
            )
        last = cell


def check_rate(value: Mapping[str, Any], asked: Sequence[str] | None) -> None:
    """Accepts {"q1": 1..5, …}: exactly the questions asked, or where that is unknown some of q1 to q6."""
    if asked is None and (not value or not value.keys() <= set(QUESTIONS)):
        raise InvalidResponse(f"expected answers to {', '.join(QUESTIONS)}, got the keys {_keys(value)}")
    if asked is not None and value.keys() != set(asked):
        raise InvalidResponse(f"expected answers to exactly {', '.join(asked)}, got the keys {_keys(value)}")
    for name, rating in value.items():
        if type(rating) is not int or not 1 <= rating <= 5:
            raise InvalidResponse(f"{name} must be a whole number from 1 to 5")


def refuse_kind(kind: TrialKind) -> InvalidResponse:
    """The error for a kind that the paradigm does not have."""
    return InvalidResponse(f"this study has no trials of kind {kind!r}")


def answers_of(value: Mapping[str, Any]) -> list[Hashable]:
    """The answers that one value gives: its choice, acceptance, or each rating; empty for {"seen": true}."""
    if "choice" in value:
        return [str(value["choice"])]
    if "accept" in value:
        return ["accept" if value["accept"] else "reject"]
    return [str(value[name]) for name in sorted(value) if name in QUESTIONS]


def follows(expected: str, value: Mapping[str, Any]) -> bool:
    """Whether a check's value is what the check asks for."""
    given = answers_of(value)
    return bool(given) and all(answer == expected for answer in given)


def _check_member(choices: Sequence[str], choice: object) -> None:
    if not isinstance(choice, str) or choice not in choices:
        raise InvalidResponse(f"choice must be one of {', '.join(choices)}")


def _keys(value: Mapping[str, Any]) -> str:
    return ", ".join(repr(str(key)[:20]) for key in list(value)[:8]) or "none"
