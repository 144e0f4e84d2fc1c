"""A Chromium over its debugging pipe: for what Playwright does not reach, such as frames that we begin."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.run.chromium import flags

PATIENCE_S = 60.0


class Cdp:
    """Commands and events of the DevTools protocol, as JSON texts that end with a zero byte."""

    def __init__(self, program: str, words: Sequence[str], profile: str, env: dict[str, str]) -> None:
        theirs_in, self._out = os.pipe()
        ours_in, theirs_out = os.pipe()

        def connect() -> None:
            # The pipes may have these very numbers: they are moved away first.
            ends = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        command = [program, *flags(), *words, "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            command,
            close_fds=False,
            preexec_fn=connect,
            env={**os.environ, **env},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in = os.fdopen(ours_in, "rb", buffering=0)
        self._count = 0
        self._replies: dict[int, dict[str, Any]] = {}
        self._came = threading.Condition()
        self.events: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def post(self, method: str, session: str = "", **params: Any) -> int:
        """Sends a command and does not wait for its reply."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        return self._count

    def send(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        return self.reply(self.post(method, session, **params), method)

    def reply(self, number: int, method: str = "") -> dict[str, Any]:
        with self._came:
            if not self._came.wait_for(lambda: number in self._replies, PATIENCE_S):
                raise TimeoutError(f"no reply to {method or number} within {PATIENCE_S:g} s")
            reply = self._replies.pop(number)
        if "error" in reply:
            raise RuntimeError(f"{method}: {reply['error']['message']}")
        return dict(reply["result"])

    def wait_for(self, method: str) -> None:
        """Until an event of that name has come."""
        with self._came:
            if not self._came.wait_for(lambda: any(e["method"] == method for e in self.events), PATIENCE_S):
                raise TimeoutError(f"no event {method} within {PATIENCE_S:g} s")

    def traced(self) -> list[dict[str, Any]]:
        """The events of the trace that has come."""
        parts = [e["params"]["value"] for e in self.events if e["method"] == "Tracing.dataCollected"]
        return [event for part in parts for event in part]

    def evaluate(self, session: str, expression: str) -> Any:
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        return self.send("Runtime.evaluate", session, **asked)["result"].get("value")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._out)

    def _read(self) -> None:
        rest = b""
        while read := self._in.read(1 << 16):
            *messages, rest = (rest + read).split(b"\0")
            with self._came:
                for text in messages:
                    message = json.loads(text)
                    if "id" in message:
                        self._replies[message["id"]] = message
                    else:
                        self.events.append(message)
                self._came.notify_all()


@contextmanager
def piped(program: str, *words: str, env: dict[str, str] | None = None) -> Iterator[Cdp]:
    """That program with a profile of its own, until the block ends."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        cdp = Cdp(program, words, profile, env or {})
        try:
            yield cdp
        finally:
            cdp.close()
