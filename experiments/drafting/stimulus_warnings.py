"""What was measured of a study's stimuli, as it is stored: read by pages, publishing and reports. Measuring
takes models, and is done elsewhere.

`Study.quality` holds `conditions` (their numbers), `warnings` and a `digest` of both; or `error`, if nothing
could be measured. A warning is `condition`, `kind`, `what`, `remedy`, `refuses`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.utils import timezone

from experiments.drafting.dropped_items import dropped_sentence
from experiments.errors import StudyError
from experiments.models import Study, Trial
from experiments.paradigms import design_of, get_paradigm
from experiments.selectors import definition_of
from stimuli.quality.look_decodability import PAIRS_MIN

REASON_MIN = 20
"""Characters: a word is no reason."""
Warned = Mapping[str, Any]


def unknown_sentence(conditions: Sequence[str]) -> str:
    """That it is not known of these conditions whether explanations give the answer away; else empty."""
    if not conditions:
        return ""
    return (
        "Unknown, which is not clean: whether the form of an explanation tells which answer it explains, "
        f"under {', '.join(conditions)}. To know it, explain {PAIRS_MIN} items or more for two answers."
    )


def unknown_of(study: Study) -> str:
    """`unknown_sentence` of what is stored."""
    rows = study.quality.get("conditions", ())
    return unknown_sentence([row["condition"] for row in rows if row["leak"] is None])


def is_seen_with_answer(study: Study) -> bool:
    """Whether every explanation of an opened study stands beside the model's answer, and none is there when
    the answer is asked; so too if no answer is right or wrong, for then there is none to give away."""
    definition = definition_of(study)
    if not get_paradigm(study.paradigm).scores(design_of(definition)):
        return True
    return not Trial.objects.filter(slot__study=study, explained=True, label__isnull=True).exists()


def is_measured(study: Study) -> bool:
    return "digest" in study.quality


def warnings_of(study: Study) -> list[Warned]:
    """What is wrong with the stimuli, by what is stored; that they were not measured is a warning too."""
    if is_measured(study):
        return list(study.quality["warnings"])
    why = study.quality.get("error", "")
    what = f"the stimuli were not measured{': ' * bool(why)}{why}"
    remedy = f"run study_open {study.slug} once more"
    return [{"condition": "", "kind": "unmeasured", "what": what, "remedy": remedy, "refuses": True}]


def open_warnings(study: Study) -> list[Warned]:
    """The warnings that are not acknowledged as they are now: other numbers make another warning."""
    known = [warned for entry in study.acknowledged for warned in entry["warnings"]]
    return [warned for warned in warnings_of(study) if warned not in known]


def refusing(study: Study) -> list[Warned]:
    """The warnings under which people are not paid to look before they are acknowledged."""
    if not is_measured(study) and is_seen_with_answer(study):
        return []
    return [warned for warned in open_warnings(study) if warned["refuses"]]


def acknowledge(study: Study, by: str, reason: str) -> list[Warned]:
    """Stores that a person knows the warnings and goes on; returns them. They stand in every report.

    Raises StudyError without a name, a reason, or anything to acknowledge.
    """
    by, reason = by.strip(), reason.strip()
    if not by or len(reason) < REASON_MIN:
        raise StudyError(
            f"An acknowledgement needs a name and a reason of at least {REASON_MIN} characters (this has "
            f"{len(reason)}): reports print both."
        )
    if study.state == Study.State.DRAFT:
        raise StudyError(f"{study.slug} is a draft, whose stimuli may still change. Open it first.")
    with transaction.atomic():
        # Two acknowledgements at once: each is stored, none overwrites the other's list.
        locked = Study.objects.select_for_update().get(pk=study.pk)
        warned = open_warnings(locked)
        if not warned:
            raise StudyError(f"{study.slug} has no warning about its stimuli that awaits an acknowledgement.")
        at = timezone.now().isoformat(timespec="seconds")
        entry = {"by": by, "at": at, "reason": reason, "warnings": warned}
        study.acknowledged = [*locked.acknowledged, entry | {"digest": locked.quality.get("digest", "")}]
        Study.objects.filter(pk=study.pk).update(acknowledged=study.acknowledged)
    return warned


def acknowledgements(study: Study) -> list[Mapping[str, Any]]:
    """Those of the warnings of now, each with them alone."""
    now = warnings_of(study)
    kept = [{**e, "warnings": [w for w in e["warnings"] if w in now]} for e in study.acknowledged]
    return [entry for entry in kept if entry["warnings"]]


def stimuli_sentences(study: Study) -> list[str]:
    """What a report says of the stimuli: what was acknowledged by whom, what was not, what was left out;
    nothing if the study explains nothing."""
    if not any(condition.get("explainer") for condition in study.definition.get("conditions", ())):
        return []
    said = []
    for entry in acknowledgements(study):
        listed = _join_warnings(entry["warnings"])
        said.append(
            f"Acknowledged by {entry['by']} on {entry['at'][:10]} (\N{LEFT DOUBLE QUOTATION MARK}"
            f"{entry['reason']}\N{RIGHT DOUBLE QUOTATION MARK}): {listed}."
        )
    open_ones = open_warnings(study)
    if not is_measured(study):
        said += [f"{w['what'][0].upper()}{w['what'][1:]}." for w in open_ones]
    elif open_ones:
        said.append(f"Warnings about the stimuli, not acknowledged: {_join_warnings(open_ones)}.")
    elif not said and study.quality["conditions"] and not unknown_of(study):
        said.append("No warning about the stimuli.")
    if unknown := unknown_of(study):
        said.append(unknown)
    if left := study.quality.get("unmeasured", []):
        said.append(f"The stimuli of {', '.join(left)} were not measured.")
    if study.dropped:
        said.append(dropped_sentence(study.dropped))
    return said


def _join_warnings(warned: Sequence[Warned]) -> str:
    return "; ".join(str(w["what"]) for w in warned)
