"""The part of a network behind a layer, so that changed activations need not run the whole of it.

The network is exported once with a mark at the layer's output; what the logits need behind the mark becomes a
graph of its own. If paths lead around the layer, as in residual blocks, what they carry past it becomes a
second graph, which runs once per picture. A layer that runs twice cannot be cut. Exporting takes as long as
some tens of passes, and happens once per network and layer, on first use.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.fx import Graph, GraphModule, Node

from stimuli.predictors.interface import ImagePredictor

TOLERANCE = 1e-3
"""The most that a tail's logits may be off, as a share of the largest: kernels round, wrong graphs do not."""


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """The network from the output of a layer to the logits, its weights shared with the network.

    Called with the layer's own outputs, contiguous, of any number of copies: maps (n, C, h, w) or tokens
    (n, T, C); and with what goes `around` the layer for the picture that they are copies of. Returns logits
    (n, K).
    """

    behind: GraphModule
    past: GraphModule | None

    def around(self, pictures: Tensor) -> tuple[Tensor, ...]:
        """What the paths around the layer carry for `pictures` (n, 3, H, W), the pictures first."""
        return () if self.past is None else tuple(self.past(pictures))

    def __call__(self, outputs: Tensor, around: Sequence[Tensor] = ()) -> Tensor:
        count = len(outputs)
        logits: Tensor = self.behind(outputs, *(values.expand(count, *values.shape[1:]) for values in around))
        return logits


def cut(predictor: ImagePredictor, layer: str, device: torch.device) -> Tail | None:
    """The network cut at the output of `layer`; None if it cannot be cut.

    It was compared with the network on pictures of noise.
    """
    module, part = predictor.module, predictor.layer_module(layer)
    side = predictor.input_px
    images = torch.rand((5, 3, side, side), generator=torch.Generator().manual_seed(2)).to(device)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            # Exporting warns of deprecated parts of torch itself, which cannot be corrected here.
            warnings.simplefilter("ignore")
            tail = _behind_mark(_export_graph(module, part, images[:2]))
            return tail if tail is not None and _agrees(tail, module, part, images) else None
    except _CANNOT:
        return None


_CANNOT = (RuntimeError, ValueError, TypeError, AssertionError, AttributeError, LookupError)
"""What exporting raises for networks that decide by a picture's values, or call what cannot be traced."""


def _export_graph(module: nn.Module, part: nn.Module, images: Tensor) -> GraphModule:
    """The network as a graph of functional steps, with a mark at the output of `part`."""
    with _hook_output(part, lambda output: torch.ops.stimuli.cut_here(output)):
        program = torch.export.export(
            module, (images,), dynamic_shapes=({0: torch.export.Dim("pictures")},), strict=False
        )
    # Steps that write into their input become ones that do not, so that all that a step needs is an edge.
    made: GraphModule = program.run_decompositions({}).module(check_guards=False)
    return made


def _behind_mark(whole: GraphModule) -> Tail | None:
    """The graph from the mark to the logits, and that of what goes around the mark; None if there is more
    than one mark, or if something other than a tensor by pictures goes around it.
    """
    marks = [node for node in whole.graph.nodes if node.target is torch.ops.stimuli.cut_here.default]
    pictures = [node for node in whole.graph.nodes if node.op == "placeholder"]
    (out,) = (node for node in whole.graph.nodes if node.op == "output")
    if len(marks) != 1 or len(pictures) != 1:
        return None
    (mark,), (picture,) = marks, pictures
    changed, seen = _fed_by(whole, mark), _fed_by(whole, picture)

    def goes_around(node: Node) -> bool:
        return node in seen and node not in changed

    needed = _needed_steps([out], lambda node: node is mark or goes_around(node))
    around = [node for node in whole.graph.nodes if node in needed and goes_around(node)]
    if out not in changed or not all(_is_by_pictures(node, picture) for node in around):
        return None
    behind = Graph()
    made = {node: behind.placeholder(f"given_{at}") for at, node in enumerate([mark, *around])}
    for node in whole.graph.nodes:
        if node not in needed or node in made:
            continue
        if _counts_pictures(node):
            made[node] = behind.call_function(torch.ops.aten.sym_size.int, (made[mark], 0))
        elif node is out:
            (logits,) = node.all_input_nodes
            behind.output(made[logits])
        else:
            made[node] = behind.node_copy(node, made.__getitem__)
    return Tail(GraphModule(whole, behind), _going_around(whole, picture, around) if around else None)


def _going_around(whole: GraphModule, picture: Node, around: Sequence[Node]) -> GraphModule:
    graph = Graph()
    needed = _needed_steps(around, lambda node: node is picture)
    made: dict[Node, Node] = {}
    for node in whole.graph.nodes:
        if node in needed or node is picture:
            made[node] = graph.node_copy(node, made.__getitem__)
    graph.output(tuple(made[node] for node in around))
    return GraphModule(whole, graph)


def _fed_by(whole: GraphModule, start: Node) -> set[Node]:
    """Every step that the values of `start` reach, itself among them; the number of pictures is no value."""
    reached = {start}
    for node in whole.graph.nodes:
        if not _counts_pictures(node) and not reached.isdisjoint(node.all_input_nodes):
            reached.add(node)
    return reached


def _needed_steps(ends: Sequence[Node], is_start: Callable[[Node], bool]) -> set[Node]:
    """Every step that the `ends` need, from its start."""
    waiting = list(ends)
    needed: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in needed:
            continue
        needed.add(node)
        if not is_start(node) and not _counts_pictures(node):
            waiting.extend(node.all_input_nodes)
    return needed


def _is_by_pictures(node: Node, picture: Node) -> bool:
    """Whether the step's result is a tensor whose first axis is that of the pictures."""
    value, images = node.meta.get("val"), picture.meta.get("val")
    if not isinstance(value, Tensor) or not isinstance(images, Tensor) or not value.ndim:
        return False
    return not isinstance(value.shape[0], int) and str(value.shape[0]) == str(images.shape[0])


def _counts_pictures(node: Node) -> bool:
    """Whether the step asks the network's input for the number of its pictures."""
    if node.target is not torch.ops.aten.sym_size.int:
        return False
    asked, axis = node.args
    return isinstance(asked, Node) and asked.op == "placeholder" and isinstance(axis, int) and axis == 0


def _agrees(tail: Tail, module: nn.Module, part: nn.Module, images: Tensor) -> bool:
    """Whether the tail gives the network's logits, for its own outputs and for another picture's."""
    kept: list[Tensor] = []
    with _hook_output(part, lambda output: kept.append(output.clone())):
        logits = module(images)
    outputs = kept[0].contiguous()
    with _hook_output(part, lambda _: outputs.flip(0)):
        other = module(images[:1].expand(images.shape))
    limit = TOLERANCE * float(logits.abs().max())
    around = tail.around(images)
    parts = [
        tail(outputs[at].clone(), [values[at] for values in around]) for at in (slice(2), slice(2, None))
    ]
    parts.append(tail(outputs.flip(0), [values[:1] for values in around]))
    return float((torch.cat(parts) - torch.cat([logits, other])).abs().max()) <= limit


@contextmanager
def _hook_output(part: nn.Module, change: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
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
