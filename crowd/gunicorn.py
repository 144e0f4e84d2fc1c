"""Configuration of gunicorn, which itself reads WEB_CONCURRENCY for the number of processes.

Threads, because a slow client would hold a whole sync process; no query strings in the log, because they
carry the platform's outside identities. Slow clients are the proxy's part (deploy/nginx.conf).
"""

from crowd.ground.processes import end_with_parent

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
access_log_format = '%(h)s "%(m)s %(U)s" %(s)s %(b)s %(M)s ms'
control_socket_disable = True


def post_fork(server: object, worker: object) -> None:
    end_with_parent()
