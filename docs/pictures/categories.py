"""Makes categories.png: the page of category results, on an invented session.

    .venv/bin/python docs/pictures/categories.py

24 queries, twice each in two voices, to two devices; three raters who are right nine times in ten. Needs chromium.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

from make import HARNESS, photograph  # noqa: E402

from harness.model.judgment import Category, Judgment  # noqa: E402
from tests.judged_sessions import Answer, clips_of, give, judged, store_session  # noqa: E402

CLASSES = ("time", "weather", "lists and alarms")
OTHERS = (
    Category.WRONG, Category.ADMITTED_DEFEAT, Category.PARTIALLY_CORRECT, Category.INFERRABLE, Category.SLOT_REQUEST,
    Category.CLARIFICATION, Category.FINDABLE, Category.MISSED_DISAMBIGUATION_NOT_RECOVERABLE,
    Category.CORRECT_REJECTION, Category.MISSED_DISAMBIGUATION_RECOVERABLE,
)  # fmt: skip
GOOD = {"kitchen": 0.72, "radio": 0.52}


def asked(chance: Random) -> list[Answer]:
    return [
        Answer(
            f"q{number:02}-{device}-{voice}.r{again}",
            query=f"query number {number}",
            answer=None if chance.random() < 0.03 else f"what {device} said to it",
            device=device,
            query_id=f"q{number:02}",
            query_class=CLASSES[number % 3],
            conditions=(("voice", voice),),
            core_capability=number % 6 == 2,
            attempts=1 if chance.random() < 0.8 else chance.choice((2, 3)),
            seconds=0.2,
        )
        for number in range(1, 25)
        for device in GOOD
        for voice in ("ann", "bob")
        for again in (1, 2)
    ]


def given(one: Answer, clip: str, chance: Random) -> list[Judgment]:
    """Judgments of three raters. A device mostly answers a query the same way each time."""
    of_query = Random(f"{one.query_id} {one.device}")
    usual = Category.CORRECT if of_query.random() < GOOD[one.device] else of_query.choice(OTHERS)
    truth = usual if chance.random() < 0.9 else chance.choice((Category.CORRECT, *OTHERS))
    if one.device == "radio" and one.core_capability:
        truth = Category.ADMITTED_DEFEAT
    said = {rater: truth if chance.random() < 0.9 else chance.choice(OTHERS) for rater in ("ada", "ben", "cleo")}
    return [judged(one.trial_id, clip, rater, category, attempt=one.attempts) for rater, category in said.items()]


def main() -> None:
    chance = Random(5)
    with tempfile.TemporaryDirectory(prefix="vh") as name:
        folder = Path(name)
        items = asked(chance)
        session = store_session(folder / "kitchen-and-radio", items, "kitchen-and-radio")
        clips = clips_of(session)
        heard = [one for one in items if one.trial_id in clips]
        give(session, [row for one in heard for row in given(one, clips[one.trial_id][1].sha256, chance)])
        page = folder / "categories.html"
        options = ["--compare", "kitchen", "radio", "--html", str(page)]
        subprocess.run([str(HARNESS), "report", "categories", str(session), *options], check=True, capture_output=True)
        photograph(page, HERE / "categories.png", 1100, 1180, folder)


if __name__ == "__main__":
    main()
