"""What a .pt2 archive may hold: raw tensors and a plain graph of aten operators. The rest is refused or
dropped.
"""

from __future__ import annotations

import ast
import io
import json
import re
import zipfile
from typing import Any

import torch

from stimuli.errors import BadSpec

MAX_BYTES = 4 << 30
MAX_GRAPH_BYTES = 256 << 20
MAX_ENTRIES = 50_000
MODEL = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"
SAMPLES = "data/sample_inputs/model.pt"
RAW = re.compile(r"data/(weights/weight|constants/tensor)_\d+")
DROPPED = re.compile(
    r"\.data/[\w.]+|\.format_version|\.storage_alignment|byteorder|archive_(format|version)|extra/.*"
)

NAME = re.compile(r"[A-Za-z0-9_.\-]*")
TEXT = re.compile(r"[A-Za-z0-9_ ,.>\-]{0,200}")
MODULE_STACK = re.compile(r"[A-Za-z0-9_.,;:@\[\]()' <>\-]*")
ATEN = re.compile(r"torch\.ops\.aten\.(\w+)\.([A-Za-z]\w*)")
PLAIN_TARGETS = re.compile(
    r"_operator\.(getitem|add|sub|mul|truediv|floordiv|mod|pow|neg|eq|ne|lt|le|gt|ge|and_|or_|not_)"
    r"|torch\.sym_(int|float|max|min|not|ite|sum)|math\.(ceil|floor|trunc)"
    r"|torch\.ops\.higher_order\.(wrap_with_set_grad_enabled|wrap_with_autocast)"
)
REFUSED_ATEN = frozenset({"from_file"})
REFUSED_KINDS = frozenset({"as_custom_obj", "as_operator", "custom_obj", "token"})
SHAPE_FUNCTIONS = frozenset(
    {
        "Symbol",
        "FloorDiv",
        "CeilDiv",
        "CleanDiv",
        "Mod",
        "PythonMod",
        "ModularIndexing",
        "Max",
        "Min",
        "Where",
        "IntTrueDiv",
    }
    | {
        "Add",
        "Mul",
        "Pow",
        "Integer",
        "Rational",
        "Equality",
        "Unequality",
        "PowByNatural",
        "TruncToInt",
        "FloorToInt",
        "CeilToInt",
        "ToFloat",
        "RoundToInt",
        "Eq",
        "Ne",
    }
)
SYMBOL = re.compile(r"[su]\d+|zu?f\d+")
SHAPE_NODES = (
    ast.Expression,
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.Call,
    ast.Name,
    ast.Constant,
    ast.Load,
)
SHAPE_OPERATORS = (ast.operator, ast.unaryop, ast.cmpop)
SPEC_TYPES = frozenset({None, "builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict"})
EXPORT = (
    "export it with torch.export.export(model, (pictures,), "
    'dynamic_shapes=({0: torch.export.Dim("batch")},)) and torch.export.save'
)


def clean_program(data: bytes, source: str) -> bytes:
    """A new archive that holds only what was checked; `source` names the file in errors.

    Sample inputs, guards, stack traces and extra files are left out: loading does not need them, and the
    first two can carry code. Raises BadSpec for anything that a plain network does not need.
    """
    entries = _read_entries(data, source)
    program = _json(entries, MODEL, source)
    _check_samples(entries.get(SAMPLES, b""), source)
    weights, constants = (_json(entries, name, source) for name in (WEIGHTS, CONSTANTS))
    for config, prefix in ((weights, "weight_"), (constants, "tensor_")):
        _check_payloads(config, prefix, source)
    _strip(program, source)
    for part in (program, weights, constants):
        _check(part, "", source)
    _check_inputs(program, source)
    # Imported here: it takes seconds, and few processes read an exported program.
    from torch.export.pt2_archive._package import PT2ArchiveWriter

    buffer = io.BytesIO()
    with PT2ArchiveWriter(buffer) as writer:
        for name in sorted(entries):
            if RAW.fullmatch(name):
                writer.write_bytes(name, entries[name])
        for name, part in ((MODEL, program), (WEIGHTS, weights), (CONSTANTS, constants)):
            writer.write_string(name, json.dumps(part))
        writer.write_bytes(SAMPLES, b"")
    return buffer.getvalue()


def _refuse(source: str, what: str, remedy: str = EXPORT) -> BadSpec:
    return BadSpec(f"{source} is refused: {what}; {remedy}")


def _read_entries(data: bytes, source: str) -> dict[str, bytes]:
    """Entries by name below the archive's root folder; each name must be one that a plain archive has."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            infos = archive.infolist()
            if len(infos) > MAX_ENTRIES or sum(info.file_size for info in infos) > MAX_BYTES:
                raise _refuse(
                    source, f"it unpacks to more than {MAX_ENTRIES:,} entries or {MAX_BYTES >> 30} GiB"
                )
            entries: dict[str, bytes] = {}
            for info in infos:
                name = info.filename.partition("/")[2]
                if name in entries:
                    raise _refuse(source, f'it holds "{name}" twice')
                if not (
                    name in {MODEL, WEIGHTS, CONSTANTS, SAMPLES}
                    or RAW.fullmatch(name)
                    or DROPPED.fullmatch(name)
                ):
                    raise _refuse(
                        source, f'it holds "{info.filename}", which is no raw tensor and can carry code'
                    )
                entries[name] = archive.read(info)
            return entries
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, RuntimeError) as error:
        raise _refuse(source, f"it is no .pt2 archive ({error})") from error


def _json(entries: dict[str, bytes], name: str, source: str) -> dict[str, Any]:
    if name not in entries or len(entries[name]) > MAX_GRAPH_BYTES:
        raise _refuse(source, f'it holds no "{name}", or one of more than {MAX_GRAPH_BYTES >> 20} MiB')
    try:
        value = json.loads(entries[name])
    except (ValueError, RecursionError) as error:
        raise _refuse(source, f'"{name}" is no JSON ({error})') from error
    if not isinstance(value, dict):
        raise _refuse(source, f'"{name}" is no JSON object')
    return value


def _check_samples(data: bytes, source: str) -> None:
    """Sample inputs are a pickle; they are dropped, but a file whose sample inputs carry code is refused as a
    whole.
    """
    if not data:
        return
    try:
        torch.load(io.BytesIO(data), weights_only=True)
    except Exception as error:  # all errors of a hostile pickle are treated alike
        raise _refuse(source, "its sample inputs are pickled objects other than tensors") from error


def _check_payloads(config: dict[str, Any], prefix: str, source: str) -> None:
    payloads = config.get("config")
    if not isinstance(payloads, dict):
        raise _refuse(source, "its list of tensors is damaged")
    for name, payload in payloads.items():
        path = payload.get("path_name") if isinstance(payload, dict) else None
        if not isinstance(path, str) or not path.startswith(prefix) or payload.get("use_pickle") is not False:
            raise _refuse(
                source, f'the constant or weight "{name}" is pickled, custom or opaque, not a raw tensor'
            )


def _strip(program: dict[str, Any], source: str) -> None:
    """Remove what loading does not need: guards (they become source), namedtuples, free metadata."""
    graph_module = program.get("graph_module")
    if not isinstance(graph_module, dict) or not isinstance(graph_module.get("graph"), dict):
        raise _refuse(source, "it holds no graph")
    program["guards_code"] = []
    graph_module["metadata"] = {}
    graph_module["treespec_namedtuple_fields"] = {}


def _check(value: Any, key: str, source: str) -> None:
    """Every string by the key it stands under; `metadata` keeps the module path alone."""
    if isinstance(value, list):
        for entry in value:
            _check(entry, key, source)
    elif isinstance(value, dict):
        if isinstance(value.get("metadata"), dict):
            stack = value["metadata"].get("nn_module_stack")
            value["metadata"] = {"nn_module_stack": stack} if stack else {}
        for name, entry in value.items():
            # A key of sym_int_values or range_constraints is a name too, and names become source.
            if not NAME.fullmatch(name) or (name in REFUSED_KINDS and entry is not None):
                raise _refuse(source, f'its graph holds "{name[:80]}", which a plain network does not need')
            _check(entry, name, source)
    elif isinstance(value, str) and not _is_plain(value, key):
        raise _refuse(source, f'its graph holds {key} = "{value[:80]}", which a plain network does not need')


def _is_plain(value: str, key: str) -> bool:
    if key == "expr_str":
        return _is_shape(value)
    if key == "target":
        return _is_operator(value)
    if key in {"in_spec", "out_spec"}:
        return _is_tree(value)
    if key == "nn_module_stack":
        return bool(MODULE_STACK.fullmatch(value))
    if key in {"as_string", "as_strings"}:
        return bool(TEXT.fullmatch(value))
    if key == "torch_version":
        return bool(re.fullmatch(r"[\w.+<=]*", value))
    return bool(NAME.fullmatch(value))


def _is_operator(target: str) -> bool:
    match = ATEN.fullmatch(target)
    if not match:
        return bool(PLAIN_TARGETS.fullmatch(target))
    packet = getattr(torch.ops.aten, match[1], None) if match[1] not in REFUSED_ATEN else None
    return isinstance(getattr(packet, match[2], None), torch._ops.OpOverload)


def _is_shape(text: str) -> bool:
    """An arithmetic expression of shape symbols: it is going to be evaluated."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return len(text) < 1000 and all(_is_shape_node(node) for node in ast.walk(tree))


def _is_shape_node(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in SHAPE_FUNCTIONS
    if isinstance(node, ast.Name):
        return node.id in SHAPE_FUNCTIONS or bool(SYMBOL.fullmatch(node.id))
    if isinstance(node, ast.Constant):
        value = node.value  # the only text is a symbol's name
        return bool(SYMBOL.fullmatch(value)) if isinstance(value, str) else type(value) in {int, float, bool}
    if isinstance(node, ast.keyword):
        return node.arg in {"positive", "integer", "nonnegative"}
    return isinstance(node, (*SHAPE_NODES, *SHAPE_OPERATORS))


def _is_tree(text: str) -> bool:
    """A nesting of tuples, lists and dictionaries; other containers are rebuilt by importing what they
    name.
    """
    try:
        version, tree = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return False
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict) or node.get("type") not in SPEC_TYPES:
            return False
        waiting += node.get("children_spec", [])
    return isinstance(version, int)


def _check_inputs(program: dict[str, Any], source: str) -> None:
    """One input, a tensor, with a first dimension that is not fixed."""
    try:
        module = program["graph_module"]
        inputs = [
            spec["user_input"]["arg"] for spec in module["signature"]["input_specs"] if "user_input" in spec
        ]
        tensors = [arg["as_tensor"]["name"] for arg in inputs if "as_tensor" in arg]
        if len(inputs) != 1 or len(tensors) != 1:
            raise _refuse(source, f"it takes {len(inputs)} inputs, one batch of pictures is needed")
        dynamic = "as_expr" in module["graph"]["tensor_values"][tensors[0]]["sizes"][0]
    except (KeyError, TypeError, IndexError) as error:
        raise _refuse(source, f"its graph is damaged ({error!r})") from error
    if not dynamic:
        raise _refuse(source, "its batch dimension is fixed, a dynamic one is needed")
