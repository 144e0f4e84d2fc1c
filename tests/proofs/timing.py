"""How far are our stamps from what the browser itself records? The page as it is built, in real Chromiums.

    .venv/bin/python -m tests.proofs.timing WAY [--rate HZ] [--trials N] [--seed S]

WAY is `controlled` (headless, each frame begun by this program, the record is the pixels of the frames),
`headless` or `headed` (under Xvfb; Chromium runs freely, the record is its trace). The page shows a fixation
mark, a picture for 100 ms and a mask, and stores the onset, the time on the screen, the frames, and the
response time of a key that the DevTools protocol presses at a moment known on the same monotonic clock.

No panel, keyboard or mouse is here: what they add is not measured. A software display presents a frame as
soon as it is drawn, a panel at its next refresh, which is what our stamps name: run freely, they are late by
most of a frame. Positive errors: our number is later or longer. Exits 1 if a law is broken (`early`,
`miscounted`, and of `controlled` also `apart`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

import numpy as np

from tests.proofs.timing_ways import COURSE, CannotMake, Trial, controlled, headed, headless

HEADING = "Error of our stamp against the browser's own record"
USUAL_HZ = 60.0
"""A Chromium that runs freely without a panel draws at this rate, and has no switch for another."""
TRIALS = 60
FREE: dict[str, Callable[[int, int], list[Trial]]] = {"headless": headless, "headed": headed}
ROUNDED_MS = 0.1
"""Onsets are stored to a tenth of a millisecond, as browsers coarsen their clocks."""


def measured(way: str, rate: float, count: int, seed: int) -> list[Trial]:
    """CannotMake says why a rate cannot be had in this way."""
    if way == "controlled":
        return controlled(rate, count, seed)
    if rate != USUAL_HZ:
        raise CannotMake(
            f"Chromium that runs freely without a panel draws at {USUAL_HZ:g} Hz and has no switch for it"
        )
    return FREE[way](count, seed)


def errors_of(trials: Sequence[Trial]) -> dict[str, list[float]]:
    """Our number less the record's, in milliseconds."""
    return {
        "onset": [t.stamp.on_ms - t.record.on_ms for t in trials],
        "offset": [t.stamp.off_ms - t.record.off_ms for t in trials],
        "time on the screen": [
            (t.stamp.off_ms - t.stamp.on_ms) - (t.record.off_ms - t.record.on_ms) for t in trials
        ],
        "response time": [t.rt_ms - (t.pressed_ms - t.record.on_ms) for t in trials],
    }


def early(trials: Sequence[Trial]) -> list[str]:
    """Stamps before the picture was put into the page."""
    return [
        f"trial {number}: stamped {trial.stamp.on_ms}, put there {trial.inserted_ms:.1f}"
        for number, trial in enumerate(trials, 1)
        if trial.stamp.on_ms < trial.inserted_ms - ROUNDED_MS
    ]


def apart(trials: Sequence[Trial]) -> list[str]:
    """Stamps that are further from the record than the neighbouring frame. A stamp is late where frames were
    dropped, which is flagged: those trials are not judged by it."""
    wrong = []
    for number, trial in enumerate(trials, 1):
        frames = (trial.stamp.on_ms - trial.record.on_ms) / trial.refresh_ms
        if not trial.dropped and abs(frames) > 1.1:
            wrong.append(f"trial {number}: stamp and record are {frames:.2f} frames apart")
    return wrong


def miscounted(trials: Sequence[Trial]) -> list[str]:
    """Exposures of another number of frames than was asked for, or than were drawn."""
    wrong = []
    # A single trial of a busy machine may lose more than half of its frames, and with them their length.
    asked = round(COURSE["exposure_ms"] / refresh_of(trials))
    for number, trial in enumerate(trials, 1):
        if trial.frames != asked:
            wrong.append(f"trial {number}: {trial.frames} frames, {asked} are due")
        if trial.drawn is not None and trial.frames != trial.drawn:
            wrong.append(f"trial {number}: {trial.frames} frames counted, {trial.drawn} drawn")
    return wrong


def refresh_of(trials: Sequence[Trial]) -> float:
    """Length of a frame of the display, in milliseconds, by most trials."""
    return float(np.median([t.refresh_ms for t in trials]))


def table(trials: Sequence[Trial]) -> str:
    """Mean and SD of the error, 95th percentile and maximum of its size, in ms and in frames."""
    refresh_ms = refresh_of(trials)
    names = ("mean", "sd", "95 %", "max")
    head = f"{'n':>25}" + "".join(f"{name:>9}" for name in names) + "".join(f"{name:>8}" for name in names)
    lines = [f"{'milliseconds':>61}{'frames':>32}", head]
    for name, errors in errors_of(trials).items():
        each = np.array(errors)
        size = np.abs(each)
        row = np.array([each.mean(), each.std(ddof=1), np.percentile(size, 95), size.max()])
        cells = [f"{value:>9.2f}" for value in row] + [f"{value:>8.2f}" for value in row / refresh_ms]
        lines.append(f"{name:<20}{len(each):>5}" + "".join(cells))
    return "\n".join(lines)


def summary(trials: Sequence[Trial]) -> str:
    refresh_ms = refresh_of(trials)
    counted = [t for t in trials if t.drawn is not None]
    text = f"A frame takes {refresh_ms:.2f} ms. Frames of 100 ms: {sorted({t.frames for t in trials})}. "
    text += f"Trials with dropped frames by our count: {sum(t.dropped > 0 for t in trials)} of {len(trials)}."
    if counted:
        equal = sum(t.frames == t.drawn for t in counted)
        text += f" Frames that we counted and that were drawn are equal in {equal} of {len(counted)}."
    return text


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=HEADING)
    parser.add_argument("way", choices=("controlled", *FREE))
    parser.add_argument("--rate", type=float, default=USUAL_HZ)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(words)
    print(f"{HEADING}: {asked.way}, {asked.rate:g} Hz\n")
    try:
        trials = measured(asked.way, asked.rate, asked.trials, asked.seed)
    except CannotMake as reason:
        print(f"Cannot be made: {reason}.")
        return 0
    clean = [trial for trial in trials if not trial.dropped]
    print(f"{table(trials)}\n")
    if 2 <= len(clean) < len(trials):
        print(f"Only trials without dropped frames\n{table(clean)}\n")
    print(summary(trials))
    laws = [*early(trials), *miscounted(trials)]
    far = apart(trials)
    if asked.way == "controlled":
        laws += far
    elif far:
        # The page's frames came in time and the browser drew late: a page cannot know that.
        print(f"In {len(far)} trials the browser drew late, and the page could not tell:", *far, sep="\n")
    print("\n".join(laws[:20]) or "No law is broken.")
    return 1 if laws else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
