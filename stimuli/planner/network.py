"""The only place where an image network runs: whole batches, counted, with as many rows as memory takes.

A result depends on its own picture alone. Batches have a few fixed sizes (powers of two, the rest padded),
because the kernels of a library may round differently for other sizes, but not for other neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from stimuli.errors import NotApplicable, ShapeMismatch, StimulusError, is_out_of_memory
from stimuli.planner.biases import BiasMaps
from stimuli.planner.bill import Bill
from stimuli.planner.layers import native, spatial
from stimuli.planner.steps.attention import attend, fold_heads, read_tokens
from stimuli.planner.steps.relevance import Propagating
from stimuli.planner.tails import Tail, cut
from stimuli.planner.values import AttentionTrace, ExplainedNumber, Relevance, Trace, TraceAnswer
from stimuli.predictors.interface import ImagePredictor

Precision = Literal["float32", "tf32", "bfloat16"]
PRECISIONS: tuple[Precision, ...] = ("float32", "tf32", "bfloat16")
CPU_BYTES, CPU_TENSOR = 1 << 30, 32 << 20
CPU_ROWS, CUDA_ROWS = 64, 256
CUDA_SHARE = 0.4
T = TypeVar("T")


class Network:
    """A predictor on one device in one precision. `rows` is the most copies in a batch; halved for good when
    memory does not hold them. Traces run in single precision, perturbed copies in `precision`.
    """

    def __init__(
        self,
        predictor: ImagePredictor,
        device: torch.device | str = "cpu",
        precision: Precision = "float32",
        rows: int | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            raise StimulusError(f"precision {precision!r} is not known: use one of {', '.join(PRECISIONS)}")
        self.predictor = predictor
        self.device = torch.device(device)
        self.precision = precision
        self.module = predictor.module.to(self.device)
        self.module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.bill = Bill()
        self._tails: dict[str, Tail | None] = {}
        self._around: tuple[str, Tensor, tuple[Tensor, ...]] | None = None
        self._biases: list[tuple[nn.Module, Tensor]] | None = None
        self._read: Tensor | None = None
        self.rows = rows or _affordable(self.module, predictor.input_px, self.device)

    def trace(self, images: Tensor, wanted: Sequence[ExplainedNumber], ask: Trace) -> list[TraceAnswer]:
        """Answer `ask` for each of `images`, float32 (n, 3, H, W) with n at most `rows`; `wanted` says which
        number of each is explained.
        """
        return self._halving(images, wanted, lambda x, w: self._trace(x, w, ask))

    def changed_trace(
        self, images: Tensor, wanted: Sequence[ExplainedNumber], ask: AttentionTrace | Relevance
    ) -> list[TraceAnswer]:
        """As `trace`, for passes whose steps are not run as they are."""
        if isinstance(ask, AttentionTrace):
            return self._halving(images, wanted, self._attention)
        return self._halving(images, wanted, lambda x, w: self._relevance(x, w, ask))

    def logits(self, copies: Tensor) -> Tensor:
        """Logits float32 (n, K) of copies (n, 3, H, W), n at most `rows`; no gradients."""
        parts = self._halving(copies, (), lambda x, _t: [self._logits(x)])
        return torch.cat(parts)

    def gradients(self, copies: Tensor, wanted: Sequence[ExplainedNumber]) -> Tensor:
        """Gradient of each copy's explained number with respect to the copy, float32 (n, 3, H, W)."""
        parts = self._halving(copies, wanted, lambda x, w: [self._gradients(x, w)])
        return torch.cat(parts)

    def layer_logits(self, layer: str, outputs: Tensor, raw: Tensor, image: Tensor) -> Tensor:
        """Logits (n, K) with the output of `layer` replaced by each of `outputs` (n, C, h, w).

        `raw` is the layer's own output for `image` as the network has it, without the batch; class tokens
        are taken from it.
        """
        replaced = native(outputs, raw, self.predictor.layouts[layer])
        parts = self._halving(replaced, (), lambda x, _t: [self._layer_logits(layer, x, image)])
        return torch.cat(parts)

    def tail(self, layer: str) -> Tail | None:
        """The network behind `layer`, cut on first use; None if it cannot be cut."""
        if layer not in self._tails:
            self._tails[layer] = cut(self.predictor, layer, self.device)
        return self._tails[layer]

    def own(self, run: Callable[[], T], forwards: int = 0, backwards: int = 0) -> T:
        """Run something that calls the module itself, on this bill."""
        with self._time_call(), torch.enable_grad(), self._exact():
            result = run()
        self.bill.forwards += forwards
        self.bill.backwards += backwards
        return result

    def _trace(self, images: Tensor, wanted: Sequence[ExplainedNumber], ask: Trace) -> list[TraceAnswer]:
        count, x = len(images), self._pad_rows(images)
        wants_backward = ask.input_gradient or ask.biases or (ask.gradients and bool(ask.layers))
        x = x.detach().requires_grad_(ask.input_gradient or ask.biases)
        kept: dict[str, Tensor] = {}
        maps = BiasMaps(tuple(x.shape[2:]))
        with self._time_call(), torch.set_grad_enabled(wants_backward), self._exact():
            with self._watch_layers(ask, kept, maps, needs_start=wants_backward and not x.requires_grad):
                logits = self._check_logits(self.module(x))
            gradients: dict[str, Tensor] = {}
            x_gradient = None
            if wants_backward:
                layers = list(ask.layers) if ask.gradients else []
                inputs = [kept[name] for name in layers] + ([x] if x.requires_grad else [])
                derivatives: tuple[Tensor | None, ...] = torch.autograd.grad(
                    logits, inputs, _slopes(logits, wanted), allow_unused=True
                )
                gradients = {
                    name: torch.zeros_like(kept[name]) if got is None else got
                    for name, got in zip(layers, derivatives, strict=False)
                }
                x_gradient = derivatives[-1] if x.requires_grad else None
                if x.requires_grad and x_gradient is None:
                    x_gradient = torch.zeros_like(x)
                self.bill.backwards += count
        self.bill.forwards += count
        return [
            self._trace_answer(
                at, logits, kept, gradients, x_gradient if ask.input_gradient else None, maps, ask
            )
            for at in range(count)
        ]

    def _attention(self, images: Tensor, wanted: Sequence[ExplainedNumber]) -> list[TraceAnswer]:
        if self._read is None:
            self._read = read_tokens(self.module, self.predictor.input_px, self.device)
        with self._time_call(), torch.enable_grad(), self._exact():
            attended = attend(self.module, self._pad_rows(images))
            slopes = _slopes(self._check_logits(attended.logits), wanted)
            means, products = fold_heads(attended.weights, attended.gradients(slopes))
        self.bill.forwards += len(images)
        self.bill.backwards += len(images)
        rows = zip(attended.logits.detach(), means, products, strict=True)
        return [
            TraceAnswer(logits.clone(), attention=mean.clone(), relevancy=product.clone(), read=self._read)
            for _, (logits, mean, product) in zip(images, rows, strict=False)
        ]

    def _relevance(
        self, images: Tensor, wanted: Sequence[ExplainedNumber], ask: Relevance
    ) -> list[TraceAnswer]:
        x = self._pad_rows(images).detach().requires_grad_()
        with self._time_call(), torch.enable_grad(), self._exact():
            with Propagating(ask):
                logits = self._check_logits(self.module(x))
            (gradient,) = torch.autograd.grad(logits, [x], _slopes(logits, wanted))
        self.bill.forwards += len(images)
        self.bill.backwards += len(images)
        rows = zip(images, logits.detach(), gradient, strict=False)
        return [TraceAnswer(row.clone(), input_gradient=got.clone()) for _, row, got in rows]

    def _trace_answer(
        self,
        at: int,
        logits: Tensor,
        kept: dict[str, Tensor],
        gradients: dict[str, Tensor],
        x_gradient: Tensor | None,
        maps: BiasMaps,
        ask: Trace,
    ) -> TraceAnswer:
        layouts = self.predictor.layouts
        return TraceAnswer(
            logits=logits[at].detach().clone(),
            activations={
                name: spatial(kept[name][at].detach(), layouts[name]).clone() for name in ask.layers
            },
            gradients={name: spatial(value[at], layouts[name]).clone() for name, value in gradients.items()},
            input_gradient=None if x_gradient is None else x_gradient[at].clone(),
            bias_map=maps.of(at) if ask.biases else None,
            concepts=kept[_CONCEPTS][at].detach().clone() if ask.concepts else None,
            raw={name: kept[name][at].detach().clone() for name in ask.layers if layouts[name].prefix},
        )

    @contextmanager
    def _watch_layers(
        self, ask: Trace, kept: dict[str, Tensor], maps: BiasMaps, *, needs_start: bool
    ) -> Iterator[None]:
        """Hooks for one pass. A layer's output is kept and a copy handed on, because the next step may write
        into it. With `needs_start` the graph begins at the first watched layer, since nothing before it asks
        for a gradient.
        """
        hooks: list[torch.utils.hooks.RemovableHandle] = []

        def keep(name: str) -> Callable[..., Tensor]:
            def note(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
                if needs_start and not output.requires_grad:
                    output = output.detach().requires_grad_()
                kept[name] = output
                return output.clone()

            return note

        try:
            for name in ask.layers:
                hooks.append(self.predictor.layer_module(name).register_forward_hook(keep(name)))
            if ask.concepts:
                if self.predictor.bottleneck is None:
                    raise NotApplicable("this predictor has no concepts; use a concept predictor")
                hooks.append(self.predictor.concept_module().register_forward_hook(keep(_CONCEPTS)))
            if ask.biases:
                if self._biases is None:
                    self._biases = maps.layers(self.module)
                hooks.extend(maps.watch(self._biases))
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _logits(self, copies: Tensor) -> Tensor:
        x = self._pad_rows(copies)
        with self._time_call(), torch.inference_mode(), self._reduced_precision():
            logits = self._check_logits(self.module(x)).float()
        self.bill.forwards += len(copies)
        return logits[: len(copies)].clone()

    def _gradients(self, copies: Tensor, wanted: Sequence[ExplainedNumber]) -> Tensor:
        x = self._pad_rows(copies).detach().requires_grad_()
        with self._time_call(), torch.enable_grad(), self._reduced_precision():
            logits = self._check_logits(self.module(x)).float()
            slopes = _slopes(logits, wanted)
            gradient: Tensor | None = torch.autograd.grad(logits, [x], slopes, allow_unused=True)[0]
        self.bill.forwards += len(copies)
        self.bill.backwards += len(copies)
        return torch.zeros_like(copies) if gradient is None else gradient[: len(copies)]

    def _layer_logits(self, layer: str, outputs: Tensor, image: Tensor) -> Tensor:
        x = self._pad_rows(outputs, channels_last=False)
        tail = self.tail(layer)
        with self._time_call(), torch.inference_mode(), self._reduced_precision():
            if tail is None:
                logits = self._with_replaced(layer, x, image).float()
            else:
                logits = tail(x, self._past(layer, tail, image)).float()
        if tail is not None:
            self.bill.tails += len(outputs)
        else:
            self.bill.forwards += len(outputs)
        return logits[: len(outputs)].clone()

    def _past(self, layer: str, tail: Tail, image: Tensor) -> tuple[Tensor, ...]:
        """What goes around the layer for the picture; kept until another picture's is asked for."""
        if tail.past is None:
            return ()
        if self._around is None or self._around[0] != layer or self._around[1] is not image:
            carried = tail.around(self._pad_rows(image[None]))
            self.bill.forwards += 1
            self._around = layer, image, tuple(values[:1] for values in carried)
        return self._around[2]

    def _with_replaced(self, layer: str, outputs: Tensor, image: Tensor) -> Tensor:
        hook = self.predictor.layer_module(layer).register_forward_hook(lambda *_: outputs.clone())
        try:
            return self._check_logits(self.module(image.expand(len(outputs), *image.shape)))
        finally:
            hook.remove()

    def _pad_rows(self, rows: Tensor, *, channels_last: bool = True) -> Tensor:
        """The rows on the device, the last repeated up to the next fixed size."""
        size = 2
        while size < len(rows):
            size *= 2
        size = max(len(rows), min(size, self.rows))
        if size > len(rows):
            self.bill.padded += size - len(rows)
            rows = torch.cat([rows, rows[-1:].expand(size - len(rows), *rows.shape[1:])])
        if channels_last and rows.ndim == 4:
            return rows.contiguous(memory_format=torch.channels_last)
        return rows.contiguous()

    def _halving(
        self,
        rows: Tensor,
        wanted: Sequence[ExplainedNumber],
        run: Callable[[Tensor, Sequence[ExplainedNumber]], list[T]],
    ) -> list[T]:
        """`run` over parts of at most `self.rows`, which is halved whenever memory runs out."""
        results: list[T] = []
        start = 0
        while start < len(rows):
            part = slice(start, start + self.rows)
            part_results = self.tried(partial(run, rows[part], wanted[part]))
            if part_results is None:
                continue
            results.extend(part_results)
            start += len(rows[part])
        return results

    def tried(self, run: Callable[[], T]) -> T | None:
        """What `run` gives; None when memory ran out, and then batches have half as many rows for good."""
        try:
            return run()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if self.rows == 1:
                raise StimulusError(
                    "one picture does not fit into memory: use a smaller network or input_px, "
                    "or a machine with more memory"
                ) from error
        # The error kept the tensors of the interrupted pass; here they are released.
        self.rows //= 2
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        return None

    @contextmanager
    def _time_call(self) -> Iterator[None]:
        self._wait()
        started = self.bill.now()
        try:
            yield
        finally:
            self._wait()
            self.bill.network_s += self.bill.now() - started
            self.bill.calls += 1

    def _wait(self) -> None:
        if self.bill.clock is not None and self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    @contextmanager
    def _exact(self) -> Iterator[None]:
        """Single precision throughout, also on devices that would round products."""
        if self.device.type != "cuda":
            yield
            return
        before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        try:
            with torch.backends.cudnn.flags(
                enabled=True, benchmark=False, deterministic=True, allow_tf32=False
            ):
                yield
        finally:
            torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before

    def _reduced_precision(self) -> Any:
        """The precision that was asked for."""
        if self.precision == "bfloat16":
            return torch.autocast(self.device.type, dtype=torch.bfloat16)
        if self.precision == "tf32" and self.device.type == "cuda":
            return _tf32()
        return self._exact()

    def _check_logits(self, output: Any) -> Tensor:
        if not isinstance(output, Tensor) or output.ndim != 2:
            raise ShapeMismatch("the network no longer returns logits (N, K): build the predictor again")
        return output


def _slopes(logits: Tensor, wanted: Sequence[ExplainedNumber]) -> Tensor:
    """The derivative of each row's explained number with respect to its logits (n, K); rows beyond `wanted`
    are padding, and as the first.
    """
    is_read = any(number.operator == "probability" for number in wanted)
    # Only a probability's depend on the logits; to read them is to wait for the device.
    values = logits.detach().double().cpu().numpy() if is_read else np.zeros(logits.shape)
    filled = [*wanted, *([wanted[0]] * (len(values) - len(wanted)))]
    slopes = [number.slopes(row) for number, row in zip(filled, values, strict=True)]
    return torch.from_numpy(np.stack(slopes)).to(logits)


@contextmanager
def _tf32() -> Iterator[None]:
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def _affordable(module: nn.Module, input_px: int, device: torch.device) -> int:
    """The largest power of two of rows whose saved tensors fit into the budget; at least 2.

    On the processor no tensor of a batch reaches `CPU_TENSOR`: the C library gives larger ones back to the
    system at once, and having their pages cleared for every layer costs up to a quarter of the time.
    """
    weights = {tensor.untyped_storage().data_ptr() for tensor in (*module.parameters(), *module.buffers())}
    saved: dict[int, int] = {}

    def note(value: Tensor) -> Tensor:
        storage = value.untyped_storage()
        if storage.data_ptr() not in weights:
            saved[storage.data_ptr()] = storage.nbytes()
        return value

    blank = torch.full((1, 3, input_px, input_px), 0.5, device=device, requires_grad=True)
    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda value: value):
        logits = module(blank)  # kept, so that no storage is freed and counted as another
    each = max(blank.nbytes, sum(saved.values()))
    del logits
    if device.type == "cuda":
        budget, most = int(CUDA_SHARE * torch.cuda.mem_get_info(device)[0]), CUDA_ROWS
    else:
        largest = max(saved.values(), default=blank.nbytes)
        budget, most = CPU_BYTES, min(CPU_ROWS, (CPU_TENSOR - 1) // largest)
    rows = 2
    while rows * 2 <= most and rows * 2 * each <= budget:
        rows *= 2
    return rows


_CONCEPTS = "\x00concepts"
