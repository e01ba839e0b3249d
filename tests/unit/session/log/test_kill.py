"""A writer that is killed at any moment loses nothing that it acknowledged."""

import subprocess
import sys
from pathlib import Path

from harness.model.record import NoteWritten, ResponseFrozen
from harness.session.log.reader import LogReader, check

KILLS = 100

# One process imports everything once, then forks a writer for each kill: the writer's acknowledgements go into a pipe.
NURSERY = """
import os, random, signal, sys, threading, time
from pathlib import Path
import numpy as np
from harness.session.log.writer import SqliteLog
from harness.model.record import NoteWritten, ResponseFrozen
from harness.model.stimulus import Waveform
from harness.model.time import Stamp

def write(folder, kill, out):
    log = SqliteLog(folder)
    sound = Waveform(np.linspace(-0.5, 0.5, 4800, dtype=np.float32), 48000)
    def notes(name):
        number = 0
        while True:
            text = f"{kill}-{name}-{number}"
            log.append(NoteWritten(text=text, by="t"))
            os.write(out, f"note {text}\\n".encode())
            number += 1
    def clips():
        while True:
            clip = log.save_clip(sound, 0.0)
            log.append(ResponseFrozen("t", 1, 1, clip, Stamp(0.0), Stamp(0.1)))
            os.write(out, f"clip {clip.name}\\n".encode())
    for target, args in ((notes, ("a",)), (notes, ("b",)), (clips, ())):
        threading.Thread(target=target, args=args, daemon=True).start()
    signal.pause()

folder, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(seed)
for kill in range(kills):
    into, out = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(into)
        try:
            write(folder, kill, out)
        finally:
            os._exit(9)
    os.close(out)
    said = os.read(into, 1)  # the first acknowledgement: from here on, any moment will do
    time.sleep(chance.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    while piece := os.read(into, 65536):
        said += piece
    os.close(into)
    os.waitpid(child, 0)
    sys.stdout.write(said.decode())
"""


def test_100_kills_lose_no_acknowledged_row(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NURSERY, str(tmp_path), str(KILLS), "7"],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    acknowledged = set(found.stdout.splitlines())
    assert len({line.split(" ")[1].split("-")[0] for line in acknowledged if line.startswith("note")}) > KILLS * 0.9
    stored: list[str] = []
    with LogReader(tmp_path) as reader:
        for entry in reader.entries():
            match entry.record:
                case NoteWritten(text=text):
                    stored.append(f"note {text}")
                case ResponseFrozen(clip=clip):
                    stored.append(f"clip {clip.name}")
    assert acknowledged <= set(stored)
    assert len(stored) == len(set(stored))
    findings = check(tmp_path)
    assert findings.damage == ()
    assert findings.rows == len(stored)
