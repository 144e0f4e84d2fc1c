"""The part of a network behind a layer, so that changed activations need not run the whole of it.

The network is exported once with a mark at the layer's output; what the logits need behind the mark becomes a
graph of its own. That works where everything goes through the mark: not where a path leads around the layer,
nor where the layer runs twice. Exporting takes as long as some tens of passes, and happens once per network
and layer, when first asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Node

from stimuli.predictors.interface import ImagePredictor

Tail = Callable[[Tensor], Tensor]
TOLERANCE = 1e-3
"""The most that a tail's logits may be off, as a share of the largest: kernels round, wrong graphs do not."""


def cut(predictor: ImagePredictor, layer: str, device: torch.device) -> Tail | None:
    """The network from the output of `layer` to the logits; None where it cannot be cut there.

    Takes the layer's own output, contiguous, of any number of pictures: maps (n, C, h, w) or tokens
    (n, T, C), on `device`; returns logits (n, K). It was compared with the network on pictures of noise.
    Weights are shared with the network, not copied.
    """
    module, part = predictor.module, predictor.layer_module(layer)
    side = predictor.input_px
    images = torch.rand((5, 3, side, side), generator=torch.Generator().manual_seed(2)).to(device)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            # Exporting warns of its own deprecated parts; nobody here can mend that.
            warnings.simplefilter("ignore")
            tail = _behind_mark(_exported(module, part, images[:2]))
            return tail if tail is not None and _agrees(tail, module, part, images) else None
    except _CANNOT:
        return None


_CANNOT = (RuntimeError, ValueError, TypeError, AssertionError, AttributeError, LookupError)
"""What exporting raises for networks that decide by a picture's values, or call what cannot be traced."""


def _exported(module: nn.Module, part: nn.Module, images: Tensor) -> GraphModule:
    """The network as a graph of functional steps, with a mark at the output of `part`."""
    with _hooked(part, lambda output: torch.ops.stimuli.cut_here(output)):
        program = torch.export.export(
            module, (images,), dynamic_shapes=({0: torch.export.Dim("pictures")},), strict=False
        )
    # Steps that write into their input become ones that do not, so that all that a step needs is an edge.
    made: GraphModule = program.run_decompositions({}).module(check_guards=False)
    return made


def _behind_mark(whole: GraphModule) -> GraphModule | None:
    """A graph from the mark to the logits, or None where something else of the picture is needed too."""
    marks = [node for node in whole.graph.nodes if node.target is torch.ops.stimuli.cut_here.default]
    if len(marks) != 1:
        return None
    (mark,) = marks
    graph = Graph()
    start = graph.placeholder("outputs")
    made: dict[Node, Node] = {mark: start}
    needed = _needed(whole, mark)
    for node in whole.graph.nodes:
        if node not in needed:
            continue
        if node.op == "placeholder":
            return None
        if _counts_pictures(node):
            made[node] = graph.call_function(torch.ops.aten.sym_size.int, (start, 0))
        elif node.op == "output":
            (logits,) = node.all_input_nodes
            graph.output(made[logits])
        else:
            made[node] = graph.node_copy(node, made.__getitem__)
    return GraphModule(whole, graph)


def _needed(whole: GraphModule, mark: Node) -> set[Node]:
    """Every step that the logits need, without those before the mark."""
    waiting = [node for node in whole.graph.nodes if node.op == "output"]
    needed: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node is mark or node in needed:
            continue
        needed.add(node)
        if not _counts_pictures(node):
            waiting.extend(node.all_input_nodes)
    return needed


def _counts_pictures(node: Node) -> bool:
    """Whether the step asks the network's input for the number of its pictures."""
    if node.target is not torch.ops.aten.sym_size.int:
        return False
    asked, axis = node.args
    return isinstance(asked, Node) and asked.op == "placeholder" and isinstance(axis, int) and axis == 0


def _agrees(tail: Tail, module: nn.Module, part: nn.Module, images: Tensor) -> bool:
    """Whether the tail says what the network says, for its own outputs and for another picture's."""
    kept: list[Tensor] = []
    with _hooked(part, lambda output: kept.append(output.clone())):
        logits = module(images)
    own = kept[0].contiguous()
    with _hooked(part, lambda _: own.flip(0)):
        other = module(images)
    limit = TOLERANCE * float(logits.abs().max())
    found = torch.cat([tail(own[:2].clone()), tail(own[2:].clone()), tail(own.flip(0))])
    return float((found - torch.cat([logits, other])).abs().max()) <= limit


@contextmanager
def _hooked(part: nn.Module, change: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
    hook = part.register_forward_hook(lambda _module, _inputs, output: change(output))
    try:
        yield
    finally:
        hook.remove()


@torch.library.custom_op("stimuli::cut_here", mutates_args=(), schema="(Tensor output) -> Tensor")
def _cut_here(output: Tensor) -> Tensor:
    """The mark: a copy in the layout that tails are given."""
    return output.clone(memory_format=torch.contiguous_format)


@_cut_here.register_fake
def _(output: Tensor) -> Tensor:
    return torch.empty_like(output, memory_format=torch.contiguous_format)
