"""Which conditions of a study have maps with a sign, and what the recipe shows of them."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.definition.study import StudyDefinition
from experiments.drafting.material_set import MaterialSet
from stimuli.explainers import has_sign, is_recorded, kind_of
from stimuli.render.recipe import Sign
from stimuli.store import Store
from stimuli.store.files import read_recorded
from stimuli.types import PixelAttribution

DRAWN: Mapping[Sign, str] = {
    "positive": "their evidence for the answer is drawn",
    "magnitude": "their magnitudes are drawn",
    "diverging": "both sides are drawn",
    "signed_range": "their whole range is drawn",
}


def signs_of(definition: StudyDefinition, gathered: MaterialSet, store: Store) -> dict[str, bool | None]:
    """Whether the maps of each condition have a sign; None if its package does not say. Conditions without
    maps are left out."""
    signs: dict[str, bool | None] = {}
    for condition in definition.conditions:
        if condition.explainer is None:
            continue
        component = condition.explainer.component()
        if is_recorded(component):
            # What was recorded for a condition has one sign: its first map says it for all.
            first = next(iter(gathered.recorded[condition.name].values()))
            made = read_recorded(store, str(first.params["digest"]))
            if isinstance(made, PixelAttribution):
                signs[condition.name] = made.signed
        elif kind_of(component) == "image":
            signs[condition.name] = has_sign(component)
    return signs


def signs_sentence(signs: Mapping[str, bool | None], sign: Sign, cut_away: Mapping[str, float]) -> str:
    """What is said of them under a recipe. `cut_away` is the measured share (0-1) of the evidence that the
    recipe does not show, by condition; it may lack some."""
    signed = [_with_share(name, cut_away) for name, has in signs.items() if has]
    parts = [f"With a sign ({DRAWN[sign]}): {', '.join(signed) or 'none'}"]
    for has, words in ((False, "without (their strength is drawn)"), (None, "not said by their package")):
        if named := [name for name in signs if signs[name] is has]:
            parts.append(f"{words}: {', '.join(named)}")
    return f"{'; '.join(parts)}."


def _with_share(name: str, cut_away: Mapping[str, float]) -> str:
    share = cut_away.get(name, 0.0)
    return f"{name} ({share:.2f} of it cut away)" if share > 0 else name
