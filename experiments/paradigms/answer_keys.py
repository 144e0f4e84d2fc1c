"""The buttons of an answer: left to right, each with its key."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.design.block_randomization import permuted_level
from experiments.design.rng import Streams
from experiments.kinds.base import Choice
from experiments.paradigms.base import BadDesign

PAIR_KEYS = ("f", "j")
ROW_KEYS = tuple("1234567890qwertyuiop")
KEYS_TO_CHOOSE_MAX = 4


def answer_buttons(choices: Sequence[tuple[str, str]], index: int, streams: Streams) -> tuple[Choice, ...]:
    """The buttons of slot `index`, left to right, the same throughout the session.

    Of two answers, each is left in one of slots 2i and 2i + 1 (stream "sides"), with keys f and j. More than
    two keep their canonical order, which may be a scale. A one-character text is its own key, otherwise keys
    are 1 to 9, 0 and the upper letter row.
    """
    if not 2 <= len(choices) <= len(ROW_KEYS):
        raise BadDesign(f"a trial has 2 to {len(ROW_KEYS)} answers, this study has {len(choices)}")
    keys, ordered = answer_keys(choices), tuple(choices)
    if len(choices) == 2 and permuted_level(2, index, streams, "sides") == 1:
        ordered = (ordered[1], ordered[0])
    return tuple(Choice(value, text, key) for (value, text), key in zip(ordered, keys, strict=True))


def answer_keys(choices: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The keys of a study's answers, left to right."""
    letters = [text.lower() for _, text in choices]
    if len(choices) == 2:
        return PAIR_KEYS
    return tuple(letters) if _are_keys(letters) else ROW_KEYS[: len(choices)]


def keys_to_choose(choices: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The keys that a person may replace by others: of two to four answers that are not their own keys."""
    keys = answer_keys(choices)
    is_own = any(key == text.lower() for key, (_, text) in zip(keys, choices, strict=True))
    return () if is_own or not 2 <= len(choices) <= KEYS_TO_CHOOSE_MAX else keys


def _are_keys(texts: Sequence[str]) -> bool:
    return len(set(texts)) == len(texts) and all(len(text) == 1 and text.isalnum() for text in texts)
