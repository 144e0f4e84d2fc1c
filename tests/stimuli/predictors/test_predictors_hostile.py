"""Model files that try to run code: each is refused, and none runs."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from stimuli.errors import BadSpec, StimulusError
from stimuli.predictors.files.program import _weights_only, read_program
from tests.stimuli.predictors.test_predictors import export, network

pytestmark = pytest.mark.pure
GRAPH, WEIGHTS, SAMPLES = (
    "models/model.json",
    "data/weights/model_weights_config.json",
    "data/sample_inputs/model.pt",
)
CONSTANTS = "data/constants/model_constants_config.json"


class Bomb:
    """Unpickling it creates a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.target,))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("plain") / "model.pt2"
    export(network(), path)
    return path.read_bytes()


def forge(plain: bytes, changes: dict[str, Callable[[bytes], bytes]], **extra: bytes) -> bytes:
    """The archive with some entries rewritten and others added."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(plain)) as source, zipfile.ZipFile(buffer, "w") as target:
        for info in source.infolist():
            name = info.filename.partition("/")[2]
            target.writestr(info.filename, changes.get(name, bytes)(source.read(info)))
        for name, content in extra.items():
            target.writestr("archive/" + name.replace("|", "/"), content)
    return buffer.getvalue()


def edit(change: Callable[[Any], None]) -> Callable[[bytes], bytes]:
    def rewrite(content: bytes) -> bytes:
        value = json.loads(content)
        change(value)
        return json.dumps(value).encode()

    return rewrite


def torch_bomb(target: Path) -> bytes:
    buffer = io.BytesIO()
    torch.save(Bomb(target), buffer)
    return buffer.getvalue()


def set_use_pickle(config: Any) -> None:
    next(iter(config["config"].values()))["use_pickle"] = True


def hostile_files(plain: bytes, target: Path) -> dict[str, bytes]:
    bomb = pickle.dumps(Bomb(target))
    call = f"__import__('pathlib').Path({str(target)!r}).touch()"

    def opaque(config: Any) -> None:
        config["config"]["c"] = {
            "path_name": "opaque_obj_0",
            "is_param": False,
            "use_pickle": False,
            "tensor_meta": None,
        }

    def expression(program: Any) -> None:
        sizes = program["graph_module"]["graph"]["tensor_values"]["input"]["sizes"]
        sizes[0]["as_expr"]["expr_str"] = call

    def operator(program: Any) -> None:
        program["graph_module"]["graph"]["nodes"][0]["target"] = "torch.serialization.os.system"

    def name(program: Any) -> None:
        program["graph_module"]["graph"]["nodes"][0]["inputs"][0]["name"] = f"x={call}"

    def tree(program: Any) -> None:
        spec = {
            "type": "collections.defaultdict",
            "context": '{"default_factory_module": "antigravity"}',
            "children_spec": [],
        }
        program["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = json.dumps([1, spec])

    return {
        "sample inputs": forge(plain, {SAMPLES: lambda _: torch_bomb(target)}),
        "pickled weight": forge(
            plain, {WEIGHTS: edit(set_use_pickle), "data/weights/weight_0": lambda _: torch_bomb(target)}
        ),
        "opaque constant": forge(plain, {CONSTANTS: edit(opaque)}, **{"data|constants|opaque_obj_0": bomb}),
        "custom constant": forge(plain, {}, **{"data|constants|custom_obj_0": bomb}),
        "old weights": forge(plain, {}, **{"data|weights|model.pt": torch_bomb(target)}),
        "stray pickle": forge(plain, {}, **{"data.pkl": bomb}),
        "compiled code": forge(plain, {}, **{"data|aotinductor|model|a.so": b"\x7fELF"}),
        "shape expression": forge(plain, {GRAPH: edit(expression)}),
        "operator": forge(plain, {GRAPH: edit(operator)}),
        "argument name": forge(plain, {GRAPH: edit(name)}),
        "container": forge(plain, {GRAPH: edit(tree)}),
        "bare pickle": bomb,
        "torch pickle": torch_bomb(target),
        "nested": forge(plain, {GRAPH: lambda _: b"[" * 200_000}),
    }


KINDS = (
    "sample inputs",
    "pickled weight",
    "opaque constant",
    "custom constant",
    "old weights",
    "stray pickle",
    "compiled code",
    "shape expression",
    "operator",
    "argument name",
    "container",
    "bare pickle",
    "torch pickle",
    "nested",
)


def test_it_reads_the_file_that_was_not_tampered_with(plain: bytes) -> None:
    assert read_program(forge(plain, {}), "the file") is not None


def test_it_would_be_run_by_the_plain_loader(plain: bytes, tmp_path: Path) -> None:
    """The control: without our care, the crafted file does run code."""
    target = tmp_path / "ran"
    with suppress(Exception):  # the loader may raise after it has run the code
        torch.export.load(io.BytesIO(hostile_files(plain, target)["sample inputs"]))
    assert target.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_it_refuses_and_runs_nothing(plain: bytes, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "ran"
    with pytest.raises(BadSpec, match="the file is refused"):
        read_program(hostile_files(plain, target)[kind], "the file")
    assert not target.exists()


def test_it_drops_guards_and_extra_files(plain: bytes, tmp_path: Path) -> None:
    target = tmp_path / "ran"
    call = f"__import__('pathlib').Path({str(target)!r}).touch()"
    data = forge(
        plain,
        {GRAPH: edit(lambda program: program.update(guards_code=[call]))},
        **{"extra|x.py": call.encode()},
    )
    assert read_program(data, "the file") is not None
    assert not target.exists()


def test_it_says_when_weights_do_not_fit_the_graph(plain: bytes) -> None:
    with pytest.raises(StimulusError, match="the file cannot be loaded: its weights do not fit"):
        read_program(forge(plain, {"data/weights/weight_0": lambda content: content[:16]}), "the file")


def test_it_never_unpickles_code_while_loading(tmp_path: Path) -> None:
    target = tmp_path / "ran"
    with _weights_only(), pytest.raises(pickle.UnpicklingError):
        torch.load(io.BytesIO(torch_bomb(target)), weights_only=False)
    assert not target.exists()
