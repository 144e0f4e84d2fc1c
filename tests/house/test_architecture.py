"""Rules of the code that a reader cannot see at a glance: directions, purity, sizes, names, addresses."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.trees import parsed, walked

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("stimuli", "experiments", "analysis", "crowd")  # each may import itself and those before it
OUTSIDE = ("tests", "benchmarks", "setup")
SKIPPED = {"node_modules", "dist", "var", "build", "static", "__pycache__", "legible.egg-info"}
PURE_FOLDERS = (
    *("stimuli", "analysis/stats", "analysis/any_table", "crowd/platforms"),
    *("experiments/definition", "experiments/design", "experiments/kinds", "experiments/paradigms"),
    "experiments/simulation",
)
PURE_MODULES = (
    *("experiments/errors.py", "experiments/gates/forms.py", "experiments/wording/markdown.py"),
    *("analysis/columns.py", "analysis/pasta_records.py", "analysis/timing_and_visual_angle.py"),
)
"""Single modules between others."""
PURE = (*(f"{folder}/**/*.py" for folder in PURE_FOLDERS), *PURE_MODULES)
SPEAKS_HTTP = "experiments/simulation/browser"
DJANGO_MODULES = {
    f"stimuli.{name}" for name in ("models", "tasks", "admin", "apps", "build", "worker_claims")
}
DJANGO_MODULES |= {"stimuli.store.media_access", "stimuli.metrics.measurement_rows"}
DJANGO_FOLDERS = {"migrations", "management"}
IMPURE_PACKAGES = {"django", "rest_framework", "drf_spectacular", "celery", "kombu", "redis", "psycopg2"}
IMPURE_MODULES = {"random", "secrets", "time"}
ALLOWED = {
    ("stimuli.store", "secrets"),  # names files that are being written; no content depends on it
    ("stimuli.predictors.network_proof", "random"),  # sees whether a network draws, and gives the state back
}
CLOCKS = {"now", "utcnow", "today"}
SEEDED = {"Generator", "SeedSequence", "BitGenerator", "PCG64", "PCG64DXSM", "Philox", "default_rng"}
SEEDED |= {"get_state", "set_state"}  # no draws
TORCH_DRAWS = {"rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial"}
BANNED_NAMES = {"util", "utils", "base_utils", "helper", "helpers", "common", "manager", "managers"}
FILE_LINES = 500
BODY_LINES = 60
TEXT_SUFFIXES = {"", ".css", ".csv", ".html", ".ini", ".js", ".json", ".md", ".mjs", ".py", ".sh", ".svg"}
TEXT_SUFFIXES |= {".toml", ".ts", ".txt", ".yaml", ".yml"}
# Written in two halves, so that this file does not name them.
ADDRESSES = tuple(
    first + second
    for first, second in (
        ("pypi", ".org"),
        ("pythonhosted", ".org"),
        ("npmjs", ".org"),
        ("npmjs", ".com"),
        ("download.pytorch", ".org"),
        ("/wo", "rk/"),
        ("/opt/", "wheels"),
        ("/opt/", "pypi"),
        ("/ro", "ot/"),
    )
)


@dataclass(frozen=True, slots=True)
class Import:
    """One import statement of a module, absolute."""

    importer: str
    imported: str
    line: int

    def __str__(self) -> str:
        return f"{self.importer} (line {self.line}) -> {self.imported}"


def committed(*suffixes: str) -> list[Path]:
    """The files of the checkout that are not installed, built or run-time state."""
    paths: list[Path] = []
    for here, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in SKIPPED and (name[0] != "." or name == ".ci")]
        paths += [
            Path(here, name)
            for name in names
            if name != ".git" and (not suffixes or Path(name).suffix in suffixes)
        ]
    return sorted(paths)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_generated(path: Path) -> bool:
    return "migrations" in path.parts or path.name in {"wire.ts", "package-lock.json"}


SOURCES = {
    module_name(path): path
    for path in committed(".py")
    if path.relative_to(ROOT).parts[0] in {*ROOMS, *OUTSIDE} or path.parent == ROOT
}
TEXTS = {name: path.read_text() for name, path in SOURCES.items()}
TREES = {name: parsed(text) for name, text in TEXTS.items()}
IN_ROOMS = [name for name in SOURCES if name.split(".")[0] in ROOMS]


def nodes_of(name: str) -> tuple[ast.AST, ...]:
    """Every node of the module."""
    return walked(TEXTS[name])


@cache
def imports_of(name: str) -> tuple[Import, ...]:
    """Every import of the module, wherever it stands; names of our own packages resolved to modules."""
    return tuple(_imports(name))


def _imports(name: str) -> Iterator[Import]:
    for node in nodes_of(name):
        modules: set[str] = set()
        if isinstance(node, ast.Import):
            modules = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = absolute(name, node)
            inner = {alias.name: f"{base}.{alias.name}" for alias in node.names}
            modules = {path if path in SOURCES else base for path in inner.values()}
        for path in sorted(modules):
            yield Import(name, path, getattr(node, "lineno", 0))


def absolute(name: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = name.split(".")
    is_package = SOURCES[name].name == "__init__.py"
    parents = package[: len(package) - node.level + is_package]
    return ".".join([*parents, *([node.module] if node.module else [])])


def pure_modules() -> list[str]:
    paths = {path for pattern in PURE for path in ROOT.glob(pattern)}
    return sorted(
        module_name(path)
        for path in paths
        if module_name(path) not in DJANGO_MODULES
        and not path.is_relative_to(ROOT / SPEAKS_HTTP)
        and not DJANGO_FOLDERS & set(path.relative_to(ROOT).parts)
    )


def dotted(node: ast.AST) -> str:
    """`np.random.rand` for the expression of that name; empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def test_it_imports_downwards_only() -> None:
    upward = [
        str(statement)
        for name in IN_ROOMS
        for statement in imports_of(name)
        if statement.imported.split(".")[0] in (*ROOMS[ROOMS.index(name.split(".")[0]) + 1 :], *OUTSIDE)
    ]
    assert not upward, "\n".join(upward)


def test_it_names_no_upper_module_in_a_table() -> None:
    faults = []
    for name in IN_ROOMS:
        upper = ROOMS[ROOMS.index(name.split(".")[0]) + 1 :]
        for node in nodes_of(name):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                module = node.value.partition(":")[0]
                if module.split(".")[0] in upper and module in SOURCES and "." in module:
                    faults.append(f"{name} (line {node.lineno}) names {node.value}")
    assert not faults, "\n".join(faults)


def test_it_has_no_import_cycle() -> None:
    """Imports inside functions count, and those for the type checker: a reader needs both modules."""
    graph = {
        name: {statement.imported for statement in imports_of(name)} & SOURCES.keys() for name in SOURCES
    }
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail("a cycle: " + " <- ".join(error.args[1]))


def test_it_keeps_the_pure_rooms_free_of_the_world() -> None:
    pure = set(pure_modules())
    wrong = [
        str(statement)
        for name in sorted(pure)
        for statement in imports_of(name)
        if (name, statement.imported) not in ALLOWED
        and (
            statement.imported.split(".")[0] in IMPURE_PACKAGES | IMPURE_MODULES
            or (
                statement.imported in SOURCES
                and statement.imported not in pure
                and statement.imported not in ROOMS
            )
        )
    ]
    assert not wrong, "\n".join(wrong)


def test_it_reads_no_clock_and_draws_no_global_numbers_in_the_pure_rooms() -> None:
    wrong = [
        f"{name} (line {node.lineno}): {problem}"
        for name in pure_modules()
        for node in nodes_of(name)
        if isinstance(node, ast.Call | ast.Attribute)
        if (problem := impurity(node)) and id(node) not in scoped(name)
    ]
    assert not wrong, "\n".join(wrong)


def scoped(name: str) -> set[int]:
    """Expressions inside `with torch.random.fork_rng(...)`, which gives the global state back."""
    return {
        id(inner)
        for node in nodes_of(name)
        if isinstance(node, ast.With)
        and any(
            isinstance(call := item.context_expr, ast.Call) and dotted(call.func) == "torch.random.fork_rng"
            for item in node.items
        )
        for inner in ast.walk(node)
    }


def impurity(node: ast.Call | ast.Attribute) -> str:
    """What is wrong with this expression in a pure room; empty if nothing is."""
    if isinstance(node, ast.Attribute):
        path = dotted(node)
        if re.fullmatch(r"(np|numpy)\.random\.\w+", path) and node.attr not in SEEDED:
            return f"{path} draws from the global generator"
        return ""
    path = dotted(node.func)
    first, _, last = path.rpartition(".")
    if last == "default_rng" and not node.args and not node.keywords:
        return "default_rng() without a seed"
    if last in CLOCKS and first.split(".")[-1] in {"datetime", "date", "timezone"}:
        return f"{path}() reads the clock"
    if path in {"torch.manual_seed", "torch.seed", "uuid.uuid1", "uuid.uuid4", "os.urandom"}:
        return f"{path}() is global randomness"
    if first == "torch" and last in TORCH_DRAWS and "generator" not in {word.arg for word in node.keywords}:
        return f"{path}() without generator="
    return ""


def test_it_imports_the_pure_rooms_without_django() -> None:
    """Not crowd's: it is the Django project itself, so its package brings Celery's app along."""
    names = [name for name in pure_modules() if not name.startswith("crowd.")]
    assert names
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "print(sorted(n for n in ('django', 'celery', 'redis', 'psycopg2') if n in sys.modules))\n"
    )
    assert run_python(program) == "[]"


def test_a_web_process_imports_no_torch_and_no_library_of_statistics() -> None:
    """Every command imports the addresses too: these libraries would make each of them wait for seconds."""
    slow = ("torch", "torchvision", "captum", "scipy", "pandas", "statsmodels", "matplotlib")
    program = (
        "import sys, crowd.wsgi\n"
        "from django.urls import get_resolver\n"
        "assert get_resolver().url_patterns\n"
        f"print(sorted(n for n in {slow!r} if n in sys.modules))\n"
    )
    assert run_python(program) == "[]"


def run_python(program: str) -> str:
    """The last line that the program prints, in a process of its own."""
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip().splitlines()[-1]


def test_it_reads_the_environment_in_the_settings_only() -> None:
    wrong = []
    for name in [*IN_ROOMS, "manage"]:
        if name == "crowd.settings":
            continue
        chosen = {
            id(node.func.value)
            for node in nodes_of(name)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and dotted(node.func) == "os.environ.setdefault"
            and isinstance(node.args[0], ast.Constant)
            and node.args[0].value == "DJANGO_SETTINGS_MODULE"
        }
        for node in nodes_of(name):
            if dotted(node) in {"os.environ", "os.getenv", "os.environb"} and id(node) not in chosen:
                wrong.append(f"{name} (line {getattr(node, 'lineno', 0)})")
            if isinstance(node, ast.ImportFrom) and node.module == "os":
                wrong += [f"{name}: {a.name}" for a in node.names if a.name in {"environ", "getenv"}]
    assert not wrong, "\n".join(wrong)


def test_it_keeps_files_short() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in committed(".py", ".ts", ".css", ".html", ".sh")
        if not is_generated(path) and (lines := path.read_text().count("\n")) > FILE_LINES
    }
    assert not long, long


def test_it_keeps_functions_short() -> None:
    long = []
    for name in TREES:
        if is_generated(SOURCES[name]):
            continue
        for node in nodes_of(name):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                has_text = ast.get_docstring(node, clean=False) is not None and len(node.body) > 1
                first = node.body[1] if has_text else node.body[0]
                lines = (node.end_lineno or node.lineno) - first.lineno + 1
                if lines > BODY_LINES:
                    long.append(f"{name}.{node.name}: {lines} lines")
    assert not long, "\n".join(long)


def test_it_names_modules_for_what_they_do() -> None:
    vague = [str(path.relative_to(ROOT)) for path in committed(".py", ".ts") if path.stem in BANNED_NAMES]
    assert not vague, vague


def test_it_commits_no_address_of_a_registry_or_a_machine() -> None:
    faults = []
    for path in committed():
        if path.suffix not in TEXT_SUFFIXES or path == Path(__file__):
            continue
        text = path.read_text(errors="replace")
        faults += [f"{path.relative_to(ROOT)}: {address}" for address in ADDRESSES if address in text]
    assert not faults, "\n".join(faults)


def test_it_pins_versions_without_addresses() -> None:
    lines = (ROOT / "requirements" / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    wrong = [line for line in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)]
    assert not wrong, wrong
    assert "torch==2.13.0" in pins
    assert '"resolved"' not in (ROOT / "frontend" / "package-lock.json").read_text()


BOTH = {("analysis", "Report")}
"""The value that a reporter makes, and the row that holds it, whose name is in every stored database."""


def test_it_names_no_two_public_classes_of_a_room_alike() -> None:
    places: dict[tuple[str, str], set[str]] = {}
    for module in SOURCES:
        if module.split(".")[0] in ROOMS and ".migrations" not in module and ".commands" not in module:
            for name in public_classes(TREES[module]):
                places.setdefault((module.split(".")[0], name), set()).add(module)
    twice = {key: sorted(modules) for key, modules in places.items() if len(modules) > 1}
    assert twice.keys() == BOTH, twice


def public_classes(tree: ast.Module) -> list[str]:
    nodes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return [node.name for node in nodes if not node.name.startswith("_")]
