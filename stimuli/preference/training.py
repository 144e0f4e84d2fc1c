"""The whole training of an ensemble: blocks of heads on threads, and a state from which a killed process
goes on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from stimuli.errors import BadSpec
from stimuli.preference.ensemble import Arrays, HeadBlock, RatedHead, ScorerRecipe, one_thread_each
from stimuli.preference.tensor_file import seal, unseal, write_whole
from stimuli.spec import canonical_json

Floats32 = NDArray[np.float32]
STATE_FILE = "training.safetensors"
REMEDY = "delete it, and the training begins anew"


@dataclass(frozen=True, slots=True)
class Keeping:
    """A folder that gets the state of a training after every `every` epochs, and at its end."""

    folder: Path
    every: int

    @property
    def file(self) -> Path:
        return self.folder / STATE_FILE


@dataclass(frozen=True, slots=True)
class TrainingPlace:
    """The torch device that a training runs on, and in how many threads if it is the CPU."""

    device: str
    threads: int


def train(
    inputs: Floats32,
    held: Floats32,
    heads: Sequence[RatedHead],
    recipe: ScorerRecipe,
    place: TrainingPlace,
    keeping: Keeping | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Arrays:
    """Train heads on embeddings float32 (n, D), validated on `held` float32 (m, D); see HeadBlock.trained.

    With `keeping` it goes on from the state in its folder, to the same bits as without a break on the same
    machine. `progress` gets epochs done and epochs in all. Raises BadSpec for a state of another training or
    a damaged one, and BadRatings if a head diverges.
    """
    device = torch.device(place.device)
    count = min(place.threads, len(heads)) if device.type == "cpu" else 1
    x, x_held = torch.from_numpy(inputs).to(device), torch.from_numpy(held).to(device)
    parts = [[heads[h] for h in part] for part in np.array_split(np.arange(len(heads)), count)]
    digest = _digest(inputs, held, heads, recipe, device.type) if keeping else ""
    with one_thread_each(), ThreadPoolExecutor(count, initializer=partial(torch.set_num_threads, 1)) as pool:
        blocks = list(pool.map(lambda part: HeadBlock(x, x_held, part, recipe), parts))
        epoch = _go_on(blocks, keeping.file, digest) if keeping and keeping.file.is_file() else 0
        while epoch < recipe.epochs and any(block.active for block in blocks):
            epoch += 1
            list(pool.map(HeadBlock.run, blocks, [epoch] * len(blocks)))
            is_over = epoch == recipe.epochs or not any(block.active for block in blocks)
            if keeping and (epoch % keeping.every == 0 or is_over):
                card = {"digest": digest, "epoch": epoch}
                write_whole(keeping.file, seal(_together([block.state() for block in blocks]), card))
            progress(recipe.epochs if is_over else epoch, recipe.epochs)
    return _together([block.trained() for block in blocks])


def _together(blocks: Sequence[Arrays]) -> Arrays:
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _go_on(blocks: Sequence[HeadBlock], file: Path, digest: str) -> int:
    """Put the stored state into the blocks; the epochs that are done."""
    state, card = unseal(file.read_bytes(), f'the state of a training "{file}"', REMEDY)
    if card["digest"] != digest:
        raise BadSpec(
            f'"{file}" is the state of another training ({card["digest"][:12]}…, this is {digest[:12]}…: '
            f"other embeddings, ratings, seeds, settings, device or torch): give another folder, or {REMEDY}"
        )
    start = 0
    for block in blocks:
        end = start + len(block.heads)
        block.restore({name: value[start:end] for name, value in state.items()})
        start = end
    return int(card["epoch"])


def _digest(
    inputs: Floats32, held: Floats32, heads: Sequence[RatedHead], recipe: ScorerRecipe, device: str
) -> str:
    told = {**asdict(recipe), "hidden": list(recipe.hidden), "device": device, "torch": torch.__version__}
    total = hashlib.sha256(canonical_json(told).encode())
    arrays: list[NDArray[Any]] = [inputs, held]
    for head in heads:
        arrays += [head.rows, head.ratings, head.held_rows, head.held_ratings]
        total.update(canonical_json([head.seed, *(len(array) for array in arrays[-4:])]).encode())
    for array in arrays:
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()
