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
    """Runs it, and returns the log's path."""
    task = f"{engine}:{phrase.replace('_', ' ')}" if engine == "pocketsphinx" else f"{engine}:{phrase}"
    log = out / f"{engine}-{phrase}.log"
    command = [sys.executable, "-c", "from harness.cli import main; main()", "evaluate", "-t", task, "-l", str(log)]
    command += [
        "-i",
        str(lists / f"{phrase}-test.txt"),
        "--oov",
        str(lists / "oov-test.txt"),
        "-j",
        str(jobs),
        "--force",
    ]
    if engine != "pocketsphinx":
        command += ["--cache", str(out / "cache"), "--sweep", str(out / f"{engine}-{phrase}.det")]
        command += ["--dev-inv", str(lists / f"{phrase}-dev.txt"), "--dev-oov", str(lists / "oov-dev.txt")]
        command += ["--target-fa-per-hour", f"{TARGET_PER_HOUR:g}"]
    found = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if found.returncode not in (0, 3):
        sys.exit(f"{' '.join(command)}: status {found.returncode}")
    print(found.stdout, file=sys.stderr, end="")
    return log


def share(missed: int, total: int) -> str:
    interval = clopper_pearson(missed, total)
    if interval is None:
        return "n/a"
    return f"{100 * missed / total:.1f} ({100 * interval[0]:.1f}–{100 * interval[1]:.1f})"


def row(engine: str, phrase: str, log: WakeLog, chosen: str) -> str:
    """A line of the table."""
    cells = []
    for condition in (*CONDITIONS, ""):
        lines = [one for one in log.events if one.key in ("INVTA", "INVFR") and re.search(condition, one.file)]
        cells.append(share(sum(one.key == "INVFR" for one in lines), len(lines)))
    hours = log.seconds("oov") / 3600
    count = int(computed_totals(log)["FACOUNT"])
    interval = garwood(count, hours)
    rate = "n/a" if interval is None else f"{count / hours:.2f} ({interval[0]:.2f}–{interval[1]:.2f})"
    return (
        f"| {engine} {phrase.replace('_', ' ')} | {' | '.join(cells)} | {count} in {hours:.2f} h: {rate} | {chosen} |"
    )


def recommended(path: Path) -> str:
    """The point that the sweep chose on the development lists, and what it comes to on the others."""
    if not path.exists():
        return "–"
    choice = json.loads(path.read_text(encoding="utf-8")).get("choice")
    if not choice or not choice["chosen"]:
        return "none keeps it"
    at, found = choice["chosen"], choice["reported"]
    return (
        f"threshold {at['threshold']:.3g}: {at['false_accepts']} FA, {100 * at['fr']:.1f} % FR → "
        f"{found['false_accepts']} FA, {share(found['false_rejects'], found['files'])} % FR"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lists", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    head = f"FR %: {' | '.join(CONDITIONS)} | all | FA an hour | at most {TARGET_PER_HOUR:g} FA an hour: dev → test"
    print(f"| engine and phrase | {head} |")
    print("|---|" + "---|" * (len(CONDITIONS) + 3))
    for engine, phrases in PHRASES.items():
        for phrase in phrases:
            log = evaluate(engine, phrase, given.lists, given.out, given.jobs)
            chosen = recommended(given.out / f"{engine}-{phrase}.det.json")
            print(row(engine, phrase, read(log.read_text(encoding="utf-8"), str(log)), chosen), flush=True)


if __name__ == "__main__":
    main()
