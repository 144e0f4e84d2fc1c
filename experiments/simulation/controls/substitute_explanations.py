"""What the observer would have done with other explanations: the controls that stand under every simulated
table.

The same observers take the same plans and items, in memory, once per control: without explanation, with the
explanation as shown, with its places shuffled, with the explanation of another item, and with the planted
region or words if they are known (oracle). Overlays of the controls are drawn by the study's own recipe and
read by the observer like any other; texts are marked as they were (`text_controls`). The ceiling is by
construction: the same observer learns from the model's answers on thousands of unseen items, and no
explanation enters it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, cast

import numpy as np

from experiments.design.rng import Streams
from experiments.kinds.base import Choice
from experiments.paradigms.base import Plan, PlannedTrial
from experiments.simulation import HEADING, OBSERVERS, person_class
from experiments.simulation.looking import led, perceive
from experiments.simulation.observers import FrozenObserver, Mind
from experiments.simulation.passage import Passage
from experiments.simulation.people import ExampleView, Person, TestView
from experiments.simulation.readers import Remembered, TextObserver
from experiments.simulation.sight import CELLS, GRID, Floats, Percept, place_in_square, read_heat
from stimuli.render.heatmap import paint_field
from stimuli.render.recipe import RenderSpec
from stimuli.types import Mask, Pixels

CONTROLS = {
    "baseline": "no explanation",
    "shown": "explanation as shown",
    "permuted": "explanation permuted in place",
    "other_image": "explanation of another item",
    "oracle": "planted region (oracle)",
    "ceiling": "unseen items with answers (ceiling)",
}
ALL = "all observers"


Accuracies = dict[tuple[str, str], Floats]
"""Accuracy of each session, float32 (sessions,), by control and condition."""
Seen = Percept | Passage
"""What an observer takes from an item: from a picture or a text."""


class Eye(Protocol):
    """What is seen of each item under a control; each once."""

    def looking(self, control: str, condition: str) -> Callable[[str], Seen]:
        """What an observer takes from a training item."""
        ...

    def testing(self, control: str, condition: str) -> Callable[[str], Seen]:
        """What an observer takes from a test item: without explanation unless the study shows it there."""
        ...


class ControlMaterial(Protocol):
    """What observers take the controls on: `predicted` is the model's answer per item, as a choice value,
    `unseen` further items with answers, for the ceiling; empty if there are too few. `observers` are the
    kinds that stand side by side on such items."""

    @property
    def predicted(self) -> Mapping[str, str]: ...
    @property
    def unseen(self) -> Sequence[tuple[Seen, str]]: ...
    @property
    def observers(self) -> tuple[str, ...]: ...
    @property
    def has_oracle(self) -> bool:
        """Whether the planted region or words are known."""
        ...

    def eye(self, streams: Streams, items: Sequence[str]) -> Eye:
        """For these training items, between which explanations are exchanged."""
        ...


@dataclass(frozen=True, slots=True)
class Pictures:
    """The pictures of a study and what the model says of them.

    `original(item)` is uint8 (H, W, 3); `shown(item, condition)` the overlay of the same size, None if there
    is none; `mask(item)` the planted decisive region, bool (H, W), None for studies without one; `predicted`
    the model's answer per item, as a choice value; `seen(item)` the rows and columns of the picture on which
    explanations are drawn. `unseen` are percepts of further pictures with the model's answers, for the
    ceiling; empty if there are too few.
    """

    original: Callable[[str], Pixels]
    shown: Callable[[str, str], Pixels | None]
    predicted: Mapping[str, str]
    render: RenderSpec
    mask: Callable[[str], Mask] | None = None
    seen: Callable[[str], tuple[slice, slice]] = lambda item: (slice(None), slice(None))
    unseen: Sequence[tuple[Percept, str]] = ()
    observers: tuple[str, ...] = OBSERVERS

    @property
    def has_oracle(self) -> bool:
        return self.mask is not None

    def eye(self, streams: Streams, items: Sequence[str]) -> Eye:
        return _Eye(self, streams, items)


@dataclass(frozen=True, slots=True)
class ControlRow:
    """One control of one kind of observer: accuracy (0-1) with a 95 % interval over sessions, and its gain
    over the baseline, paired. `condition` is empty if all conditions are taken together, or if none is
    involved.
    """

    observer: str
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

    @property
    def gain_p(self) -> float:
        """Two-sided p of no gain, by the t test whose 95 % interval stands here; 1 for a single session."""
        from scipy.special import stdtr, stdtrit

        df, half = self.sittings_count - 1, (self.gain_high - self.gain_low) / 2
        if df < 1 or self.gain == 0:
            return 1.0
        return float(2 * stdtr(df, -abs(self.gain) * stdtrit(df, 0.975) / half)) if half else 0.0


@dataclass(frozen=True, slots=True)
class ControlReport:
    """All controls of one run. `seed` names the observers and the shuffles. `faults` are sentences about
    observers that learn more from maps than their ceiling allows."""

    seed: int
    rows: tuple[ControlRow, ...]
    faults: tuple[str, ...] = ()
    heading: str = field(default=HEADING)

    def row(self, control: str, condition: str = "", observer: str = "") -> ControlRow:
        """Of the first observer unless one is named. Raises KeyError for a control that was not run."""
        observer = observer or self.rows[0].observer
        for row in self.rows:
            if (row.observer, row.control, row.condition) == (observer, control, condition):
                return row
        raise KeyError(f"no control {control!r} for condition {condition!r} and observer {observer!r}")

    def as_json(self) -> dict[str, object]:
        rows = [asdict(row) for row in self.rows]
        return {"heading": self.heading, "seed": self.seed, "rows": rows, "faults": list(self.faults)}

    def table(self) -> tuple[tuple[str, ...], ...]:
        """As text, a header row first; percentages."""
        header = (
            "observer",
            "control",
            "condition",
            "sittings",
            "answers",
            "accuracy %",
            "95 % interval",
            "gain over baseline",
        )
        return (header, *(_table_row(row) for row in self.rows))


def run_controls(
    plans: Sequence[Plan],
    conditions: Sequence[str],
    material: ControlMaterial,
    *,
    seed: int,
    sittings_max: int = 10,
    kinds: Sequence[str] = (),
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> ControlReport:
    """Runs every control on the sessions of one condition: plans are matched, so all conditions share them.

    `conditions` are those with an explanation. `kinds` of observers: those of the material unless given.
    Observer j of a kind is the same person in every control.
    Raises ValueError without a plan. Takes about a third of a second per session and condition.
    """
    if not plans:
        raise ValueError("no plans to run controls on; open the study first.")
    first = plans[0].condition
    sittings = [plan for plan in plans if plan.condition == first][:sittings_max]
    eye = material.eye(Streams(seed), _training_items(sittings))
    kinds = kinds or material.observers
    wanted = [("baseline", "")]
    wanted += [(control, name) for control in ("shown", "permuted", "other_image") for name in conditions]
    wanted += [("oracle", "")] if material.has_oracle else []
    wanted += [("ceiling", "")] if material.unseen else []
    rows: list[ControlRow] = []
    faults: list[str] = []
    all_of: list[Accuracies] = []
    for place, kind in enumerate(kinds):
        observers = [person_class(kind).drawn(seed, number) for number in range(len(sittings))]
        accuracies: Accuracies = {}
        for done, (control, condition) in enumerate(wanted):
            progress("controls", place * len(wanted) + done, len(kinds) * len(wanted))
            pairs = list(zip(observers, sittings, strict=True))
            agreed = [agreement(*pair, material, eye, control, condition) for pair in pairs]
            accuracies[control, condition] = np.array(agreed, dtype=np.float32)
        rows += _rows(kind, accuracies, len(_scored_trials(sittings[0])))
        faults += _faults(kind, accuracies)
        all_of.append(accuracies)
    progress("controls", len(kinds) * len(wanted), len(kinds) * len(wanted))
    if len(kinds) > 1:
        # Observers take the same sessions, which are the unit: average over observers first.
        together = {
            names: np.stack([accuracies[names] for accuracies in all_of]).mean(axis=0) for names in wanted
        }
        rows += _rows(ALL, together, len(kinds) * len(_scored_trials(sittings[0])))
    return ControlReport(seed, tuple(rows), tuple(faults))


def sit(
    observer: Person,
    plan: Plan,
    look: Callable[[str], Seen],
    plain: Callable[[str], Seen],
    mind: Mind | Remembered | None = None,
    told: Mapping[str, str] | None = None,
) -> dict[int, str]:
    """The choices of one observer through one plan, by position; `look` sees training, `plain` test
    items. With a `mind`, what is shown in training is not needed. `told` are the answers that are revealed
    after a guess, by item."""
    examples: list[ExampleView] = []
    chosen: dict[int, str] = {}
    for trial in plan.trials:
        if trial.phase == "train" and trial.item is not None:
            if mind is None:
                label = trial.label if trial.label is not None else (told or {}).get(trial.item)
                examples.append(_example(trial.position, label, trial.choices, look(trial.item)))
        elif _is_scored(trial) and trial.item is not None:
            consulted = bool(trial.reservoir) and observer.consults(trial.position)
            seen, item = tuple(examples), plain(trial.item)
            view = TestView(
                trial.position,
                trial.choices,
                seen,
                item if isinstance(item, Percept) else None,
                reservoir=consulted,
                text=item if isinstance(item, Passage) else None,
            )
            if isinstance(observer, FrozenObserver | TextObserver):
                # A mind is that of the observer whose it is; no observer reads another's.
                reply = observer.answer_from(cast("Any", mind), view)
            else:
                reply = observer.answer(view)
            chosen[trial.position] = str(reply.value["choice"])
    return chosen


def informed_mind(
    observer: FrozenObserver | TextObserver, plan: Plan, unseen: Sequence[tuple[Seen, str]]
) -> Mind | Remembered:
    """What the observer remembers of the unseen items, all of them at hand."""
    choices = _scored_trials(plan)[0].choices
    # Positions of their own, so that no look at them is the look at an item of the session.
    first = len(plan.trials)
    return observer.mind(
        [_example(first + i, label, choices, seen) for i, (seen, label) in enumerate(unseen)], choices
    )


def _example(position: int, label: str | None, choices: tuple[Choice, ...], seen: Seen) -> ExampleView:
    if isinstance(seen, Percept):
        return ExampleView(position, label, choices, seen)
    return ExampleView(position, label, choices, text=seen)


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

    def testing(self, control: str, condition: str) -> Callable[[str], Percept]:
        return self.plain

    def looking(self, control: str, condition: str) -> Callable[[str], Percept]:
        """What an observer takes from a training item under a control."""

        def look(item: str) -> Percept:
            key = control, condition, item
            if key not in self._percepts:
                self._percepts[key] = self._perceive_item(*key)
            return self._percepts[key]

        return look

    def _perceive_item(self, control: str, condition: str, item: str) -> Percept:
        if control == "baseline":
            return perceive(self.pictures.original(item))
        overlaid = self._overlay(control, condition, item)
        heat = None if overlaid is None else read_heat(self.pictures.original(item), overlaid)
        return self.plain(item) if heat is None else led(self.plain(item), heat)

    def _overlay(self, control: str, condition: str, item: str) -> Pixels | None:
        if control == "shown":
            return self.pictures.shown(item, condition)
        if control == "oracle" and self.pictures.mask is not None:
            return self._draw_heat(item, _mask_heat(self.pictures.mask(item)[self.pictures.seen(item)]))
        if control == "permuted":
            heat = self._heat(item, condition)
            order = self.streams("shuffle", condition, item).permutation(GRID * GRID)
            return None if heat is None else self._draw_heat(item, permute_blocks(heat, order))
        if control == "other_image":
            heat = self._heat(self._donors[item], condition)
            return None if heat is None else self._draw_heat(item, heat)
        return None

    def _heat(self, item: str, condition: str) -> Floats | None:
        if (item, condition) not in self._heats:
            shown = self.pictures.shown(item, condition)
            part = self.pictures.seen(item)
            heat = None if shown is None else read_heat(self.pictures.original(item)[part], shown[part])
            self._heats[item, condition] = heat
        return self._heats[item, condition]

    def _draw_heat(self, item: str, heat: Floats) -> Pixels:
        """The heat enlarged onto the part of the picture on which explanations are drawn."""
        picture, part = self.pictures.original(item).copy(), self.pictures.seen(item)
        below = picture[part]
        side = max(below.shape[:2])
        rows, columns = (np.arange(side) * length // side for length in heat.shape)
        square = heat[np.ix_(rows, columns)]
        picture[part] = paint_field(below, square[place_in_square(below.shape)], self.pictures.render)
        return picture


def _mask_heat(mask: Mask) -> Floats:
    """A region in its square, as heat is read."""
    square = np.zeros((max(mask.shape),) * 2, np.float32)
    square[place_in_square(mask.shape)] = mask
    return square


def permute_blocks(heat: Floats, order: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    """The heat (40, 40) with its 10 x 10 blocks in another order: what was bright stays bright, elsewhere."""
    side = CELLS // GRID
    blocks = (
        heat.reshape(GRID, side, GRID, side)
        .swapaxes(1, 2)
        .reshape(GRID * GRID, side, side)[np.asarray(order)]
    )
    return np.ascontiguousarray(blocks.reshape(GRID, GRID, side, side).swapaxes(1, 2).reshape(CELLS, CELLS))


def _scored_trials(plan: Plan) -> list[PlannedTrial]:
    return [t for t in plan.trials if _is_scored(t)]


def _is_scored(trial: PlannedTrial) -> bool:
    return trial.right is not None and trial.check == "" and trial.item is not None


def _training_items(plans: Sequence[Plan]) -> list[str]:
    trials = (t for plan in plans for t in plan.trials)
    return sorted({t.item for t in trials if t.phase == "train" and t.item is not None})


def agreement(
    observer: Person, plan: Plan, material: ControlMaterial, eye: Eye, control: str, condition: str
) -> float:
    """The share of scored trials at which the observer says what the model says."""
    mind, predicted = None, material.predicted
    if control == "ceiling" and isinstance(observer, FrozenObserver | TextObserver):
        mind = informed_mind(observer, plan, material.unseen)
    looking, testing = eye.looking(control, condition), eye.testing(control, condition)
    chosen = sit(observer, plan, looking, testing, mind, predicted)
    return float(np.mean([chosen[t.position] == predicted[t.item or ""] for t in _scored_trials(plan)]))


def _rows(observer: str, accuracies: Mapping[tuple[str, str], Floats], scored: int) -> list[ControlRow]:
    base = accuracies["baseline", ""]
    rows = []
    for control in CONTROLS:
        single = {name: values for (kind, name), values in accuracies.items() if kind == control}
        if len(single) > 1:
            # One person's sessions under several conditions are not independent: average them first.
            together: Floats = np.stack(list(single.values())).mean(axis=0)
            rows.append(_row((observer, control, ""), together, base, scored * len(single)))
        rows += [_row((observer, control, name), values, base, scored) for name, values in single.items()]
    return rows


def _faults(observer: str, accuracies: Accuracies) -> list[str]:
    """A sentence for each condition whose gain over the ceiling lies above 0 by intervals that hold together
    (Bonferroni over the conditions)."""
    ceiling = accuracies.get(("ceiling", ""))
    shown = {name: values for (control, name), values in accuracies.items() if control == "shown"}
    if ceiling is None or len(ceiling) < 2:
        return []
    sentences = []
    for name, values in shown.items():
        more, low, high = _interval(values - ceiling, 0.05 / len(shown))
        if low > 0:
            sentences.append(
                f"Fault of the observer {observer}: with {name} it agrees {100 * more:.1f} points more often "
                f"[{100 * low:.1f}, {100 * high:.1f}] than its ceiling."
            )
    return sentences


def _row(names: tuple[str, str, str], values: Floats, base: Floats, scored: int) -> ControlRow:
    accuracy, low, high = _interval(values)
    gain, gain_low, gain_high = _interval(values - base)
    low, high = max(0.0, low), min(1.0, high)
    return ControlRow(
        *names, len(values), scored * len(values), accuracy, low, high, gain, gain_low, gain_high
    )


def _interval(values: Floats, error: float = 0.05) -> tuple[float, float, float]:
    """Mean and Student interval of level 1 - `error`; -1 to 1 for a single session, which has none."""
    from scipy.special import stdtrit

    mean = float(values.mean())
    if len(values) < 2:
        return mean, -1.0, 1.0
    half = float(stdtrit(len(values) - 1, 1 - error / 2)) * float(values.std(ddof=1)) / len(values) ** 0.5
    return mean, mean - half, mean + half


def _table_row(row: ControlRow) -> tuple[str, ...]:
    percent = f"{100 * row.accuracy:.1f}", f"{100 * row.low:.1f} to {100 * row.high:.1f}"
    gain = f"{100 * row.gain:+.1f} ({100 * row.gain_low:+.1f} to {100 * row.gain_high:+.1f})"
    condition = row.condition or (
        "all together" if row.control in ("shown", "permuted", "other_image") else "-"
    )
    return (
        row.observer,
        CONTROLS[row.control],
        condition,
        str(row.sittings_count),
        str(row.answers_count),
        *percent,
        gain,
    )
