"""What a vision transformer attends to, followed through all of its blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from stimuli.errors import NotApplicable
from stimuli.explainers.base import ByGradient
from stimuli.explainers.hook_requirements import once
from stimuli.explainers.maps import enlarge_map, pixel_map
from stimuli.planner.asks import Steps
from stimuli.planner.values import AttentionTrace, Subject, TraceAnswer
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters
from stimuli.types import Layout

if TYPE_CHECKING:
    from torch import Tensor


@parameters
class AttentionMethod(ByGradient):
    """What these methods share: T x T matrices, one per block, multiplied up; the rows of the tokens that the
    logits are read from (the class token, or the mean of all that are averaged), cell by cell of the grid.
    """

    def require(self, predictor: ImagePredictor, layer: str) -> None:
        """NotApplicable unless every attention is one among all tokens, whose grid is known. Runs one picture
        of noise.
        """
        ByGradient.require(self, predictor, layer)
        _grid(predictor, _token_count(predictor))

    def has_sign(self) -> bool:
        return False

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        traced = yield AttentionTrace()
        layout = _grid(predictor, len(traced.read))
        rows = self.combined(traced)[traced.read].mean(0)
        cells = rows[layout.prefix :].reshape(layout.height, layout.width)
        return pixel_map(enlarge_map(cells.float(), subject.pixels), signed=self.has_sign())

    def combined(self, traced: TraceAnswer) -> Tensor:
        """How much of each token (columns) is in each of the last block's (rows), (T, T)."""
        raise NotImplementedError


@parameters
class AttentionRollout(AttentionMethod):
    """Product over the blocks of (W + I) / 2, with W the attention weights averaged over heads and I the
    identity, which stands for the path around the attention. Unsigned. [Abnar and Zuidema 2020]

    It knows no class: all labels of a picture have the same map.
    """

    version: ClassVar[int] = 1

    def combined(self, traced: TraceAnswer) -> Tensor:
        import torch

        assert traced.attention is not None
        whole = torch.eye(len(traced.attention[0]), dtype=torch.float64, device=traced.attention.device)
        for weights in traced.attention.double():
            whole = (weights @ whole + whole) / 2
        return whole


@parameters
class GenericAttention(AttentionMethod):
    """R = R + A R over the blocks from R = I, with A the average over heads of the positive part of weights
    times the gradient of the explained number with respect to them. Unsigned. [Chefer, Gur and Wolf 2021,
    "Generic attention-model explainability", equations 5 and 6]

    The identity that R starts from is left out of the map.
    """

    version: ClassVar[int] = 1

    def combined(self, traced: TraceAnswer) -> Tensor:
        import torch

        assert traced.relevancy is not None
        start = torch.eye(len(traced.relevancy[0]), dtype=torch.float64, device=traced.relevancy.device)
        whole = start
        for block in traced.relevancy.double():
            whole = whole + block @ whole
        return whole - start


def _token_count(predictor: ImagePredictor) -> int:
    from stimuli.planner.steps.attention import read_tokens

    device = next((held.device for held in predictor.module.parameters()), None)
    return once(
        predictor,
        "attention",
        lambda: len(read_tokens(predictor.module, predictor.input_px, device or "cpu")),
    )


def _grid(predictor: ImagePredictor, tokens: int) -> Layout:
    """How that many tokens lie in the picture."""
    for layout in predictor.layouts.values():
        cells = layout.height * layout.width
        if (
            layout.kind == "tokens"
            and layout.prefix + cells == tokens
            and min(layout.height, layout.width) > 1
        ):
            return layout
    raise NotApplicable(
        f"this network attends among {tokens} tokens, and no layer says which of them are cells of the "
        "picture: declare token_prefix, the number of class and register tokens before the cells"
    )
