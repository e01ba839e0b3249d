"""Speech engines that are programs: run without a shell, with a time limit, their faults as VoiceError."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from harness.model.errors import VoiceError


def found(program: str, remedy: str) -> str:
    """The path of a program; VoiceError with the remedy when it is not installed."""
    path = shutil.which(program)
    if path is None:
        raise VoiceError(f"{program} is not installed", remedy=remedy)
    return path


def run(argv: Sequence[str], text: str = "", *, timeout_s: float = 60.0, good: tuple[int, ...] = (0,)) -> bytes:
    """What the program writes to stdout when it reads the text, as UTF-8, on stdin.

    good: the exit statuses of success. VoiceError, with the first words of its stderr, when the program cannot start,
    fails, is killed or takes longer than timeout_s (then it is ended).
    """
    try:
        done = subprocess.run(
            list(argv),
            input=text.encode(),
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env=os.environ | {"LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired as error:
        raise VoiceError(f"{argv[0]} did not finish within {timeout_s:g} s", remedy="Give it a shorter text") from error
    except OSError as error:
        raise VoiceError(f"{argv[0]} cannot be started: {error.strerror}", remedy="Check its installation") from error
    if done.returncode not in good:
        said = " ".join(done.stderr.decode(errors="replace").split())[:300]
        ended = f"was ended by signal {-done.returncode}" if done.returncode < 0 else f"failed ({done.returncode})"
        raise VoiceError(f"{argv[0]} {ended}: {said or 'it gave no reason'}")
    return done.stdout
