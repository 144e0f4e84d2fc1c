"""Model folders as the hub lays them out: config.json, model.safetensors, settings and tokenizer as JSON.

Nothing that comes with such a folder is run. The library's own loader loads what a configuration names (code,
adapters, quantisers, kernels, other files) and falls back to pickles; so it never gets the folder, only a
configuration and tensors that were read and checked here.
"""

from __future__ import annotations

import importlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from stimuli.errors import BadSpec, ShapeMismatch, first_line, first_of
from stimuli.predictors.files.weights import read_weights, unwrap_names
from stimuli.spec import JsonValue

Config = dict[str, JsonValue]
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.h5", "*.msgpack")
MAX_JSON_BYTES = 64 << 20
MAX_WEIGHT_BYTES = 4 << 30
MAX_SHARDS = 64
MAX_NUMBER = 1_000_000
MAX_DEPTH = 512
MAX_LIST = 256
MAX_NESTED = 32
SHARD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*\.safetensors")
DEPTH = re.compile(r"layers|depth|blocks|stages|repeats|stacks")
LABELS = frozenset({"id2label", "label2id"})
HARMLESS = re.compile(r"(^|\.)(pooler\.|position_ids$|relative_position_index$|num_batches_tracked$)")
UNPICKLE = "save it again with save_pretrained(folder), which writes model.safetensors"
REMEDY = 'install it with: pip install "legible[transformers]"'


def library(name: str = "transformers") -> Any:
    """A module of an optional package. Raises BadSpec with the remedy when it is not installed."""
    package = name.partition(".")[0]
    try:
        importlib.import_module(package)
        return importlib.import_module(name)
    except ImportError as error:
        raise BadSpec(
            f'models of the hub need the package "{package}", which cannot be imported ({error}); {REMEDY}'
        ) from error


@dataclass(frozen=True)
class HubFolder:
    """A model folder inside a study's folder; `shown` is how the study names it."""

    path: Path
    root: Path
    shown: str

    def file(self, name: str) -> Path | None:
        """The file, or None. Raises BadSpec for a link that leads out of the study's folder."""
        path = (self.path / name).resolve()
        if not path.is_relative_to(self.root):
            raise BadSpec(
                f'"{self.shown}/{name}" is a link that leads out of the study\'s folder; put the '
                "file itself there"
            )
        return path if path.is_file() else None

    def text(self, name: str) -> str | None:
        """The text of a file, or None if there is none."""
        path = self.file(name)
        if path is None:
            return None
        if path.stat().st_size > MAX_JSON_BYTES:
            raise BadSpec(
                f'"{self.shown}/{name}" has {path.stat().st_size:,} bytes, more than {MAX_JSON_BYTES:,}: it '
                "is not what it should be"
            )
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadSpec(f'"{self.shown}/{name}" cannot be read ({error})') from error

    def json(self, name: str) -> Config | None:
        """A JSON object, or None if there is no such file. Raises BadSpec if it is another thing, or names
        code.
        """
        text = self.text(name)
        if text is None:
            return None
        try:
            value = json.loads(text, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise BadSpec(f'"{self.shown}/{name}" is no JSON ({error}); {UNPICKLE}') from error
        if not isinstance(value, dict):
            raise BadSpec(f'"{self.shown}/{name}" is no JSON object; {UNPICKLE}')
        _check_code(value, f"{self.shown}/{name}")
        return value

    def config(self) -> Config:
        """config.json, checked. Raises BadSpec if there is none."""
        value = self.json("config.json")
        if value is None:
            raise BadSpec(
                f'"{self.shown}" holds no config.json: it is no model folder; save the model '
                "there with save_pretrained(folder)"
            )
        check_config(value, f"{self.shown}/config.json")
        return value

    def weights(self, bytes_max: int = MAX_WEIGHT_BYTES) -> dict[str, Tensor]:
        """All tensors by name, as they are stored. Raises BadSpec for pickles and for files too large."""
        files = self._weight_files()
        total = sum(path.stat().st_size for path in files)
        if total > bytes_max:
            raise BadSpec(
                f'the weights in "{self.shown}" have {total:,} bytes, more than {bytes_max:,}; '
                "use a smaller model"
            )
        state: dict[str, Tensor] = {}
        for path in files:
            state.update(read_weights(path.read_bytes(), f'"{self.shown}/{path.name}"'))
        return state

    def _weight_files(self) -> list[Path]:
        if (whole := self.file(WEIGHTS)) is not None:
            return [whole]
        index = self.json(INDEX)
        if index is not None:
            named = index.get("weight_map")
            names = sorted({str(name) for name in named.values()}) if isinstance(named, dict) else []
            if not names or len(names) > MAX_SHARDS or not all(SHARD.fullmatch(name) for name in names):
                raise BadSpec(
                    f'"{self.shown}/{INDEX}" does not name safetensors files of this folder; {UNPICKLE}'
                )
            paths = [self.file(name) for name in names]
            missing = [name for name, path in zip(names, paths, strict=True) if path is None]
            if missing:
                raise BadSpec(f'"{self.shown}" lacks {first_of(missing)}; copy the whole folder')
            return [path for path in paths if path is not None]
        pickles = [path.name for pattern in PICKLES for path in sorted(self.path.glob(pattern))]
        if pickles:
            raise BadSpec(
                f'"{self.shown}" holds its weights as {pickles[0]}, which is not read, for a pickle can run '
                f"code; {UNPICKLE}"
            )
        raise BadSpec(f'"{self.shown}" holds no {WEIGHTS}; {UNPICKLE}')


def open_hub_folder(study_folder: Path, named: str) -> HubFolder:
    """The folder `named` inside the study's folder. Raises BadSpec if it is none, or lies elsewhere."""
    root = study_folder.resolve()
    path = (root / named).resolve()
    if not path.is_relative_to(root):
        raise BadSpec(
            f'folder = "{named}" lies outside the study\'s folder; copy the model into the study, so that it '
            "travels with it"
        )
    if not path.is_dir():
        raise BadSpec(
            f'folder = "{named}": there is no such folder beside the study; nothing is downloaded, so save '
            "the model there with save_pretrained(folder)"
        )
    return HubFolder(path, root, named)


def check_config(config: Mapping[str, JsonValue], shown: str) -> None:
    """Raises BadSpec for a configuration that names code or a quantiser, or asks for absurd sizes."""
    _check_code(config, shown)
    for name, value in _entries(config, shown):
        if isinstance(value, list) and len(value) > MAX_LIST:
            raise BadSpec(f'"{shown}" is refused: {name} has {len(value):,} entries, more than {MAX_LIST}')
        if isinstance(value, list) and DEPTH.search(name):
            _check_number(f"the sum of {name}", sum(number for number in value if type(number) is int), shown)
        if type(value) is int:
            _check_number(name, value, shown)


def _check_code(settings: Mapping[str, JsonValue], shown: str) -> None:
    for name, value in _entries(settings, shown):
        if name in {"auto_map", "custom_pipelines"} and value:
            raise BadSpec(
                f'"{shown}" is refused: its {name} names code that comes with the model, and no code of '
                "others is run; use an architecture of the transformers library"
            )
        if name == "quantization_config" and value:
            raise BadSpec(
                f'"{shown}" is refused: its weights are quantised, so that gradients are not exact; use the '
                "model in float32 or float16"
            )


def _entries(settings: Mapping[str, JsonValue], shown: str) -> Iterator[tuple[str, JsonValue]]:
    """Every value at any depth, with its name."""
    waiting = [(name, value, 1) for name, value in settings.items()]
    while waiting:
        name, value, depth = waiting.pop()
        if depth > MAX_NESTED:
            raise BadSpec(f'"{shown}" is refused: it is nested more than {MAX_NESTED} deep')
        yield name, value
        if isinstance(value, dict):
            waiting += ((inner, entry, depth + 1) for inner, entry in value.items())
        elif isinstance(value, list):
            waiting += ((name, entry, depth + 1) for entry in value)


def _check_number(name: str, value: int, shown: str) -> None:
    most = MAX_DEPTH if DEPTH.search(name) else MAX_NUMBER
    if abs(value) > most:
        raise BadSpec(f'"{shown}" is refused: {name} = {value}, and at most {most:,} is taken')


def plain_config(config: Mapping[str, JsonValue]) -> Config:
    """What decides the network, and nothing of how it is loaded or what its labels are called."""
    dropped = LABELS | {"architectures", "dtype", "torch_dtype", "transformers_version", "name_or_path"}
    return {
        name: plain_config(value) if isinstance(value, dict) else value
        for name, value in config.items()
        if name not in dropped and not name.startswith("_") and not name.endswith("_implementation")
    }


def own_labels(config: Mapping[str, JsonValue], shown: str) -> tuple[str, ...]:
    """The labels of `id2label` in logit order; a label that stands there twice gets its number. Empty if
    there are none, or only placeholders. Raises BadSpec if the numbers have gaps.
    """
    table = config.get("id2label")
    if not isinstance(table, dict) or not table:
        return ()
    names = [table.get(str(place)) for place in range(len(table))]
    if not all(isinstance(name, str) for name in names):
        raise BadSpec(f'id2label of "{shown}" does not number its labels from 0 to {len(table) - 1}')
    words = [str(name).strip() for name in names]
    if all(word == f"LABEL_{place}" for place, word in enumerate(words)):
        return ()
    count = Counter(words)
    return tuple(f"{word} ({place})" if count[word] > 1 else word for place, word in enumerate(words))


def chosen_labels(
    given: tuple[str, ...],
    of_folder: tuple[str, ...],
    count: int | None,
    shown: str,
    otherwise: tuple[str, ...],
) -> tuple[str, ...]:
    """The study's labels, else the folder's own, else the dataset's; one per logit. Raises BadSpec if the
    study names the folder's labels in another order, or another number of them than there are.
    """
    labels = given or of_folder or otherwise
    if given and of_folder and set(given) == set(of_folder) and given != of_folder:
        raise BadSpec(
            f'labels = {list(given)}: "{shown}" has the same labels in another order, {list(of_folder)[:8]}; '
            "labels are given in logit order, or left out"
        )
    if count is not None and len(labels) != count:
        raise BadSpec(
            f'{len(labels)} labels are given ({", ".join(labels[:8])}), but "{shown}" has {count} logits; '
            "name one label per logit, in order"
        )
    return labels


def problem_of(config: Mapping[str, JsonValue], source: str) -> dict[str, JsonValue]:
    """What provenance says of the problem that the model was trained for; nothing for a choice of one class.

    Raises BadSpec for a regression: its numbers are no logits of classes.
    """
    problem = config.get("problem_type")
    if problem == "regression":
        raise BadSpec(
            f'{source} says problem_type = "regression" in its config.json: its numbers are measures, not '
            "logits of classes; take a model that was trained to name classes"
        )
    return {"problem_type": problem} if problem == "multi_label_classification" else {}


def fill(kind: Any, config: Mapping[str, JsonValue], state: dict[str, Tensor], source: str) -> Any:
    """A network of the library's class `kind` by a plain configuration, with all its weights from `state`.

    Names of older checkpoints are brought to those of the library. Attention is computed step by step, so
    that every gradient exists. Raises BadSpec for a configuration that builds nothing, ShapeMismatch when
    weights are missing, left over, or of other shapes.
    """
    check_config(config, source)
    given = sum(tensor.numel() for tensor in state.values())
    with quietly(), torch.random.fork_rng(devices=[]):
        made = try_call(lambda: kind.config_class.from_dict(dict(config)), source)
        with torch.device("meta"):
            empty: nn.Module = try_call(lambda: kind._from_config(made), source)
        state, _ = unwrap_names(state, empty.state_dict())
        wanted = sum(tensor.numel() for tensor in empty.parameters())
        if wanted > given:
            raise ShapeMismatch(
                f"{source}: its configuration asks for {wanted:,} weights, and its file holds {given:,}; "
                "they do not belong together"
            )
        network, report = try_call(
            lambda: kind.from_pretrained(
                None,
                config=made,
                state_dict=state,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                dtype=torch.float32,
                attn_implementation="eager",
            ),
            source,
        )
    _check_report(report, source)
    return network.eval()


def tokenizer(folder: HubFolder) -> Any:
    """The tokenizer of tokenizer.json, without padding and cutting. Raises BadSpec if there is none."""
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        folder.json(name)  # only to refuse what names code
    text = folder.text("tokenizer.json")
    if text is None:
        raise BadSpec(
            f'"{folder.shown}" holds no tokenizer.json; save the tokenizer '
            "there with AutoTokenizer.from_pretrained(...).save_pretrained(folder)"
        )
    try:
        made = library("tokenizers").Tokenizer.from_str(text)
    except Exception as error:  # its parser raises plain Exception
        raise BadSpec(f'"{folder.shown}/tokenizer.json" is no tokenizer ({error})') from error
    made.no_padding()
    made.no_truncation()
    return made


def _check_report(report: Mapping[str, Any], source: str) -> None:
    """Every weight has been given, none is left over: else parts of the network are random or cut off."""
    faults = [f'"{name}" is missing' for name in sorted(report["missing_keys"])]
    faults += [
        f'"{name}" has the shape {tuple(had)}, the network takes {tuple(wants)}'
        for name, had, wants in sorted(report["mismatched_keys"])
    ]
    faults += [
        f'"{name}" has no place in it'
        for name in sorted(report["unexpected_keys"])
        if not HARMLESS.search(name)
    ]
    faults += [str(error) for error in report.get("error_msgs", ())]
    if faults:
        raise ShapeMismatch(
            f"{source} does not fit the network of its configuration: {first_of(faults, '; ')}; "
            "use a model that was trained for this task, with its own config.json"
        )


def try_call(make: Callable[[], Any], source: str, what: str = "build this network") -> Any:
    """The result of a call to the library, which raises any kind of error at a configuration that makes no
    sense. Raises BadSpec: the library cannot do `what`."""
    try:
        return make()
    except Exception as error:  # all errors are treated alike
        raise BadSpec(f"{source}: the library cannot {what} ({first_line(error)})") from error


@contextmanager
def quietly() -> Iterator[None]:
    """The library prints reports and progress bars; what matters here is in the errors."""
    words = library("transformers.utils.logging")
    level, has_bars = words.get_verbosity(), words.is_progress_bar_enabled()
    words.set_verbosity(50)
    words.disable_progress_bar()
    try:
        yield
    finally:
        words.set_verbosity(level)
        if has_bars:
            words.enable_progress_bar()


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")
