"""What the observer would have done with other explanations: the controls that stand under every simulated
table.

The same observers take the same plans and pictures, in memory, once per control: without explanation,
with the explanation as shown, with its patches shuffled in space, with the explanation of another image, and
with the planted region if it is known (oracle). Overlays of the controls are drawn by the study's own
recipe and read by the observer like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from experiments.design.rng import Streams
from experiments.paradigms.base import Plan, PlannedTrial
from experiments.simulation import HEADING
from experiments.simulation.learner import Learner
from experiments.simulation.people import ExampleView, TestView
from experiments.simulation.sight import (
    CELLS,
    GRID,
    Floats,
    Percept,
    attention_of,
    perceive,
    place_in_square,
    read_heat,
)
from stimuli.render.heatmap import painted
from stimuli.render.recipe import RenderSpec
from stimuli.types import Mask, Pixels

CONTROLS = {
    "baseline": "no explanation",
    "shown": "explanation as shown",
    "permuted": "explanation permuted in space",
    "other_image": "explanation of another image",
    "oracle": "planted region (oracle)",
}


@dataclass(frozen=True, slots=True)
class Pictures:
    """The pictures of a study and what the model says of them.

    `original(item)` is uint8 (H, W, 3); `shown(item, condition)` the overlay of the same size, None if there
    is none; `mask(item)` the planted decisive region, bool (H, W), None for studies without one; `predicted`
    the model's answer per item, as a choice value; `seen(item)` the rows and columns of the picture on which
    explanations are drawn.
    """

    original: Callable[[str], Pixels]
    shown: Callable[[str, str], Pixels | None]
    predicted: Mapping[str, str]
    render: RenderSpec
    mask: Callable[[str], Mask] | None = None
    seen: Callable[[str], tuple[slice, slice]] = lambda item: (slice(None), slice(None))


@dataclass(frozen=True, slots=True)
class ControlRow:
    """One control: accuracy (0-1) with a 95 % interval over sessions, and its gain over the baseline, paired.
    `condition` is empty if all conditions are taken together, or if none is involved.
    """

    control: str
    condition: str
    sittings_count: int
    answers_count: int
    accuracy: float
    low: float
    high: float
    gain: float
    gain_low: float
    gain_high: float


@dataclass(frozen=True, slots=True)
class ControlReport:
    """All controls of one run. `seed` names the observers and the shuffles."""

    seed: int
    rows: tuple[ControlRow, ...]
    heading: str = field(default=HEADING)

    def row(self, control: str, condition: str = "") -> ControlRow:
        """Raises KeyError for a control that was not run."""
        for row in self.rows:
            if (row.control, row.condition) == (control, condition):
                return row
        raise KeyError(f"no control {control!r} for condition {condition!r}")

    def as_json(self) -> dict[str, object]:
        return {"heading": self.heading, "seed": self.seed, "rows": [asdict(row) for row in self.rows]}

    def table(self) -> tuple[tuple[str, ...], ...]:
        """As text, a header row first; percentages."""
        header = (
            "control",
            "condition",
            "sittings",
            "answers",
            "accuracy %",
            "95 % interval",
            "gain over baseline",
        )
        return (header, *(_printed(row) for row in self.rows))


def run_controls(
    plans: Sequence[Plan],
    conditions: Sequence[str],
    pictures: Pictures,
    *,
    seed: int,
    sittings_max: int = 10,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> ControlReport:
    """Runs every control on the sessions of one condition: plans are matched, so all conditions share them.

    `conditions` are those with an explanation. Observer j is the same person in every control. Raises
    ValueError without a plan. Takes about a third of a second per session and condition.
    """
    if not plans:
        raise ValueError("no plans to run controls on; open the study first.")
    first = plans[0].condition
    sittings = [plan for plan in plans if plan.condition == first][:sittings_max]
    observers = [Learner.drawn(seed, number) for number in range(len(sittings))]
    eye = _Eye(pictures, Streams(seed), _training_items(sittings))
    wanted = [("baseline", "")]
    wanted += [(control, name) for control in ("shown", "permuted", "other_image") for name in conditions]
    wanted += [("oracle", "")] if pictures.mask is not None else []
    accuracies: dict[tuple[str, str], Floats] = {}
    for done, (control, condition) in enumerate(wanted):
        progress("controls", done, len(wanted))
        look = eye.looking(control, condition)
        pairs = zip(observers, sittings, strict=True)
        accuracies[control, condition] = np.array(
            [_agreement(*pair, eye, look) for pair in pairs], dtype=np.float32
        )
    progress("controls", len(wanted), len(wanted))
    scored = len(_scored(sittings[0]))
    return ControlReport(seed, tuple(_rows(accuracies, scored)))


def sit(
    observer: Learner, plan: Plan, look: Callable[[str], Percept], plain: Callable[[str], Percept]
) -> dict[int, str]:
    """The choices of one observer through one plan, by position; `look` sees training, `plain` test
    pictures."""
    examples: list[ExampleView] = []
    chosen: dict[int, str] = {}
    for trial in plan.trials:
        if trial.phase == "train" and trial.item is not None:
            examples.append(ExampleView(trial.position, trial.label, trial.choices, look(trial.item)))
        elif _is_scored(trial) and trial.item is not None:
            consulted = bool(trial.reservoir) and observer.consults(trial.position)
            seen = tuple(examples)
            view = TestView(trial.position, trial.choices, seen, plain(trial.item), reservoir=consulted)
            chosen[trial.position] = str(observer.answer(view).value["choice"])
    return chosen


class _Eye:
    """Percepts of everything a run needs, each made once."""

    def __init__(self, pictures: Pictures, streams: Streams, items: Sequence[str]) -> None:
        self.pictures, self.streams = pictures, streams
        turn = 1 + int(streams("donors").integers(max(1, len(items) - 1)))
        mixed = [items[i] for i in streams("donor order").permutation(len(items))]
        self._donors = {item: mixed[(i + turn) % len(mixed)] for i, item in enumerate(mixed)}
        self._percepts: dict[tuple[str, str, str], Percept] = {}
        self._heats: dict[tuple[str, str], Floats | None] = {}

    def plain(self, item: str) -> Percept:
        return self.looking("baseline", "")(item)

    def looking(self, control: str, condition: str) -> Callable[[str], Percept]:
        """What an observer takes from a training item under a control."""

        def look(item: str) -> Percept:
            key = control, condition, item
            if key not in self._percepts:
                self._percepts[key] = self._seen(*key)
            return self._percepts[key]

        return look

    def _seen(self, control: str, condition: str, item: str) -> Percept:
        if control == "baseline":
            return perceive(self.pictures.original(item))
        overlaid = self._overlay(control, condition, item)
        heat = None if overlaid is None else read_heat(self.pictures.original(item), overlaid)
        return Percept(self.plain(item).features, None if heat is None else attention_of(heat))

    def _overlay(self, control: str, condition: str, item: str) -> Pixels | None:
        if control == "shown":
            return self.pictures.shown(item, condition)
        if control == "oracle" and self.pictures.mask is not None:
            return self._drawn(item, _squared(self.pictures.mask(item)[self.pictures.seen(item)]))
        if control == "permuted":
            heat = self._heat(item, condition)
            order = self.streams("shuffle", condition, item).permutation(GRID * GRID)
            return None if heat is None else self._drawn(item, permuted(heat, order))
        if control == "other_image":
            heat = self._heat(self._donors[item], condition)
            return None if heat is None else self._drawn(item, heat)
        return None

    def _heat(self, item: str, condition: str) -> Floats | None:
        if (item, condition) not in self._heats:
            shown = self.pictures.shown(item, condition)
            part = self.pictures.seen(item)
            heat = None if shown is None else read_heat(self.pictures.original(item)[part], shown[part])
            self._heats[item, condition] = heat
        return self._heats[item, condition]

    def _drawn(self, item: str, heat: Floats) -> Pixels:
        """The heat enlarged onto the part of the picture on which explanations are drawn."""
        picture, part = self.pictures.original(item).copy(), self.pictures.seen(item)
        below = picture[part]
        side = max(below.shape[:2])
        rows, columns = (np.arange(side) * length // side for length in heat.shape)
        square = heat[np.ix_(rows, columns)]
        picture[part] = painted(below, square[place_in_square(below.shape)], self.pictures.render)
        return picture


def _squared(mask: Mask) -> Floats:
    """A region in its square, as heat is read."""
    square = np.zeros((max(mask.shape),) * 2, np.float32)
    square[place_in_square(mask.shape)] = mask
    return square


def permuted(heat: Floats, order: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    """The heat (40, 40) with its 10 x 10 blocks in another order: what was bright stays bright, elsewhere."""
    side = CELLS // GRID
    blocks = (
        heat.reshape(GRID, side, GRID, side)
        .swapaxes(1, 2)
        .reshape(GRID * GRID, side, side)[np.asarray(order)]
    )
    return np.ascontiguousarray(blocks.reshape(GRID, GRID, side, side).swapaxes(1, 2).reshape(CELLS, CELLS))


def _scored(plan: Plan) -> list[PlannedTrial]:
    return [t for t in plan.trials if _is_scored(t)]


def _is_scored(trial: PlannedTrial) -> bool:
    return trial.right is not None and trial.check == "" and trial.item is not None


def _training_items(plans: Sequence[Plan]) -> list[str]:
    trials = (t for plan in plans for t in plan.trials)
    return sorted({t.item for t in trials if t.phase == "train" and t.item is not None})


def _agreement(observer: Learner, plan: Plan, eye: _Eye, look: Callable[[str], Percept]) -> float:
    """The share of scored trials at which the observer says what the model says."""
    chosen = sit(observer, plan, look, eye.plain)
    predicted = eye.pictures.predicted
    return float(np.mean([chosen[t.position] == predicted[t.item or ""] for t in _scored(plan)]))


def _rows(accuracies: Mapping[tuple[str, str], Floats], scored: int) -> list[ControlRow]:
    base = accuracies["baseline", ""]
    rows = []
    for control in CONTROLS:
        single = {name: values for (kind, name), values in accuracies.items() if kind == control}
        if len(single) > 1:
            # One person's sessions under several conditions are not independent: average them first.
            together: Floats = np.stack(list(single.values())).mean(axis=0)
            rows.append(_row(control, "", together, base, scored * len(single)))
        rows += [_row(control, name, values, base, scored) for name, values in single.items()]
    return rows


def _row(control: str, condition: str, values: Floats, base: Floats, scored: int) -> ControlRow:
    accuracy, low, high = _interval(values)
    gain, gain_low, gain_high = _interval(values - base)
    low, high = max(0.0, low), min(1.0, high)
    answers = scored * len(values)
    return ControlRow(
        control, condition, len(values), answers, accuracy, low, high, gain, gain_low, gain_high
    )


def _interval(values: Floats) -> tuple[float, float, float]:
    """Mean and 95 % Student interval; the whole range -1 to 1 for a single session, which has no spread."""
    from scipy.special import stdtrit

    mean = float(values.mean())
    if len(values) < 2:
        return mean, -1.0, 1.0
    half = float(stdtrit(len(values) - 1, 0.975)) * float(values.std(ddof=1)) / len(values) ** 0.5
    return mean, mean - half, mean + half


def _printed(row: ControlRow) -> tuple[str, ...]:
    percent = f"{100 * row.accuracy:.1f}", f"{100 * row.low:.1f} to {100 * row.high:.1f}"
    gain = f"{100 * row.gain:+.1f} ({100 * row.gain_low:+.1f} to {100 * row.gain_high:+.1f})"
    condition = row.condition or (
        "all together" if row.control in ("shown", "permuted", "other_image") else "-"
    )
    return (CONTROLS[row.control], condition, str(row.sittings_count), str(row.answers_count), *percent, gain)
