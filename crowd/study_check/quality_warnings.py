"""What is wrong with the explanations of a study, as sentences with value, limit and remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crowd.study_check.stimulus_quality import ALPHA, LEAK_MAX, Quality
from stimuli.errors import first_of
from stimuli.render.sentences import LEAST_SHARE

EMPTY_MAX = 0.50
LATTICE_MAX = 0.25
ALIKE_MAX = 0.50
SAME_MAX = 0.05


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the explanations of a condition: `kind` is "empty", "flat", "leak", "lattice",
    "names", "copies" or "same". `refuses`: people are not paid to look at it before it is acknowledged by
    name.
    """

    condition: str
    kind: str
    what: str
    remedy: str = ""
    refuses: bool = False

    @property
    def sentence(self) -> str:
        return ": ".join(filter(None, (self.what, self.remedy)))


def warnings_about(measured: Sequence[Quality], *, seen_with_answer: bool) -> list[str]:
    """What a careful researcher would mend, as sentences; see `faults_in`."""
    return [fault.sentence for fault in faults_in(measured, seen_with_answer=seen_with_answer)]


def faults_in(measured: Sequence[Quality], *, seen_with_answer: bool) -> list[Fault]:
    """What a careful researcher would mend. `seen_with_answer`: the explanation stands beside the answer, and
    is gone when the answer is asked; then a leak gives nothing away, and is only printed."""
    said = []
    for quality in measured:
        name = quality.condition
        if quality.empty > EMPTY_MAX * quality.items:
            what = (
                f"{name}: {quality.empty} of {quality.items} explanations are empty (limit "
                f"{EMPTY_MAX:.2f} of them), so that people would mostly see nothing"
            )
            said.append(Fault(name, "empty", what, "take another layer or method, or another [render] sign"))
        if quality.is_flat_by_answer:
            remedy = "take another layer or method, or drop such items ([stimuli] drop_flagged)"
            said.append(Fault(name, "flat", _flat_words(quality), remedy, not seen_with_answer))
        if quality.is_leaking and not seen_with_answer:
            said.append(Fault(name, "leak", _leak_words(quality), refuses=True))
        if quality.lattice > LATTICE_MAX:
            what = (
                f"{name}: {quality.lattice:.2f} of the maps' structure is a regular grid (limit "
                f"{LATTICE_MAX:.2f}), which the network's strides leave"
            )
            remedy = "set [render] smooth_px, or take another network or method"
            said.append(Fault(name, "lattice", what, remedy))
        if len(quality.same) > SAME_MAX * quality.items:
            what = (
                f"{name}: {len(quality.same)} of {quality.items} explanations mark the same as those of "
                f"{quality.of} (limit {SAME_MAX:.2f} of them; {first_of(quality.same)}): both show the same"
            )
            remedy = "take items with more to mark, or another method or control"
            said.append(Fault(name, "same", what, remedy))
        said += [*_naming_faults(quality), *_copy_faults(quality)]
    return said


def control_warnings(measured: Sequence[Quality], controls: Mapping[str, str]) -> list[str]:
    """Controls whose maps tell the answer, as sentences; `controls` are the explainers of controls by
    condition."""
    return [
        f"{quality.condition}: a control says nothing of the answer, but the form of the maps of "
        f"{controls[quality.condition]} tells it (target leak {quality.leak_words}): a map that is made of a "
        "method's keeps its values, and so its brightness; take a control that never asks the model, such as "
        'explainer = { name = "bottom_up_saliency" }'
        for quality in measured
        if quality.condition in controls and quality.leak is not None
        if quality.leak.auc > 0.5 and quality.leak_p < ALPHA
    ]


def _naming_faults(quality: Quality) -> list[Fault]:
    said = []
    of = f"{quality.condition}: the words of {{}} of {quality.items} explanations name a concept that"
    if quality.naming_against:
        what = f"{of.format(quality.naming_against)} speaks against the answer like those that speak for it"
        remedy = "set [render] concept_signed = true, which marks it"
        said.append(Fault(quality.condition, "names", what, remedy))
    if quality.naming_tiny:
        what = f"{of.format(quality.naming_tiny)} weighs less than {LEAST_SHARE:g} of the first"
        remedy = 'set [render] concept_form = "bars" or "reasons", or a smaller concept_top'
        said.append(Fault(quality.condition, "names", what, remedy))
    return said


def _copy_faults(quality: Quality) -> list[Fault]:
    return [
        Fault(
            quality.condition,
            "copies",
            f"{quality.condition}: {copied.alike} of {copied.of} {copied.aim} copies have the same "
            f"explanation as their picture (limit {ALIKE_MAX:.2f}): there is mostly nothing to compare",
            "widen [design.perturbations], or leave the question out of [design] asked",
        )
        for copied in quality.copies
        if copied.alike > ALIKE_MAX * copied.of
    ]


def _flat_words(quality: Quality) -> str:
    flat = " and ".join(f"{count} of {of} for {name!r}" for name, (count, of) in sorted(quality.flat.items()))
    return (
        f"{quality.condition}: empty explanations by answer: {flat}. An empty one then gives the answer away"
    )


def _leak_words(quality: Quality) -> str:
    assert quality.leak is not None
    return (
        f"{quality.condition}: the form of an explanation tells which answer it explains in "
        f"{quality.leak.auc:.2f} of the items (95 % interval from {quality.leak.low:.2f}, limit "
        f"{LEAK_MAX:.2f}): people could answer by it without the item"
    )
