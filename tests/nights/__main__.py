"""Plays nights: `python -m tests.nights --seeds 0:300`. Exit status 1 if an invariant is broken.

A broken night is reduced, and printed as the command that repeats it.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness.session.simulated.night import MEMORY
from tests.nights.check import broken
from tests.nights.night import ON_DISK_EVERY, NightRecord, played


@dataclass
class Outcome:
    """Of one night. what: the broken invariants. digest: "" if it was not asked for."""

    seed: int
    trials: int
    takes: int
    hours: float
    faults: Counter[str]
    what: list[str]
    digest: str
    settings: dict[str, object] = field(default_factory=dict)


def play(
    seed: int, without: Collection[int] = (), templates: Collection[int] | None = None, *, with_digest: bool = False
) -> Outcome:
    """Plays a night in a folder that is removed afterwards. A crash of the product is a broken invariant, too."""
    gc.disable()  # one collection at its end takes a fifth of those during a night
    try:
        return _play(seed, without, templates, with_digest=with_digest)
    finally:
        gc.enable()
        gc.collect()


def _play(seed: int, without: Collection[int], templates: Collection[int] | None, *, with_digest: bool) -> Outcome:
    on_disk = seed % ON_DISK_EVERY == 0 or not MEMORY.is_dir()
    with tempfile.TemporaryDirectory(prefix="night", dir=None if on_disk else MEMORY) as folder:
        try:
            night = played(seed, Path(folder), without, templates)
        except Exception as error:  # noqa: BLE001 - shown with its seed
            return Outcome(seed, 0, 0, 0.0, Counter(), [f"crash: {error!r}"], "", {"faults": 200, "templates": 6})
    ended = [row["body"] for row in night.rows if row["kind"] == "trial_finished"]
    return Outcome(
        seed,
        len({row["trial_id"] for row in ended}),
        len(ended),
        night.hours,
        night.truth.faults,
        broken(night),
        digest(night) if with_digest else "",
        night.settings,
    )


def digest(night: NightRecord) -> str:
    """Of all rows; equal for equal nights."""
    return hashlib.sha256(json.dumps(night.rows, sort_keys=True).encode()).hexdigest()


def joined(digests: Sequence[str]) -> str:
    """One digest of several nights."""
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def reduced(outcome: Outcome) -> tuple[list[int], list[int]]:
    """Faults left out, and templates played, with which the same invariant is still broken: as little as possible."""
    kind = outcome.what[0].partition(":")[0]

    def still(without: Collection[int], templates: Collection[int]) -> bool:
        return any(problem.partition(":")[0] == kind for problem in play(outcome.seed, without, templates).what)

    templates = list(range(6))
    without: list[int] = []
    for number in list(templates):
        fewer = [other for other in templates if other != number]
        if fewer and still(without, fewer):
            templates = fewer
    size = int(str(outcome.settings["faults"]))
    left = list(range(size))
    while size >= 1:
        for begin in range(0, len(left), size):
            remaining = left[:begin] + left[begin + size :]
            dropped = [number for number in range(int(str(outcome.settings["faults"]))) if number not in remaining]
            if still(dropped, templates):
                left, without = remaining, dropped
                break
        else:
            size //= 2
    return without, templates


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nights", description=__doc__)
    parser.add_argument("--seeds", default="0:300", help="first and last + 1, or one seed")
    parser.add_argument("--first", action="store_true", help="stop at the first broken night, and do not reduce it")
    parser.add_argument("--without", default="", help="numbers of faults that are left out")
    parser.add_argument("--templates", default="", help="numbers of the templates that are played")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--digest", action="store_true", help="print a digest of all rows")
    options = parser.parse_args(arguments)
    first, _, last = options.seeds.partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    gc.freeze()  # what is imported stays: each collection would go through all of it
    if options.without or options.templates:
        without = [int(number) for number in options.without.split(",") if number]
        templates = [int(number) for number in options.templates.split(",")] if options.templates else None
        outcome = play(seeds[0], without, templates)
        _tell("\n".join(outcome.what) or "nothing is broken")
        return 1 if outcome.what else 0
    return _report(seeds, options.first, options.digest, _outcomes(seeds, options.processes, options.digest))


def _outcomes(seeds: range, processes: int, with_digest: bool) -> Callable[[], Iterator[Outcome]]:
    plays = partial(play, with_digest=with_digest)

    def outcomes() -> Iterator[Outcome]:
        if processes == 1 or len(seeds) < 2:
            yield from map(plays, seeds)
            return
        with ProcessPoolExecutor(processes) as pool:
            yield from pool.map(plays, seeds, chunksize=4)

    return outcomes


def _report(seeds: range, first: bool, with_digest: bool, outcomes: Callable[[], Iterator[Outcome]]) -> int:
    begun_s = time.monotonic()
    nights = trials = takes = bad = 0
    hours = 0.0
    faults: Counter[str] = Counter()
    digests: list[str] = []
    for outcome in outcomes():
        nights, trials, takes = nights + 1, trials + outcome.trials, takes + outcome.takes
        hours, faults = hours + outcome.hours, faults + outcome.faults
        digests.append(outcome.digest)
        if not outcome.what:
            continue
        bad += 1
        _tell(f"seed {outcome.seed}: {len(outcome.what)} broken\n  " + "\n  ".join(outcome.what[:3]))
        if first:
            return 1
        if bad <= 5:
            without, templates = reduced(outcome)
            _tell(
                f"  python -m tests.nights --seeds {outcome.seed} --without {','.join(map(str, without))}"
                f" --templates {','.join(map(str, templates))}"
            )
    _tell(f"{nights} nights, {trials} trials in {takes} takes, {hours:.1f} simulated hours")
    _tell(
        f"{faults.total()} faults of {len(faults)} kinds: "
        + ", ".join(f"{n} {kind}" for kind, n in faults.most_common())
    )
    if with_digest:
        _tell(f"digest {joined(digests)}")
    _tell(f"{bad} of {nights} nights broken; {time.monotonic() - begun_s:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
