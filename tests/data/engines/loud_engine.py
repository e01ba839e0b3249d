#!/usr/bin/env python3
"""An engine for docs/engine-process.md: finds loud sounds. Standard library only; copy it and put yours in.

loud_engine.py                 served: one process for many files
loud_engine.py --once          bare sound on stdin until it ends, for `-s mode=once`
loud_engine.py --scores        the level of every 20 ms as a score, so that any operating point can be looked at
loud_engine.py --carries-state the score is the number of files so far, in hundredths
loud_engine.py --kind command  understands "loud" or nothing
loud_engine.py --kind frame    the intent "shout" for each loud sound, with how long it was
"""

import argparse
import array
import json
import sys

RATE_HZ = 16000
STEP = 320
PHRASE = "loud"


class Loudness:
    """The engine proper: sound in any pieces, lines out."""

    def __init__(self, options, files=100):
        self.options = options
        self.files = files
        self.rest = array.array("h")
        self.position = 0
        self.began = None

    def feed(self, content):
        self.rest.frombytes(content)
        while len(self.rest) >= STEP:
            self.step(self.rest[:STEP])
            self.rest = self.rest[STEP:]

    def step(self, samples):
        self.position += STEP
        level = (sum(x * x for x in samples) / STEP) ** 0.5 / 32768
        if self.options.scores:
            say({"phrase": PHRASE, "end": self.position, "scores": [min(1.0, level)]})
        elif level > self.options.threshold and self.began is None:
            self.began = self.position - STEP
        elif level <= self.options.threshold and self.began is not None:
            self.event()

    def event(self):
        fields = {"start_s": self.began / RATE_HZ, "end_s": self.position / RATE_HZ, "score": self.files / 100}
        if self.options.kind == "frame":
            tenths = str(round((self.position - self.began) / RATE_HZ * 10))
            say({"intents": ["shout"], "slots": [{"concept": "tenths", "value": tenths}], "text": PHRASE})
        else:
            say({"phrase": PHRASE, **fields} if self.options.kind == "wake" else {"text": PHRASE, **fields})
        self.began = None

    def end(self):
        if self.began is not None:
            self.event()


def say(line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def served(options):
    hello = {
        "protocol": 1,
        "name": "loud_engine",
        "version": "1.0",
        "kind": options.kind,
        "rate_hz": RATE_HZ,
        "licence": "Apache-2.0",
    }
    if options.kind == "wake":
        hello["phrases"] = [PHRASE]
    if options.scores:
        hello["scores"] = {"threshold": options.threshold, "step": STEP}
    if options.carries_state:
        hello["carries_state"] = True
    say(hello)
    engine, files = None, 0
    for line in iter(sys.stdin.buffer.readline, b""):
        head = json.loads(line)
        if "begin" in head:
            files += 1
            engine = Loudness(options, files if options.carries_state else 100)
        elif "samples" in head:
            engine.feed(sys.stdin.buffer.read(2 * head["samples"]))
        elif "end" in head:
            engine.end()
            say({"done": head["end"]})


def once(options):
    engine = Loudness(options)
    while content := sys.stdin.buffer.read(2 * STEP):
        engine.feed(content)
    engine.end()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--scores", action="store_true")
    parser.add_argument("--kind", default="wake")
    parser.add_argument("--carries-state", action="store_true")
    parser.add_argument("--threshold", type=float, default=0.1)
    chosen = parser.parse_args()
    once(chosen) if chosen.once else served(chosen)
