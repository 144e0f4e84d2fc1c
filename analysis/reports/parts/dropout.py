"""People who left with few answers and count as assigned like the others: their part of the result."""

from __future__ import annotations

from typing import Any

import pandas as pd

LEFT = ("incomplete", "withdrawn")


def leavers_content(people: pd.DataFrame) -> dict[str, Any]:
    """`people`: one row per person with condition, status, accuracy and the number of `answers`.

    `share_of_people`, `share_of_answers` and `share_of_ss` (of the sum of squares within conditions, every
    person weighing the same) are of everybody in conditions with at least two people; None if there is
    nothing to share.
    """
    counts = people.groupby("condition")["accuracy"].transform("size")
    people = people[counts >= 2]
    away = (people["accuracy"] - people.groupby("condition")["accuracy"].transform("mean")) ** 2
    is_left = people["status"].isin(LEFT)
    answers = people.loc[is_left, "answers"]
    return {
        "n": int(is_left.sum()),
        "answers": int(answers.sum()),
        "answers_min": int(answers.min()) if len(answers) else None,
        "answers_max": int(answers.max()) if len(answers) else None,
        "share_of_people": _share(is_left.sum(), len(people)),
        "share_of_answers": _share(answers.sum(), people["answers"].sum()),
        "share_of_ss": _share(away[is_left].sum(), away.sum()),
    }


def leavers_sentence(content: dict[str, Any]) -> str:
    """Empty without such people."""
    if not content["n"]:
        return ""
    few, many = content["answers_min"], content["answers_max"]
    each = f"{few}" if few == many else f"{few}\N{EN DASH}{many}"
    shares = [
        f"{100 * content[key]:.0f} % of the {what}"
        for key, what in (
            ("share_of_people", "people"),
            ("share_of_answers", "answers"),
            ("share_of_ss", "sum of squares within conditions"),
        )
        if content[key] is not None
    ]
    who = "1 person who left counts" if content["n"] == 1 else f"{content['n']} people who left count"
    said = f"{who} here, with {each} answers, each as much as a person who finished with all"
    return f"{said}: {_join_with_and(shares)}."


def _join_with_and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole > 0 else None
