#!/usr/bin/env python3
"""From sound to intents and slots: `harness understand predict -t 'process:python3 examples/frame_engine.py' …`.

It stands for your system: replace `understand`. This one tells two cities apart by how loud the sound is.
"""

import array
import json
import sys


def understand(samples):
    """samples: 16 bits, 16 kHz, of a whole file."""
    loudest = max(map(abs, samples), default=0)
    return {"intents": ["book"], "slots": [{"concept": "city", "value": "nice" if loudest > 9000 else "brest"}]}


def say(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


say(protocol=1, name="loud-cities", version="1.0", kind="frame", rate_hz=16000)
for line in sys.stdin.buffer:
    head = json.loads(line)
    if "begin" in head:
        samples = array.array("h")
    elif "samples" in head:
        samples.frombytes(sys.stdin.buffer.read(2 * head["samples"]))
    else:
        say(**understand(samples))
        say(done=head["end"])
