"""`ensue top` on a terminal: what it draws of a cluster, and that it gives the terminal back however it ends."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading

import pytest
from cluster import binary, ensue, wait_until

COLUMNS, ROWS = 120, 40
LEAVES_SCREEN = b"\x1b[?1049l"


class Terminal:
    """A pseudo-terminal with `ensue top` on it, and everything that was written on it."""

    def __init__(self, *words):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.written = b""
        self.process = subprocess.Popen(
            [binary(), "top", *map(str, words)], stdin=self.slave, stdout=self.slave, stderr=self.slave,
            start_new_session=True, env={**os.environ, "TERM": "xterm-256color"},
        )
        self.closing = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with contextlib.suppress(OSError):
            while not self.closing.is_set():
                if select.select([self.master], [], [], 0.1)[0]:
                    self.written = self.written + os.read(self.master, 65536)

    def text(self):
        """Everything that was drawn, without the sequences that move and paint."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", self.written.decode(errors="replace"))

    def type(self, keys):
        os.write(self.master, keys)

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def end(self, timeout=20):
        """The exit code; the terminal is as it was."""
        code = self.process.wait(timeout)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is as it was"
        wait_until(lambda: LEAVES_SCREEN in self.written, 5, "the screen is given back")
        return code

    def close(self):
        self.process.kill()
        self.process.wait()
        # Whoever still read would read what the next terminal of this number gets.
        self.closing.set()
        self.reader.join()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def terminal():
    with contextlib.ExitStack() as stack:
        def start(*words):
            made = Terminal(*words)
            stack.callback(made.close)
            return made

        yield start


def test_it_shows_the_datacenters_and_q_ends_it(clean, terminal):
    shown = terminal("--port", clean.port)
    with clean.client(1) as client:
        def rates_are_shown():
            client.set("top", "v")
            return re.search(r"string\s+[0-9.]+\s+[0-9]+", shown.text())

        wait_until(rates_are_shown, 20, "commands have a rate")
    text = shown.text()
    for words in ("dc1/0", "dc2/0", "dc3/0", "ready", "links of dc1/0", "commands of dc1/0", "arrows choose"):
        assert words in text, text
    assert shown.is_raw()
    begin = len(shown.written)
    shown.type(b"\x1b[B")
    wait_until(lambda: b"dc2" in shown.written[begin:], 10, "the second datacenter is chosen")
    shown.type(b"q")
    assert shown.end() == 0


def test_a_cut_link_is_red_and_named(dev, terminal):
    cluster = dev(delay="5ms", datacenters=2)
    cluster.link(1, 2, "cut")
    shown = terminal(f"127.0.0.1:{cluster.port}")
    wait_until(lambda: "the link to dc2 is down" in shown.text(), 20, "the reason is shown")
    wait_until(lambda: re.search(r"dc2\s+down", shown.text()), 20, "the link is down")
    shown.type(b"\x03")
    assert shown.end() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(terminal, number):
    # Nobody answers there, and that is shown, too.
    shown = terminal("127.0.0.1:1")
    wait_until(lambda: "no answer" in shown.text(), 20, "it is drawn")
    assert shown.is_raw()
    shown.process.send_signal(number)
    assert shown.end() == 0


def test_what_is_no_terminal_is_said_plainly(clean):
    done = ensue("top", "--port", clean.port)
    assert done.returncode == 1
    assert "draws on a terminal" in done.stderr and "ensue status" in done.stderr
    assert done.stdout == ""
