"""The proxy as it is shipped: Debian's nginx with deploy/nginx.conf before a web server of the run.

If no nginx is installed, Debian's package is unpacked into the environment's folder: installing it would also
start a server of its own.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from tests.run.databases import only_one
from tests.run.guard import Plan, Service, ServiceFailed
from tests.services import (
    ATTEMPTS,
    ROOT,
    WebServer,
    bare_env,
    free_port,
    is_answering,
    new_folder,
    server_user,
)

CONFIGURATION = ROOT / "deploy" / "nginx.conf"
COMMAND = ("nginx", "-e", "stderr")
UNPACKED = ROOT / ".venv" / "nginx"
PLACES = ("/usr/sbin", "/usr/local/sbin", str(UNPACKED / "usr" / "sbin"))


def find_nginx() -> str | None:
    """The program is executed, because its libraries may be missing."""
    for folder in (os.environ.get("PATH", os.defpath), *PLACES):
        program = shutil.which("nginx", path=folder)
        if program and subprocess.run([program, "-v"], capture_output=True).returncode == 0:
            return program
    return None


def unpack_nginx() -> str:
    """Fetches Debian's package; returns what went wrong."""
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        return "this machine has no apt-get."
    with tempfile.TemporaryDirectory() as folder:
        # Only root may bring the lists of packages up to date, and only a machine without lists needs it.
        subprocess.run(["apt-get", "update", "-qq"], capture_output=True)
        done = subprocess.run(
            ["apt-get", "download", "-qq", "nginx"], cwd=folder, capture_output=True, text=True
        )
        for package in Path(folder).glob("nginx_*.deb"):
            done = subprocess.run(["dpkg", "-x", package, UNPACKED], capture_output=True, text=True)
    return done.stderr.strip()[-300:]


def nginx_program() -> str:
    """The path of an nginx that runs."""
    with only_one(ROOT / ".venv" / "nginx.lock"):
        program = find_nginx()
        problem = "" if program else unpack_nginx()
    program = program or find_nginx()
    if program is None:
        raise ServiceFailed(
            "The tests of the proxy need nginx, and none was found or could be fetched: apt install nginx.\n"
            f"apt-get said: {problem}"
        )
    return program


def configured(port: int, web: str) -> str:
    """The shipped file with other addresses and nothing else changed."""
    text = CONFIGURATION.read_text()
    for shipped, here in (
        ("listen 8000;", f"listen 127.0.0.1:{port};"),
        ("server web:8000;", f"server {urlsplit(web).netloc};"),
    ):
        assert text.count(shipped) == 1, shipped
        text = text.replace(shipped, here)
    return text


@contextmanager
def proxy_before(web: str) -> Iterator[WebServer]:
    """nginx on a free port before the server at this address, run by the command of docker-compose.yml."""
    program = nginx_program()
    for attempt in range(1, ATTEMPTS + 1):
        port = free_port()
        service, url = start_nginx(program, configured(port, web)), f"http://127.0.0.1:{port}"
        try:
            service.wait_until(partial(is_answering, f"{url}/healthz", service))
            break
        except ServiceFailed as problem:
            if attempt == ATTEMPTS or "bind()" not in str(problem):
                raise
    try:
        yield WebServer(url, service)
    finally:
        service.stop()


def start_nginx(program: str, configuration: str) -> Service:
    user = server_user()
    folder = new_folder("nginx", user)
    file, log = Path(folder, "nginx.conf"), Path(folder, "log")
    file.write_text(configuration)
    log.touch()
    if user:
        shutil.chown(log, user)  # The access log opens standard output once more.
    # The checkout may lie where only its owner may read, and nginx runs as another user.
    program = shutil.copy(program, folder)
    command = [program, *COMMAND[1:], "-p", f"{folder}/", "-c", str(file)]
    return Service(Plan(folder=folder, command=command, env=bare_env(), cwd=folder, user=user))
