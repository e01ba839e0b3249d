#!/usr/bin/env python3
"""An engine that does one thing wrong: faulty_engine.py FAULT. What is wrong happens at the end of a file."""

import json
import os
import subprocess
import sys
import time

fault = sys.argv[1]
KIND = "frame" if fault.startswith("frame ") else "wake"
HELLO = {"protocol": 1, "name": "faulty", "version": "1", "kind": KIND, "rate_hz": 16000, "phrases": ["loud"]}


def raw(content: bytes) -> None:
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def say(line: object) -> None:
    raw(json.dumps(line).encode() + b"\n")


def wrong(file: int) -> None:
    match fault:
        case "hang":
            time.sleep(3600)
        case "crash":
            sys.stderr.write("no licence for \x1b[31mthis host\n")
            sys.stderr.flush()
            os.kill(os.getpid(), 11)
        case "exit":
            sys.exit(7)
        case "garbage":
            raw(b"Loading model... done\n")
        case "partial":
            raw(b'{"phrase": "lo')
            sys.exit(0)
        case "binary":
            raw(b"\xff\xfe\x00\n")
        case "frame of words":
            say({"intents": "shout"})
        case "frame of a joint":
            say({"intents": ["shout#whisper"]})
        case "frame of half a letter":
            say({"intents": ["\ud83d"]})
        case "frame with half a letter":
            say({"intents": ["shout"], "text": "\ud83d"})
        case "frame with slots of numbers":
            say({"intents": [], "slots": [{"concept": "tenths", "value": 3}]})
        case "frame":
            say({"intents": ["shout"], "slots": []})
        case "nan":
            raw(b'{"phrase": "loud", "end_s": NaN}\n')
        case "infinite":
            raw(b'{"phrase": "loud", "end_s": 1e999}\n')
        case "huge":
            raw(b'{"phrase": "loud", "end": 1' + b"0" * 400 + b"}\n")
        case "beyond":
            say({"phrase": "loud", "end_s": 99})
        case "negative":
            say({"phrase": "loud", "end_s": -1})
        case "back":
            say({"phrase": "loud", "end_s": 0.8})
            say({"phrase": "loud", "end_s": 0.2})
        case "reversed":
            say({"phrase": "loud", "start_s": 0.9, "end_s": 0.2})
        case "endless":
            say({"phrase": "loud"})
        case "endless text":
            say({"text": "loud"})
        case "detection":
            say({"phrase": "loud", "end_s": 0.1})
        case "stranger":
            say({"phrase": "quiet", "end_s": 0.1})
        case "flood":
            while True:
                say({"phrase": "loud", "end_s": 0.1})
        case "long line":
            raw(b"x" * (2 << 20))
        case "error":
            say({"error": "the model is out of date"})
        case "wrong file":
            say({"done": file + 5})
        case "deep":
            raw(b"[" * 100_000 + b"\n")
        case "scores":
            say({"phrase": "loud", "end": 10, "scores": [0.5]})
        case "number":
            raw(b"17\n")
        case "words":
            while True:
                sys.stderr.write("still loading\n" * 100)


if fault == "silent start":
    time.sleep(3600)
elif fault == "early exit":
    sys.exit("no such model: x")
elif fault == "no hello":
    raw(b"ready\n")
elif fault == "old protocol":
    say({**HELLO, "protocol": 0})
elif fault == "detection":
    say({**HELLO, "scores": {"threshold": 0.5, "step": 320}})
elif fault == "no rate":
    say({key: value for key, value in HELLO.items() if key != "rate_hz"})
else:
    say(HELLO)
if fault == "family":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"])
    sys.stderr.write(f"{child.pid}\n")
    sys.stderr.flush()
if fault == "deaf":
    time.sleep(3600)
for line in iter(sys.stdin.buffer.readline, b""):
    head = json.loads(line)
    if "samples" in head:
        sys.stdin.buffer.read(2 * head["samples"])
        if fault == "done early":
            say({"done": 1})
    elif "end" in head:
        wrong(head["end"])
        say({"done": head["end"]})
if fault == "family":
    time.sleep(3600)
