#!/usr/bin/env python3
"""PocketSphinx with a JSGF grammar: `harness evaluate -t 'process:python3 examples/grammar_engine.py house.gram' …`.

It finds the nearest sentence of the first public rule in any speech. A second argument is the file of a dictionary.
"""

import json
import sys
from importlib.metadata import version

from pocketsphinx import Decoder

dictionary = {"dict": sys.argv[2]} if len(sys.argv) > 2 else {}
decoder = Decoder(jsgf=sys.argv[1], lm=None, cmn="batch", loglevel="ERROR", **dictionary)


def say(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


say(protocol=1, name="pocketsphinx", version=version("pocketsphinx"), kind="command", rate_hz=16000)
for line in sys.stdin.buffer:
    head = json.loads(line)
    if "begin" in head:
        sound = b""
    elif "samples" in head:
        sound += sys.stdin.buffer.read(2 * head["samples"])
    else:
        if len(sound) >= 2 * 410:  # bytes; a frame of features needs 25 ms
            decoder.reinit_feat()  # forget the previous file
            decoder.start_utt()
            decoder.process_raw(sound, full_utt=True)
            decoder.end_utt()
            if words := [part for part in decoder.seg() or () if part.word[0] not in "<[("]:
                end = min((words[-1].end_frame + 1) * 160, len(sound) // 2)
                best = decoder.hyp()
                say(text=best.hypstr, start=words[0].start_frame * 160, end=end, score=best.prob)
        say(done=head["end"])
