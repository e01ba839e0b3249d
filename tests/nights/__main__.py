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
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness.session.simulated.night import MEMORY
from tests.nights.check import broken
from tests.nights.night import ON_DISK_EVERY, NightRecord, played


@dataclass
class Outcome:
    """What became of a night.

    - takes: ends of trials; more than `trials` if some were repeated.
    - faults: the number of each kind that happened.
    - problems: the broken invariants.
    - digest: of all rows; "" if it was not asked for.
    - settings: how the night was drawn.
    """

    seed: int
    trials: int
    takes: int
    hours: float
    faults: Counter[str]
    problems: list[str]
    digest: str
    settings: dict[str, object] = field(default_factory=dict)


def play(
    seed: int, without: Collection[int] = (), templates: Collection[int] | None = None, *, with_digest: bool = False
) -> Outcome:
    """Plays a night in a folder that is removed afterwards. A crash of the product is a broken invariant, too.

    without: numbers of faults that do not happen. templates: numbers of those that are played; None: all.
    """
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
            return Outcome(
                seed=seed,
                trials=0,
                takes=0,
                hours=0.0,
                faults=Counter(),
                problems=[f"crash: {error!r}"],
                digest="",
                settings={"faults": 200, "templates": 6},  # more than any night has, to reduce from
            )
    takes = [row["body"] for row in night.rows if row["kind"] == "trial_finished"]
    return Outcome(
        seed=seed,
        trials=len({take["trial_id"] for take in takes}),
        takes=len(takes),
        hours=night.hours,
        faults=night.truth.faults,
        problems=broken(night),
        digest=digest(night) if with_digest else "",
        settings=night.settings,
    )


def digest(night: NightRecord) -> str:
    """A digest of all rows: equal for equal nights."""
    return hashlib.sha256(json.dumps(night.rows, sort_keys=True).encode()).hexdigest()


def joined(digests: Sequence[str]) -> str:
    """One digest of several nights."""
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def reduced(outcome: Outcome) -> tuple[list[int], list[int]]:
    """Plays the night again and again with less, as long as the same invariant is broken.

    Returns the numbers of the faults left out, and of the templates played. Templates are tried one by one; of the
    faults, ever smaller pieces are left out.
    """
    invariant = outcome.problems[0].partition(":")[0]

    def is_still_broken(without: Collection[int], templates: Collection[int]) -> bool:
        problems = play(outcome.seed, without, templates).problems
        return any(problem.partition(":")[0] == invariant for problem in problems)

    templates = list(range(6))
    without: list[int] = []
    for number in list(templates):
        fewer = [other for other in templates if other != number]
        if fewer and is_still_broken(without, fewer):
            templates = fewer
    size = faults = int(str(outcome.settings["faults"]))
    left = list(range(faults))
    while size >= 1:
        for begin in range(0, len(left), size):
            remaining = left[:begin] + left[begin + size :]
            dropped = [number for number in range(faults) if number not in remaining]
            if is_still_broken(dropped, templates):
                left, without = remaining, dropped
                break
        else:
            size //= 2
    return without, templates


def _write_line(text: str) -> None:
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
        _write_line("\n".join(outcome.problems) or "nothing is broken")
        return 1 if outcome.problems else 0
    outcomes = _outcomes(seeds, options.processes, with_digest=options.digest)
    return _report(outcomes, stop_at_first=options.first, with_digest=options.digest)


def _outcomes(seeds: range, processes: int, *, with_digest: bool) -> Iterator[Outcome]:
    """Plays the nights in so many processes; gives their outcomes in the order of the seeds."""
    play_seed = partial(play, with_digest=with_digest)
    if processes == 1 or len(seeds) < 2:
        yield from map(play_seed, seeds)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(play_seed, seeds, chunksize=4)


def _report(outcomes: Iterator[Outcome], *, stop_at_first: bool, with_digest: bool) -> int:
    """Writes each broken night as it comes, and then the sums. Returns the exit status."""
    begun_s = time.monotonic()
    nights = trials = takes = bad = 0
    hours = 0.0
    faults: Counter[str] = Counter()
    digests: list[str] = []
    for outcome in outcomes:
        nights, trials, takes = nights + 1, trials + outcome.trials, takes + outcome.takes
        hours, faults = hours + outcome.hours, faults + outcome.faults
        digests.append(outcome.digest)
        if not outcome.problems:
            continue
        bad += 1
        _write_line(f"seed {outcome.seed}: {len(outcome.problems)} broken\n  " + "\n  ".join(outcome.problems[:3]))
        if stop_at_first:
            return 1
        if bad <= 5:
            without, templates = reduced(outcome)
            _write_line(
                f"  python -m tests.nights --seeds {outcome.seed} --without {','.join(map(str, without))}"
                f" --templates {','.join(map(str, templates))}"
            )
    _write_line(f"{nights} nights, {trials} trials in {takes} takes, {hours:.1f} simulated hours")
    _write_line(
        f"{faults.total()} faults of {len(faults)} kinds: "
        + ", ".join(f"{n} {kind}" for kind, n in faults.most_common())
    )
    if with_digest:
        _write_line(f"digest {joined(digests)}")
    _write_line(f"{bad} of {nights} nights broken; {time.monotonic() - begun_s:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
