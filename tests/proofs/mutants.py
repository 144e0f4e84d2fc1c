"""Whether the suite notices small changes of the code: mutants drawn by seed, each against the quick tests of
`make test` that import its module, and if these see nothing, against the type checker. Exits 1 if fewer than
85 % are killed.

    python -m tests.proofs.mutants --seed S --count 200 FOLDER…

What has been judged is remembered in var/mutants/, so an interrupted run goes on. A mutant that behaves as
the original does is listed with the reason in equivalent_mutants.toml, as neither killed nor survived.
mutmut and cosmic-ray do the same; neither draws by seed, and both change the files of the checkout.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Literal

from tests.proofs.mutation import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / "var" / "mutants"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
ENOUGH = 0.85
SLOWER = 4
"""A mutant that computes so many times as long as the original, and LEAST_S more, is caught in a loop."""
LEAST_S = 20.0
QUICK_S = 15.0
"""Seconds of computing above which a test file is not run for every mutant."""
Fate = Literal["killed", "types", "survived", "hangs", "equivalent"]
KILLED: tuple[Fate, ...] = ("killed", "types", "hangs")
BUILT = ("frontend/node_modules", "frontend/dist")
"""What tests need and git does not hold."""
# Slow to import, changed by no mutant, and harmless to inherit by a fork.
PRELOADED = (
    "numpy",
    "scipy.stats",
    "pandas",
    "hypothesis",
    "pingouin",
    "statsmodels.api",
    "django",
    "pydantic",
)


def imported_by(path: Path) -> set[str]:
    """Every dotted name that a test file may have imported, its own packages included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            package = node.module.rpartition(".")[0]
            names |= {package, node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def files_for(module: Path, root: Path) -> tuple[str, ...]:
    """The test files that import a module by name, then those that import its package, from whose tables they
    may load it. No browser, no journey, and none of crowd's, which is built on everything, for other rooms.
    """
    left_out = {"journeys", "proofs", "crowd"} - {module.parts[0]}
    dotted = ".".join(module.with_suffix("").parts)
    package = dotted.rpartition(".")[0]
    dotted = dotted.removesuffix(".__init__")
    paths = [p for p in sorted(root.glob("tests/**/test_*.py")) if not left_out & set(p.parts)]
    names = {str(path.relative_to(root)): imported_by(path) for path in paths}
    chosen = [path for wanted in (dotted, package) for path in names if wanted in names[path]]
    if not chosen:
        raise SystemExit(f"no test imports {dotted}: add one, or leave it out.")
    return tuple(dict.fromkeys(chosen))


def drawn(folders: Iterable[Path], seed: int, count: int, root: Path = ROOT) -> list[Mutant]:
    """So many mutants of all of the folders', without repetition; all, if there are fewer."""
    mutants: list[Mutant] = []
    for folder in folders:
        for path in sorted((root / folder).glob("**/*.py")):
            mutants += mutants_of(path.relative_to(root), path.read_text())
    if not mutants:
        raise SystemExit(f"nothing can be mutated in {', '.join(map(str, folders))}: name folders with code.")
    return random.Random(seed).sample(mutants, min(count, len(mutants)))


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """A copy of the checkout as it stands, to be spoiled."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=root, capture_output=True, text=True, check=True).stdout.split("\0")
    with tempfile.TemporaryDirectory(prefix="legible-mutants-") as folder:
        for name in filter(None, listed):
            source, target = root / name, Path(folder, name)
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        for name in filter(lambda name: (root / name).exists(), BUILT):
            Path(folder, name).symlink_to(root / name)
        yield Path(folder)


def pytest_in(tree: Path, files: Sequence[str], within_s: float) -> tuple[int | None, float]:
    """The exit code of the tests in a fork of this process, None if they computed for too long; and how long.

    Seconds of computing, not of the clock: the machine may do other work beside it.
    """
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(within_s), math.ceil(within_s)))
            os.chdir(tree)
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            sys.path[:] = [str(tree), *(entry for entry in sys.path if entry not in ("", str(ROOT)))]
            for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
                del sys.modules[name]
            sys.dont_write_bytecode = True
            import pytest

            options = ("-x", "-q", "-m", "not long", "-p", "no:cacheprovider", "-p", "no:randomly")
            ended = pytest.main([*options, *files])
            # All tests of a file may be long.
            code = 0 if ended == pytest.ExitCode.NO_TESTS_COLLECTED else int(ended)
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return (None if code < 0 else code), used.ru_utime + used.ru_stime


def equivalent() -> dict[tuple[str, str], str]:
    """(Path, change) -> why nothing can tell the mutant from the original."""
    listed = tomllib.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}
    return {(row["path"], row["change"]): row["reason"] for row in listed.get("mutant", [])}


class TypeChecker:
    """What mypy, a part of `make test`, says of a changed module and did not say of the original."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        self.originals: dict[Path, Counter[str]] = {}

    def notices(self, mutant: Mutant, original: str) -> bool:
        """To be called while the mutant stands in the tree; it stands there afterwards too."""
        messages = self._messages()
        if mutant.path not in self.originals:
            target = self.tree / mutant.path
            # As mutants are written: without the comments that silence the checker.
            target.write_text(ast.unparse(ast.parse(original)))
            self.originals[mutant.path] = self._messages()
            target.write_text(mutant.source)
        return bool(messages - self.originals[mutant.path])

    def _messages(self) -> Counter[str]:
        done = subprocess.run(
            [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context", "."],
            cwd=self.tree, capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode > 1:
            raise SystemExit(f"mypy does not run: {done.stdout[-500:]}{done.stderr[-500:]}")
        return Counter(re.sub(r":\d+:", ":", line) for line in done.stdout.splitlines())


class Judge:
    """Runs the tests on one mutant after the other, in one spoiled copy of the checkout."""

    def __init__(self, tree: Path, memory: Path) -> None:
        self.tree, self.memory = tree, memory
        self.timings = memory.with_name("seconds.json")
        self.seconds: dict[str, float] = json.loads(self.timings.read_text()) if self.timings.exists() else {}
        self.types = TypeChecker(tree)
        lines = memory.read_text().splitlines() if memory.exists() else []
        self.known: dict[str, Fate] = dict(json.loads(line) for line in lines)

    def fate(self, mutant: Mutant) -> Fate:
        if (mutant.path.as_posix(), mutant.change) in equivalent():
            return "equivalent"
        files = self._quick(files_for(mutant.path, self.tree))
        code = "".join((self.tree / name).read_text() for name in files)
        key = hashlib.sha256(f"{mutant.path}\n{mutant.source}\n{code}".encode()).hexdigest()
        if key not in self.known:
            self.known[key] = self._judged(mutant, files)
            with self.memory.open("a") as file:
                file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]

    def _quick(self, files: Sequence[str]) -> tuple[str, ...]:
        """The quickest first: most mutants are killed by the first file."""
        seconds = {name: self._seconds(name) for name in files}
        quick = [name for name in files if seconds[name] <= QUICK_S]
        if not quick:
            raise SystemExit(f"{' '.join(files)}: none takes at most {QUICK_S:g} s; add a quick one.")
        return tuple(sorted(quick, key=seconds.__getitem__))

    def _seconds(self, name: str) -> float:
        """How long the tests of a file compute, measured once for the text that it has now."""
        key = f"{name} {hashlib.sha256((self.tree / name).read_bytes()).hexdigest()[:16]}"
        if key not in self.seconds:
            code, self.seconds[key] = pytest_in(self.tree, [name], 3 * QUICK_S)
            if code:
                raise SystemExit(f"{name}: the tests fail without a mutant; mend them first.")
            self.timings.write_text(json.dumps(self.seconds))
        return self.seconds[key]

    def _judged(self, mutant: Mutant, files: tuple[str, ...]) -> Fate:
        target = self.tree / mutant.path
        original = target.read_text()
        target.write_text(mutant.source)
        try:
            seconds = sum(map(self._seconds, files))
            code, _ = pytest_in(self.tree, files, LEAST_S + SLOWER * seconds)
            if code is None or code:
                return "hangs" if code is None else "killed"
            return "types" if self.types.notices(mutant, original) else "survived"
        finally:
            target.write_text(original)


def table(judged: Sequence[tuple[Mutant, Fate]], seed: int) -> str:
    """Markdown: the sum, then what was not killed."""
    fates = [fate for _, fate in judged]
    killed, counted = sum(map(fates.count, KILLED)), len(fates) - fates.count("equivalent")
    share = f"{killed / counted:.1%}" if counted else "none"
    reasons = equivalent()
    rows = [
        f"| `{mutant.place}` | {mutant.operator} | `{mutant.change.replace('|', chr(92) + '|')}` | "
        f"{fate}{': ' + reasons[mutant.path.as_posix(), mutant.change] if fate == 'equivalent' else ''} |"
        for mutant, fate in sorted(judged, key=lambda pair: pair[0].place)
        if fate in ("survived", "equivalent")
    ]
    said = (
        f"Seed {seed}: {len(fates)} mutants, {killed} killed ({fates.count('types')} of them by the type "
        f"checker, {fates.count('hangs')} by an endless loop), {fates.count('survived')} survived, "
        f"{fates.count('equivalent')} equivalent: {share} killed."
    )
    return "\n".join([said, "", "| place | operator | change | fate |", "| --- | --- | --- | --- |", *rows])


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Draw mutants by seed, and see which the tests notice.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long; run again")
    asked = parser.parse_args(words)
    for name in PRELOADED:
        import_module(name)
    chosen, end = drawn(asked.folders, asked.seed, asked.count), time.monotonic() + 60 * asked.minutes
    STATE.mkdir(parents=True, exist_ok=True)
    judged: list[tuple[Mutant, Fate]] = []
    with copied(ROOT) as tree:
        judge = Judge(tree, STATE / "judged.jsonl")
        for at, mutant in enumerate(chosen, 1):
            if time.monotonic() > end:
                print(f"Stopped after {asked.minutes:g} minutes; run it again for the other mutants.")
                break
            judged.append((mutant, judge.fate(mutant)))
            print(f"{at}/{len(chosen)} {judged[-1][1]} {mutant.place} {mutant.change}", flush=True)
    text = table(judged, asked.seed)
    (STATE / f"mutants-{asked.seed}.md").write_text(text + "\n")
    print(f"\n{text}")
    fates = [fate for _, fate in judged]
    counted = len(fates) - fates.count("equivalent")
    return 0 if len(judged) == len(chosen) and counted - fates.count("survived") >= ENOUGH * counted else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
