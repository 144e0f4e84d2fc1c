"""What the production server writes down of requests."""

from __future__ import annotations

import re
import socket

import httpx
import pytest

from tests import services

pytestmark = pytest.mark.django_db(transaction=True)


def test_no_log_holds_a_login_link_or_a_query_string(server_env: dict[str, str]) -> None:
    """Also of requests that it cannot read."""
    with services.web_server(server_env) as server:
        httpx.get(f"{server.url}/enter/a-token-of-a-person/")
        httpx.get(f"{server.url}/join/no-study/?person=5f0secret&submission=s1")
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as odd:
            odd.sendall(b"GET /join/x/?person=5f0secret HTTP/9.9\r\n\r\n")
            while odd.recv(4096):
                pass
        log = server.service.log()
    assert '"GET /enter/"' in log and '"GET /join/no-study/"' in log and "Invalid request" in log
    assert not re.search("a-token-of|5f0secret", log), log
