"""The keys of everything that was stored stay: compared with those that commit f38355e made."""

import json
from pathlib import Path
from typing import Any

import pytest

from stimuli.explainers import EXPLAINERS, check_explainer, packages_of, version_of
from stimuli.metrics import METRICS, SET_METRICS, check_metric
from stimuli.metrics.metric_key import describe_metric
from stimuli.render.recipe import ALPHA_BEFORE, RenderSpec, before_signs
from stimuli.spec import Component, StimulusSpec, canonical_json

pytestmark = pytest.mark.pure

STORED = json.loads(Path(__file__).with_name("content_keys_f38355e.json").read_text())
"""Written by the code of that commit: each method and metric by its defaults, and with each parameter at its
limits and at each of its words.
"""


RAISED = {
    **dict.fromkeys(("deletion", "insertion"), "pixels of equal value go in a drawn order"),
    **dict.fromkeys(("sparsity", "entropy", "jpeg_complexity"), "they score the drawn field"),
    **dict.fromkeys(("diagnostic_similarity", "method_similarity"), "they score the drawn fields"),
}
"""Metrics whose numbers have changed since, and why. Their version is raised: no stored number is theirs."""
REDRAWN = {"occlusion": "squares are a whole multiple of their distance, so that no lattice is drawn"}
"""Methods whose maps have changed since, and why: as with metrics."""


def spec(explainer: Component | None, version: int) -> StimulusSpec:
    """As studies of that commit drew it: the recipe that `absolute = true` still names."""
    before = RenderSpec(alpha=ALPHA_BEFORE, **before_signs(absolute=True))
    return StimulusSpec("a" * 64, "b" * 64, "features", 1, explainer, version, 2022, before)


def given(row: dict[str, Any]) -> str:
    return canonical_json(row["given"])


@pytest.mark.parametrize("row", STORED["explainers"], ids=given)
def test_it_keeps_the_keys_of_every_explainer(row: dict[str, Any]) -> None:
    explainer = check_explainer(Component.from_json(row["given"]))
    made = spec(explainer, version_of(explainer))
    assert canonical_json(explainer.as_json()) == row["canonical"] and packages_of(explainer) == ()
    if explainer.name in REDRAWN:
        assert made.version > row["version"] and made.attribution_key != row["attribution_key"]
        made = spec(explainer, row["version"])  # what is stored is found
    assert made.version == row["version"]
    assert (made.attribution_key, made.picture_key) == (row["attribution_key"], row["picture_key"])
    assert StimulusSpec.from_json(made.as_json()) == made and "packages" not in made.as_json()


@pytest.mark.parametrize("row", STORED["metrics"], ids=given)
def test_it_keeps_the_keys_of_every_metric(row: dict[str, Any]) -> None:
    metric = Component.from_json(row["given"])
    if metric.name in RAISED:
        described = describe_metric(Component(metric.name))
        assert described.version > row["version"] and described.key != row["key"]
        return
    described = describe_metric(metric)
    assert canonical_json(check_metric(metric).as_json()) == row["canonical"]
    assert (described.version, described.key, described.package) == (row["version"], row["key"], "")


def test_it_keeps_the_key_of_the_baseline() -> None:
    made = spec(None, 0)
    assert STORED["baseline"] == {"attribution_key": made.attribution_key, "picture_key": made.picture_key}


def test_it_compares_every_name_that_there_was() -> None:
    """Nothing is left out of the comparison: names may join, none may go."""
    before = {row["given"]["name"] for row in [*STORED["explainers"], *STORED["metrics"]]}
    assert before <= {*EXPLAINERS, *METRICS, *SET_METRICS} and len(before) == 38 + 9


def test_it_tells_numbers_apart_and_stores_a_logit_as_before() -> None:
    made = spec(Component("saliency"), 2)
    assert not {"operator", "against"} & made.as_json().keys()
    others = [
        StimulusSpec(**{**vars_of(made), "operator": operator, "against": against})
        for operator, against in (("margin", 0), ("margin", 2), ("probability", None))
    ]
    assert len({other.attribution_key for other in (made, *others)}) == 4
    assert all(StimulusSpec.from_json(other.as_json()) == other for other in others)


def test_it_tells_packages_and_their_versions_apart() -> None:
    explainer = Component("saliency")
    keys = {
        StimulusSpec(**{**vars_of(spec(explainer, 2)), "packages": packages}).attribution_key
        for packages in [(), ("toy-methods==1",), ("toy-methods==2",), ("toy-methods==1", "toy-maps==1")]
    }
    assert len(keys) == 4


def vars_of(made: StimulusSpec) -> dict[str, Any]:
    return {name: getattr(made, name) for name in StimulusSpec.__dataclass_fields__}
