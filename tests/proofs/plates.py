"""What can be read off plates, by which cue, by which eyes, and by a network?

    .venv/bin/python -m tests.proofs.plates contrast|cues|network [--seed S]

`contrast`: Delta E*ab between figure and ground over severities of Machado's simulation, and the greatest
that is left to dichromats by two others [Brettel, Vienot and Mollon 1997; Vienot, Brettel and Mollon 1999].
Exits 1 if it does not fall or does not keep to the bounds that plates declare. By the other two, what is left
on a line between two kinds of eyes need only be less than at the severity that the plates are made for.

`cues`: three classifiers read digits from one kind of feature, cross-validated over whole handwritten digits;
the number is the best of the three. A feature of dots is averaged around the places of a grid. Exits 1 if
lightness or size is read, or if a planted difference of the same kind, or colour, is not.

`network`: the share of plates that a network trained on them reads, as they are and as people of reduced
colour vision see them; it never learnt from such pictures. Exits 1 if it reads too few or all of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from daltonlens.simulate import Deficiency, Simulator_Brettel1997, Simulator_Vienot1999
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from analysis.stats.shares.proportions import wilson
from stimuli.colour_vision.light import decoded, encoded, to_lab
from stimuli.colour_vision.machado import AXES, Axis, contrast, simulate
from stimuli.datasets.plates.colours import EYES, LEAST_CONTRAST, MOST_CONTRAST, Line, Pair
from stimuli.datasets.plates.drawing import PaintedPlate, render
from stimuli.datasets.plates.plates import PlatesDataset, open_plates
from stimuli.predictors import open_predictor
from stimuli.predictors.framing import square_view
from stimuli.spec import Component
from stimuli.types import Item

Floats = NDArray[np.float64]
LINES: tuple[Line, ...] = get_args(Line)
SEVERITIES = tuple(step / 10 for step in range(11))
RISE_MOST = 0.3
"""Delta E*ab by which the contrast of red_green may rise in the last step, to eyes whose cones are missing: a
line between two kinds of eyes passes each one's own. An eighth of what is just noticed."""
CELLS = 16
REACH = 0.8
SPREAD = 0.07
"""The grid of places, in radii of the disc: its half side, and the spread of each place's weights."""
INPUT_PX = 64
CHANCE_MOST = 0.15
COLOUR_LEAST = 0.8
FOLDS = 3
PLANTED_DARKER = 4.0
PLANTED_DARKER_PIXELS = 8.0
PLANTED_SMALLER = 0.9
NETWORK = {
    "downsampling": "average",
    "mirrored": False,
    "input_px": INPUT_PX,
    "epochs": 20,
    "train_items": 800,
}
LONGER = {"epochs": 30, "train_items": 1600}
"""What a network needs for plates whose colours are closer to each other."""
NETWORK_READS = (0.7, 0.99)
Drawn = tuple[Item, PaintedPlate]
Feature = Callable[[PaintedPlate], Floats]
Cue = tuple[str, Feature, Callable[[PaintedPlate], PaintedPlate], bool]
"""What is read, how, of which plates, and whether it should be found."""


@dataclass(frozen=True, slots=True)
class Read:
    """`count` of `total` plates were read."""

    count: int
    total: int

    @property
    def share(self) -> float:
        return self.count / self.total

    @property
    def limits(self) -> tuple[float, float]:
        """Of the 95 % interval."""
        interval = wilson(self.count, self.total)
        return interval.low, interval.high

    def __str__(self) -> str:
        low, high = self.limits
        return f"{self.share:6.3f} [{low:.3f}, {high:.3f}] of {self.total}"


def plates(**params: Any) -> PlatesDataset:
    return open_plates(Component("plates", params), Path())


# Contrast


def contrasts(colours: Pair, axis: Axis) -> list[float]:
    return [colours.contrast(axis, severity) for severity in SEVERITIES]


def left_by_others(colours: Pair, axis: Axis) -> float:
    """The greatest contrast for eyes whose cones are missing, by two simulations that are not Machado's."""
    missing = Deficiency[axis.upper()]
    ends = np.stack([colours.figure, colours.ground])[None].astype(np.float32)
    simulators = [Simulator_Brettel1997()] + ([Simulator_Vienot1999()] if axis != "tritan" else [])
    seen = [simulator._simulate_cvd_linear_rgb(ends, missing, 1.0)[0] for simulator in simulators]
    return max(contrast(figure.astype(float), ground.astype(float)) for figure, ground in seen)


def faults_of(numbers: Sequence[float], line: Line, severity: float) -> list[str]:
    """How the contrasts over SEVERITIES break what plates for `severity` promise."""
    steps = np.diff(numbers)
    may_rise = RISE_MOST if line == "red_green" else 0.0
    faults = [] if (steps[:-1] < 0).all() and steps[-1] < may_rise else ["does not fall"]
    at = float(np.interp(severity, SEVERITIES, numbers))
    faults += [] if LEAST_CONTRAST < at < MOST_CONTRAST else ["is out of bounds"]
    return faults + ([] if numbers[-1] < LEAST_CONTRAST else ["is read by dichromats"])


def contrast_table(seed: int) -> int:
    print("line       eyes   " + " ".join(f"{severity:5.1f}" for severity in SEVERITIES) + "  1.0 by others")
    faults = []
    for line in LINES:
        colours = plates(axis=line, seed=seed).colours
        for axis in EYES[line]:
            numbers = contrasts(colours, axis)
            others = left_by_others(colours, axis)
            faults += faults_of(numbers, line, 0.6)
            most = numbers[6] if line == "red_green" else LEAST_CONTRAST
            faults += ["is read by other simulations"] if others >= most else []
            row = " ".join(f"{number:5.1f}" for number in numbers)
            print(f"{line:10} {axis:6} {row} {others:9.1f}")
    bounds = f"{LEAST_CONTRAST:g} to {MOST_CONTRAST:g}"
    print("; ".join(faults) or f"as it should be: within {bounds} at 0.6, below at 1.0")
    return 1 if faults else 0


# Cues


def unchanged(painted: PaintedPlate) -> PaintedPlate:
    return painted


def darker(points: float) -> Callable[[PaintedPlate], PaintedPlate]:
    """Plants a cue: the figure is this many points of L* darker."""

    def change(painted: PaintedPlate) -> PaintedPlate:
        lightness = to_lab(painted.colours)[:, 0] + 16
        share = np.where(painted.is_figure, ((lightness - points) / lightness) ** 3, 1.0)
        return replace(painted, colours=painted.colours * share[:, None])

    return change


def smaller(painted: PaintedPlate) -> PaintedPlate:
    """Plants a cue: the dots of the figure are a tenth smaller."""
    radii = painted.dots.radii * np.where(painted.is_figure, PLANTED_SMALLER, 1.0)
    return replace(painted, dots=replace(painted.dots, radii=radii))


def over_grid(painted: PaintedPlate, numbers: Floats) -> Floats:
    """The mean of a number of each dot around each place of a grid, float64 (CELLS * CELLS,)."""
    places = ((np.arange(CELLS) + 0.5) / CELLS * 2 - 1) * REACH
    across, down = (
        np.exp(-np.square(places[:, None] - painted.dots.middles[None, :, side]) / (2 * SPREAD**2))
        for side in (0, 1)
    )
    return np.asarray((down * numbers @ across.T / (down @ across.T)).ravel())


def dot_lab(painted: PaintedPlate, *channels: int) -> Floats:
    """What a screen shows of the dots: CIELAB of their eight-bit colours, over the grid."""
    lab = to_lab(decoded(encoded(painted.colours)))
    return np.concatenate([over_grid(painted, lab[:, channel]) for channel in channels])


def dot_size(painted: PaintedPlate) -> Floats:
    return over_grid(painted, painted.dots.radii)


def shown(painted: PaintedPlate) -> NDArray[np.uint8]:
    """The plate at the network's resolution, uint8 (INPUT_PX, INPUT_PX, 3)."""
    return square_view(render(painted, INPUT_PX * 2), INPUT_PX)


def pooled(plane: Floats) -> Floats:
    size = INPUT_PX // CELLS
    return np.asarray(plane.reshape(CELLS, size, CELLS, size).mean(axis=(1, 3)).ravel())


def pixel_lightness(painted: PaintedPlate) -> Floats:
    return pooled(to_lab(decoded(shown(painted)))[..., 0])


def pixel_grey(painted: PaintedPlate) -> Floats:
    """The grey of old television, a mean of stored values [ITU-R BT.601], which is not quite lightness."""
    return pooled(shown(painted) @ np.array((0.299, 0.587, 0.114)))


CUES: tuple[Cue, ...] = (
    ("lightness of dots", lambda painted: dot_lab(painted, 0), unchanged, False),
    ("size of dots", dot_size, unchanged, False),
    ("lightness of pixels", pixel_lightness, unchanged, False),
    ("grey of pixels", pixel_grey, unchanged, False),
    ("lightness of dots, planted", lambda painted: dot_lab(painted, 0), darker(PLANTED_DARKER), True),
    ("size of dots, planted", dot_size, smaller, True),
    ("lightness of pixels, planted", pixel_lightness, darker(PLANTED_DARKER_PIXELS), True),
    ("colour of dots", lambda painted: dot_lab(painted, 1, 2), unchanged, True),
)


def classifiers() -> Iterator[Any]:
    yield make_pipeline(StandardScaler(), SVC(C=5))
    yield make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=200))
    yield LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def drawn_for_training(dataset: PlatesDataset) -> list[Drawn]:
    return [(item, dataset.painted(item.key)) for item in dataset.items("model") if item.use == "task"]


def best_read(
    drawn: Sequence[Drawn], feature: Feature, change: Callable[[PaintedPlate], PaintedPlate]
) -> Read:
    """How many of the plates the best of three classifiers reads from this feature."""
    rows = np.stack([feature(change(painted)) for _, painted in drawn])
    truths, groups = (np.array([getattr(item, name) for item, _ in drawn]) for name in ("truth", "group"))
    counts = []
    for classifier in classifiers():
        right = 0
        for learn, judge in GroupKFold(FOLDS).split(rows, truths, groups):
            said = classifier.fit(rows[learn], truths[learn]).predict(rows[judge])
            right += int((said == truths[judge]).sum())
        counts.append(right)
    return Read(max(counts), len(drawn))


def is_as_it_should(read: Read, name: str, should_be_found: bool) -> bool:
    low, high = read.limits
    if not should_be_found:
        return high <= CHANCE_MOST
    return low >= (COLOUR_LEAST if name.startswith("colour") else CHANCE_MOST)


def cue_table(seed: int) -> int:
    wrong = []
    for line in LINES:
        drawn = drawn_for_training(plates(axis=line, seed=seed, model_count=2000))
        for name, feature, change, should_be_found in CUES:
            read = best_read(drawn, feature, change)
            print(f"{line:10} {name:30} {read}", flush=True)
            if not is_as_it_should(read, name, should_be_found):
                wrong.append(f"{line}, {name}")
    print("not as it should be: " + "; ".join(wrong) if wrong else "all as it should be")
    return 1 if wrong else 0


# The network


def reads(
    network: Any, dataset: PlatesDataset, items: Sequence[Item], see: Callable[[Any], Any] = unchanged
) -> Read:
    """How many of the items the network reads, through other eyes."""
    views = [network.view(see(dataset.pixels(item.key))) for item in items]
    said = network.logits(views).argmax(axis=1)
    right = [network.labels[index] == item.truth for index, item in zip(said, items, strict=True)]
    return Read(sum(right), len(right))


def of_use(dataset: PlatesDataset, use: str) -> list[Item]:
    return [item for item in dataset.items("people") if item.use == use]


def taught(dataset: PlatesDataset, seed: int, **changed: Any) -> Any:
    component = Component("trained_cnn", {**NETWORK, "seed": seed, **changed})
    return open_predictor(component, Path(), dataset, lambda *_: None)


def through_eyes(
    network: Any, dataset: PlatesDataset, severities: Sequence[float]
) -> Mapping[Axis, list[Read]]:
    items = of_use(dataset, "task")

    def seen_by(axis: Axis, severity: float) -> Read:
        return reads(network, dataset, items, lambda pixels: simulate(pixels, axis, severity))

    return {axis: [seen_by(axis, severity) for severity in severities] for axis in AXES}


def network_table(seed: int) -> int:
    dataset = plates(seed=seed, count=500)
    network = taught(dataset, seed)
    print(f"trained on {network.provenance['trained_count']} plates of red_green, 0.6")
    print(f"held out {network.provenance['held_out_accuracy']:.3f} of {network.provenance['held_out_count']}")
    task = reads(network, dataset, of_use(dataset, "task"))
    print(f"tasks    {task}\nknown    {reads(network, dataset, of_use(dataset, 'known'))}\n")
    print("the same plates through eyes of severity")
    severities = (0.2, 0.4, 0.6, 0.8, 1.0)
    print(f"{'':8}" + " ".join(f"{severity:6.1f}" for severity in severities))
    for axis, row in through_eyes(network, dataset, severities).items():
        print(f"{axis:8}" + " ".join(f"{read.share:6.3f}" for read in row))
    print("\nplates made for eyes of severity, by a network trained on those of 0.6, and on those themselves")
    for severity in (0.2, 0.3, 0.4, 0.5, 0.6):
        other = plates(seed=seed, count=500, severity=severity)
        by_another = reads(taught(other, seed, **LONGER), other, of_use(other, "task"))
        print(f"{severity:6.1f} {reads(network, other, of_use(other, 'task'))}   {by_another}", flush=True)
    low, high = NETWORK_READS
    return 0 if low <= task.share <= high else 1


TABLES = {"contrast": contrast_table, "cues": cue_table, "network": network_table}


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="What can be read off plates?")
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(words)
    return TABLES[chosen.table](chosen.seed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
