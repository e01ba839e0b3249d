"""Makes the pictures of this folder from the real thing: the demonstration in the virtual lab, and boards over a wire.

    .venv/bin/python docs/pictures/make.py                  # all; takes about six minutes
    .venv/bin/python docs/pictures/make.py wake             # the wake screen; needs `make -C firmware_stubs`
    .venv/bin/python docs/pictures/make.py scoring          # the page of scored transcripts; needs chromium only
    .venv/bin/python docs/pictures/make.py understanding    # a run with intents and slots
    .venv/bin/python docs/pictures/make.py demo             # the dashboard, and judging on it

Needs tmux, chromium and mosquitto. The dashboard runs in a private tmux of 120×36. The screen is drawn as SVG, cell
by cell, and chromium turns the SVG into PNG.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from html import escape
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.style import Style
from rich.text import Text

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HARNESS = Path(sys.executable).with_name("harness")
CHROMIUM = shutil.which("chromium") or "chromium-headless-shell"  # the latter is what the tests install
COLUMNS, ROWS = 120, 36
CELL_WIDTH, CELL_HEIGHT, MARGIN, FONT_SIZE = 9.0, 19.0, 14.0, 15
FOREGROUND, BACKGROUND = "#d9dfe7", "#13171c"
FULL_HEIGHT = {"█": (0.0, 1.0), "▀": (0.0, 0.5), "▄": (0.5, 1.0)}
EIGHTHS_UP, EIGHTHS_RIGHT = " ▁▂▃▄▅▆▇", " ▏▎▍▌▋▊▉"


class Terminal:
    """A shell in a tmux of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")
        self._call("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "sh")

    def _call(self, *arguments: str) -> str:
        return subprocess.run(
            ["tmux", "-S", self._socket, *arguments], check=True, capture_output=True, text=True
        ).stdout

    def type(self, *keys: str) -> None:
        self._call("send-keys", *keys)

    def text(self) -> str:
        return self._call("capture-pane", "-p")

    def coloured(self) -> str:
        return self._call("capture-pane", "-p", "-e", "-N")

    def wait(self, predicate: Callable[[str], object], within_s: float = 240.0) -> None:
        limit = time.monotonic() + within_s
        while not predicate(self.text()):
            if time.monotonic() > limit:
                sys.exit(f"the screen did not show it in time:\n{self.text()}")
            time.sleep(0.05)

    def close(self) -> None:
        self._call("kill-server")


def block(character: str, x: float, y: float, colour: str) -> str | None:
    """A block character as a rectangle without seams; None for a character that a font draws."""
    left, right, (top, bottom) = 0.0, 1.0, FULL_HEIGHT.get(character, (0.0, 1.0))
    if character in EIGHTHS_UP[1:]:
        top = 1 - EIGHTHS_UP.index(character) / 8
    elif character in EIGHTHS_RIGHT[1:]:
        right = EIGHTHS_RIGHT.index(character) / 8
    elif character == "▐":
        left = 0.5
    elif character not in FULL_HEIGHT:
        return None
    return rectangle(x + left * CELL_WIDTH, y + top * CELL_HEIGHT, right - left, bottom - top, colour)


def rectangle(x: float, y: float, columns: float, rows: float, colour: str) -> str:
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{columns * CELL_WIDTH:.2f}" '
        f'height="{rows * CELL_HEIGHT:.2f}" fill="{colour}"/>'
    )


class Cell(NamedTuple):
    """A character of the screen, its colours, and other attributes of its SVG text."""

    character: str
    colour: str
    background: str
    attributes: str


def cells(line: Text) -> Iterator[Cell]:
    console = Console(width=COLUMNS, color_system="truecolor", force_terminal=True)
    for segment in line.render(console):
        style = segment.style or Style()
        colour = style.color.get_truecolor().hex if style.color and not style.color.is_default else FOREGROUND
        background = style.bgcolor.get_truecolor().hex if style.bgcolor and not style.bgcolor.is_default else BACKGROUND
        if style.reverse:
            colour, background = background, colour
        attributes = ' font-weight="bold"' if style.bold else ""
        attributes += ' text-decoration="line-through"' if style.strike else ""
        for character in segment.text:
            if character != "\n":
                yield Cell(character, colour, background, attributes)


def svg(coloured: str) -> str:
    """The screen as SVG; every character has its own cell."""
    width, height = COLUMNS * CELL_WIDTH + 2 * MARGIN, ROWS * CELL_HEIGHT + 2 * MARGIN
    backs, fronts = [], []
    for row, line in enumerate(coloured.splitlines()[:ROWS]):
        y = MARGIN + row * CELL_HEIGHT
        for column, cell in enumerate(cells(Text.from_ansi(line))):
            x = MARGIN + column * CELL_WIDTH
            if cell.background != BACKGROUND:
                # A little larger than a cell, so that no seam shows between two.
                backs.append(rectangle(x, y, 1.03, 1.03, cell.background))
            if cell.character.isspace():
                continue
            position = f'x="{x:.2f}" y="{y + 0.76 * CELL_HEIGHT:.2f}" fill="{cell.colour}"'
            text = f"<text {position}{cell.attributes}>{escape(cell.character)}</text>"
            fronts.append(block(cell.character, x, y, cell.colour) or text)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'font-family="DejaVu Sans Mono, monospace" font-size="{FONT_SIZE}" shape-rendering="crispEdges">'
    )
    return "\n".join([head, f'<rect width="100%" height="100%" fill="{BACKGROUND}"/>', *backs, *fronts, "</svg>"])


def picture(coloured: str, target: Path, folder: Path) -> None:
    source = folder / f"{target.stem}.svg"
    source.write_text(svg(coloured), encoding="utf-8")
    photograph(source, target, round(COLUMNS * CELL_WIDTH + 2 * MARGIN), round(ROWS * CELL_HEIGHT + 2 * MARGIN), folder)


def photograph(source: Path, target: Path, width: int, height: int, folder: Path) -> None:
    """Writes a page or an SVG as chromium draws it; width and height in pixels. folder: for chromium's profile."""
    subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
            f"--user-data-dir={folder / 'chromium'}", f"--window-size={width},{height}", "--hide-scrollbars",
            f"--screenshot={target}", source.as_uri(),
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    sys.stdout.write(f"{target}: {target.stat().st_size / 1000:.0f} kB\n")


def shows(words: str, screen: str) -> bool:
    return words in screen


def finished(screen: str) -> int:
    """How many trials are finished, by the progress line; -1 if the screen shows none."""
    progress_lines = [line for line in screen.splitlines() if " trials, " in line]
    return int(progress_lines[0].split(" of ")[0].split()[-1]) if progress_lines else -1


def response_just_kept(screen: str) -> bool:
    return finished(screen) >= 8 and "our transcription: “" in screen and "set_timer" in screen


@contextmanager
def boards(folder: Path) -> Iterator[Path]:
    """Starts two posix boards, on a serial port and over MQTT; returns their bench file."""
    board = ROOT / "firmware_stubs" / "build" / "posix" / "vh_board"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    bench = (ROOT / "scenarios" / "benches" / "boards.yaml").read_text(encoding="utf-8")
    bench = bench.replace("/tmp/vh-board", str(folder / "board")).replace("18830", str(port))
    path = folder / "boards.yaml"
    path.write_text(bench, encoding="utf-8")
    with ExitStack() as running:
        for command in (
            ["mosquitto", "-p", str(port)],
            [str(board), "--pty", str(folder / "board")],
            [str(board), "--pty", str(folder / "board-mqtt"), "--device", "radio", "--mqtt", f"127.0.0.1:{port}"],
        ):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            running.callback(process.wait)
            running.callback(process.terminate)
            time.sleep(0.5)  # the broker before the board that wants it
        yield path


def wake_picture(folder: Path) -> None:
    """The wake screen when most of a session on boards is played, and two events are reviewed."""
    terminal = Terminal(folder)
    try:
        with boards(folder) as bench:
            run = [str(HARNESS), "run", "scenarios/wake_boards.yaml", "--bench", str(bench)]
            terminal.type(f"clear; {shlex.join([*run, '--sessions', str(folder / 'sessions')])}", "Enter")
            terminal.wait(lambda screen: finished(screen) >= 235, within_s=900)
            terminal.type("d")
            terminal.wait(partial(shows, "done"))
            screen = terminal.coloured()
            terminal.type("w", "a")
            terminal.wait(partial(shows, "Abort this session?"))
            terminal.type("y")
            terminal.wait(partial(shows, "The engine has ended"))
            terminal.type("C-q")
            terminal.wait(partial(shows, "session folder:"))
    finally:
        terminal.close()
    picture(screen, HERE / "wake.png", folder)


def understanding_picture(folder: Path) -> None:
    """The run screen when a query was understood at its second attempt."""
    os.environ["HARNESS_LAB"] = str(folder / "lab")
    settings = "scenarios/lab/understanding_assistant.yaml"
    subprocess.run(
        [str(HARNESS), "admin", "lab", "up", "--assistant-settings", settings],
        check=True,
        capture_output=True,
        cwd=ROOT,
    )
    terminal = Terminal(folder)
    try:
        files = ["scenarios/understanding.yaml", "--bench", "scenarios/benches/virtual_lab.yaml"]
        run = [str(HARNESS), "run", *files, "--sessions", str(folder / "sessions")]
        terminal.type(f"cd {shlex.quote(str(ROOT))} && clear && {shlex.join(run)}", "Enter")
        terminal.wait(lambda screen: "Last frame, ×2: timer.l" in screen and "×1 ≠" in screen, within_s=400)
        terminal.wait(partial(shows, "(our transcription)"))
        screen = terminal.coloured()
        terminal.type("a")
        terminal.wait(partial(shows, "Abort this session?"))
        terminal.type("y")
        terminal.wait(partial(shows, "The engine has ended"))
        terminal.type("C-q")
        terminal.wait(partial(shows, "session folder:"))
    finally:
        terminal.close()
        subprocess.run([str(HARNESS), "admin", "lab", "down"], check=True, capture_output=True)
    picture(screen, HERE / "understanding-run.png", folder)


def scoring_picture(folder: Path) -> None:
    """The page of scored transcripts: a recogniser's output for sentences without noise and with a little."""
    ids: list[str] = []
    for name in ("reference", "whisper"):
        lines = (ROOT / "tests" / "data" / "asr" / f"{name}.trn").read_text(encoding="utf-8").splitlines(keepends=True)
        # benchmarks/asr_texts.py adds no noise to six sentences of two dozen, and noise 20 dB below to the next six.
        little_noise = [line for line in lines if _place_in_two_dozen(line) < 12]
        (folder / f"{name}.trn").write_text("".join(little_noise), encoding="utf-8")
        ids = [line.rpartition("(")[2].rstrip(")\n") for line in little_noise]
    rows = [f"{id_},{'quiet' if _place_in_two_dozen(id_) < 6 else 'pink 20 dB'}\n" for id_ in ids]
    (folder / "conditions.csv").write_text("".join(["id,noise\n", *rows]), encoding="utf-8")
    files = ["-r", "reference.trn", "-H", "whisper.trn", "--normalise", "spoken", "--html", "report.html"]
    groups = ["--groups", "conditions.csv"]
    subprocess.run([str(HARNESS), "score", *files, *groups], check=True, capture_output=True, cwd=folder)
    photograph(folder / "report.html", HERE / "scoring.png", 1100, 1330, folder)


def _place_in_two_dozen(line: str) -> int:
    """The place of a sentence in its two dozen; an id, also at the end of a line, ends in the sentence's number."""
    return int(line.rstrip(")\n")[-4:]) % 24


def demo_pictures(folder: Path) -> None:
    """The dashboard while a query plays, and the judging of the responses that were kept."""
    terminal = Terminal(folder)
    terminal.type(f"clear; {shlex.join([str(HARNESS), 'init', 'demo', '--sessions', f'{folder}/sessions'])}", "Enter")
    try:
        terminal.wait(lambda screen: finished(screen) == 2)
        terminal.type("s")
        terminal.wait(partial(shows, "Why?"))
        terminal.type("-l", "a door slammed")
        terminal.type("Enter")
        terminal.wait(response_just_kept)
        run = terminal.coloured()
        terminal.type("j")
        for judged in range(3):
            terminal.wait(partial(shows, f"Judging {judged} of"))
            terminal.type("1")
        terminal.wait(partial(shows, "Judging 3 of"))
        time.sleep(0.5)  # the notice of the last key
        rating = terminal.coloured()
        terminal.type("Escape")
        terminal.wait(partial(shows, "pause"))
        terminal.type("a")
        terminal.wait(partial(shows, "Abort this session?"))
        terminal.type("y")
        terminal.wait(partial(shows, "The engine has ended"))
        terminal.type("C-q")
        terminal.wait(lambda screen: "session folder:" in screen or "results:" in screen)
        time.sleep(2.0)  # the lab goes down
    finally:
        terminal.close()
    picture(run, HERE / "dashboard.png", folder)
    picture(rating, HERE / "rating.png", folder)


PICTURES = {
    "scoring": scoring_picture,
    "understanding": understanding_picture,
    "wake": wake_picture,
    "demo": demo_pictures,
}


def main(pictures: Mapping[str, Callable[[Path], None]]) -> None:
    """Makes the pictures that the command line names, else all of them."""
    for name in sys.argv[1:] or pictures:
        with tempfile.TemporaryDirectory(prefix="vh") as folder:
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", HARNESS_RUNTIME=folder)
            pictures[name](Path(folder))


if __name__ == "__main__":
    main(PICTURES)
