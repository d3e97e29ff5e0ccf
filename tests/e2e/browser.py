"""A page in Chromium without a window, driven by its DevTools protocol: JSON over two pipes, a zero byte after each."""

import json
import os
import signal
import subprocess


class Page:
    """One page, until the block ends."""

    def __init__(self, program, directory, url):
        to_it, self.commands = os.pipe()
        self.answers, from_it = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4.
        words = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        words += ["--remote-debugging-pipe", f"--user-data-dir={directory}/profile"]
        with open(f"{directory}/browser.log", "wb") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", f'exec "$@" 3<&{to_it} 4>&{from_it}', "bash", *words], pass_fds=(to_it, from_it),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )
        os.close(to_it)
        os.close(from_it)
        self.unread = b""
        self.last = 0
        self.session = None
        # What the page did wrong by the browser's account: scripts that failed, what a policy refused, lost files.
        self.complaints = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Its own processes, too.
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)

    def says(self, expression):
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def call(self, method, **parameters):
        self.last += 1
        command = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self.read()
            if message.get("id") == self.last:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self.note(message)

    def note(self, event):
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"])
        if event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(parameters["entry"])

    def read(self):
        while b"\0" not in self.unread:
            more = os.read(self.answers, 1 << 16)
            assert more, "the browser has ended"
            self.unread += more
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)
