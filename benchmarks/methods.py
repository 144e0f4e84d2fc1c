"""What is measured: the methods, their parameters, and the least passes that each needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.costs import Passes

INPUT_PX = 224
MOST = 48
"""Of a method that needs more than 200 passes so many are run."""
MANY = 200


FORTH, BACK, NONE = Passes(1), Passes(1, 1), Passes()


@dataclass(frozen=True)
class Method:
    """A method, the library that has it too, and the least passes that a picture needs: of its `trace`, which
    all methods share, and of `copies`. `per_channel` is what each channel of the layer costs;
    `per_channel_if_pooled` that cost if only global pooling and one linear layer come behind it.
    """

    name: str
    library: str
    params: Mapping[str, Any] = field(default_factory=dict)
    trace: Passes = NONE
    copies: Passes = NONE
    per_channel: Passes = NONE
    per_channel_if_pooled: Passes = NONE

    def own(self, channels: int, is_pooled: bool) -> Passes:
        """What it needs in addition to the trace."""
        each = self.per_channel_if_pooled if is_pooled else self.per_channel
        return self.copies + each * channels

    def run(self, channels: int, is_pooled: bool) -> Passes:
        """What of that is run in a measurement."""
        needed = self.own(channels, is_pooled)
        if needed.rows <= MANY:
            return needed
        return Passes(min(needed.forwards, MOST), needed.backwards, min(needed.tails, MOST))


def least(methods: Iterable[Method], channels: int, is_pooled: bool, *, whole: bool = True) -> Passes:
    """The least for one picture and all these methods together; with `whole` off, of what is run."""
    chosen = list(methods)
    trace = Passes(
        max((method.trace.forwards for method in chosen), default=0),
        max((method.trace.backwards for method in chosen), default=0),
    )
    for method in chosen:
        trace += method.own(channels, is_pooled) if whole else method.run(channels, is_pooled)
    return trace


SIX = (
    Method("saliency", "captum", trace=BACK),
    Method("gradient_x_input", "captum", trace=BACK),
    Method("integrated_gradients", "captum", trace=BACK, copies=BACK * 49),
    Method("smooth_grad", "captum", copies=BACK * 50),
    Method(
        "occlusion",
        "captum",
        {"patch_share": 16 / INPUT_PX, "stride_share": 8 / INPUT_PX},
        FORTH,
        copies=FORTH * 729,
    ),
    Method("grad_cam", "captum or pytorch-grad-cam", trace=BACK),
)
"""Colin's six."""
FAMILY = (
    SIX[0],
    SIX[1],
    SIX[5],
    Method("hires_cam", "pytorch-grad-cam", trace=BACK),
    Method("grad_cam_elementwise", "pytorch-grad-cam", trace=BACK),
    Method("grad_cam_plus_plus", "pytorch-grad-cam", trace=BACK),
    Method("xgrad_cam", "pytorch-grad-cam", trace=BACK),
    Method("layer_cam", "pytorch-grad-cam", trace=BACK),
    Method("eigen_grad_cam", "pytorch-grad-cam", trace=BACK),
    Method("full_grad", "pytorch-grad-cam", trace=BACK),
    Method("eigen_cam", "pytorch-grad-cam", trace=FORTH),
    Method("deep_feature_factorization", "pytorch-grad-cam", trace=FORTH),
)
"""The methods that read one pass of the picture itself."""
OTHERS = (
    Method("ablation_cam", "pytorch-grad-cam", trace=BACK, per_channel=Passes(tails=1)),
    Method("score_cam", "pytorch-grad-cam", trace=FORTH, per_channel=FORTH, per_channel_if_pooled=FORTH),
    Method("guided_backprop", "captum", copies=BACK),
    Method("rise", "plain loop", {"masks": 4000}, copies=FORTH * 4000),
    Method("lime_image", "lime", {"samples": 100}, copies=FORTH * 100),
    Method("shap_partition", "shap", {"evaluations": 200, "per_round": 16}, copies=FORTH * 200),
)
BEHIND_A_LAYER = {"ablation_cam"}
"""What runs the part of the network behind a layer, which is cut off once per network."""
METHODS = tuple({method.name: method for method in (*SIX, *FAMILY, *OTHERS)}.values())
