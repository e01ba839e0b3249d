"""The reference evaluation of docs/reference/reference-evaluation.md, on the lists that reference_audio.py makes.

usage: reference_evaluation.py LISTS OUT [--jobs N]
Writes a log, a sweep and its picture for each engine and phrase to OUT, and prints the page's table.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from timing import HARNESS

from harness.offline.wake_log import WakeLog, computed_totals
from harness.offline.wake_log_reading import read
from harness.statistics.intervals import clopper_pearson, garwood

PHRASES = {
    "microwakeword": ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu"),
    "openwakeword": ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu"),
    "pocketsphinx": ("hey_jarvis",),
}
TARGET_PER_HOUR = 1.0
CONDITIONS = ("quiet", "20dB", "10dB", "5dB")


def evaluate(engine: str, phrase: str, lists: Path, out: Path, jobs: int) -> Path:
    """Runs an engine on the lists of a phrase, and returns the path of the log."""
    task = f"{engine}:{phrase.replace('_', ' ')}" if engine == "pocketsphinx" else f"{engine}:{phrase}"
    log = out / f"{engine}-{phrase}.log"
    command = [*HARNESS, "evaluate", "-t", task, "-l", str(log), "-j", str(jobs), "--force"]
    command += ["-i", str(lists / f"{phrase}-test.txt"), "--oov", str(lists / "oov-test.txt")]
    if engine != "pocketsphinx":
        command += ["--cache", str(out / "cache"), "--sweep", str(out / f"{engine}-{phrase}.det")]
        command += ["--dev-inv", str(lists / f"{phrase}-dev.txt"), "--dev-oov", str(lists / "oov-dev.txt")]
        command += ["--target-fa-per-hour", f"{TARGET_PER_HOUR:g}"]
    finished = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if finished.returncode not in (0, 3):  # 3: a file failed; the log is complete
        sys.exit(f"{' '.join(command)}: status {finished.returncode}")
    print(finished.stdout, file=sys.stderr, end="")
    return log


def share_text(missed: int, total: int) -> str:
    """Per cent, with the 95 % interval."""
    interval = clopper_pearson(missed, total)
    if interval is None:
        return "n/a"
    return f"{100 * missed / total:.1f} ({100 * interval[0]:.1f}–{100 * interval[1]:.1f})"


def row(engine: str, phrase: str, log: WakeLog, chosen: str) -> str:
    """A line of the table."""
    cells = []
    for condition in (*CONDITIONS, ""):
        events = [event for event in log.events if event.key in ("INVTA", "INVFR") and re.search(condition, event.file)]
        cells.append(share_text(sum(event.key == "INVFR" for event in events), len(events)))
    hours = log.seconds("oov") / 3600
    count = int(computed_totals(log)["FACOUNT"])
    interval = garwood(count, hours)
    rate = "n/a" if interval is None else f"{count / hours:.2f} ({interval[0]:.2f}–{interval[1]:.2f})"
    return (
        f"| {engine} {phrase.replace('_', ' ')} | {' | '.join(cells)} | {count} in {hours:.2f} h: {rate} | {chosen} |"
    )


def recommendation(path: Path) -> str:
    """The operating point that the sweep chose on the dev lists, and its results there and on the test lists."""
    if not path.exists():
        return "–"
    choice = json.loads(path.read_text(encoding="utf-8")).get("choice")
    if not choice or not choice["chosen"]:
        return "none keeps it"
    dev, test = choice["chosen"], choice["reported"]
    return (
        f"threshold {dev['threshold']:.3g}: {dev['false_accepts']} FA, {100 * dev['fr']:.1f} % FR → "
        f"{test['false_accepts']} FA, {share_text(test['false_rejects'], test['files'])} % FR"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lists", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    head = f"FR %: {' | '.join(CONDITIONS)} | all | FA an hour | at most {TARGET_PER_HOUR:g} FA an hour: dev → test"
    print(f"| engine and phrase | {head} |")
    print("|---|" + "---|" * (len(CONDITIONS) + 3))
    for engine, phrases in PHRASES.items():
        for phrase in phrases:
            log = evaluate(engine, phrase, options.lists, options.out, options.jobs)
            chosen = recommendation(options.out / f"{engine}-{phrase}.det.json")
            print(row(engine, phrase, read(log.read_text(encoding="utf-8"), str(log)), chosen), flush=True)


if __name__ == "__main__":
    main()
