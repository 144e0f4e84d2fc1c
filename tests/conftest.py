"""Which database and which files a run uses, and the fixtures that several rooms share. Nothing here touches
var/.

pytest                              SQLite, in files of a temporary folder
pytest --database postgresql        a throwaway PostgreSQL (tests/services.py)
pytest --processes 3                in three processes (tests/run/workers.py)
"""

import gc
import os
import shutil
import ssl
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests import services, worlds
from tests.proofs.scale import Scale
from tests.run import budget, choice, databases, workers
from tests.run.guard import Service
from tests.services import WebServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from pytest_django import DjangoDbBlocker
    from pytest_django.fixtures import Settings

SETTINGS = (
    *("ALLOWED_HOSTS", "BASE_URL", "CELERY_BROKER_URL", "DATABASE_URL", "DEBUG", "LEGIBLE_VAR", "LOG_LEVEL"),
    *("SECRET_KEY", "STIMULUS_LEASE_S", "STORAGE_URL", "STUDY_DIRS", "PROLIFIC_TOKEN", "PROLIFIC_WORKSPACE"),
    *("PROLIFIC_PROJECT", "PROLIFIC_WEBHOOK_SECRET", "MTURK_PRODUCTION", "MTURK_QUEUE_URL"),
    *("STIMULUS_DEVICE", "STIMULUS_QUEUE", "MODEL_KEY"),
    *("HOURLY_FLOOR_CENTS", "SETTLE_CONFIRM_CENTS", "SECOND_PERSON_CENTS", "PAYOUT_GRACE_S"),
    *("ADDRESS_PLACES_MAX", "CACHE_URL", "CLOCK_FILE", "JOINS_PER_MINUTE", "UNVERIFIED_LEASE_S"),
)
# The time of an example says more about the machine than about the code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")
stack = pytest.StashKey[ExitStack]()
spent = pytest.StashKey[dict[str, float]]()
is_failed = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--database", choices=("sqlite", "postgresql"), default="sqlite", help="where rows are kept"
    )
    parser.addoption("--live", action="store_true", help="also run tests that need keys of a real platform")
    parser.addoption("--full", action="store_true", help="proofs in their full size, as make prove runs them")
    parser.addoption("--seed", type=int, default=0, help="another draw for the proofs")
    parser.addoption("--processes", type=int, default=0, help="run in so many processes; 0: in this one")
    parser.addoption("--seconds", metavar="FILE", help="write the CPU seconds of each test file there")
    parser.addoption("--long-seconds", metavar="FILE", help="write those of each long test there")
    parser.addoption("--fast", action="store_true", help="only files that were quick when last measured")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Settings are read once, so the database and the environment are ready before Django reads them."""
    config.stash[spent] = {}
    resources = config.stash[stack] = ExitStack()
    kept = resources.enter_context(worlds.prepared())
    folder = Path(tempfile.mkdtemp(prefix="legible-test-"))
    resources.callback(shutil.rmtree, folder, ignore_errors=True)
    for name in SETTINGS:
        os.environ.pop(name, None)
        os.environ.pop(f"{name}_FILE", None)
    # Most tests send people of whom no platform was asked; those about their share set it.
    os.environ["UNVERIFIED_PERCENT"] = "100"
    if config.getoption("--database") == "postgresql":
        database_url = resources.enter_context(services.postgres()).url("legible")
    else:
        database_url = f"sqlite:///{folder / 'legible.sqlite3'}"
    os.environ.update(
        {
            "DATABASE_URL": database_url,
            "STORAGE_URL": str(kept / "store"),
            "LEGIBLE_VAR": str(folder),
            "SECRET_KEY": "only-for-tests",
            "DJANGO_SETTINGS_MODULE": "crowd.settings",
            databases.FOLDER_VARIABLE: str(folder),
            worlds.FOLDER_VARIABLE: str(kept),
        }
    )
    import django.conf

    assert django.conf.settings.DATABASES  # loads them, so that pytest-django sees a configured project


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Counts the CPU seconds of a test; processes that it started count once they have ended, a browser at
    once."""
    has_browser = item.get_closest_marker("browser") is not None
    before = budget.spent_s(with_living=has_browser)
    outcome = yield
    item.config.stash[spent][item.nodeid] = max(0.0, budget.spent_s(with_living=has_browser) - before)
    return outcome


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    config = session.config
    processes = config.getoption("--processes")
    if not processes or config.option.collectonly or session.testsfailed:
        return None
    groups = workers.groups_of(session.items, choice.measured())
    workers.Run(session, groups, config.stash[spent]).main(processes)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    return True


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    config.stash[is_failed] = session.testsfailed > 0
    file = config.getoption("--seconds")
    if file:
        # Files whose tests were all left out (long ones) cost a whole run nothing.
        files = dict.fromkeys(budget.files_of_tests(), 0.0) | seconds_of_files(config)
        measured = budget.Measurement(files, budget.loop_s())
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text(measured.text())
    file = config.getoption("--long-seconds")
    if file:
        # The tests of one database are added to those of the other.
        before = budget.Measurement.read(Path(file).read_text()).seconds if Path(file).exists() else {}
        Path(file).parent.mkdir(exist_ok=True)
        measured = budget.Measurement({**before, **seconds_of_long(session)}, budget.loop_s())
        Path(file).write_text(measured.text("long test"))


def seconds_of_long(session: pytest.Session) -> dict[str, float]:
    """CPU seconds of each function whose cases, or some of them, are long: those of its long cases."""
    functions: defaultdict[str, float] = defaultdict(float)
    for item in session.items:
        if item.get_closest_marker("long"):
            functions[item.nodeid.partition("[")[0]] += session.config.stash[spent].get(item.nodeid, 0.0)
    return dict(functions)


def seconds_of_files(config: pytest.Config) -> dict[str, float]:
    """CPU seconds by test file, and those of collecting them."""
    files: defaultdict[str, float] = defaultdict(float)
    for test, seconds in config.stash[spent].items():
        files[test.partition("::")[0]] += seconds
    return dict(files)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Core-seconds by room, if the run was in several processes."""
    if not config.getoption("--processes"):
        return
    files = seconds_of_files(config)
    together = sum(os.times()[:4])
    terminalreporter.section("core-seconds by room")
    terminalreporter.write_line(budget.table(files, together - sum(files.values())))


def pytest_unconfigure(config: pytest.Config) -> None:
    resources = config.stash.get(stack, None)
    if resources is not None:
        kept = worlds.folder()
        resources.close()
        if kept and config.stash.get(is_failed, False):
            worlds.remove(kept)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files without a test of this run are not even imported: their libraries cost seconds in each worker."""
    if not collection_path.name.startswith("test_") or collection_path.suffix != ".py":
        return None
    if config.getoption("--fast") and not choice.is_fast(collection_path):
        return True
    chosen = choice.may_hold(collection_path.read_text(), config.getoption("markexpr"))
    return None if chosen else True


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Nearly all that is made while tests are collected stays: looking for what may go was a third of it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        # From the start of the process: all that is imported is imported for it.
        session.config.stash[spent][budget.COLLECTION] = time.process_time()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that need a GPU or a real platform are left out (counted as deselected) if there is none."""
    refuse_marks_without_reason(items)
    left_out = [item for item in items if not is_possible(config, item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def refuse_marks_without_reason(items: list[pytest.Item]) -> None:
    """Running twice takes minutes, so `both_databases` says what the database may decide; and `sqlite_only`
    why PostgreSQL may not decide it. `long` names the shorter test of the same code (tests/run/choice.py)."""
    for item in items:
        for mark in item.iter_markers("long"):
            if mark.args or set(mark.kwargs) != {"stays"}:
                raise pytest.UsageError(
                    f"{item.nodeid}: long names the shorter test of the same code that make test runs, as in "
                    f'long(stays="test_it_is_drawn"), not {mark.args or mark.kwargs or "nothing"}.'
                )
        for name in ("both_databases", "sqlite_only"):
            for mark in item.iter_markers(name):
                if mark.kwargs or len(mark.args) != 1 or not str(mark.args[0]).strip():
                    raise pytest.UsageError(
                        f'{item.nodeid}: {name} takes one reason, as in {name}("locks"), '
                        f"not {mark.args or 'nothing'}."
                    )


def is_possible(config: pytest.Config, item: pytest.Item) -> bool:
    if item.get_closest_marker("live") and not config.getoption("--live"):
        return False
    if item.get_closest_marker("full") and not config.getoption("--full"):
        return False
    if item.get_closest_marker("gpu"):
        import torch

        return torch.cuda.is_available()
    return True


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None,
    django_db_blocker: "DjangoDbBlocker",
    django_db_modify_db_settings: None,
    middleware_loaded_once: None,
    run_folder: Path,
) -> Iterator[None]:
    """A migrated database for this worker alone; pytest-django would run the migrations in each worker.

    SQLite lies in a file: threads and other processes then meet the same locks as in a deployment.
    """
    from django.conf import settings
    from django.db import connection
    from django.test import TransactionTestCase

    from tests.rendered import drawn_once

    worker = os.environ.get(workers.WORKER_VARIABLE, "main")
    databases.use(databases.new_database(settings.DATABASE_URL, run_folder, f"test-{worker}"))
    with pytest.MonkeyPatch.context() as patch, drawn_once(), django_db_blocker.unblock():
        # A million rounds for each account that a test makes would be a third of its time.
        patch.setattr(settings, "PASSWORD_HASHERS", ["django.contrib.auth.hashers.MD5PasswordHasher"])
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda case: databases.empty(connection))
        yield
        connection.close()


@pytest.fixture(scope="session")
def run_folder() -> Path:
    """The folder of this run, removed at its end."""
    return Path(os.environ[databases.FOLDER_VARIABLE])


@pytest.fixture(scope="session", autouse=True)
def amazon_data_read_once() -> Iterator[None]:
    """Each client of Amazon reads megabytes of JSON that never change: half of the time of a short test."""
    from botocore import session
    from botocore.loaders import create_loader

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "create_loader", cache(create_loader))
        yield


@pytest.fixture(scope="session", autouse=True)
def authorities_read_once() -> Iterator[None]:
    """Each HTTP client reads all certificates of authorities: 25 ms, and a test of payments has several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


READ_BY_MIDDLEWARE = (
    "CSRF",
    "DEBUG",
    "MIDDLEWARE",
    "ROOT_URLCONF",
    "SECURE",
    "SESSION",
    "STATIC",
    "WHITENOISE",
)


@pytest.fixture(scope="session")
def middleware_loaded_once() -> Iterator[None]:
    """Each client of a test lists every static file: an eighth of a person's way to the first trial."""
    from django.conf import settings
    from django.core.handlers.base import BaseHandler
    from django.test.client import ClientHandler

    loaded: dict[str, dict[str, object]] = {}

    def load(handler: BaseHandler, is_async: bool = False) -> None:
        names = [name for name in dir(settings) if name.startswith(READ_BY_MIDDLEWARE)]
        key = repr([is_async, *((name, getattr(settings, name)) for name in names)])
        if key not in loaded:
            BaseHandler.load_middleware(handler, is_async)
            made = vars(handler).items()
            loaded[key] = {name: value for name, value in made if "_middleware" in name}
        vars(handler).update(loaded[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientHandler, "load_middleware", load, raising=False)
        yield


@pytest.fixture(scope="session")
def scale(pytestconfig: pytest.Config) -> Scale:
    """How much of a proof this run does, and with which draw."""
    return Scale(bool(pytestconfig.getoption("--full")), int(pytestconfig.getoption("--seed")))


@pytest.fixture
def store_folder(tmp_path: Path, settings: "Settings") -> Path:
    """A store for rendered files that no other test sees."""
    folder = tmp_path / "store"
    settings.STORAGE_URL = str(folder)
    return folder


@pytest.fixture
def fresh_database(request: pytest.FixtureRequest, run_folder: Path) -> Iterator[str]:
    """The URL of an empty, migrated database for processes other than this one: of the run's kind, or SQLite
    for what is `sqlite_only`."""
    is_sqlite = request.node.get_closest_marker("sqlite_only") is not None
    with databases.fresh(run_folder, "sqlite:" if is_sqlite else os.environ["DATABASE_URL"]) as url:
        yield url


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Redis of this worker alone."""
    with services.redis_server() as url:
        yield url


@pytest.fixture
def project_env(fresh_database: str, tmp_path: Path) -> dict[str, str]:
    """The environment for other processes that share the test's database, store and folder."""
    return {
        "DATABASE_URL": fresh_database,
        "STORAGE_URL": str(tmp_path / "store"),
        "LEGIBLE_VAR": str(tmp_path / "var"),
        "CELERY_BROKER_URL": "",
    }


@pytest.fixture
def celery_worker(
    project_env: dict[str, str], redis_url: str
) -> Callable[[], AbstractContextManager[Service]]:
    """Start a Celery worker on the world of `project_env`; the handle's `kill()` is kill -9."""
    project_env["CELERY_BROKER_URL"] = redis_url
    return partial(services.celery_worker, project_env)


@pytest.fixture
def served(project_env: dict[str, str]) -> Iterator[WebServer]:
    """The production web server on the world of `project_env`."""
    with services.web_server(project_env) as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    """One headless Chromium for the whole run. Playwright leaves a loop running in this thread, beside which
    tests may read rows: nothing else runs in it."""
    from tests.run.chromium import open_browser

    with pytest.MonkeyPatch.context() as patch, open_browser() as opened:
        # Not by the environment: other processes would inherit it, and a deployment warns of it.
        patch.setattr("django.utils.asyncio.get_running_loop", no_loop)
        yield opened


def no_loop() -> None:
    raise RuntimeError("no running event loop")


@pytest.fixture
def page(browser: "Browser") -> Iterator["Page"]:
    """A page of a fresh browser context, as a new participant has it."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    try:
        yield context.new_page()
    finally:
        context.close()
