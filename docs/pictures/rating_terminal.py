"""Makes rating-terminal.png: a rater's terminal while a response plays, in a virtual lab of its own.

.venv/bin/python docs/pictures/rating_terminal.py            # a minute; needs tmux, chromium and pulseaudio
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from make import COLUMNS, ROWS, picture  # noqa: E402

from tests.conformance.lab_runs import lab_of_its_own  # noqa: E402
from tests.conformance.rating.terminal import RatingTerminal  # noqa: E402
from tests.rating_sessions import rating_session  # noqa: E402


def main() -> None:
    os.environ.update(COLORTERM="truecolor")
    with lab_of_its_own(), tempfile.TemporaryDirectory(prefix="vh") as name:
        folder = Path(name)
        session = rating_session(folder / "kitchen", 24, effects=True)
        terminal = RatingTerminal(folder, (COLUMNS, ROWS))
        try:
            terminal.rate(str(session), "--rater", "ann", "--seed", "4")
            terminal.wait(lambda screen: "item 1 of 24" in screen)
            for key, number in zip("162", (2, 3, 4), strict=True):
                terminal.type(key)
                time.sleep(2.0)  # a pace that people have
                terminal.wait_position(lambda position, number=number: position == number)  # type: ignore[misc]
            while "pause the timer" not in terminal.screen():
                judged = terminal.position()
                terminal.type("5" if (judged or 0) % 2 else "1")
                terminal.wait_position(lambda position, judged=judged: position != judged)  # type: ignore[misc]
            for key in ("t", "k", "k", "s"):
                terminal.type(key)
            terminal.wait(lambda screen: "0.9 of" in screen and "slower" in screen)
            screen = "\n".join(terminal.ask("capture-pane -p -e -N"))
        finally:
            terminal.close()
        picture(screen, HERE / "rating-terminal.png", folder)


if __name__ == "__main__":
    main()
