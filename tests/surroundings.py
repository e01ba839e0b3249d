"""Surroundings in which a command may find itself: streams that are closed, full or gone, a folder that was removed, …

`python -m tests.surroundings [--sample]` runs every command in each of them (the sample: in one or two) and prints
those that break: that end with a traceback or, although no limit failed, with status 1. The commands are forked from
one process that has imported what they need, so that a thousand of them cost two minutes of processor time.
"""

from __future__ import annotations

import io
import os
import pty
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TextIO

from harness import cli
from tests.judged_sessions import answers, store_session
from tests.unit.cli.walking import commands

LIMIT_S = 120.0
OURS_IS_BROKEN = 99
LONG = "n" * 300
COMMANDS = """
demo --help | init new | doctor | help run | | rehearse st/scenario.yaml --bench st/bench.yaml
validate st | run st/scenario.yaml --bench st/bench.yaml --prepare | run PATH --bench st/bench.yaml
resume s1 | resume PATH | run resume | attach s1 | attach | show s1 | show s1 --json | show PATH | trend . | trend PATH
run stop s1 | run stop | effects s1 | effects PATH | memory s1 | export s1 --json | export s1 --junit -
export s1 --prometheus - | pack s1 --output new.zip | pack PATH | unpack PATH | redact s1 clip --span 0:1 --reason x
purge . | purge PATH | devices discover --seconds 0 | devices learn-earcon PATH | devices list
devices monitor vh_board | devices monitor PATH | devices move st/bench.yaml a 1 | devices power st/bench.yaml a on
devices test
devices test PATH | rate s1 | rate s1 --plain | rate PATH | categories s1 | agreement s1
judgments export s1 --csv - | judgments import s1 r.trn | judgments import s1 PATH | invite ann
evaluate -t energy -i PATH | evaluate -t energy -i - | mix PATH --background PATH --output new | engines
merge PATH --log new.log | report PATH | report page s1 --html new.html | compare s1 s2 | compare PATH PATH
offline s1 --task energy | plan --fr 5% --fa 1 | score -r r.trn -H r.trn | score -r PATH -H r.trn
score -r - -H r.trn | snor r.trn --output-format lsn | snor --output-format lsn | snor PATH --output-format lsn
understanding score s1 | understanding score -r PATH -H PATH | understanding merge PATH
understanding distribution PATH
understanding generate PATH --output new | understanding split PATH --output new
understanding train --data PATH --output new | understanding predict --model PATH
understanding bench --data PATH | understanding speak PATH --voices espeak:en-us --output new
understanding cascade s1 | annotate new PATH --data PATH --labels PATH
annotate propose PATH | annotate review PATH | annotate status PATH | annotate report PATH
annotate agreement PATH | annotate import PATH PATH | annotate export PATH --output new | lab up --room none
lab down | lab log | lab status | calibrate st/bench.yaml x | sound check --speaker x --microphone y | sound list
sound record PATH -o new --talker x | sound recordings PATH | voices list | voices say hi --output new.wav
schema | schema --kind device --output new | validate PATH | check sound --speaker x --microphone y
"""
IMPORTED = (
    "harness.session.engine.prepare", "harness.report.session", "harness.rating.files.rounds", "harness.web.server",
    "harness.annotation.project_creation", "harness.understanding.reports", "harness.offline.device_link",
    "scipy.stats", "harness.cli.understanding.models", "rapidfuzz", "wave", "xml.etree.ElementTree",
)  # fmt: skip


def _redirect(descriptor: int, path: str, flags: int) -> None:
    """Opens a file as this descriptor."""
    opened_fd = os.open(path, flags)
    if opened_fd != descriptor:
        os.dup2(opened_fd, descriptor)
        os.close(opened_fd)


def _fill(*descriptors: int) -> None:
    for descriptor in descriptors:
        _redirect(descriptor, "/dev/full", os.O_WRONLY)


def _lose_terminal() -> None:
    ours, theirs = pty.openpty()
    for descriptor in (0, 1, 2):
        os.dup2(theirs, descriptor)
    os.close(theirs)
    os.close(ours)


def _remove_folder() -> None:
    os.mkdir("removed")
    os.chdir("removed")
    os.rmdir("../removed")


def _become_nobody() -> None:
    """A user without a name or a home, as in a container."""
    for name in ("HOME", "USER", "LOGNAME", "LNAME", "USERNAME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        os.environ.pop(name, None)
    if os.getuid() == 0:
        os.setresuid(54321, 0, 0)  # the real user has no name; files stay open to the effective one


PLAIN = "nothing"
SURROUNDINGS: dict[str, Callable[[], object]] = {
    PLAIN: lambda: None,
    "stdin closed": lambda: os.close(0),
    "stdout closed": lambda: os.close(1),
    "stderr closed": lambda: os.close(2),
    "all closed": lambda: os.closerange(0, 3),
    "stdout full": lambda: _fill(1),
    "stderr full": lambda: _fill(2),
    "both full": lambda: _fill(1, 2),
    "terminal gone": _lose_terminal,
    "folder removed": _remove_folder,
    "12 files": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12)),
    "nobody": _become_nobody,
}
PATHS = {"a long name": LONG, "a link to itself": "loop", "no end": "/dev/zero", "U+202E": "a\u202eb"}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. status: None for one that was still running after LIMIT_S."""

    status: int | None
    output: str
    errors: str

    def broken(self, place: str, plain: Callable[[], Ended]) -> str:
        """What is wrong with it; "" where nothing is. plain: how it ends without these surroundings."""
        if "Traceback" in self.errors or "a bug in the harness" in self.errors:
            return self.errors.strip().splitlines()[-1]
        if "\u202e" in self.output + self.errors:
            return "U+202E reaches the terminal"
        if self.status not in (0, 2, 3, 130) and self.status != plain().status:
            return f"status {self.status}"
        if place == "stdout full" and self.status == 0 and plain().output:
            return "status 0 although its output is lost"
        return ""


def run(arguments: list[str], surroundings: Callable[[], object], folder: Path) -> Ended:
    """Runs `harness ARGUMENTS` in a child, in the folder. Kills it after LIMIT_S."""
    child = os.fork()
    if child == 0:
        _become(arguments, surroundings, folder)
    deadline_s = time.monotonic() + LIMIT_S
    ended, wait_status = os.waitpid(child, os.WNOHANG)
    while not ended and time.monotonic() < deadline_s:
        time.sleep(0.002)
        ended, wait_status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    output, errors = ((folder / name).read_text("utf-8", errors="replace") for name in ("stdout", "stderr"))
    return Ended(os.waitstatus_to_exitcode(wait_status) if ended else None, output, errors)


def _become(arguments: list[str], surroundings: Callable[[], object], folder: Path) -> None:
    """Makes of this forked process what the interpreter makes of a new one, and runs the command in it."""
    status: object = OURS_IS_BROKEN
    try:
        os.setsid()
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        _redirect(0, os.devnull, os.O_RDONLY)
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            _redirect(descriptor, name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        surroundings()
        streams = (_stream(0, "r"), _stream(1, "w"), _stream(2, "w"))
        sys.stdin, sys.stdout, sys.stderr = streams  # type: ignore[assignment]
        sys.argv = ["harness", *arguments]
        try:
            cli.main()
        except SystemExit as leaving:
            status = leaving.code or 0
        except BaseException:  # noqa: BLE001 (what the interpreter would do)
            traceback.print_exc()
            status = 1
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    finally:
        os._exit(status if isinstance(status, int) else 1)


def _stream(descriptor: int, mode: str) -> TextIO | None:
    try:
        os.fstat(descriptor)
    except OSError:
        return None
    raw = io.FileIO(descriptor, mode, closefd=False)  # open() would ask a terminal, which may be gone, for its place
    if mode == "r":
        return io.TextIOWrapper(io.BufferedReader(raw), "utf-8")
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", line_buffering=descriptor == 2)


def _combinations(*, sample: bool) -> Iterator[tuple[str, str, list[str], Callable[[], object]]]:
    """Name of the surroundings, the command, its words, and what makes the surroundings."""
    every_command = [line.strip() for line in COMMANDS.strip().replace("\n", " | ").split("|")]
    for number, command in enumerate(every_command):
        surroundings = sorted(set(SURROUNDINGS) - {PLAIN})
        if sample and command not in ("show s1", "score -r - -H r.trn"):
            names = list(SURROUNDINGS)[1:]
            surroundings = [names[number % len(names)]]
        for name in surroundings:
            yield name, command, command.replace("PATH", LONG).split(), SURROUNDINGS[name]
        if "PATH" in command.split():
            kinds = list(PATHS)
            for kind in [kinds[number % len(kinds)]] if sample else kinds:
                yield kind, command, command.replace("PATH", PATHS[kind]).split(), SURROUNDINGS[PLAIN]


def main(*, sample: bool) -> int:
    """Prints the commands that break, and how many were tried; the exit status."""
    every = [name for name, command in commands(cli.group)][1:]
    left_out = {name for name in every if name.split()[1] not in cli.FORMER}
    for name in IMPORTED:
        import_module(name)
    broken = tried = 0
    with tempfile.TemporaryDirectory(prefix="vh-") as name:
        root = Path(name)
        os.environ |= {"HARNESS_LAB": str(root / "lab"), "HARNESS_RUNTIME": str(root / "run")}
        for session in ("s1", "s2"):
            store_session(root / session, answers(2), session)
        (root / "r.trn").write_text("turn it on (a1)\n")
        (root / "loop").symlink_to("loop")
        assert run(["init", "st"], SURROUNDINGS[PLAIN], root).status == 0
        for place, command, words, surroundings in _combinations(sample=sample):
            plain = partial(run, command.replace("PATH", "missing").split(), SURROUNDINGS[PLAIN], root)
            tried += 1
            current = " ".join(
                cli.FORMER.get(word, word) if index == 0 else word for index, word in enumerate(words)
            ).split()
            left_out -= {f"harness {' '.join(current[:count])}" for count in (1, 2, 3)}
            if wrong := run(words, surroundings, root).broken(place, plain):
                broken += 1
                sys.stdout.write(f"{place}: harness {command}: {wrong}\n")
    sys.stdout.write(f"{tried} tried, {broken} broken, left out: {', '.join(sorted(left_out)) or 'none'}\n")
    return 1 if broken or left_out else 0


if __name__ == "__main__":
    sys.exit(main(sample="--sample" in sys.argv))
