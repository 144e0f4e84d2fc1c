"""Many respondents at once, each on its own kept-alive connection, in one cheap process.

Run as `python -m benchmarks.load PLAN`: PLAN is a JSON file {"host", "port", "people": [[request, ...], ...]}
with the text of whole HTTP/1.1 requests. A respondent sends the next one when the last is answered.
Prints JSON: wall_s, cpu_s, statuses, latencies_ms.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any


class Respondent(asyncio.Protocol):
    """One connection. Replies carry Content-Length, as all of ours do."""

    def __init__(self, requests: list[bytes], latencies_ms: list[float], statuses: Counter[str]) -> None:
        self.requests: Iterator[bytes] = iter(requests)
        self.latencies_ms, self.statuses = latencies_ms, statuses
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.received, self.sent_at = b"", 0.0
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def send(self) -> None:
        request = next(self.requests, None)
        if request is None:
            self.finished.set_result(None)
            return
        self.sent_at = time.perf_counter()
        self.transport.write(request)

    def data_received(self, part: bytes) -> None:
        self.received += part
        head, blank_line, body = self.received.partition(b"\r\n\r\n")
        if not blank_line:
            return
        at = head.lower().index(b"content-length:") + 15
        if len(body) < int(head[at:].partition(b"\r\n")[0]):
            return
        self.latencies_ms.append((time.perf_counter() - self.sent_at) * 1000)
        self.statuses[head[9:12].decode()] += 1
        self.received = b""
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.finished.done():
            self.finished.set_exception(error or ConnectionError("the server closed a connection"))


async def run(host: str, port: int, people: list[list[bytes]]) -> dict[str, Any]:
    """Connects all respondents, then lets them begin at once."""
    loop, latencies_ms, statuses = asyncio.get_running_loop(), list[float](), Counter[str]()
    everybody = [Respondent(requests, latencies_ms, statuses) for requests in people]
    for respondent in everybody:
        await loop.create_connection(partial(lambda each: each, respondent), host, port)
    start, cpu = time.perf_counter(), time.process_time()
    for respondent in everybody:
        respondent.send()
    await asyncio.gather(*(respondent.finished for respondent in everybody))
    return {
        "wall_s": time.perf_counter() - start,
        "cpu_s": time.process_time() - cpu,
        "statuses": statuses,
        "latencies_ms": latencies_ms,
    }


if __name__ == "__main__":
    plan = json.loads(Path(sys.argv[1]).read_text())
    requests = [[text.encode() for text in person] for person in plan["people"]]
    print(json.dumps(asyncio.run(run(plan["host"], plan["port"], requests))))
