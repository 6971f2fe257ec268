"""A headless Chromium, spoken to over two pipes in its own protocol: no driver, no port, no package."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-extensions",
    "--disable-sync",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-default-apps",
    "--remote-debugging-pipe",
)
PATIENCE_S = 60.0

WIDTHS, SCHEMES = (400, 1400), ("light", "dark")
LEAST_CONTRAST = 4.5  # of text to its ground, WCAG 2 level AA
CONTRASTS = """(() => {
  const channel = c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = rgb => 0.2126 * channel(rgb[0]) + 0.7152 * channel(rgb[1]) + 0.0722 * channel(rgb[2]);
  const numbers = text => text.match(/[0-9.]+/g).map(Number);
  const ground = element => {
    for (let each = element; each; each = each.parentElement) {
      const found = numbers(getComputedStyle(each).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest('title, desc, defs')) continue;
    const style = getComputedStyle(element);
    const ink = numbers(element.closest('svg') ? style.fill : style.color);
    const [a, b] = [light(ink), light(ground(element))];
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), walker.currentNode.data.trim()]);
  }
  return found.sort((a, b) => a[0] - b[0]).slice(0, 3);
})()"""
OUTSIDE = """[...document.querySelectorAll('body *')].filter(each => {
  const box = each.getBoundingClientRect();
  return box.width > 0 && box.right > innerWidth + 1 && !each%s('%s');
}).map(each => each.outerHTML.slice(0, 200))"""
SCROLLED = OUTSIDE % (".closest", ".scroll, .drawing, pre, .skip, .heard")


class Browser:
    """One Chromium; `tab` opens a page in it."""

    def __init__(self, profile: Path) -> None:
        program = next(filter(None, map(shutil.which, NAMES)), None)
        assert program, "the browser tests need Chromium: apt-get install chromium"
        hears, self._say = os.pipe()
        self._hear, speaks = os.pipe()
        far = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 64) for end in (hears, speaks)]  # away from 3 and 4 themselves
        quiet = profile / "chromium.log"
        actions = [
            (os.POSIX_SPAWN_DUP2, far[0], 3),
            (os.POSIX_SPAWN_DUP2, far[1], 4),
            (os.POSIX_SPAWN_OPEN, 1, str(quiet), os.O_WRONLY | os.O_CREAT, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        arguments = [program, *OPTIONS, f"--user-data-dir={profile}"]
        self._process = os.posix_spawn(program, arguments, os.environ, file_actions=actions, setpgroup=0)
        for end in (hears, speaks, *far):
            os.close(end)
        self._held, self._number = b"", 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        """Ends the browser and everything it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._say)
        os.close(self._hear)

    def call(self, method: str, session: str | None = None, /, **params: Any) -> dict[str, Any]:
        """One command, and its answer; what the browser tells meanwhile is kept in `events`."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._say, json.dumps(message).encode() + b"\0")
        for answer in self._messages(PATIENCE_S):
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)
        raise AssertionError(f"Chromium did not answer {method} in {PATIENCE_S:g} s")

    def wait_for(self, session: str, method: str) -> dict[str, Any]:
        """The first event of this kind that a tab tells from here on."""
        told = len(self.events)
        for number, event in enumerate(itertools.chain(self.events[:], self._messages(PATIENCE_S))):
            if number >= told:
                self.events.append(event)
            if event.get("sessionId") == session and event.get("method") == method:
                return event
        raise AssertionError(f"Chromium did not tell {method} in {PATIENCE_S:g} s")

    def _messages(self, patience: float) -> Iterator[dict[str, Any]]:
        end = time.monotonic() + patience
        while True:
            while b"\0" in self._held:
                whole, _, self._held = self._held.partition(b"\0")
                yield json.loads(whole)
            ready, _, _ = select.select([self._hear], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return
            got = os.read(self._hear, 1 << 20)
            assert got, "Chromium went away"
            self._held += got

    def tab(self) -> Tab:
        """A new empty page that tells what it loads and what it complains about."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        return Tab(self, session, target)


@dataclass
class Tab:
    """One page of a browser."""

    browser: Browser
    session: str
    target: str
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def open(self, path: Path, *, width: int = 1400, scheme: str = "light") -> Tab:
        """Loads a file at this width, in the light or the dark."""
        self.browser.events.clear()
        mobile = width < 600
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=mobile)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.browser.wait_for(self.session, "Page.loadEventFired")
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        self._hear()
        return self

    def _hear(self) -> None:
        self.requests, self.complaints = [], []
        for event in self.browser.events:
            method, params = event.get("method"), event.get("params", {})
            if event.get("sessionId") != self.session:
                continue
            if method == "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                self.complaints.append(params["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                self.complaints.append(str(params["args"]))
            elif method == "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"]))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command to this page."""
        return self.browser.call(method, self.session, **params)

    def run(self, script: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def check(self, path: Path, width: int, scheme: str, outside: str = SCROLLED) -> None:
        """Opens a page and fails unless it is quiet, asks for nothing, keeps its width and can be read."""
        self.open(path, width=width, scheme=scheme)
        assert (self.complaints, self.requests) == ([], [path.resolve().as_uri()])
        assert self.run("innerWidth") == width
        assert self.run("document.documentElement.scrollWidth") <= width
        assert self.run(outside) == []
        worst = self.run(CONTRASTS)
        assert worst[0][0] >= LEAST_CONTRAST, worst

    def pdf(self) -> bytes:
        """The page as it prints on A4."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])
