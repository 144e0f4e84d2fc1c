"""Maps by factorising a layer's output: what varies most in it, whether or not it bears on the logit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers.layers.base import LayerMethod
from stimuli.explainers.layers.cam import ClassActivationMap
from stimuli.explainers.maps import enlarge_map, pixel_map
from stimuli.planner.asks import Steps
from stimuli.planner.values import Subject, Trace
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import LATER, parameters

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
ComponentSign = Literal["largest", "grad-cam"]
MOST_ROUNDS = 5000
LEAP_AFTER = 12
"""Rounds until the factors leap to their extrapolated limit."""
SETTLED = 1e-5
"""Rounds end when a leap would move no entry of the maps by more than this share of the largest."""
MOST_SHARE = 0.9999
"""Steps are assumed to shrink at least by this share."""
NOTHING = 1e-7
"""Singular values below this share of the largest are rounding."""


@parameters
class EigenCam(LayerMethod):
    """The places projected on the first principal component of the channels; knows no class. [Muhammad and
    Yeasin 2020]

    Channels are centred over the places. The component's sign, which is arbitrary, is such that the largest
    magnitude is positive [Chung and Ying 2025]; with `sign` "grad-cam" it is the one that LAPACK's singular
    value decomposition happens to return, as in pytorch-grad-cam: it means nothing, and may be the other one
    on another processor. Negative values are set to 0, as libraries do, unless `signed`.
    """

    needs_gradient: ClassVar[bool] = False
    version: ClassVar[int] = 1
    signed: bool = False
    sign: Annotated[ComponentSign, LATER] = "largest"

    def has_sign(self) -> bool:
        return self.signed

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        name = self.chosen(predictor, subject.layer)
        traced = yield Trace(layers=(name,))
        component = first_component(traced.activations[name], self.sign)
        coarse = component if self.signed else component.relu()
        return pixel_map(enlarge_map(coarse, subject.pixels), signed=self.has_sign())


@parameters
class EigenGradCam(ClassActivationMap):
    """As EigenCam, of activation times gradient: the class comes in. From the library pytorch-grad-cam
    [Gildenblat et al. 2021].
    """

    version: ClassVar[int] = 1
    signed: bool = False
    sign: Annotated[ComponentSign, LATER] = "largest"

    def coarse(self, activation: Tensor, gradient: Tensor) -> Tensor:
        component = first_component(gradient * activation, self.sign)
        return component if self.signed else component.relu()

    def has_sign(self) -> bool:
        return self.signed


@parameters
class DeepFeatureFactorization(LayerMethod):
    """One of `components` parts that add up to the layer's output without cancelling each other; knows no
    class. Unsigned. [Collins, Achanta and Suesstrunk 2018]

    Every channel less its minimum over the places, which is 0 behind a ReLU that ever rests, is factorised
    as non-negative channels x components times components x places, by coordinate descent from the leading
    singular vectors [Boutsidis and Gallopoulos 2008], without chance. Components are ordered by how much of
    the output they make up, largest first; number `shown`, counted from 0, is the map. Fewer than
    `components` places or channels: NotApplicable. The check `left_out` is the share of the output, by its
    squares, that the parts do not make up.
    """

    needs_gradient: ClassVar[bool] = False
    version: ClassVar[int] = 2
    components: Annotated[int, Field(ge=1, le=16)] = 2
    shown: Annotated[int, Field(ge=0, le=15)] = 0

    def __post_init__(self) -> None:
        if self.shown >= self.components:
            raise BadSpec(
                f"explainer 'deep_feature_factorization' shows component {self.shown}, counted from 0, of "
                f"{self.components}: set 'shown' below 'components'"
            )

    def require(self, predictor: ImagePredictor, layer: str) -> None:
        """NotApplicable too if the layer is too small for so many components."""
        # In a class with slots, super() without arguments means the class before they were added.
        LayerMethod.require(self, predictor, layer)
        layout = predictor.layouts[self.chosen(predictor, layer)]
        most = min(layout.channels, layout.height * layout.width)
        if self.components > most:
            raise NotApplicable(
                f"{type(self).__name__} cannot find {self.components} components in {layout.channels} "
                f"channels of {layout.height} x {layout.width} places: ask for {most} at most, "
                "or name a larger layer"
            )

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        import torch

        name = self.chosen(predictor, subject.layer)
        traced = yield Trace(layers=(name,))
        activation = traced.activations[name]
        values = activation.flatten(1).double().cpu().numpy()
        values -= values.min(axis=1, keepdims=True)
        channels, places = factors(values, self.components)
        missing = np.square(values - channels @ places).sum() / max(np.square(values).sum(), 1e-300)
        coarse = torch.from_numpy(places[self.shown].astype(np.float32)).view(activation.shape[1:])
        fine = enlarge_map(coarse, subject.pixels)
        return pixel_map(fine, signed=False, checks={"left_out": float(missing)})


def first_component(values: Tensor, sign: ComponentSign = "largest") -> Tensor:
    """Places projected on the first principal component of channels (C, h, w), float32 (h, w).

    By the smaller of the two matrices of products, so that 2048 channels of 7 x 7 places need the
    eigenvectors of 49 x 49.
    """
    import torch

    rows = values.flatten(1).double()
    rows = rows - rows.mean(1, keepdim=True)
    channels, places = rows.shape
    if places <= channels:
        squares, vectors = torch.linalg.eigh(rows.T @ rows)
        component = vectors[:, -1] * squares[-1].clamp(min=0).sqrt()
    else:
        component = torch.linalg.eigh(rows @ rows.T)[1][:, -1] @ rows
    is_reversed = -component.min() > component.max()
    if sign == "grad-cam":
        is_reversed = float(component @ _project_by_svd(values)) < 0
    if is_reversed:
        component = -component
    coarse: Tensor = component.view(values.shape[1:]).float()
    return coarse


def _project_by_svd(values: Tensor) -> Tensor:
    """The same projection by pytorch-grad-cam's steps, its sign as LAPACK returns it; float64 (h * w,)."""
    import torch

    rows = values.flatten(1).float().cpu().numpy().T
    rows = rows - rows.mean(axis=0)
    _, _, right = np.linalg.svd(rows, full_matrices=False)
    return torch.from_numpy((rows @ right[0]).astype(np.float64)).to(values.device)


def factors(values: Floats, components: int) -> tuple[Floats, Floats]:
    """Non-negative (m, components) and (components, n) whose product is close to `values`, (m, n), >= 0.

    A local optimum of the squared error by hierarchical alternating least squares [Cichocki and Phan 2009],
    whose steps shrink by nearly the same share in every round: now and then the sum of all that are to come
    is taken at once [Aitken 1926], if the error falls by it. The columns of the first have length 1 (or 0);
    components come in the order of the second's lengths, largest first.
    """
    left, right = _start(values, components)
    now = np.ascontiguousarray(left.T), right
    for _ in range(MOST_ROUNDS // LEAP_AFTER):
        for _ in range(LEAP_AFTER - 2):
            now = _round(values, *now)
        middle = _round(values, *now)
        last = _round(values, *middle)
        step, size = last[1] - middle[1], last[1].max(initial=0)
        reach = _reach(middle[1] - now[1], step)
        now = last
        if max(reach, 1) * np.abs(step).max(initial=0) <= SETTLED * size:
            break
        leap = _beyond(middle[0], last[0], reach), _beyond(middle[1], last[1], reach)
        if _misfit(values, *leap) < _misfit(values, *last):
            now = leap
    left, right = now[0].T, now[1]
    order = np.argsort(-np.linalg.norm(right, axis=1), kind="stable")
    return left[:, order], right[order]


def _round(values: Floats, left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Factors (components, m) and (components, n) improved once; the rows of the first get length 1."""
    left, right = left.copy(), right.copy()
    _improve(left, right @ values.T, right @ right.T)
    _improve(right, left @ values, left @ left.T)
    lengths = np.linalg.norm(left, axis=1, keepdims=True)
    return left / np.where(lengths > 0, lengths, 1), right * lengths


def _reach(before: Floats, step: Floats) -> float:
    """How many times `step` all further steps make together, if each is to the last one as it to `before`."""
    size = np.vdot(before, before)
    share = min(max(float(np.vdot(step, before) / size), 0.0), MOST_SHARE) if size > 0 else 0.0
    return share / (1 - share)


def _beyond(old: Floats, new: Floats, reach: float) -> Floats:
    return np.maximum(new + reach * (new - old), 0)


def _misfit(values: Floats, left: Floats, right: Floats) -> float:
    """The squared error of the factors less that of none."""
    return float(np.vdot(left @ left.T, right @ right.T) - 2 * np.vdot(left @ values, right))


def _improve(rows: Floats, wanted: Floats, products: Floats) -> None:
    """The best non-negative value of each row in turn, the others as they are; in place."""
    for at in range(len(rows)):
        if products[at, at] > 0:
            step = (wanted[at] - products[at] @ rows) / products[at, at]
            np.maximum(rows[at] + step, 0, out=rows[at])


def _start(values: Floats, components: int) -> tuple[Floats, Floats]:
    """The larger non-negative half of each pair of leading singular vectors, by the smaller matrix of
    products.
    """
    if len(values) > values.shape[1]:
        right, left = _start(np.ascontiguousarray(values.T), components)
        return np.ascontiguousarray(left.T), np.ascontiguousarray(right.T)
    import torch

    # By torch: another library's threads would wait for torch's to come to rest.
    squares, vectors = (matrix.numpy() for matrix in torch.linalg.eigh(torch.from_numpy(values @ values.T)))
    left, right = np.zeros((len(values), components)), np.zeros((components, values.shape[1]))
    for at in range(components):
        size = np.sqrt(max(squares[-1 - at], 0.0))
        if size <= NOTHING * np.sqrt(max(squares[-1], 0.0)):
            break
        left_vector = vectors[:, -1 - at]
        right_vector = left_vector @ values / size
        halves = [
            (np.maximum(sign * left_vector, 0), np.maximum(sign * right_vector, 0)) for sign in (1.0, -1.0)
        ]
        lengths = [(np.linalg.norm(up), np.linalg.norm(across)) for up, across in halves]
        best = 0 if np.prod(lengths[0]) >= np.prod(lengths[1]) else 1
        (up, across), (tall, wide) = halves[best], lengths[best]
        if tall > 0 and wide > 0:
            scale = np.sqrt(size * tall * wide)
            left[:, at], right[at] = scale * up / tall, scale * across / wide
    return left, right
