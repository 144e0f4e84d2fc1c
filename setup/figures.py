"""Figures of the house: how much code there is, how its rooms hang together, and what its things are called.

    .venv/bin/python setup/figures.py [FOLDER ...]

prints one table, a column for each checkout (this one, if none is named). Nothing is imported: all is read
from the syntax trees.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("stimuli", "experiments", "analysis", "crowd")
BESIDE = ("setup", "benchmarks")
CROWDED = ("experiments", "analysis", "analysis.reports", "analysis.stats", "crowd")
"""Folders whose floors and arrows are counted."""
ALONE = "analysis.any_table"
"""What imports nothing of studies, and is therefore counted apart."""
SKIPPED = {"migrations", "__pycache__", "node_modules"}
NO_CODE = {
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.COMMENT,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
IRREGULAR = """
    begun borne bought bound bred broken brought built caught chosen dealt done drawn driven eaten
    fallen fed felt forgotten found frozen given gone grown heard held hidden kept known laid led left
    lent lost made meant met paid ridden risen said sat seen sent shown sold spent spoken stolen stood
    struck sunk swum taken thought thrown told torn understood won worn woven written
"""
"""Past participles that do not end in -ed and are not the verb as well, as `read` is."""
NO_PARTICIPLES = "bed breed embed exceed feed hundred indeed need proceed red seed shed speed thread"
"""Words that do, and are none."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A class or function, and the module it stands in."""

    name: str
    module: str
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class House:
    """A checkout, read once."""

    root: Path

    @cached_property
    def trees(self) -> Mapping[str, ast.Module]:
        """The syntax tree of every module of the packages, by its dotted name."""
        return {self.module_name(path): ast.parse(path.read_text()) for path in self.files(*PACKAGES)}

    def files(self, *folders: str) -> list[Path]:
        paths = (path for folder in folders for path in (self.root / folder).rglob("*.py"))
        return sorted(path for path in paths if not SKIPPED & set(path.relative_to(self.root).parts))

    def module_name(self, path: Path) -> str:
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        return tuple(
            Definition(node.name, module, node)
            for module, tree in self.trees.items()
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        )

    @property
    def classes(self) -> list[Definition]:
        return [each for each in self.definitions if isinstance(each.node, ast.ClassDef)]

    @property
    def functions(self) -> list[Definition]:
        """Functions and methods, but those that Python names (`__init__`)."""
        functions = (each for each in self.definitions if not isinstance(each.node, ast.ClassDef))
        return [each for each in functions if not each.name.startswith("__")]

    def imports(self, module: str) -> set[str]:
        """The modules of the packages that a module imports, wherever the import stands."""
        imported: set[str] = set()
        for node in ast.walk(self.trees[module]):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                paths = {f"{node.module}.{alias.name}" for alias in node.names}
                imported |= {path if path in self.trees else node.module for path in paths}
        return imported & self.trees.keys()

    def closure(self, room: str) -> set[str]:
        """The modules of a room, and all that they import, directly or not."""
        waiting = {module for module in self.trees if module == room or module.startswith(f"{room}.")}
        known: set[str] = set()
        while waiting:
            known |= waiting
            waiting = {other for module in waiting for other in self.imports(module)} - known
        return known


def code_lines(text: str) -> int:
    """Lines that hold code: no blank line, comment or docstring."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def lines_by_room(house: House) -> dict[str, int]:
    """Code lines of each folder of a package, and of the modules beside the folders."""
    rooms: Counter[str] = Counter()
    for path in house.files(*PACKAGES, *BESIDE):
        parts = path.relative_to(house.root).parts
        rooms[".".join(parts[:2]) if len(parts) > 2 else parts[0]] += code_lines(path.read_text())
    return dict(sorted(rooms.items()))


def lines_alone(house: House, room: str) -> int:
    """Code lines of what could be published by itself: a room with all that it imports."""
    modules = house.closure(room)
    return sum(code_lines(p.read_text()) for p in house.files(*PACKAGES) if house.module_name(p) in modules)


def arrows_of(house: House, package: str) -> dict[str, set[str]]:
    """Which rooms of a package import which: its rooms are the modules and folders directly in it."""
    depth = package.count(".") + 2
    arrows: dict[str, set[str]] = {}
    for module in house.trees:
        if module.startswith(f"{package}."):
            room = ".".join(module.split(".")[:depth])
            others = (other for other in house.imports(module) if other.startswith(f"{package}."))
            arrows.setdefault(room, set()).update(".".join(other.split(".")[:depth]) for other in others)
    return {room: others - {room} for room, others in arrows.items()}


def floors_of(arrows: Mapping[str, set[str]]) -> int:
    """The longest way down, in rooms; rooms that import each other in a circle count as one floor."""
    known: dict[str, int] = {}

    def floor(room: str, above: frozenset[str]) -> int:
        if room not in known:
            below = [floor(other, above | {room}) for other in arrows[room] if other not in above | {room}]
            known[room] = 1 + max(below, default=0)
        return known[room]

    return max((floor(room, frozenset()) for room in sorted(arrows)), default=0)


def words_of(name: str) -> list[str]:
    """The words of a name in CamelCase or snake_case, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)]


def is_participle(name: str) -> bool:
    """Whether a name is one past participle and nothing besides: `Told`, `_kept`."""
    words = words_of(name)
    if len(words) != 1 or words[0] in NO_PARTICIPLES.split():
        return False
    return words[0] in IRREGULAR.split() or words[0].endswith("ed")


def public_twins(house: House) -> list[str]:
    """Public classes that a package defines in several modules, commands apart."""
    places: dict[tuple[str, str], set[str]] = defaultdict(set)
    for each in house.classes:
        if not each.name.startswith("_") and ".commands." not in each.module:
            places[each.module.split(".")[0], each.name].add(each.module)
    return sorted(f"{package}: {name}" for (package, name), modules in places.items() if len(modules) > 1)


def fullest_folders(house: House) -> list[tuple[int, str]]:
    """Folders by their modules; commands apart, whose folder Django names."""
    folders = Counter(
        path.parent.relative_to(house.root).as_posix()
        for path in house.files(*PACKAGES, "tests")
        if path.name != "__init__.py" and path.parent.name != "commands"
    )
    return sorted(((count, folder) for folder, count in folders.items()), reverse=True)


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    has_text = ast.get_docstring(node, clean=False) is not None and len(node.body) > 1
    first = node.body[1] if has_text else node.body[0]
    return (node.end_lineno or node.lineno) - first.lineno + 1


def percent(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.1f} %)"


def figures_of(house: House) -> Iterator[tuple[str, str]]:
    """Every figure with its name, as text."""
    rooms = lines_by_room(house)
    lines = {
        name: sum(count for room, count in rooms.items() if room.partition(".")[0] == name)
        for name in (*PACKAGES, *BESIDE)
    }
    for name, count in lines.items():
        yield f"code lines, {name}", f"{count}"
    yield "code lines, the four packages", f"{sum(lines[name] for name in PACKAGES)}"
    yield "code lines, all", f"{sum(lines.values())}"
    yield f"code lines, {ALONE} with all it imports", f"{(alone := lines_alone(house, ALONE))}"
    yield "code lines, all but these", f"{sum(lines.values()) - alone}"
    for package in CROWDED:
        arrows = arrows_of(house, package)
        floors, count = floors_of(arrows), sum(map(len, arrows.values()))
        yield f"rooms / floors / arrows, {package}", f"{len(arrows)} / {floors} / {count}"
    count, folder = fullest_folders(house)[0]
    yield "fullest folder", f"{count} modules, {folder}"
    yield "folders of more than 20 modules", f"{sum(count > 20 for count, _ in fullest_folders(house))}"
    for kind, named in (("classes", house.classes), ("functions", house.functions)):
        yield f"{kind} named by a participle", percent(sum(is_participle(n.name) for n in named), len(named))
    yield "public classes defined twice in a package", f"{len(public_twins(house))}"
    names = Counter(module.split(".")[-1] for module in house.trees if "." in module)
    twice = [count for count in names.values() if count > 1]
    yield "module names used more than once", f"{len(twice)} names, {sum(twice)} modules"
    bodies = [body_lines(each.node) for each in house.functions if not isinstance(each.node, ast.ClassDef)]
    last = statistics.quantiles(bodies, n=10)[-1]
    yield "function bodies, median / p90 / max", f"{statistics.median(bodies):g} / {last:g} / {max(bodies)}"


def main(folders: list[str]) -> None:
    columns = [dict(figures_of(House(Path(folder).resolve()))) for folder in folders or [str(ROOT)]]
    width = max(map(len, columns[0]))
    for name in columns[0]:
        print(f"{name:{width}}  " + "  ".join(f"{column.get(name, '-'):>24}" for column in columns))


if __name__ == "__main__":
    main(sys.argv[1:])
