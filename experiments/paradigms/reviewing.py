"""Plans of leads: one or two runs of solutions to accept or reject, counterbalanced over leads.

Leads come in rounds. All leads of a round meet the same tasks, in sets of which each is one run; the cells of
a round cross which run shows explanations, which comes first, and whose solution a task gets. So over a round
every task is judged from people and from the model equally often, with and without explanation, first and
last, and every method of the model equally often as well.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, Protocol

import numpy as np

from experiments.design.block_randomization import permuted_level
from experiments.design.rng import Streams
from experiments.kinds.base import KNOWN, Choice
from experiments.kinds.review import ACCEPT, REJECT
from experiments.kinds.solve import CANNOT_SAY
from experiments.paradigms import base
from experiments.paradigms.answer_keys import answer_buttons
from experiments.paradigms.base import PlanSolution, PoolItem
from experiments.paradigms.weaving import CheckDraw, draw_instructed, instructed_trial, weave

JUDGEMENTS = ((ACCEPT, ""), (REJECT, ""))
"""What a lead answers; the words are those of the study's language."""

LANE = "lead"
Shown = tuple[PlanSolution, str]
"""A solution, and what it is shown for: the `use` of its trial."""


class ReviewDesign(Protocol):
    """The part of a design that plans of leads depend on."""

    @property
    def runs(self) -> int: ...
    @property
    def order(self) -> Literal["counterbalanced", "paper"]: ...
    @property
    def tasks_per_run(self) -> int: ...
    @property
    def lures_per_run(self) -> int: ...
    @property
    def known_per_run(self) -> int: ...
    @property
    def alone_per_run(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Cell:
    """A counterbalance cell: what comes first, which set has explanations, who solves the first task of a set
    (0 people, 1 the model), which method the model begins with. Without explanations: the last two alone."""

    with_first: bool = False
    set_with: int | None = None
    side: int = 0
    method: int = 0

    @property
    def arm(self) -> str:
        order = "with-without" if self.with_first else "without-with"
        sets = [] if self.set_with is None else [order, f"set-{self.set_with}"]
        return "/".join([*sets, f"side-{self.side}", f"method-{self.method}"])

    def blocks(self) -> tuple[tuple[int, bool], ...]:
        """(set, whether it is explained) of each run, in order."""
        if self.set_with is None:
            return ((0, False),)
        with_, without = (self.set_with, True), (1 - self.set_with, False)
        return (with_, without) if self.with_first else (without, with_)


@dataclass(slots=True)
class Tally:
    """How often each thing was planned so far, by itself and in each place."""

    counts: Counter[tuple[Any, ...]] = field(default_factory=Counter)

    def least(
        self, things: Sequence[Any], places: Sequence[Any], rng: np.random.Generator, *, count: int = 1
    ) -> list[Any]:
        """The `count` things planned least: in the first place, then in the next, by a draw if equal."""
        ties = rng.random(len(things))
        order = sorted(
            range(len(things)),
            key=lambda at: (*(self.counts[things[at], place] for place in places), ties[at]),
        )
        return [things[at] for at in order[:count]]

    def note(self, thing: Any, places: Sequence[Any]) -> None:
        self.counts.update((thing, place) for place in places)


@dataclass(frozen=True, slots=True)
class Sources:
    """Who solved: the one condition of people, and those of the model."""

    people: str
    methods: tuple[str, ...]

    def at(self, side: int, turn: int, cell: Cell) -> str:
        """The source of the `turn`-th entry of a list on that side."""
        return self.people if side == 0 else self.methods[(turn + cell.method) % len(self.methods)]

    def of(self, place: int, cell: Cell, shift: int = 0) -> str:
        """The source of the entry at a place of a list, in which people and model alternate."""
        return self.at((place + cell.side + shift) % 2, place // 2, cell)


@dataclass(frozen=True, slots=True)
class _RunItems:
    """The items of one run: those of real solutions and of lures."""

    real: tuple[str, ...]
    lures: tuple[str, ...]


def review_plans(design: ReviewDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
    """One plan per lead. Raises BadDesign and NotEnoughItems, see `_Planner`."""
    yield from _Planner(design, pool, streams)


class _Planner:
    """What all plans of a study share. BadDesign if sources and conditions contradict each other."""

    def __init__(self, design: ReviewDesign, pool: base.Pool, streams: Streams) -> None:
        self.design, self.pool, self.streams = design, pool, streams
        self.slots, self.sources = _slots_of(pool), _sources_of(pool)
        self.items = {item.key: item for item in pool.items}
        self.by_use = _by_use(pool, self.items)
        self.of_source: defaultdict[tuple[str, str], list[PlanSolution]] = defaultdict(list)
        for (use, _, source), solutions in self.by_use.items():
            self.of_source[use, source] += solutions
        self.judged = Tally()
        self.texts = dict(pool.choices)

    def __iter__(self) -> Iterator[base.Plan]:
        cells = _cells(self.design, len(self.sources.methods))
        sets: list[_RunItems] = []
        for ordinal in range(self.slots):
            if ordinal % len(cells) == 0:
                sets = self._sets(ordinal // len(cells))
            cell = cells[permuted_level(len(cells), ordinal, self.streams, "counterbalance")]
            yield base.Plan(ordinal, LANE, cell.arm, None, self._trials(cell, sets, ordinal))

    def _sets(self, round_: int) -> list[_RunItems]:
        """The tasks of a round: of different groups, each solved by every source, least judged first."""
        design, rng = self.design, self.streams("tasks", round_)
        every = (self.sources.people, *self.sources.methods)
        real = [
            item for item in self._tasks() if all(self.by_use["solution", item.key, name] for name in every)
        ]
        lured = [i for i in real if all(self.by_use["lure", i.key, name] for name in every)]
        lures = self._draw_keys(
            lured, design.runs * design.lures_per_run, ("lure", "-real"), set(), rng, "a lure"
        )
        used = {self.items[key].group for key in lures}
        tasks = self._draw_keys(real, design.runs * design.tasks_per_run, ("real",), used, rng, "a solution")
        for key in lures:
            self.judged.note(key, ("lure",))
        for key in tasks:
            self.judged.note(key, ("real",))
            self.judged.counts[key, "-real"] -= 1
        return [
            _RunItems(tuple(tasks[place :: design.runs]), tuple(lures[place :: design.runs]))
            for place in range(design.runs)
        ]

    def _tasks(self) -> list[PoolItem]:
        return [item for item in self.pool.items if item.use == "task"]

    def _draw_keys(
        self,
        items: Sequence[PoolItem],
        count: int,
        places: Sequence[str],
        used: set[str],
        rng: np.random.Generator,
        what: str,
    ) -> list[str]:
        """So many keys of items of different groups, in a drawn order."""
        chosen: dict[str, str] = {}
        for key in self.judged.least([i.key for i in items], places, rng, count=len(items)):
            group = self.items[key].group
            if group not in used and len(chosen) < count:
                chosen.setdefault(group, key)
        if len(chosen) < count:
            raise base.NotEnoughItems(
                f"needs {count} tasks of different groups per session, each with {what} of every source, "
                f"beside {len(used)} others, there are {len(chosen)}: ask for fewer "
                "([design] tasks_per_run, lures_per_run), or have more tasks solved"
            )
        keys = list(chosen.values())
        return [keys[int(place)] for place in rng.permutation(count)] if count else []

    def _trials(self, cell: Cell, sets: Sequence[_RunItems], ordinal: int) -> tuple[base.PlannedTrial, ...]:
        rng = self.streams("order", ordinal)
        buttons = judgement_buttons(ordinal, self.streams)
        checks = draw_instructed(self.pool.check_instructed, None, self.streams("checks", ordinal))
        places = self.streams("check places", ordinal)
        used = {self.items[key].group for each in sets for key in (*each.real, *each.lures)}
        trials: list[base.PlannedTrial] = []
        for block, (number, explained) in enumerate(cell.blocks()):
            shown = self._fill_run(sets[number], cell, block, explained, used, rng)
            order = [shown[int(place)] for place in rng.permutation(len(shown))]
            for entry in weave(order, checks[block :: self.design.runs], places):
                if isinstance(entry, CheckDraw):
                    trials.append(instructed_trial(entry, len(trials), block, trials[-1].condition))
                else:
                    trials.append(self._trial(entry, len(trials), block, explained, buttons))
        return tuple(trials)

    def _fill_run(
        self,
        items: _RunItems,
        cell: Cell,
        block: int,
        explained: bool,
        used: set[str],
        rng: np.random.Generator,
    ) -> list[Shown]:
        """What one run shows. Groups of known and blank items are added to `used`."""
        shown: list[Shown] = []
        for place, key in enumerate(items.real):
            offered = self.by_use["solution", key, self.sources.of(place, cell)]
            shown.append((self._pick(offered, block, explained, rng), "task"))
        for place, key in enumerate(items.lures):
            offered = self.by_use["lure", key, self.sources.of(place, cell, 1)]
            shown.append((self._pick(offered, block, explained, rng), "lure"))
        for place in range(self.design.known_per_run):
            # The first half is right; a run has known tasks of both sides, which change places with the runs.
            is_right = place < -(-self.design.known_per_run // 2)
            source = self.sources.of(place, cell, block)
            offered = self._known_solutions(is_right, source, used)
            what = f"known tasks, with {'a right answer' if is_right else 'a lure'} of {source}"
            shown.append((self._beside(offered, what, block, explained, used, rng), "known"))
        for place in range(self.design.alone_per_run if explained else 0):
            source = self.sources.of(place, cell)
            offered = [s for s in self.of_source["alone", source] if self.items[s.item].group not in used]
            what = f"blank items, with a region of {source}"
            shown.append((self._beside(offered, what, block, explained, used, rng), "alone"))
        return shown

    def _pick(
        self, offered: Sequence[PlanSolution], block: int, explained: bool, rng: np.random.Generator
    ) -> PlanSolution:
        """The solution that was planned least in this run, then at all, then with or without explanation."""
        places = (("run", block), "all", ("explained", explained))
        [picked] = self.judged.least(offered, places, rng)
        self.judged.note(picked, places)
        return picked  # type: ignore[no-any-return]

    def _known_solutions(self, is_right: bool, source: str, used: set[str]) -> list[PlanSolution]:
        kind = "solution" if is_right else "lure"
        return [
            solved
            for solved in self.of_source[kind, source]
            if (item := self.items[solved.item]).use == KNOWN and item.group not in used
            if (solved.choice == item.truth) == is_right
        ]

    def _beside(
        self,
        offered: Sequence[PlanSolution],
        what: str,
        block: int,
        explained: bool,
        used: set[str],
        rng: np.random.Generator,
    ) -> PlanSolution:
        """A control: of the item that was least used as such, the solution that was planned least."""
        if not offered:
            raise base.NotEnoughItems(
                f"needs more {what}, of groups that the session has not met: mark more items as known or "
                "blank, or ask for fewer ([design] known_per_run, alone_per_run)"
            )
        keys = list(dict.fromkeys(solved.item for solved in offered))
        [key] = self.judged.least(keys, (("beside", block), "beside"), rng)
        self.judged.note(key, (("beside", block), "beside"))
        used.add(self.items[key].group)
        return self._pick([solved for solved in offered if solved.item == key], block, explained, rng)

    def _trial(
        self, shown: Shown, position: int, block: int, explained: bool, buttons: tuple[Choice, ...]
    ) -> base.PlannedTrial:
        solved, use = shown
        return base.PlannedTrial(
            position=position,
            block=block,
            phase="test",
            kind="review",
            item=solved.item,
            condition=solved.source,
            explained=explained,
            choices=buttons,
            variant=solved.key,
            extra={
                "solution": solved.key,
                "answer": "" if solved.choice == CANNOT_SAY else self.texts.get(solved.choice, solved.choice),
                "value": solved.choice,
                "use": use,
                "truth": self.items[solved.item].truth,
            },
        )


def judgement_buttons(ordinal: int, streams: Streams) -> tuple[Choice, ...]:
    """Accept and reject, whose words are the study's, with their sides by slot."""
    return answer_buttons(JUDGEMENTS, ordinal, streams)


def _cells(design: ReviewDesign, methods: int) -> list[Cell]:
    turns = list(product((0, 1), range(methods)))
    if design.runs == 1:
        return [Cell(side=side, method=method) for side, method in turns]
    orders = (False, True) if design.order == "counterbalanced" else (False,)
    return [
        Cell(with_first, set_with, side, method)
        for with_first, set_with, (side, method) in product(orders, (0, 1), turns)
    ]


def _slots_of(pool: base.Pool) -> int:
    """How many leads there are."""
    slots = {condition.slots for condition in pool.conditions}
    if len(slots) != 1:
        raise base.BadDesign(
            "every lead judges all sources, so all conditions need the same number of slots; got "
            f"{', '.join(f'{condition.name}: {condition.slots}' for condition in pool.conditions) or 'none'}"
        )
    return slots.pop()


def _sources_of(pool: base.Pool) -> Sources:
    people = [condition.name for condition in pool.conditions if condition.role == "source"]
    methods = tuple(condition.name for condition in pool.conditions if condition.role != "source")
    if len(people) != 1 or not methods:
        raise base.BadDesign(
            f"people's solutions are held against a model's, and this study has {len(people)} conditions of "
            f"role source and {len(methods)} others: give one of them, and at least one of role method"
        )
    names = (*people, *methods)
    for solution in pool.solutions:
        if solution.source not in names:
            raise base.BadDesign(
                f"solution {solution.key!r} comes from {solution.source!r}, which is none of the conditions "
                f"{', '.join(names)}: add the condition, or leave the solution out"
            )
    missing = [name for name in names if not any(s.source == name for s in pool.solutions)]
    if missing and pool.solutions:
        raise base.BadDesign(
            f"there are no solutions of {', '.join(missing)}: freeze a stage that has this source, or "
            "remove the condition"
        )
    return Sources(people[0], methods)


def _by_use(
    pool: base.Pool, items: Mapping[str, PoolItem]
) -> defaultdict[tuple[str, str, str], list[PlanSolution]]:
    """(use, item, source) -> its solutions, of the pool's items."""
    by_use: defaultdict[tuple[str, str, str], list[PlanSolution]] = defaultdict(list)
    for solution in pool.solutions:
        if solution.item in items:
            by_use[solution.use, solution.item, solution.source].append(solution)
    return by_use
