"""Each method the way its library offers it: captum, pytorch-grad-cam, lime, shap, or a plain loop.

Every function explains one picture and says which share of the whole work it did, 1 or less: a method that
needs hundreds of passes runs a part. Settings are the sensible ones: inner batches of the planner's size, the
same parameters as ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.methods import MOST
from stimuli.predictors.base import TorchPredictor
from stimuli.types import Layout
from tests.witnesses import grad_cam

PART = MOST
"""How many passes of a method with more than 200 are run."""


@dataclass
class Setting:
    """A network as users have it: weights as loaded, in the ordinary memory layout. `rows` is the inner batch
    of methods that take one. `forwards` and `backwards` count the rows that went through.
    """

    module: nn.Module
    layer: nn.Module
    layout: Layout
    head: nn.Module
    rows: int
    forwards: int = 0
    backwards: int = 0

    def __post_init__(self) -> None:
        self.module.register_forward_hook(self._count)

    def _count(self, _module: nn.Module, _inputs: object, output: Tensor) -> None:
        self.forwards += len(output)
        if output.requires_grad:
            output.register_hook(self._count_backward)  # type: ignore[no-untyped-call]

    def _count_backward(self, gradient: Tensor) -> None:
        self.backwards += len(gradient)

    @property
    def reshape(self) -> Callable[[Tensor], Tensor] | None:
        """What pytorch-grad-cam wants for layers of tokens."""
        if self.layout.kind == "maps":
            return None
        side, prefix = self.layout.height, self.layout.prefix
        return lambda x: x[:, prefix:].reshape(len(x), side, side, x.shape[2]).permute(0, 3, 1, 2)


def setting(predictor: TorchPredictor, rows: int, device: str) -> Setting:
    """The predictor's network with trainable weights, as a user loads it."""
    module = predictor.module.to(device)
    for weights in module.parameters():
        weights.requires_grad_(True)
    heads = [part for part in module.modules() if isinstance(part, nn.Linear)]
    return Setting(module, predictor.layer_module(), predictor.layouts[predictor.layer], heads[-1], rows)


def _captum(name: str, batch: str = "", **given: object) -> Callable[[Setting, Tensor, int], float]:
    """A method of captum; `batch` is its name for the rows of an inner batch."""

    def run(on: Setting, image: Tensor, target: int) -> float:
        import captum.attr

        more = given | ({batch: on.rows} if batch else {})
        getattr(captum.attr, name)(on.module).attribute(image[None], target=target, **more)
        return 1

    return run


def _smooth_grad(on: Setting, image: Tensor, target: int) -> float:
    from captum.attr import NoiseTunnel, Saliency

    NoiseTunnel(Saliency(on.module)).attribute(
        image[None],
        target=target,
        nt_samples=50,
        stdevs=0.2,
        nt_samples_batch_size=on.rows,
        abs=False,
    )
    return 1


def _occlusion(on: Setting, image: Tensor, target: int) -> float:
    """Windows of 32 pixels side by side, 49 of them, instead of 729 of 16 pixels every 8."""
    from captum.attr import Occlusion

    Occlusion(on.module).attribute(
        image[None],
        target=target,
        sliding_window_shapes=(3, 32, 32),
        strides=(3, 32, 32),
        baselines=0.0,
        perturbations_per_eval=on.rows,
    )
    side = image.shape[1]
    return (1 + (1 + ceil((side - 32) / 32)) ** 2) / (1 + (1 + ceil((side - 16) / 8)) ** 2)


def _grad_cam(on: Setting, image: Tensor, target: int) -> float:
    """captum's; maps of tokens, which it does not know, through pytorch-grad-cam."""
    from captum.attr import LayerAttribution, LayerGradCam

    if on.layout.kind == "tokens":
        return _cam("GradCAM")(on, image, target)
    coarse = LayerGradCam(on.module, on.layer).attribute(image[None], target=target, relu_attributions=True)
    LayerAttribution.interpolate(coarse, tuple(image.shape[1:]), interpolate_mode="bilinear")
    return 1


def _cam(name: str) -> Callable[[Setting, Tensor, int], float]:
    def run(on: Setting, image: Tensor, target: int) -> float:
        library = grad_cam()
        from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

        # FullGrad reads convolutions and normalisations of maps in every place.
        layers, reshape = ([], None) if name == "FullGrad" else ([on.layer], on.reshape)
        with getattr(library, name)(on.module, layers, reshape_transform=reshape) as method:
            method(input_tensor=image[None], targets=[ClassifierOutputTarget(target)])
        return 1

    return run


def _ablation_cam(on: Setting, image: Tensor, target: int) -> float:
    """The library's own switch ablates a share of the channels at either end of its ranking."""
    library = grad_cam()
    from pytorch_grad_cam.ablation_layer import AblationLayer, AblationLayerVit
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    ablate = AblationLayerVit() if on.layout.kind == "tokens" else AblationLayer()
    each_end = PART // 2
    method = library.AblationCAM(
        on.module,
        [on.layer],
        reshape_transform=on.reshape,
        ablation_layer=ablate,
        batch_size=on.rows,
        ratio_channels_to_ablate=(each_end + 0.5) / on.layout.channels,
    )
    with method:
        method(input_tensor=image[None], targets=[ClassifierOutputTarget(target)])
    return (2 + 2 * each_end) / (2 + on.layout.channels)


def _score_cam(on: Setting, image: Tensor, target: int) -> float:
    library = grad_cam()
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    class FirstChannels(library.ScoreCAM):  # type: ignore[misc, name-defined]
        """The library's weights of the first channels, repeated for the others."""

        def get_cam_weights(
            self, inputs: Any, layer: Any, targets: Any, activations: Any, gradients: Any
        ) -> Any:
            some = super().get_cam_weights(inputs, layer, targets, activations[:, :PART], gradients)
            return np.resize(some, activations.shape[:2])

    with FirstChannels(on.module, [on.layer], reshape_transform=on.reshape) as method:
        method.batch_size = on.rows
        with torch.no_grad():  # without this the library keeps every graph
            method(input_tensor=image[None], targets=[ClassifierOutputTarget(target)])
    return (1 + PART) / (1 + on.layout.channels)


def _factorization(on: Setting, image: Tensor, target: int) -> float:
    library = grad_cam()
    method = library.DeepFeatureFactorization(
        model=on.module, target_layer=on.layer, reshape_transform=on.reshape, computation_on_concepts=on.head
    )
    with torch.no_grad():
        method(image[None], 2)
    return 1


def _rise(on: Setting, image: Tensor, target: int) -> float:
    """A plain loop, one mask at a time, 4,000 in all."""
    draws = torch.Generator().manual_seed(3)
    total = torch.zeros(image.shape[1:], device=image.device)
    side = image.shape[1]
    cell = ceil(side / 7)
    with torch.no_grad():
        for _ in range(PART):
            grid = (torch.rand((1, 1, 7, 7), generator=draws) < 0.5).float().to(image.device)
            fine = nn.functional.interpolate(grid, size=(8 * cell, 8 * cell), mode="bilinear")[0, 0]
            top, left = (int(torch.randint(0, cell, (), generator=draws)) for _ in range(2))
            mask = fine[top : top + side, left : left + side]
            total += on.module((image * mask)[None])[0, target] * mask
    return PART / 4000


def _probabilities(on: Setting, pictures: Any, device: torch.device) -> Any:
    """What lime and shap call: pictures (n, H, W, 3) in 0-1, inner batches of `rows`."""
    stack = torch.from_numpy(np.asarray(pictures, np.float32)).permute(0, 3, 1, 2).to(device)
    with torch.no_grad():
        parts = [on.module(stack[at : at + on.rows]).softmax(1) for at in range(0, len(stack), on.rows)]
    return torch.cat(parts).cpu().numpy()


def _lime(on: Setting, image: Tensor, target: int) -> float:
    from lime.lime_image import LimeImageExplainer

    LimeImageExplainer(random_state=3).explain_instance(
        image.permute(1, 2, 0).cpu().double().numpy(),
        lambda pictures: _probabilities(on, pictures, image.device),
        labels=(target,),
        top_labels=None,
        hide_color=0,
        num_samples=100,
        batch_size=on.rows,
        random_seed=3,
    )
    return 1


def _shap(on: Setting, image: Tensor, target: int) -> float:
    import shap

    picture = image.permute(1, 2, 0).cpu().numpy()
    masker = shap.maskers.Image(0, picture.shape)
    explain = shap.Explainer(
        lambda pictures: _probabilities(on, pictures, image.device)[:, [target]],
        masker,
        algorithm="partition",
    )
    explain(picture[None], max_evals=200, batch_size=on.rows, silent=True)
    return 1


LIBRARIES: dict[str, Callable[[Setting, Tensor, int], float]] = {
    "saliency": _captum("Saliency"),
    "gradient_x_input": _captum("InputXGradient"),
    "integrated_gradients": _captum(
        "IntegratedGradients", "internal_batch_size", baselines=0.0, n_steps=50, method="riemann_trapezoid"
    ),
    "smooth_grad": _smooth_grad,
    "occlusion": _occlusion,
    "grad_cam": _grad_cam,
    "hires_cam": _cam("HiResCAM"),
    "grad_cam_elementwise": _cam("GradCAMElementWise"),
    "grad_cam_plus_plus": _cam("GradCAMPlusPlus"),
    "xgrad_cam": _cam("XGradCAM"),
    "layer_cam": _cam("LayerCAM"),
    "eigen_cam": _cam("EigenCAM"),
    "eigen_grad_cam": _cam("EigenGradCAM"),
    "deep_feature_factorization": _factorization,
    "full_grad": _cam("FullGrad"),
    "ablation_cam": _ablation_cam,
    "score_cam": _score_cam,
    "guided_backprop": _captum("GuidedBackprop"),
    "rise": _rise,
    "lime_image": _lime,
    "shap_partition": _shap,
}
"""Per method of ours, how the library that also has it runs it."""
