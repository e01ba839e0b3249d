"""A rater's terminal that is asked to end, or whose line is cut: nothing is lost, and the terminal is put right."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from harness.session.log.reader import rating_rows
from tests.conformance.rating.terminal import Hand, RatingTerminal
from tests.rating_sessions import rating_session

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


@pytest.mark.parametrize("asked", [signal.SIGHUP])
def test_a_signal_leaves_as_a_key_does(tmp_path: Path, asked: signal.Signals) -> None:
    session = rating_session(tmp_path / "s1", 4)
    folder = Path(tempfile.mkdtemp(prefix="vh-"))  # a socket's path has 107 bytes at most
    terminal = RatingTerminal(folder)
    try:
        terminal.rate(str(session), "--silent", "--rater", "ann")
        terminal.wait_position(lambda at: at == 1)
        Hand(terminal).press_until("1", lambda at: at == 2)
        os.kill(terminal.pid, asked)
        assert terminal.ended() == str(128 + asked)
        assert terminal.ask("display-message -p '#{alternate_on} #{mouse_any_flag}'") == ["0 0"]
        assert len(list(rating_rows(session))) == 1
    finally:
        terminal.close()
        shutil.rmtree(folder, ignore_errors=True)
