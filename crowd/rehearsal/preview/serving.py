"""The server of a preview, on this machine alone, and the empty world that it shows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.apps import apps
from django.conf import settings
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.db import connection
from django.urls import clear_url_caches

from crowd.rehearsal import networks
from crowd.rehearsal.preview import urls
from crowd.rehearsal.preview.drafts import Preview
from crowd.rehearsal.preview.pages import pages_of
from stimuli.store import MemoryStore, open_store
from stimuli.store.media_access import use_store
from stimuli.store.read_through import TRAINED, ReadThrough

LOOPBACK = "127.0.0.1"


class QuietHandler(WSGIRequestHandler):
    """Writes no log: addresses hold the token."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def make_world(real_store: str) -> None:
    """Tables in the empty database of the settings, without migrations, and a store in memory before the real
    one, which gets nothing but a network that had to be trained."""
    with connection.schema_editor() as editor:
        for model in apps.get_models():
            editor.create_model(model)
    scratch = MemoryStore()
    networks.lay_in(scratch)
    use_store(ReadThrough(open_store(real_store), scratch, TRAINED))


@contextmanager
def serving(preview: Preview, token: str, port: int = 0) -> Iterator[str]:
    """Serves the preview until the block ends; yields its address. Port 0 takes a free one."""
    from django.core.wsgi import get_wsgi_application

    urls.urlpatterns[:] = [*urls.FIXED, *pages_of(preview, token)]
    settings.ROOT_URLCONF = urls.__name__
    clear_url_caches()
    server = ThreadedWSGIServer((LOOPBACK, port), QuietHandler)
    server.set_app(get_wsgi_application())
    thread = threading.Thread(target=server.serve_forever, name="preview", daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_address[1]}/{token}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
