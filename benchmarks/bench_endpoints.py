"""Error of the onset and the end of responses at known positions.

python benchmarks/bench_endpoints.py            offline, both detectors, all utterances
python benchmarks/bench_endpoints.py --sound    through the virtual room (starts sound servers of its own; under 4 min)

Truth is the energy of the clean utterance above 120 Hz: its first and last 10 ms within 25 dB of the active level.
"""

from __future__ import annotations

import argparse
import itertools
from functools import partial

from responses import (
    HEADER,
    LEVELS_DBFS,
    RATE_HZ,
    SETS,
    SNRS,
    Mono,
    Report,
    blocks,
    compare,
    noise,
    row,
    scene,
    sixteen_bits,
    utterances_of,
)
from room_responses import measure_through_rooms
from sizes import sized
from timing import timed

from harness.base.plugins import Group, load
from harness.model.errors import PluginError
from harness.sound.hearing import Hearing


def measure_offline(detectors: tuple[str, ...], set_names: tuple[str, ...], count: int | None) -> None:
    """Prints the table of all conditions; a detector that is not installed gets a line that says so."""
    print(HEADER)
    for set_name in set_names:
        utterances = utterances_of(set_name, count)
        for name in detectors:
            try:
                new_detector = load(Group.SPEECH_DETECTORS, name)
            except PluginError as error:
                print(f"{name}: {error}")
                continue
            spent_s = heard_s = 0.0
            for level_dbfs, snr_db in itertools.product(LEVELS_DBFS, SNRS):
                samples, responses = scene(utterances, level_dbfs, SETS[set_name].seed)
                if snr_db is not None:
                    samples = samples + noise(len(samples), level_dbfs, snr_db, SETS[set_name].seed)
                reports, cpu_s = timed(partial(hear, Hearing("mic", new_detector()), samples))
                spent_s += cpu_s
                heard_s += len(samples) / RATE_HZ
                spans = [
                    (response.first / RATE_HZ + response.onset_s, response.first / RATE_HZ + response.end_s)
                    for response in responses
                ]
                print(row(name, set_name, level_dbfs, snr_db, compare(reports, spans)), flush=True)
            print(f"{name}: {len(utterances)} utterances, {spent_s / heard_s:.1%} of a core")


def hear(hearing: Hearing, samples: Mono) -> list[Report]:
    """Feeds the samples as a microphone would; a report is made at the end of its block, at the earliest."""
    reports: list[Report] = []
    for block in blocks(sixteen_bits(samples)):
        now_s = block.at_s + len(block.samples) / RATE_HZ
        reports += [Report(observation, now_s) for observation in hearing.feed(block)]
    return reports


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
        measure_through_rooms((arguments.detector or ["webrtcvad"])[0], set_names, arguments.utterances or 14)
    else:
        measure_offline(tuple(arguments.detector or ("webrtcvad", "silero")), set_names, arguments.utterances)


if __name__ == "__main__":
    main()
