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
CORRECT_SHARES = {"kitchen": 0.72, "radio": 0.52}
"""How often each device usually answers correctly."""


def draw_answers(random: Random) -> list[Answer]:
    return [
        Answer(
            f"q{number:02}-{device}-{voice}.r{repetition}",
            query=f"query number {number}",
            answer=None if random.random() < 0.03 else f"what {device} said to it",
            device=device,
            query_id=f"q{number:02}",
            query_class=CLASSES[number % 3],
            conditions=(("voice", voice),),
            core_capability=number % 6 == 2,
            attempts=1 if random.random() < 0.8 else random.choice((2, 3)),
            seconds=0.2,
        )
        for number in range(1, 25)
        for device in CORRECT_SHARES
        for voice in ("ann", "bob")
        for repetition in (1, 2)
    ]


def draw_judgments(answer: Answer, clip: str, random: Random) -> list[Judgment]:
    """Judgments of three raters. A device mostly answers a query the same way each time."""
    random_of_query = Random(f"{answer.query_id} {answer.device}")
    is_correct = random_of_query.random() < CORRECT_SHARES[answer.device]
    usual = Category.CORRECT if is_correct else random_of_query.choice(OTHERS)
    truth = usual if random.random() < 0.9 else random.choice((Category.CORRECT, *OTHERS))
    if answer.device == "radio" and answer.core_capability:
        truth = Category.ADMITTED_DEFEAT
    judgments = []
    for rater in ("ada", "ben", "cleo"):
        category = truth if random.random() < 0.9 else random.choice(OTHERS)
        judgments.append(judged(answer.trial_id, clip, rater, category, attempt=answer.attempts))
    return judgments


def main() -> None:
    random = Random(5)
    with tempfile.TemporaryDirectory(prefix="vh") as name:
        folder = Path(name)
        answers = draw_answers(random)
        session = store_session(folder / "kitchen-and-radio", answers, "kitchen-and-radio")
        clips = clips_of(session)
        for_raters = [answer for answer in answers if answer.trial_id in clips]
        judgments = [
            judgment
            for answer in for_raters
            for judgment in draw_judgments(answer, clips[answer.trial_id][1].sha256, random)
        ]
        give(session, judgments)
        page = folder / "categories.html"
        options = ["--compare", "kitchen", "radio", "--html", str(page)]
        subprocess.run([str(HARNESS), "report", "categories", str(session), *options], check=True, capture_output=True)
        photograph(page, HERE / "categories.png", 1100, 1180, folder)


if __name__ == "__main__":
    main()
