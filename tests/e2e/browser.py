"""Headless Chromium, driven through its debugging pipe: opens a page and queries it.

The protocol is https://chromedevtools.github.io/devtools-protocol/, one JSON object a message, each
ended by a zero byte; `--remote-debugging-pipe` reads it from descriptor 3 and answers on 4.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TIMEOUT_S = 300

_COMMAND = [
    *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--remote-debugging-pipe", "--window-size=1600,1000"),
]


class Page:
    """One tab."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._asked = 0
        self._rest = b""
        self._session: str | None = None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]

    def open(self, url: str) -> None:
        """Opens the page; returns when it is loaded, before its scripts have run."""
        self._call("Page.enable")
        assert "errorText" not in self._call("Page.navigate", url=url)

    def save_to(self, folder: Path) -> None:
        """Puts what the page downloads into the folder."""
        self._call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def ask(self, expression: str) -> Any:
        """The value of that JavaScript as JSON; of a promise, its result."""
        answer = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Waits until that JavaScript is true."""
        self.ask(
            "new Promise(done => {"
            f" const look = () => ({expression}) ? done(true) : setTimeout(look, 20); look() }})"
        )

    def _call(self, method: str, **params: Any) -> Any:
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        with open(os.dup(self._to), "wb") as pipe:
            pipe.write(json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            told = self._next(deadline)
            if told.get("id") == self._asked:
                assert "error" not in told, told
                return told["result"]

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            left = deadline - time.monotonic()
            assert select.select([self._from], [], [], max(left, 0))[0], "no answer from Chromium"
            got = os.read(self._from, 1 << 16)
            assert got, "Chromium has ended"
            self._rest += got
        one, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(one)
        return told


@contextmanager
def page(profile: Path) -> Iterator[Page]:
    """A tab of a new Chromium with its files in `profile`; both end with the block."""
    its_in, to_browser = os.pipe()
    from_browser, its_out = os.pipe()
    command = ["bash", "-c", f'exec "$@" 3<&{its_in} 4>&{its_out}', "bash", *_COMMAND]
    process = subprocess.Popen(
        [*command, f"--user-data-dir={profile}"],
        pass_fds=(its_in, its_out),
        stderr=subprocess.DEVNULL,
    )
    os.close(its_in)
    os.close(its_out)
    try:
        yield Page(to_browser, from_browser)
    finally:
        # It ends, with its own processes, when the pipe is closed.
        os.close(to_browser)
        os.close(from_browser)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
