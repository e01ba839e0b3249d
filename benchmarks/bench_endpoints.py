"""Error of the onset and the end of responses at known positions.

python benchmarks/bench_endpoints.py            offline, both detectors, all utterances
python benchmarks/bench_endpoints.py --sound    through the virtual room (starts sound servers of its own; under 4 min)

Truth is the energy of the clean utterance above 120 Hz: its first and last 10 ms within 25 dB of the active level.
"""

from __future__ import annotations

import argparse
import time

from responses import (
    HEADER,
    LEVELS_DBFS,
    RATE_HZ,
    SETS,
    SNRS,
    blocks,
    compare,
    noise,
    row,
    scene,
    sixteen_bits,
    utterances_of,
)
from room_responses import sound
from sizes import sized

from harness.base.plugins import Group, load
from harness.model.errors import PluginError
from harness.model.observation import Observation
from harness.sound.hearing import Hearing


def offline(detectors: tuple[str, ...], set_names: tuple[str, ...], count: int | None) -> None:
    print(HEADER)
    for set_name in set_names:
        utterances = utterances_of(set_name, count)
        for name in detectors:
            try:
                make = load(Group.SPEECH_DETECTORS, name)
            except PluginError as error:
                print(f"{name}: {error}")
                continue
            spent = heard_s = 0.0
            for level_dbfs in LEVELS_DBFS:
                for snr_db in SNRS:
                    samples, placed = scene(utterances, level_dbfs, SETS[set_name][2])
                    if snr_db is not None:
                        samples = samples + noise(len(samples), level_dbfs, snr_db, SETS[set_name][2])
                    hearing = Hearing("mic", make())
                    began = time.process_time()
                    told: list[tuple[Observation, float]] = []
                    for block in blocks(sixteen_bits(samples)):
                        now_s = block.at_s + len(block.samples) / RATE_HZ
                        told += [(seen, now_s) for seen in hearing.feed(block)]
                    spent += time.process_time() - began
                    heard_s += len(samples) / RATE_HZ
                    spans = [(one.first / RATE_HZ + one.onset_s, one.first / RATE_HZ + one.end_s) for one in placed]
                    print(row(name, set_name, level_dbfs, snr_db, compare(told, spans)), flush=True)
            print(f"{name}: {len(utterances)} utterances, {spent / heard_s:.1%} of a core")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sound", action="store_true", help="through the virtual room, in real time")
    parser.add_argument("--utterances", type=int, default=sized(None, 1), help="of each set (all; with --sound 14)")
    parser.add_argument("--detector", action="append", help="webrtcvad or silero (both; with --sound webrtcvad)")
    parser.add_argument("--set", action="append", choices=list(SETS), help="(both)")
    arguments = parser.parse_args()
    set_names = tuple(arguments.set or SETS)
    print("errors in ms: |error| p50 p95 (signed p5 p50 p95); mis: missed; fal: false; in: true time within error_s;")
    print("late: time from the end of speech to its report, p95, in ms")
    if arguments.sound:
        sound((arguments.detector or ["webrtcvad"])[0], set_names, arguments.utterances or 14)
    else:
        offline(tuple(arguments.detector or ("webrtcvad", "silero")), set_names, arguments.utterances)


if __name__ == "__main__":
    main()
