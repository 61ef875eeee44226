"""A headless browser, driven through its remote-debugging protocol over a pipe: two descriptors and JSON, no
library."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find():
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One browser with one tab. Records everything that a page must not cause: requests, error messages, exceptions."""

    def __init__(self, program, width=1400, height=900, timeout=30):
        self.timeout, self.buffer, self.events, self.last = timeout, b"", [], 0
        self.profile = tempfile.mkdtemp()
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-extensions",
            "--disable-background-networking",
            "--remote-debugging-pipe",
            "--user-data-dir=" + self.profile,
            f"--window-size={width},{height}",
        ]
        # The protocol's descriptors are 3 and 4.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}', program, *flags, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.session = None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (AssertionError, OSError):
            self.process.kill()
        self.process.wait(10)
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive(method)
            if answer.get("id") == self.last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def receive(self, what):
        deadline = time.monotonic() + self.timeout
        while b"\0" not in self.buffer:
            ready = select.select([self.into], [], [], max(0, deadline - time.monotonic()))[0]
            part = os.read(self.into, 1 << 20) if ready else b""
            assert part, f"the browser {'ended' if ready else 'does not answer'}: {what}"
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, path):
        """Loads a file and waits until it is drawn."""
        self.events.clear()
        self.url = "file://" + path
        self.call("Page.navigate", url=self.url)
        self.evaluate("new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))")
        self.frame()

    def frame(self):
        """Waits until pending drawing is done."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer.get('exceptionDetails')}"
        return answer["result"].get("value")

    def mouse(self, kind, x, y, **parameters):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **parameters)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)
        self.frame()

    def misdeeds(self):
        """Requests other than the page itself, errors on the console, and exceptions."""
        self.frame()
        bad = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Network.requestWillBeSent" and parameters["request"]["url"] != self.url:
                bad.append("request of " + parameters["request"]["url"])
            elif method == "Runtime.exceptionThrown":
                bad.append("exception: " + json.dumps(parameters["exceptionDetails"])[:2000])
            elif method == "Runtime.consoleAPICalled":
                bad.append("console: " + json.dumps(parameters["args"])[:500])
            elif method == "Log.entryAdded":
                bad.append("log: " + parameters["entry"]["text"])
            elif method in ("Page.javascriptDialogOpening", "Page.frameRequestedNavigation"):
                bad.append(method)
        return bad
