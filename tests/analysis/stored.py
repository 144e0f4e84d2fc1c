"""A small open study in the database, and people who take it: Ada passed, Bo was screened, Cy left, Dee
declined.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
from django.db.models import F

from experiments.definition.study import StudyDefinition
from experiments.models import (
    Condition,
    Event,
    Gate,
    Item,
    Participant,
    Rendering,
    Response,
    Session,
    Slot,
    Study,
    Trial,
)
from experiments.opening.opening import open_study
from stimuli.models import Stimulus
from stimuli.render.png import encode
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component, StimulusSpec, content_key
from stimuli.store.files import view_file
from stimuli.store.media_access import current_store
from tests.snapshots import made_once

START = datetime(2026, 2, 2, 10, tzinfo=UTC)
CONDITIONS = (("baseline", "baseline"), ("control", "control"), ("grad_cam", "method"))
Decide = Callable[[Trial], bool]
PICTURE = view_file("0" * 64)
"""All stimuli are records of one file."""


def definition(slots: int, **tables: Any) -> StudyDefinition:
    return StudyDefinition.model_validate(
        {
            "slug": "wolf-or-husky",
            "title": "Can you predict the machine?",
            "paradigm": "meta_predictor",
            "seed": 7,
            "design": {"blocks": 2, "train_per_block": 2, "test_per_block": 4},
            "stimuli": {
                "dataset": {"name": "synthetic", "scenario": "biased"},
                "predictor": {"name": "toy"},
                "classes": ["husky", "wolf"],
                "balance": "prediction_x_correct",
            },
            "conditions": [
                {
                    "name": name,
                    "role": role,
                    "slots": slots,
                    "explainer": None if role == "baseline" else {"name": "saliency"},
                }
                for name, role in CONDITIONS
            ],
            "texts": {"consent": "c", "instructions": "i", "debrief": "d"},
            "questions": [{"id": "age", "kind": "number", "prompt": "How old are you?", "when": "before"}],
            "checks": {"instructed": 2, "repeat": 2},
            "ethics": {"contact": "lab@example.org"},
            "reward": {"expected_minutes": 5},
            **tables,
        }
    )


def opened(slots: int = 4, **tables: Any) -> Study:
    """The study with its items, stimuli (records only) and plans; `tables` of its file besides or instead."""
    wanted = definition(slots, **tables)
    return made_once(f"stored {wanted.model_dump_json()}", lambda: _opened(wanted, slots))


def _opened(wanted: StudyDefinition, slots: int) -> Study:
    study = Study.objects.create(
        slug=wanted.slug,
        title=wanted.title,
        paradigm=wanted.paradigm,
        definition=wanted.model_dump(mode="json"),
        digest=wanted.digest,
        seed=wanted.seed,
    )
    conditions = [
        Condition.objects.create(study=study, name=name, role=role, ordinal=i, slots=slots)
        for i, (name, role) in enumerate(CONDITIONS)
    ]
    # Three statements are enough, and fast: hundreds of tests begin here.
    items = Item.objects.bulk_create(_item(study, number) for number in range(48))
    pairs = [(item, condition) for item in items for condition in conditions]
    stimuli = Stimulus.objects.bulk_create(_stimulus(item, condition) for item, condition in pairs)
    Rendering.objects.bulk_create(
        Rendering(item=item, condition=condition, stimulus=stimulus)
        for (item, condition), stimulus in zip(pairs, stimuli, strict=True)
    )
    current_store().put(PICTURE, encode(np.zeros((2, 2, 3), np.uint8)))
    return open_study(study, lambda what, done, total: None)


def _item(study: Study, number: int) -> Item:
    predicted, truth = ("husky", "wolf")[number % 2], ("husky", "wolf")[number // 2 % 2]
    return Item(
        study=study,
        key=f"item-{number:02}",
        truth=truth,
        predicted=predicted,
        confidence=0.9,
        group=f"g{number}",
        logits=[1.0, 0.0],
        image_key=content_key(number),
        width_px=64,
        height_px=64,
    )


def _stimulus(item: Item, condition: Condition) -> Stimulus:
    explainer = "" if condition.role == "baseline" else condition.name
    return Stimulus(**_columns(item.image_key, item.predicted, explainer))


@cache
def _columns(image_key: str, predicted: str, explainer: str) -> Mapping[str, Any]:
    spec = StimulusSpec(
        image_key=image_key,
        predictor_key=content_key("toy"),
        layer="",
        target=("husky", "wolf").index(predicted),
        explainer=Component(explainer, {"sign": True}) if explainer else None,
        version=1 if explainer else 0,
        seed=7,
        render=RenderSpec(),
    )
    return {
        "key": spec.picture_key,
        "spec": spec.as_json(),
        "attribution_key": spec.attribution_key,
        "image_key": image_key,
        "state": "done",
        "image_file": PICTURE,
        "picture_digest": spec.picture_key,
    }


def sitting(
    study: Study,
    name: str,
    *,
    condition: str | None = None,
    verdict: str = "passed",
    right: Decide = lambda trial: True,
    answers: int | None = None,
    origin: str = "human",
    minutes: int = 0,
    reasons: list[dict[str, object]] | None = None,
    comment: str = "",
) -> Session:
    """One person on the next free slot of the condition, who answers the first `answers` trials."""
    slot = None
    if condition is not None:
        slot = (
            Slot.objects.filter(condition__name=condition, study=study, holder=None)
            .order_by("ordinal")
            .first()
        )
    at = START + timedelta(minutes=minutes)
    passed = verdict == "passed"
    state = {"": "running", "declined": "declined", "withdrawn": "withdrawn"}.get(verdict, "finished")
    session = Session.objects.create(
        study=study,
        participant=Participant.objects.create(study=study),
        origin=origin,
        simulated_kind="learner" if origin == "simulated" else "",
        state=state,
        slot=slot,
        token_hash=hashlib.sha256(name.encode()).hexdigest(),
        media_id=name[:22],
        started_at=at,
        claimed_at=at + timedelta(minutes=2) if slot else None,
        finished_at=at + timedelta(minutes=8) if verdict else None,
        verdict=verdict,
        verdict_at=at + timedelta(minutes=8) if verdict else None,
        reasons=reasons or [],
        comment=comment,
        device={"width_px": 1280, "height_px": 800, "touch": False},
    )
    _gates(session, agreed=verdict != "declined")
    if slot is not None:
        Slot.objects.filter(pk=slot.pk).update(
            holder=session if passed else None, kept=passed, claimed_count=F("claimed_count") + 1
        )
        _answers(session, slot, right, answers)
    return session


def _gates(session: Session, agreed: bool) -> None:
    rows: list[tuple[str, dict[str, object], bool]] = [
        ("device", {}, True),
        ("consent", {"agree": agreed}, agreed),
    ]
    if agreed:
        rows += [("questions_before", {"age": 41}, True), ("practice", {}, False), ("practice", {}, True)]
    for attempt, (kind, value, passed) in enumerate(rows):
        Gate.objects.create(session=session, kind=kind, attempt=attempt, value=value, passed=passed)


def _answers(session: Session, slot: Slot, right: Decide, answers: int | None) -> None:
    trials = list(slot.trials.select_related("item").order_by("position"))[:answers]
    for trial in trials:
        Response.objects.create(
            session=session,
            trial=trial,
            position=trial.position,
            remaining=trial.remaining,
            value=_value(trial, right(trial)),
            rt_ms=1200 + trial.position,
            shown_ms=1300,
            context={"input": "keyboard", "key": "f", "side": "left", "reservoir_ms": 400},
            late=False,
            received_at=session.started_at + timedelta(seconds=trial.position),
        )
    Event.objects.create(session=session, uuid=session.pk, kind="reservoir_opened", at_ms=10)


def _value(trial: Trial, right: bool) -> dict[str, object]:
    if trial.kind == "learn":
        return {"seen": True}
    expected = trial.expected or (trial.item.predicted if trial.item else "")
    others = [choice["value"] for choice in trial.choices if choice["value"] != expected]
    return {"choice": expected if right else others[0]}


def cast(study: Study) -> dict[str, Session]:
    """Ada passed in grad_cam, Bo was screened in control, Cy left the baseline, Dee declined."""
    slow = {
        "rule": "total_minutes",
        "timing": "after",
        "found": 40.0,
        "limit": 30.0,
        "evidence": "40 minutes",
    }
    return {
        "ada": sitting(study, "ada", condition="grad_cam", comment="=HYPERLINK(1) \"nice\", 'ok'\nbye"),
        "bo": sitting(study, "bo", condition="control", verdict="screened", minutes=3, reasons=[slow]),
        "cy": sitting(study, "cy", condition="baseline", verdict="incomplete", minutes=5, answers=7),
        "dee": sitting(study, "dee", verdict="declined", minutes=9),
    }


def full(study: Study, origin: str = "human") -> None:
    """Every slot kept: people of the baseline are right half of the time, the others more often."""
    wrong = {"baseline": 2, "control": 3, "grad_cam": 5}
    for condition, every in wrong.items():
        for number in range(study.conditions.get(name=condition).slots):

            def right(trial: Trial, every: int = every, number: int = number) -> bool:
                return bool(trial.check_kind) or (trial.position + number) % every != 0

            sitting(
                study,
                f"{condition}-{number}",
                condition=condition,
                right=right,
                origin=origin,
                minutes=number,
            )


def as_ratings(study: Study, questions: Sequence[str], *, has_anchor: bool = False) -> Study:
    """The study as one of ratings: every test trial that is no check asks these questions. With an anchor the
    last of each slot is of the same explanation."""
    study.paradigm = "rating"
    study.definition = {**study.definition, "design": {"asked": list(questions)}}
    study.save()
    trials = Trial.objects.filter(slot__study=study, phase="test", check_kind="")
    trials.update(kind="rate", extra={"questions": list(questions)})
    if not has_anchor:
        return study
    last = {trial.slot_id: trial.pk for trial in trials.order_by("position")}
    anchor = trials.filter(slot__condition__name="grad_cam").earliest("pk")
    trials.filter(pk__in=last.values()).update(
        extra={"questions": list(questions), "anchor": True}, item=anchor.item, condition=anchor.condition
    )
    return study


def rater(study: Study, name: str, points: Mapping[str, int], *, rt_ms: int = 6000, **more: Any) -> Session:
    """A person who gives every explanation the same points; `more` as for `sitting`."""
    session = sitting(study, name, **{"condition": "control", **more})
    Response.objects.filter(session=session, trial__kind="rate").update(value=dict(points), rt_ms=rt_ms)
    return session
