"""A rater's app in a real terminal (tmux), driven by keys from another process."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
APART_S = 0.15
"""The same key sooner than this is one that is held down."""
REFUSED_S = 1.0
"""A refusal that still stands after this is of the last key, and no picture of the one before."""
TOO_FAST = "too fast"
"""What the app says to a key that came before the response was drawn: a robot reads half a screen."""
_POSITION = re.compile(r"(?:Judging|Settling) item (\d+) of (\d+)")


def position_of(screen: str) -> int | None:
    """Of the item on a screen; None when there is none."""
    match = _POSITION.search(screen)
    return int(match[1]) if match else None


class RatingTerminal:
    """A tmux of its own; commands go to it over one connection, so that a key costs no new process."""

    def __init__(self, folder: Path, size: tuple[int, int] = (80, 24), term: str = "xterm-256color") -> None:
        self._socket = str(folder / "tmux")
        self._term = term
        width, height = map(str, size)
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, "exec cat")
        for option, value in (("remain-on-exit", "on"), ("window-size", "manual"), ("escape-time", "0")):
            self._tmux("set-option", "-g", option, value)
        self._tmux("resize-window", "-x", width, "-y", height)
        self._client = subprocess.Popen(
            ["tmux", "-S", self._socket, "-C", "attach"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._answer()

    def start(self, *command: str) -> None:
        """Runs a program in the pane, in place of what runs there."""
        shown = f"cd {shlex.quote(str(ROOT))} && TERM={self._term} exec {shlex.join(command)}"
        self._tmux("respawn-pane", "-k", shown)

    def rate(self, *arguments: str) -> None:
        """Runs `harness rate`."""
        self.start(str(Path(sys.executable).with_name("harness")), "rate", *arguments)

    @property
    def pid(self) -> int:
        """Of the program in the pane."""
        return int(self.ask("display-message -p '#{pane_pid}'")[0])

    def ended(self, within_s: float = 60.0) -> str:
        """Waits for the program's end by itself; its exit status."""
        limit_s = time.monotonic() + within_s
        self.gone(within_s)
        # tmux may miss that a program is to be asked how it ended, until another child of its own has ended as well.
        while not (status := self.ask("display-message -p '#{pane_dead_status}'")[0]):
            assert time.monotonic() < limit_s, f"a signal ended it:\n{self.screen()}"
            self.ask("run-shell true")
        return status

    def gone(self, within_s: float = 30.0) -> None:
        """Waits until the program is no more, however it ended."""
        limit_s = time.monotonic() + within_s
        while self.ask("display-message -p '#{pane_dead}'")[0] != "1":
            assert time.monotonic() < limit_s, f"it goes on:\n{self.screen()}"
            time.sleep(0.01)

    def type(self, key: str) -> None:
        self.ask(f"send-keys {'Space' if key == ' ' else shlex.quote(key)}")

    def screen(self) -> str:
        return "\n".join(self.ask("capture-pane -p"))

    def position(self) -> int | None:
        """Of the item on the screen; None when there is none."""
        return position_of(self.screen())

    def wait(self, predicate: Callable[[str], object], within_s: float = 90.0) -> str:
        """The first screen for which it holds."""
        limit_s = time.monotonic() + within_s
        while not predicate(screen := self.screen()):
            assert time.monotonic() < limit_s, f"it did not come about in time:\n{screen}"
            time.sleep(0.01)
        return screen

    def wait_position(self, holds: Callable[[int | None], bool], within_s: float = 90.0) -> int | None:
        return position_of(self.wait(lambda screen: holds(position_of(screen)), within_s))

    def close(self) -> None:
        self._tmux("kill-server")
        self._client.wait(5.0)
        for pipe in (self._client.stdin, self._client.stdout):
            if pipe is not None:
                pipe.close()

    def ask(self, command: str) -> list[str]:
        """A tmux command's answer."""
        assert self._client.stdin is not None
        self._client.stdin.write(f"{command}\n".encode())
        self._client.stdin.flush()
        return self._answer()

    def _answer(self) -> list[str]:
        assert self._client.stdout is not None
        lines: list[str] | None = None
        for raw in self._client.stdout:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            if line.startswith("%begin "):
                lines = []
            elif line.startswith(("%end ", "%error ")) and lines is not None:
                return lines
            elif lines is not None:
                lines.append(line)
        raise AssertionError("tmux is gone")

    def _tmux(self, *arguments: str) -> None:
        subprocess.run(["tmux", "-S", self._socket, *arguments], check=True, capture_output=True)


@contextmanager
def opened_terminal(term: str = "xterm-256color") -> Iterator[RatingTerminal]:
    """A terminal in a short folder of its own, since a socket's path has 107 bytes at most; closed at the end."""
    with tempfile.TemporaryDirectory(prefix="vh-", ignore_cleanup_errors=True) as folder:
        terminal = RatingTerminal(Path(folder), term=term)
        try:
            yield terminal
        finally:
            terminal.close()


class Hand:
    """Presses keys as a person does: not the same key faster than a keyboard repeats it, and again when told so."""

    def __init__(self, terminal: RatingTerminal) -> None:
        self._terminal = terminal
        self._last, self._last_s = "", 0.0

    def press(self, key: str) -> None:
        if key == self._last:
            time.sleep(max(0.0, self._last_s + APART_S - time.monotonic()))
        self._terminal.type(key)
        self._last, self._last_s = key, time.monotonic()

    def press_until(self, key: str, holds: Callable[[int | None], bool], within_s: float = 90.0) -> None:
        """… until the item that is wanted is on the screen."""
        self.press_for(key, lambda screen: holds(position_of(screen)), within_s)

    def press_for(self, key: str, holds: Callable[[str], object], within_s: float = 90.0) -> None:
        """… until the screen is as wanted; again when it came too fast, as a robot reads what is hardly drawn."""
        self.press(key)
        limit_s = time.monotonic() + within_s
        while not holds(screen := self._terminal.screen()):
            assert time.monotonic() < limit_s, f"it did not come about in time:\n{screen}"
            if TOO_FAST in screen and time.monotonic() > self._last_s + REFUSED_S:
                self.press(key)
            time.sleep(0.01)
