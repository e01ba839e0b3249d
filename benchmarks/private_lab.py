"""A sound server of the virtual lab that a benchmark has to itself."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.lab.sound_server import LabSoundServer


@contextmanager
def lab_sound_server() -> Iterator[LabSoundServer]:
    """Starts one in a new folder and sets HARNESS_LAB to it; in the end stops it and deletes the folder."""
    folder = Path(tempfile.mkdtemp(prefix="vh-"))
    os.environ["HARNESS_LAB"] = str(folder)
    server = LabSoundServer(folder)
    try:
        state = {"environment": server.start(), "mqtt_host": "127.0.0.1", "mqtt_port": 0, "pids": {}}
        (folder / "lab.json").write_text(json.dumps(state), encoding="utf-8")
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
