"""The registry of paradigms: name -> dotted path of the class, imported on first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from experiments.paradigms.base import Paradigm

PARADIGMS: dict[str, str] = {
    "meta_predictor": "experiments.paradigms.meta_predictor.MetaPredictor",
    "reverse_turing": "experiments.paradigms.reverse_turing.ReverseTuring",
    "blind_review": "experiments.paradigms.blind_review.BlindReview",
    "rating": "experiments.paradigms.rating.Rating",
}


@cache
def get_paradigm(name: str) -> Paradigm:
    """The paradigm of that name; raises LookupError naming the known ones."""
    if name not in PARADIGMS:
        raise LookupError(f"unknown paradigm {name!r}: choose one of {', '.join(PARADIGMS)}")
    module, _, attribute = PARADIGMS[name].rpartition(".")
    paradigm: Paradigm = getattr(import_module(module), attribute)()
    return paradigm
