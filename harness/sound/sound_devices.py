"""The sound devices of a host, listed by a child process."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from harness.base import places
from harness.model.errors import LabError, SoundError
from harness.sound.device_names import SoundDevice

LIST_LIMIT_S = 10.0


def sound_devices(sound_server: str) -> tuple[SoundDevice, ...]:
    """Every device that PortAudio finds on `system` or in the `virtual_lab`; SoundError when it finds no answer."""
    try:
        environment = {**os.environ, **places.sound_environment(sound_server)}
    except LabError as error:
        raise SoundError(error.what, remedy=error.remedy) from error
    try:
        done = subprocess.run(
            [sys.executable, "-m", "harness.sound.child", "devices"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIST_LIMIT_S,
            check=False,
            text=True,
        )
    except subprocess.TimeoutExpired as error:
        raise SoundError(
            f"the sound server does not answer within {LIST_LIMIT_S:.0f} s", remedy="It is frozen: restart it"
        ) from error
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise SoundError(f"the sound devices cannot be listed: {said[-1] if said else done.returncode}")
    return tuple(SoundDevice(*row) for row in json.loads(done.stdout))
