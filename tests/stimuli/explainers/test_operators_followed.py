"""Methods and metrics follow the number that a study explains, or refuse it with the remedy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from stimuli.errors import NotApplicable
from stimuli.explainers import EXPLAINERS, RECORDED, open_explainer
from stimuli.explainers.base import refuse_operator
from stimuli.metrics import open_metric
from stimuli.planner.drive import Job, drive
from stimuli.planner.network import Network
from stimuli.planner.values import Operator
from stimuli.spec import Component
from stimuli.types import PixelAttribution
from tests.stimuli.operators import OPERATORS, asked, number_of
from tests.stimuli.tiny import SIDE, convolutional_net, pictures, subjects_of

pytestmark = pytest.mark.pure

REFUSED: dict[str, set[Operator]] = {
    "bcos": {"probability"},
    "clip_linear": {"probability"},
    "full_grad": {"probability"},
    "grad_cam_plus_plus": {"probability"},
    "lime_cbm": {"margin"},
    "lime_image": {"margin"},
    "lime_text": {"margin"},
    "lrp": {"probability"},
    "random_text": {"margin"},
    "rise": {"margin"},
    "rise_cbm": {"margin"},
    "shap_cbm": {"probability"},
    "shap_partition": {"probability"},
    "shap_text": {"margin"},
    "x_nesyl": {"probability"},
}
"""By their defaults: those that watch a probability, and those that are defined for sums of logits alone."""


def refusal(method: Any, operator: Operator) -> str:
    try:
        refuse_operator(method, "it", operator)
    except NotApplicable as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", sorted({*EXPLAINERS} - {RECORDED}))
def test_a_method_refuses_what_it_cannot_explain(name: str) -> None:
    method = open_explainer(Component(name))
    refused = {operator for operator in OPERATORS if refusal(method, operator)}
    assert refused == REFUSED.get(name, set())


@pytest.mark.parametrize(
    ("component", "operator", "says"),
    [
        (Component("rise"), "margin", "set output = 'logit', which then stands for the margin"),
        (Component("shap_partition"), "probability", "set output = 'probability'"),
        (Component("shap_text"), "margin", "set output = 'log_odds'"),
        (Component("lime_text"), "margin", "use 'shap_text' with output = 'log_odds'"),
        (Component("full_grad"), "probability", "explain the logit or the margin"),
        (Component("random", {"of": "full_grad"}), "probability", "FullGrad reads the sum"),
        (Component("permuted", {"of": "rise"}), "margin", "set output = 'logit'"),
        (Component("captum", {"method": "LRP"}), "margin", "captum's LRP has no rule"),
        (Component("captum", {"method": "DeepLift"}), "probability", "explain the logit or the margin"),
    ],
)
def test_a_refusal_says_what_to_do(component: Component, operator: Operator, says: str) -> None:
    assert says in refusal(open_explainer(component), operator)


@pytest.mark.parametrize(
    ("component", "operator"),
    [
        (Component("rise", {"output": "logit"}), "margin"),
        (Component("shap_partition", {"output": "probability"}), "probability"),
        (Component("shap_text", {"output": "log_odds"}), "margin"),
        (Component("captum", {"method": "DeepLift"}), "margin"),
    ],
)
def test_a_method_that_is_told_the_number_explains_it(component: Component, operator: Operator) -> None:
    assert not refusal(open_explainer(component), operator)


def test_a_package_that_does_not_say_is_asked_for_logits_alone() -> None:
    class Silent:
        version, kind = 1, "image"

    assert not refusal(Silent(), "logit")
    assert "ask its package for a method follow(operator)" in refusal(Silent(), "margin")


# Metrics


@pytest.mark.parametrize("score", ["logit", "probability"])
def test_metrics_watch_the_number_by_logit_and_the_target_s_share_by_probability(score: str) -> None:
    net, [plain] = convolutional_net(), subjects_of(pictures(1))
    metric = open_metric(Component("deletion", {"steps": 4, "score": score}))
    values = np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    for subject in (asked([plain], operator)[0] for operator in OPERATORS):
        made = PixelAttribution(values, signed=False)
        job = Job(0, subject, lambda s=subject, m=made: metric.measure(net, s, m))  # type: ignore[misc]
        (done,) = drive([job], Network(net, rows=4))
        watched = subject if score == "logit" else replace(plain, operator="probability")
        curve = []
        for state in range(5):
            copy = subject.pixels.clone()
            gone = torch.from_numpy(values >= SIDE * SIDE - round(state * SIDE * SIDE / 4))
            copy[:, gone] = 0
            curve.append(float(number_of(net.module(copy[None])[0], watched)))
        np.testing.assert_allclose(done.result.details["curve"], curve, atol=1e-6)
