"""How a network runs its activations, which decides whether hook-based methods are right for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

from stimuli.errors import NotApplicable

if TYPE_CHECKING:
    from torch import nn

    from stimuli.planner.values import ExplainedNumber
    from stimuli.predictors.interface import ImagePredictor

RECTIFIERS = {
    "relu",
    "relu_",
    "hardtanh",  # ReLU6
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "threshold",
    "threshold_",
    "_prelu_kernel",
    "elu",
    "elu_",
}
"""Names of the operations that let one sign pass and hold back the other."""


T = TypeVar("T")
_tried: WeakKeyDictionary[nn.Module, dict[Hashable, object]] = WeakKeyDictionary()
"""What a network answered, as long as it lives: an answer, or why there is none."""


def once(predictor: ImagePredictor, what: Hashable, run: Callable[[], T]) -> T:
    """What `run` gives for this network, tried once; a NotApplicable is raised again."""
    answers = _tried.setdefault(predictor.module, {})
    if what not in answers:
        try:
            answers[what] = run()
        except NotApplicable as error:
            answers[what] = str(error)
            raise
    answer = answers[what]
    if isinstance(answer, str):
        raise NotApplicable(answer)
    return cast("T", answer)


@dataclass(frozen=True, slots=True)
class Calls:
    """One pass of a grey picture: how many rectifiers ran in `nn.ReLU` modules, in modules of other kinds,
    and as functions; which modules without parts were called more than once.
    """

    relus: int
    others: int
    functions: int
    reused: tuple[str, ...]


def calls_of(predictor: ImagePredictor) -> Calls:
    """Run one grey picture and count. Leaves the network as it was."""
    import torch
    from torch import nn
    from torch.utils._python_dispatch import TorchDispatchMode

    called: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    inside: list[nn.Module] = []

    class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.overloadpacket.__name__ in RECTIFIERS:
                part = inside[-1] if inside else None
                is_activation = type(part).__module__ == "torch.nn.modules.activation"
                kind = "relus" if isinstance(part, nn.ReLU) else "others"
                ran[kind if is_activation else "functions"] += 1
            return func(*args, **(kwargs or {}))

    def entered(name: str) -> Any:
        def note(part: nn.Module, _inputs: object) -> None:
            called[name] += 1
            inside.append(part)

        return note

    def left(_part: nn.Module, _inputs: object, _output: object) -> None:
        inside.pop()

    module = predictor.module
    hooks = []
    for name, part in module.named_modules():
        if not list(part.children()):
            hooks.append(part.register_forward_pre_hook(entered(name)))
            hooks.append(part.register_forward_hook(left))
    tensors = chain(module.parameters(), module.buffers())
    device = next((held.device for held in tensors), torch.device("cpu"))
    grey = torch.full((1, 3, predictor.input_px, predictor.input_px), 0.5, device=device)
    try:
        with torch.no_grad(), Counting():  # type: ignore[no-untyped-call]
            module(grey)
    finally:
        for hook in hooks:
            hook.remove()
    reused = tuple(name for name, times in called.items() if times > 1)
    return Calls(ran["relus"], ran["others"], ran["functions"], reused)


def explained_module(module: nn.Module, wanted: ExplainedNumber) -> nn.Module:
    """A network around `module` whose only output, (N, 1), is the explained number, for libraries that pick a
    logit.
    """
    from torch import Tensor, nn

    class Single(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.whole = module

        def forward(self, pictures: Tensor) -> Tensor:
            logits: Tensor = self.whole(pictures)
            return wanted.explained(logits)[:, None].to(logits.dtype)

    return Single().eval()


def require_relu_modules(predictor: ImagePredictor, method: str) -> None:
    """NotApplicable unless every rectifier of the network is an `nn.ReLU` module, and there is one: else
    `method`, which acts there, would silently give the plain gradient. Runs one grey picture.
    """
    calls = calls_of(predictor)
    missed = calls.others + calls.functions
    if calls.relus and not missed:
        return
    reason = (
        f"{missed} of its {missed + calls.relus} rectifiers are functions or of other kinds"
        if missed
        else "it has no ReLU"
    )
    raise NotApplicable(
        f"{method} acts at ReLU modules, but this network cannot be explained so: {reason}. Use a network "
        "whose rectifiers are all nn.ReLU modules, or another method such as 'saliency'"
    )


def require_single_use(predictor: ImagePredictor, method: str) -> None:
    """NotApplicable if a module is called twice in a pass, or a rectifier is a function: `method` keeps one
    value per module, and would be wrong. Runs one grey picture.
    """
    calls = calls_of(predictor)
    if not calls.reused and not calls.functions:
        return
    reason = (
        f"module {calls.reused[0]!r} is called more than once in a pass"
        if calls.reused
        else f"{calls.functions} rectifiers are functions"
    )
    raise NotApplicable(
        f"{method} keeps one value per module, but in this network {reason}, and the result would be wrong: "
        "use a network with a module per step, or another method such as 'integrated_gradients'"
    )
