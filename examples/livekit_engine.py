#!/usr/bin/env python3
"""livekit-wakeword as an engine: `harness evaluate -t 'process:python3 examples/livekit_engine.py house.onnx' …`."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from livekit.wakeword import WakeWordModel

STEP, WINDOW = 1280, 25 * 1280  # the package's listener scores 2 s every 80 ms, each anew
PHRASE = Path(sys.argv[1]).stem
model = WakeWordModel(models=[sys.argv[1]])


def say(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


say(protocol=1, name="livekit-wakeword", version=version("livekit-wakeword"), kind="wake", rate_hz=16000,
    phrases=[PHRASE], scores={"threshold": 0.5, "step": STEP})  # fmt: skip
for line in sys.stdin.buffer:
    head = json.loads(line)
    if "begin" in head:
        sound, end = np.zeros(0, np.int16), WINDOW
    elif "samples" in head:
        sound = np.append(sound, np.frombuffer(sys.stdin.buffer.read(2 * head["samples"]), "<i2"))
        while len(sound) >= WINDOW:
            say(phrase=PHRASE, end=end, scores=[float(model.predict(sound[:WINDOW])[PHRASE])])
            sound, end = sound[STEP:], end + STEP
    else:
        say(done=head["end"])
