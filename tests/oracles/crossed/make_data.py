"""Answers with stated effects for witness.R: python make_data.py, here. Written once."""

from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
EFFECTS = (0.0, 0.6, -0.4)
PERSON_SD, ITEM_SD, CELL_SD = 0.8, 0.6, 0.7
PEOPLE, ITEMS, PER_PERSON = 45, 24, 16


def rows(thresholds: tuple[float, ...], seed: int) -> list[tuple[int, int, int, int]]:
    """(person, item, condition, answer); a positive effect moves answers up."""
    rng = np.random.default_rng(seed)
    people, items = rng.normal(0, PERSON_SD, PEOPLE), rng.normal(0, ITEM_SD, ITEMS)
    cells = rng.normal(0, CELL_SD, (ITEMS, len(EFFECTS)))
    made = []
    for person in range(PEOPLE):
        condition = person % len(EFFECTS)
        for item in sorted(rng.choice(ITEMS, PER_PERSON, replace=False)):
            eta = EFFECTS[condition] + people[person] + items[item] + cells[item, condition]
            latent = eta + rng.logistic()
            made.append((person, int(item), condition, int((latent > np.array(thresholds)).sum())))
    return made


if __name__ == "__main__":
    for name, thresholds, seed in (("binary", (0.2,), 11), ("ordered", (-1.5, -0.4, 0.5, 1.6), 12)):
        lines = ["person,item,condition,answer", *(",".join(map(str, row)) for row in rows(thresholds, seed))]
        (HERE / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
