"""The raters' site in a process of its own, as `harness rate --web` starts it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.model.judgment import Judgment, in_force
from harness.model.record import JudgmentGiven
from harness.session.log.reader import rating_rows
from harness.web.invitations import Invitations
from tests.conformance.engine_runs import wait_for
from tests.ports import free_port

HARNESS = Path(sys.executable).with_name("harness")


class SiteProcess:
    """Over one session folder; it is started again on the same port. raters: who is invited. tokens: by rater."""

    VERB: tuple[str, ...] = ("rate",)

    def __init__(self, session: Path, *options: str, raters: Sequence[str] = ("ann", "bob")) -> None:
        self.session = session
        self.file = session.parent / "invitations.json"
        self.tokens = Invitations(self.file).invite(raters, 1)
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._output = session.parent / "site.txt"
        self._port = str(free_port())
        self.url = ""

    def start(self) -> None:
        command = [HARNESS, *self.VERB, self.session, "--web", "--web-port", self._port, "--invitations", self.file]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen([*map(str, command), *self._options], stdout=output, stderr=output)
        wait_for(lambda: not self.running or "Ctrl-C" in self.told, 60.0, "the site's start")
        match = re.search(r"(https?://\S+?:[0-9]+) ", self.told)
        assert match is not None, self.told
        self.url = match[1]

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def told(self) -> str:
        return self._output.read_text()

    def invitation(self, name: str) -> str:
        return f"{self.url}/login#{self.tokens[name]}"

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(20)

    def stop(self, signum: signal.Signals = signal.SIGTERM) -> int:
        """Its exit status."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signum)
        return self._process.wait(20)

    def rows(self, rater: str) -> list[Judgment]:
        """What is on the disk of a rater's, oldest first."""
        judgments = [
            entry.record.judgment for entry in rating_rows(self.session) if isinstance(entry.record, JudgmentGiven)
        ]
        return [row for row in judgments if row.rater == rater]

    def standing(self, rater: str) -> tuple[Judgment, ...]:
        return in_force(self.rows(rater))
