"""What the scripts of all paradigms share; it is written into each of them when a package is made."""

import argparse
import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

LEVEL = 0.95
Numbers = dict[tuple[str, str, str], float]
Read = Callable[[Path, pd.DataFrame], tuple[Any, ...]]


def table(folder: Path, name: str) -> pd.DataFrame:
    """All cells as text, of the file beside this script or as Psych-DS names it in data/."""
    files = [folder / f"{name}.csv", *sorted((folder / "data").glob(f"*-{name}_data.csv"))]
    there = [path for path in files if path.is_file()]
    if not there:
        sys.exit(f"{folder}: there is no {name}.csv; give the folder of the package.")
    return pd.read_csv(there[0], dtype=str, keep_default_na=False, encoding="utf-8")


def choose_origin(people: pd.DataFrame, origin: str) -> str:
    there = sorted(people["origin"].unique())
    origin = origin or (there[0] if len(there) == 1 else "human")
    if origin not in there:
        sys.exit(f"No session has the origin {origin!r}; there are {', '.join(there)}: choose with --origin.")
    return origin


def kept(rows: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    """The rows of sessions that screening kept and that no person left out by hand."""
    is_kept = (people["status"] == "passed") & (people["excluded_by_hand"] != "1")
    return rows[rows["session"].isin(people.loc[is_kept, "session"])]


def clustered_estimate(estimate: float, parts: pd.Series, rows: pd.DataFrame) -> dict[str, float]:
    """Error, p and interval of an estimate, to whose deviation each row adds its part."""
    person, item = rows["participant"], rows["item"]
    people, pictures = person.nunique(), item.nunique()
    told = {"estimate": estimate, "people": people, "p": np.nan, "low": np.nan, "high": np.nan}
    if min(people, pictures) < 2:
        return told
    by = [person, item, person + "\r" + item]
    sums = [parts.groupby(cluster).sum() for cluster in by]
    of_people, of_items, of_both = ((s**2).sum() * len(s) / max(len(s) - 1, 1) for s in sums)
    se = np.sqrt(max(of_people + of_items - of_both, of_people, of_items))
    if se > 1e-12 * max(1.0, abs(estimate)):
        df = min(people, pictures) - 1
        half = t.ppf((1 + LEVEL) / 2, df) * se
        told |= {"p": 2 * t.sf(abs(estimate) / se, df), "low": estimate - half, "high": estimate + half}
    return told


def mean(rows: pd.DataFrame, name: str) -> dict[str, float]:
    y = rows[name]
    return clustered_estimate(float(y.mean()), (y - y.mean()) / len(y), rows)


def add(made: Numbers, part: str, name: str, told: dict[str, Any]) -> None:
    made.update({(part, name, what): value for what, value in told.items()})


def holm(p: dict[str, float]) -> dict[str, float]:
    """Holm's correction of p by name, the smallest first."""
    order, worst, made = sorted(p, key=lambda name: p[name]), 0.0, {}
    for place, name in enumerate(order):
        worst = max(worst, min(1.0, (len(order) - place) * p[name]))
        made[name] = worst
    return made


def add_family(made: Numbers, part: str, told: dict[str, dict[str, float]]) -> None:
    """The numbers of comparisons by name, with Holm's correction over those that have a p."""
    corrected = holm({name: row["p"] for name, row in told.items() if not np.isnan(row.get("p", np.nan))})
    for name, row in told.items():
        add(made, part, name, row | ({"p_holm": corrected[name]} if name in corrected else {}))


def cell(made: Numbers, part: str, name: str, what: str, digits: int = 3, scale: float = 1.0) -> str:
    value = made.get((part, name, what), np.nan)
    return "-" if np.isnan(value) else f"{scale * value:.{digits}f}"


def names_in(made: Numbers, part: str) -> list[str]:
    return list(dict.fromkeys(name for of, name, _ in made if of == part))


def print_rows(rows: list[list[str]]) -> None:
    """The first row holds the heads."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def run(read: Read, show: Callable[..., None], not_re_run: tuple[str, ...]) -> None:
    """`read` gives the numbers of the people of one origin, and what `show` needs besides to print them."""
    parser = argparse.ArgumentParser(description="The planned analysis, from the files of this package.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--origin", default="", help="whose sessions; people without it, or the only ones")
    parser.add_argument("--out", type=Path, help="a CSV file, outside the package, for every number")
    options: Any = parser.parse_args()
    people = table(options.folder, "participants")
    origin = choose_origin(people, options.origin)
    people = people[(people["origin"] == origin) & (people["arrival"] != "unverified")]
    made, *more = read(options.folder, people)
    if origin == "simulated":
        print("Computational observers, not people.\n")
    show(made, *more)
    print(f"\nNot re-run here, see the report: {'; '.join(not_re_run)}.")
    if options.out:
        with options.out.open("w", newline="", encoding="utf-8") as handle:
            writer = csv.writer(handle)
            writer.writerow(["analysis", "name", "measure", "value"])
            writer.writerows([*key, repr(float(value))] for key, value in made.items() if not np.isnan(value))
