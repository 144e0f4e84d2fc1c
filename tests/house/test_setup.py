"""Set-up by stamps, finding Python and Node, the parts of the test run, and the container files."""

import ast
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from crowd.platforms import settings_of_all
from setup import install, suite
from setup.install import Installation, SetupFailed
from tests.run import choice, proxy
from tests.services import BEAT, WEB, WORKER

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with an environment and a front end, of which nothing is installed yet."""
    for folder in ("requirements", "frontend/src", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "requirements" / "constraints.txt").write_text("numpy==2.4.6\ntorch==2.13.0\n")
    (tmp_path / "requirements" / "witnesses.txt").write_text("lpips\n")
    (tmp_path / "frontend" / "package.json").write_text("{}")
    (tmp_path / "frontend" / "package-lock.json").write_text("{}")
    (tmp_path / "frontend" / "src" / "main.ts").write_text("export {};\n")
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("version = 3.11.7\n")
    return tmp_path


class Recorded(Installation):
    """An installation whose commands are recorded; each succeeds unless it contains `failing`."""

    def __init__(self, root: Path, *, is_dev: bool = True, failing: Sequence[str] = ()) -> None:
        super().__init__(root, is_dev=is_dev)
        self.failing = failing
        self.commands: list[str] = []

    def runs(self, command: Sequence[str | Path], folder: Path | None = None) -> bool:
        line = " ".join(map(str, command)).replace(f"{self.root}/", "")
        self.commands.append(line)
        self.last_output = "what the program said"
        if "ci" in command:
            (self.frontend / "node_modules").mkdir(exist_ok=True)
        if "build" in command:
            (self.frontend / "dist").mkdir(exist_ok=True)
        return not any(word in line for word in self.failing)

    def answers(self, program: Path, *arguments: str) -> bool:
        return "importlib.metadata" not in "".join(arguments)

    def find_npm(self) -> str:
        return "npm"


def installed(root: Path, **options: Any) -> list[str]:
    installation = Recorded(root, **options)
    installation.install()
    return installation.commands


def test_it_takes_torch_from_a_folder_of_wheels_first(checkout: Path) -> None:
    commands = installed(checkout)
    assert commands[0].endswith("-m pip install --no-index --no-deps torch==2.13.0")
    assert commands[1].endswith("-c requirements/constraints.txt -e .[dev]")
    assert commands[2].endswith(
        "--target .venv/witnesses --no-deps -c requirements/constraints.txt -r requirements/witnesses.txt"
    )
    assert not any("--torch-backend" in command for command in commands)


@pytest.mark.parametrize(("platform", "has_backend"), [("linux", True), ("darwin", False)])
def test_it_falls_back_to_the_index_for_torch(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, platform: str, has_backend: bool
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("TORCH", "cpu")
    commands = installed(checkout, failing=["--no-index"])
    assert ("--torch-backend cpu" in commands[1]) is has_backend
    assert commands[1].endswith("torch==2.13.0")


def test_it_does_nothing_the_second_time(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert installed(checkout)
    capsys.readouterr()
    assert installed(checkout) == []
    assert capsys.readouterr().out == ""


def test_it_takes_a_development_environment_for_the_demo_but_not_the_reverse(checkout: Path) -> None:
    installed(checkout, is_dev=False)
    assert any(command.endswith("-e .[dev]") for command in installed(checkout, is_dev=True))
    assert installed(checkout, is_dev=False) == []


@pytest.mark.parametrize(
    "changed", ["pyproject.toml", "requirements/constraints.txt", "requirements/witnesses.txt"]
)
def test_it_installs_again_when_the_requirements_change(checkout: Path, changed: str) -> None:
    installed(checkout)
    with (checkout / changed).open("a") as file:
        file.write("# changed\n")
    assert any("-e .[dev]" in command for command in installed(checkout))


def test_it_builds_again_only_when_a_source_changes(checkout: Path) -> None:
    installed(checkout)
    (checkout / "frontend" / "dist" / "main.js").write_text("built")
    assert installed(checkout) == []
    (checkout / "frontend" / "src" / "main.ts").write_text("export const x = 1;\n")
    assert installed(checkout) == ["npm run build"]
    (checkout / "frontend" / "package-lock.json").write_text('{"lockfileVersion": 3}')
    assert installed(checkout) == ["npm ci --no-audit --no-fund", "npm run build"]


def test_it_builds_again_when_a_labs_own_plugins_come_change_or_go(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(checkout)
    (checkout / "own").mkdir()
    (checkout / "own" / "index.ts").write_text("export const kinds = {}, gates = {};\n")
    assert installed(checkout) == []
    monkeypatch.setenv("LEGIBLE_PLUGINS", "own")
    assert installed(checkout) == ["npm run build"]
    assert installed(checkout) == []
    (checkout / "own" / "index.ts").write_text("export const kinds = {};\nexport const gates = {};\n")
    assert installed(checkout) == ["npm run build"]
    monkeypatch.delenv("LEGIBLE_PLUGINS")
    assert installed(checkout) == ["npm run build"]


def test_it_leaves_no_stamp_of_a_step_that_failed(checkout: Path) -> None:
    with pytest.raises(SetupFailed, match="npm ci failed"):
        installed(checkout, failing=["npm ci"])
    assert "npm ci --no-audit --no-fund" in installed(checkout)


def test_it_names_the_remedy_when_torch_cannot_be_had(checkout: Path) -> None:
    with pytest.raises(SetupFailed, match="PIP_FIND_LINKS"):
        installed(checkout, failing=["torch=="])


def test_it_says_what_is_missing_without_ensurepip(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    installation = Recorded(checkout)
    monkeypatch.setattr(installation, "answers", lambda program, *arguments: False)
    with pytest.raises(SetupFailed, match="apt install python3-venv, or put uv on the PATH"):
        installation.make_environment()


@pytest.mark.parametrize(
    ("version", "is_supported"),
    [
        ("v20.18.9", False),
        ("v20.19.0", True),
        ("v21.7.0", False),
        ("v22.11.0", False),
        ("v22.12.0", True),
        ("v24.1.0", True),
        ("", False),
    ],
)
def test_it_knows_which_node_builds_the_page(version: str, is_supported: bool) -> None:
    assert install.is_node_supported(version) is is_supported


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def find_python(tmp_path: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    script = tmp_path / "version.py"
    script.write_text("import sys; print(sys.executable, *sys.argv[1:])")

    def run(*folders: Path) -> "subprocess.CompletedProcess[str]":
        command = ["/bin/sh", str(ROOT / "setup" / "python.sh"), str(script), "one word"]
        env = {"PATH": ":".join(map(str, folders))}
        return subprocess.run(command, env=env, capture_output=True, text=True)

    return run


def test_it_passes_over_a_python_that_only_fails_and_one_that_is_old(
    find_python: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    executable(tmp_path / "shims" / "python3", "exit 127")
    executable(tmp_path / "old" / "python3", "exit 1")
    executable(tmp_path / "new" / "python3.12", f'exec {sys.executable} "$@"')
    result = find_python(tmp_path / "shims", tmp_path / "old", tmp_path / "new")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip().endswith("one word")


def test_it_says_which_python_it_needs(
    find_python: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    result = find_python(tmp_path)
    assert result.returncode == 1
    assert "no Python 3.11 or newer" in result.stderr and "apt install python3" in result.stderr


def test_it_pins_everything_that_the_project_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    requirements = [*project["dependencies"], *(each for extra in extras for each in extra)]
    names = {
        re.split(r"[\[<>=;! ]", requirement)[0].lower().replace("_", "-") for requirement in requirements
    }
    text = (ROOT / "requirements" / "constraints.txt").read_text().lower().replace("_", "-")
    missing = {
        name
        for name in names - {project["name"]}
        if not re.search(rf"^{re.escape(name)}==", text, re.MULTILINE)
    }
    assert not missing


def test_it_fails_the_run_when_one_part_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good = suite.Part("good", (says("3 passed in 1.00s"),))
    bad = suite.Part("bad", ((sys.executable, "-c", "raise SystemExit('1 failed')"),))
    rare = suite.Part("rare", (says("never asked"),), is_default=False)
    monkeypatch.setattr(suite, "PARTS", (bad, good, rare))
    assert suite.main([]) == 1
    closing = capsys.readouterr().out.partition("=== summary ===")[2]
    assert re.search(r"FAILED +bad .*1 failed", closing)
    assert re.search(r"passed +good +0\.0 min .*3 passed", closing)
    assert re.search(r"FAILED +in all +0\.0 min", closing)
    assert "rare" not in closing
    assert suite.main(["good", "rare"]) == 0
    assert suite.main(["missing"]) == 2


def test_it_runs_static_parts_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each of the two waits until the other has started, so one after the other they would never end."""
    meet = (
        "import pathlib, sys\n"
        "mine, other = map(pathlib.Path, sys.argv[1:])\n"
        "mine.touch()\n"
        "while not other.exists(): pass\n"
        "print(mine.name, 'and', other.name, 'met')"
    )
    paths = [str(tmp_path / name) for name in ("first", "second")]
    commands = [(sys.executable, "-c", meet, *pair) for pair in (paths, paths[::-1])]
    parts = [
        suite.Part(f"part {number}", (command,), is_static=True) for number, command in enumerate(commands)
    ]
    monkeypatch.setattr(suite, "PARTS", (suite.Part("last", (says("alone"),)), *parts))
    assert suite.main([]) == 0
    printed = capsys.readouterr().out
    for name, said in (("0", "first and second met"), ("1", "second and first met")):
        assert f"=== part {name} ===\n{said}\n" in printed
    assert "alone" in printed


def test_it_runs_the_others_beside_the_static_parts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The static part ends only when the other has run, so one after the other they would never end."""
    sign = tmp_path / "sign"
    waits = f"import pathlib\nwhile not pathlib.Path({str(sign)!r}).exists(): pass"
    parts = (
        suite.Part("static", ((sys.executable, "-c", waits),), is_static=True),
        suite.Part("tests", ((sys.executable, "-c", f"open({str(sign)!r}, 'w')"),)),
    )
    monkeypatch.setattr(suite, "PARTS", parts)
    assert suite.main([]) == 0
    assert capsys.readouterr().out.count("passed") == 3


def says(*lines: str) -> tuple[str, ...]:
    """A command that prints these lines."""
    return (sys.executable, "-c", f"print({chr(10).join(lines)!r})")


def test_it_names_the_slowest_tests_of_all_parts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{number / 10:.2f}s call     tests/test_x.py::test_it[{number}]" for number in range(1, 16)]
    first = suite.Part("first", (says(*lines),))
    second = suite.Part("second", (says("9.00s setup    tests/test_y.py::test_it", "0.50s is no test"),))
    monkeypatch.setattr(suite, "PARTS", (first, second))
    suite.main([])
    slowest = capsys.readouterr().out.partition("slowest ===")[2].partition("===")[0].strip().splitlines()
    assert len(slowest) == suite.SLOWEST
    assert slowest[0].split() == ["9.0", "s", "second", "setup", "tests/test_y.py::test_it"]
    assert [line.split("[")[1] for line in slowest[1:]] == [f"{number}]" for number in range(15, 4, -1)]


@pytest.mark.parametrize(
    ("marks", "count"),
    [
        ({"pure"}, 1),
        (set(), 1),
        ({"both_databases"}, 1),
        ({"sqlite_only"}, 1),
        ({"browser"}, 1),
        ({"pure", "browser"}, 1),
        ({"long"}, 0),
    ],
)
def test_it_runs_every_test_in_one_part_but_the_long_ones(marks: set[str], count: int) -> None:
    chosen = [part for part in suite.PARTS if part.marks and choice.may_hold(marked(marks), part.marks)]
    assert len(chosen) == 1
    assert expressions("pure", "postgresql", "browser") == ["not long"]
    for runs in expressions(), expressions(chosen[0].name):
        assert sum(choice.may_hold(marked(marks), run) for run in runs) == count


def expressions(*names: str) -> list[str]:
    """What the runs of pytest choose when these parts are named."""
    chosen = [part for part in suite.PARTS if (part.name in names if names else part.is_default)]
    runs = [command for part in suite.gathered(chosen) for command in part.commands if "pytest" in command]
    return [run[run.index("-m", 3) + 1] for run in runs]


def marked(marks: Collection[str]) -> str:
    """A test file whose tests all have these marks."""
    return f"pytestmark = [{', '.join(f'pytest.mark.{mark}' for mark in sorted(marks))}]\n"


@pytest.mark.parametrize(
    ("text", "expression", "may_hold"),
    [
        ("pytestmark = pytest.mark.pure\n", "pure and not browser", True),
        ("pytestmark = pytest.mark.pure\n", "not pure and not browser", False),
        ("@pytest.mark.pure\ndef test_it(): ...\n", "not pure and not browser", True),
        ("def test_it(): ...\n", "pure", False),
        ("browser = pytest.mark.browser\n", "browser", True),
        ("pytestmark = [pytest.mark.pure, pytest.mark.browser]\n", "pure and not browser", False),
        ("pytestmark = [\n    pytest.mark.pure,\n]\n", "not pure", True),
        ("def test_it(): ...\n", "", True),
    ],
)
def test_it_reads_no_file_without_a_test_of_the_run(text: str, expression: str, may_hold: bool) -> None:
    assert choice.may_hold(text, expression) is may_hold


def test_it_refuses_to_run_twice_without_a_reason(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import pytest\n@pytest.mark.both_databases\ndef test_it(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "-c", str(ROOT / "pyproject.toml"), str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "test_it: both_databases takes one reason" in done.stderr + done.stdout


def settings_names() -> set[str]:
    """The environment variables that crowd/settings.py reads."""
    tree = ast.parse((ROOT / "crowd" / "settings.py").read_text())
    return {
        str(node.args[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id.startswith("env_")
        and isinstance(node.args[0], ast.Constant)
    }


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return document


def test_it_composes_the_grown_up_form(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {"proxy", "web", "worker", "beat", "watch", "migrate", "database", "broker"}
    # tests/journeys/servers/test_grown_up.py, test_watch.py and test_proxy.py of tests/journeys start these.
    assert services["watch"]["command"] == ["python", "manage.py", "watch"]
    for name, command in (("proxy", proxy.COMMAND), ("web", WEB), ("worker", WORKER), ("beat", BEAT)):
        assert tuple(services[name]["command"][: len(command)]) == command
    for name in ("web", "worker", "beat", "watch"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    for name in ("proxy", "web", "database", "broker"):
        assert services[name]["healthcheck"]["test"]
    mounts = {mount.split(":")[0] for service in services.values() for mount in service.get("volumes", [])}
    folders = {mount for mount in mounts if mount.startswith("./")}
    assert mounts - folders == set(compose["volumes"]) and all((ROOT / folder).exists() for folder in folders)


def test_it_composes_a_proxy_before_everything_that_is_reached_from_outside(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    [port] = services["proxy"]["ports"]
    # On the loopback address: TLS ends before it.
    assert port == "127.0.0.1:${PORT:-8000}:8000"
    command = services["proxy"]["command"]
    [mount] = services["proxy"]["volumes"]
    shipped = proxy.CONFIGURATION.relative_to(ROOT)
    assert mount == f"./{shipped}:{command[command.index('-c') + 1]}:ro"
    web = services["web"]["command"]
    assert f"server web:{web[-1].rpartition(':')[2]};" in proxy.CONFIGURATION.read_text()


def test_it_composes_with_variables_that_the_settings_read(compose: dict[str, Any]) -> None:
    known = settings_names() | set(settings_of_all()) | {"WEB_CONCURRENCY"}
    for name in ("web", "worker", "beat", "watch", "migrate"):
        assert set(compose["services"][name]["environment"]) <= known
    assert {"DATABASE_URL", "CELERY_BROKER_URL", "STORAGE_URL"} <= set(
        compose["services"]["web"]["environment"]
    )


def test_it_composes_without_a_secret_in_the_file(compose: dict[str, Any]) -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    for name in ("SECRET_KEY", "POSTGRES_PASSWORD"):
        assert re.search(rf"\$\{{{name}:\?", text), f"{name} must be demanded from the environment"
    assert str(compose["services"]["database"].get("ports", "")) == ""


def test_it_builds_an_image_that_does_not_run_as_root() -> None:
    text = (ROOT / "Dockerfile").read_text()
    users = re.findall(r"^USER (\S+)", text, re.MULTILINE)
    assert users and users[-1] not in {"root", "0"}
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        for path in source.split():
            if not path.startswith("--"):
                assert (ROOT / path).exists(), path
