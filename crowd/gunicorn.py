"""Configuration of gunicorn, which itself reads WEB_CONCURRENCY for the number of processes.

Threads, because a slow client would hold a whole sync process; no query strings in the log, because they
carry the platform's outside identities. Slow clients are the proxy's part (deploy/nginx.conf).
"""

import re
from typing import Any

from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from crowd.ground.child_process_end import end_with_parent


class Discreet(Logger):  # type: ignore[misc]
    """The server's log, without what may not stand there: login links, and query strings, which carry the
    platforms' identities."""

    def atoms(self, *args: Any) -> dict[str, Any]:
        atoms: dict[str, Any] = super().atoms(*args)
        if str(atoms["U"]).startswith("/enter/"):
            atoms["U"] = "/enter/"
        return atoms

    def warning(self, msg: object, *args: Any, **kwargs: Any) -> None:
        """Of requests that cannot be read, the text repeats the address."""
        shown = re.sub(r"/enter/\S*", "/enter/", re.sub(r"\?\S*", "?", str(msg)))
        super().warning(shown, *args, **kwargs)


bind = "127.0.0.1:8000"
worker_class = "gthread"
threads = 4
timeout = 60
graceful_timeout = 20
keepalive = 15
forwarded_allow_ips = "127.0.0.1"
# Headers by which a proxy moves an application to another path; a client could send them too.
forwarder_headers = ""
accesslog = "-"
logger_class = Discreet
access_log_format = '%(h)s "%(m)s %(U)s" %(s)s %(b)s %(M)s ms'
control_socket_disable = True


def post_fork(server: object, worker: object) -> None:
    end_with_parent()
