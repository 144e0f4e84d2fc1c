"""Which pages a participant can meet: read from the study's gates, its plan, the outcomes and the errors."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from django.db.models import Min

from crowd.platforms.base import Outcome
from experiments.errors import SessionError
from experiments.gates.base import Stop
from experiments.gates.device import NAME as DEVICE
from experiments.gates.plan import gate_plan
from experiments.kinds import get_kind
from experiments.kinds.base import INSTRUCTED, REPEAT
from experiments.models import Slot, Study, Trial
from experiments.paradigms import design_of, get_paradigm
from experiments.selectors import MAIN, Card, arm_of, cards_of, definition_of
from experiments.sessions.responses import reveals


@dataclass(frozen=True, slots=True)
class Screen:
    """One page: its key, what it is, when it is met, and the condition that it belongs to (empty: all)."""

    key: str
    what: str
    when: str
    condition: str = ""
    is_small: bool = False
    """It is met in small windows only."""

    @property
    def name(self) -> str:
        """The name of its file."""
        return "-".join(filter(None, (self.key, self.condition))).replace("/", "-")


PAGES = tomllib.loads(Path(__file__).with_name("pages.toml").read_text(encoding="utf-8"))
AT_THE_ENTRY, AROUND, TROUBLE, ENDS = (PAGES[name] for name in ("entry", "around", "trouble", "ends"))
REFUSED, WITHOUT_PAGE = PAGES["refused"], PAGES["without_page"]
UNTOLD, PICTURES = "block/untold", "trouble/pictures"
"""Pages that not every study has."""


def error_codes() -> set[str]:
    """The codes of all errors that the API may answer."""
    kinds = list(SessionError.__subclasses__())
    for kind in kinds:
        kinds += kind.__subclasses__()
    return {kind.code for kind in kinds}


def screens_of(study: Study) -> list[Screen]:
    """All pages of an open study, in the order in which they are met. Raises KeyError for an outcome or an
    error that this table does not know."""
    unknown = error_codes() - REFUSED.keys() - WITHOUT_PAGE.keys()
    if unknown:
        raise KeyError(f"no page is known for the errors {', '.join(sorted(unknown))}: see pages.toml")
    fixed = [Screen(key, *said) for key, said in AT_THE_ENTRY.items()]
    common = [screen for stop in gate_plan(study, None) for screen in screens_at(stop)]
    arms = arms_of(study)
    by_condition = [screen for name, slot in arms.items() for screen in _of_condition(study, name, slot)]
    is_untold = any(goes_untold(slot, study) for slot in arms.values())
    around = [Screen(key, *said) for key, said in AROUND.items() if is_untold or key != UNTOLD]
    has_pictures = "image" in get_paradigm(study.paradigm).modalities
    trouble = [Screen(key, *said) for key, said in TROUBLE.items() if has_pictures or key != PICTURES]
    outcomes = [outcome for outcome in get_args(Outcome) if _can_be(study, outcome)]
    ends = [Screen(f"end/{outcome}", *ENDS[outcome]) for outcome in outcomes]
    ends.append(Screen("end/with_way_back", "The end, with a way back", "everything is answered"))
    return list(dict.fromkeys([*fixed, *common, *around, *by_condition, *trouble, *ends]))


def screens_at(stop: Stop, condition: str = "") -> Iterator[Screen]:
    """The page of a gate, and the same after a failed try."""
    name = stop.kind.replace("_", " ")
    places = {
        "start": "before the trials, in all conditions",
        "arm": "after the condition is drawn",
        "block": f"before part {(stop.block or 0) + 1}",
        "end": "after the trials",
    }
    when = places[stop.place]
    # The only gate whose page is not shown to everybody.
    is_small = stop.gate == DEVICE
    yield Screen(f"gate/{stop.kind}", f"Page: {name}", when, condition, is_small)
    if stop.attempts_max is not None and stop.attempts_max > 1:
        yield Screen(f"gate/{stop.kind}/again", f"Page: {name}, after a failed try", when, condition)


Sort = tuple[str, str, str, str, str]


def sorts_of(slot: Slot) -> dict[Sort, int]:
    """(kind, step of its item, phase, check, condition) of each trial of the slot -> the first position that
    has it. The condition is empty if it is the slot's, and for checks that show nothing of it."""
    cards = cards_of(slot, slot.study)
    return {_sort(card, is_one=slot.condition_id is not None): card.view.position for card in reversed(cards)}


def _sort(card: Card, *, is_one: bool) -> Sort:
    view = card.view
    condition = "" if is_one or MAIN not in card.shown else view.condition
    return view.kind, get_kind(view.kind).step(view), view.phase, view.check, condition


def parts_of(slot: Slot) -> list[int]:
    """The position at which each part of the slot begins."""
    rows = Trial.objects.filter(slot=slot).values("block").annotate(first=Min("position"))
    return sorted(row["first"] for row in rows)


def trial_key(*sort: str) -> str:
    return "/".join(filter(None, ("trial", *sort)))


def has_examples(slot: Slot, position: int, study: Study) -> bool:
    """Whether the trial offers examples that are opened on request."""
    offered = getattr(design_of(definition_of(study)), "reservoir", "off")
    return offered == "on_request" and bool(Trial.objects.get(slot=slot, position=position).reservoir)


def is_marked(slot: Slot, position: int) -> bool:
    """Whether the page of the trial has a picture to be marked."""
    return get_kind(Trial.objects.get(slot=slot, position=position).kind).is_marked


def has_reveal(slot: Slot, position: int, study: Study) -> bool:
    """Whether something is revealed after the answer to the trial, as after a guess."""
    return reveals(study, cards_of(slot, study)[position].view)


def goes_untold(slot: Slot, study: Study) -> bool:
    """Whether a part goes on with a test after its last reveal; else the next part has a page of its own."""
    views = [card.view for card in cards_of(slot, study)]
    last = {view.block: view.position for view in views if reveals(study, view)}
    return any(view.phase == "test" and view.position - 1 == last.get(view.block) for view in views)


def first_plain(slot: Slot, study: Study) -> int:
    """The first position whose answer is followed by the next trial at once."""
    return next(place for place in range(slot.trials.count()) if not has_reveal(slot, place, study))


def arms_of(study: Study) -> dict[str, Slot]:
    """One slot of each condition, by its name. If slots have not one condition: by their arms, those that are
    needed so that all that is met in some slot is met."""
    slots = Slot.objects.filter(study=study, pilot=False).select_related("condition")
    told, met = get_paradigm(study.paradigm).arm_texts(definition_of(study)), _pages_by_slot(study)
    arms: dict[str, Slot] = {}
    seen: set[object] = set()
    for slot in slots.order_by("condition__ordinal", "ordinal"):
        text = told.get(slot.arm.partition("/")[0])
        pages = {slot.condition.name} if slot.condition else {(text, page) for page in met.get(slot.pk, ())}
        if not pages <= seen:
            arms[slot.condition.name if slot.condition else slot.arm] = slot
            seen |= pages
    return arms


def _pages_by_slot(study: Study) -> dict[int, set[object]]:
    """Slots without a condition of their own: what is met in which block and condition, with any pictures."""
    trials = Trial.objects.filter(slot__study=study, slot__condition=None, slot__pilot=False)
    fields = (
        "slot_id",
        "block",
        "kind",
        "phase",
        "check_kind",
        "explained",
        "extra",
        "condition_id",
        "stimulus_id",
    )
    met: dict[int, set[object]] = {}
    for slot, *sort, extra, condition, stimulus in trials.values_list(*fields).iterator(2000):
        asked = frozenset(extra.get("questions", ()))
        met.setdefault(slot, set()).add((*sort, asked, condition if stimulus else None))
    return met


CHECKS: Mapping[str, str] = {
    INSTRUCTED: "A check that says which key to press",
    REPEAT: "A training picture, asked again; nothing marks it as a check",
}


def _of_condition(study: Study, name: str, slot: Slot) -> Iterator[Screen]:
    for stop in gate_plan(study, arm_of(slot, study)):
        if stop.place != "start":
            # The last questions are the same for all; what is told of a condition is not.
            yield from screens_at(stop, name if stop.place != "end" else "")
    for sort, position in sorted(sorts_of(slot).items(), key=lambda pair: pair[1]):
        kind, step, phase, check, _ = sort
        what, when = (
            CHECKS.get(check, f"Trial: {kind}{f', {step}' if step else ''}"),
            f"number {position + 1} of a session; phase: {phase}",
        )
        yield Screen(trial_key(*sort), what, when, name)
        if is_marked(slot, position):
            yield Screen(f"{trial_key(*sort)}/marked", f"{what}, marked and answered", when, name)
            aside = f"{what}, with marks that are set aside"
            yield Screen(f"{trial_key(*sort)}/set_aside", aside, when, name)
        if has_reveal(slot, position, study):
            yield Screen(f"{trial_key(*sort)}/revealed", f"{what}, with what is revealed", when, name)
        if has_examples(slot, position, study):
            yield Screen(f"{trial_key(*sort)}/examples", f"{what}, examples open", when, name)
            yield Screen(f"{trial_key(*sort)}/enlarged", f"{what}, one example enlarged", when, name)
    yield Screen("dialog/help", "The instructions again", "at any time, by the button of that name", name)
    yield Screen("end/debrief", "The last page", "everything is answered; no code is needed", name)


def _can_be(study: Study, outcome: str) -> bool:
    """Sent away at a gate only if a gate counts tries or routes; failed checks only if the plan has such
    checks. If a gate routes, people for whom no place is left are told what the others are told."""
    stops = gate_plan(study, None)
    if outcome == "screened":
        return any(stop.attempts_max is not None or stop.routes for stop in stops)
    if outcome == "turned_away":
        return not any(stop.routes for stop in stops)
    if outcome == "failed_checks":
        return Trial.objects.filter(slot__study=study, check_kind=INSTRUCTED).exists()
    return True
