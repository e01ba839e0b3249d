"""Makes understanding.png and understanding-utterances.png: the page of scored intents and slots.

    .venv/bin/python docs/pictures/understanding.py

A model, trained on a few hundred generated hotel bookings, reads others of the same grammar. Needs chromium and the
extra `understanding`.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE)]

from make import HARNESS, photograph  # noqa: E402

GRAMMAR = ROOT / "scenarios" / "understanding" / "hotel.yaml"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="vh") as name:
        folder = Path(name)
        for command in (
            f"generate {shlex.quote(str(GRAMMAR))} --train 300 --dev 60 --test 500 --seed 3 --output data",
            "train --data data --output model",
            "predict data --model model --split test --output predicted.jsonl",
            "score --gold data --split test --pred predicted.jsonl --html report.html",
        ):
            arguments = [str(HARNESS), "understand", *shlex.split(command)]
            subprocess.run(arguments, check=True, capture_output=True, cwd=folder)
        report = folder / "report.html"
        photograph(report, HERE / "understanding.png", 1100, 1180, folder)
        text = report.read_text(encoding="utf-8")
        # A picture begins at the top of the page, so what is above the utterances is removed for the second one.
        begin, end = text.index("<section id=figures"), text.index("<section id=utterances")
        report.write_text(text[:begin] + text[end:], encoding="utf-8")
        photograph(report, HERE / "understanding-utterances.png", 1100, 760, folder)


if __name__ == "__main__":
    main()
