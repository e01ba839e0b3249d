"""Sessions with a device that mishears: the WER of its log is that of the words it told, wherever it is worked out."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from click.testing import CliRunner

from harness.cli import group
from harness.model.choices import Grouping
from harness.model.feed import Goodbye, Logged
from harness.model.record import AttemptFinished, Entry, TrialFinished
from harness.model.trial import Outcome
from harness.session.engine.launch import start_engine
from harness.session.figures.progress import SessionFigures
from harness.session.figures.trials import FirstAndFinalWords, by_group, heard_in, words_of
from tests.conformance.engine_runs import Runs, Watcher, kill, rows, wait_for
from tests.written_sessions import progress_of

SAID = {"time": "WHAT TIME IS IT", "milk": "ADD MILK TO MY LIST"}
TRIALS = 8
Counted = tuple[int, int, int]
"""Substitutions, words, transcripts."""


def harness(*arguments: str | Path) -> str:
    """Standard output of a command that ends well."""
    result = CliRunner().invoke(group, [str(argument) for argument in arguments])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def truth(entries: list[Entry]) -> tuple[Counted, Counted]:
    """Of first and of deciding attempts, by what the log says was heard in each.

    The device takes one word for another and never adds or drops one, so words are compared place by place.
    """
    ended: dict[str, dict[int, AttemptFinished]] = {}
    deciding: dict[str, int | None] = {}
    for entry in entries:
        match entry.record:
            case AttemptFinished() as row:
                ended.setdefault(row.trial_id, {})[row.attempt] = row
            case TrialFinished(trial_id=trial_id, deciding_attempt=number):
                deciding[trial_id] = number
    first: list[AttemptFinished] = []
    final: list[AttemptFinished] = []
    for trial_id, number in deciding.items():
        rows_of = ended[trial_id]
        first.append(rows_of[min(n for n, row in rows_of.items() if row.outcome is not Outcome.INTERRUPTED)])
        assert number is not None
        final.append(rows_of[number])
    return _counted(first), _counted(final)


def _counted(attempts: list[AttemptFinished]) -> Counted:
    wrong = words = transcripts = 0
    for row in attempts:
        if row.heard is not None:
            reference, heard = SAID[row.trial_id.partition(".")[0]].split(), row.heard.upper().split()
            wrong += sum(word != other for word, other in zip(reference, heard, strict=True))
            words, transcripts = words + len(reference), transcripts + 1
    return wrong, words, transcripts


def told_by(heard: FirstAndFinalWords) -> tuple[Counted, Counted]:
    first, final = heard.first.counts, heard.final.counts
    assert (first.deletions, first.insertions, final.deletions, final.insertions) == (0, 0, 0, 0)
    return (first.substitutions, first.words, first.sentences), (final.substitutions, final.words, final.sentences)


def scored(folder: Path, name: str) -> tuple[int, int]:
    target = folder / f"{name}.json"
    harness("score", "-r", folder / f"{name}.ref.trn", "-H", folder / f"{name}.trn", "--json", target)
    report = json.loads(target.read_text(encoding="utf-8"))
    totals = (report if "totals" in report else report["systems"][0])["totals"]
    return totals["substitutions"], totals["correct"] + totals["substitutions"] + totals["deletions"]


def test_wer_matches_the_reported_words_live_resumed_and_read_back(runs: Runs, tmp_path: Path) -> None:
    folder = runs.prepare("misheard.yaml", "misheard_bench.yaml")
    cut = Watcher(start_engine(folder))
    wait_for(lambda: len(cut.records(TrialFinished)) >= 3, 120, "the third trial")
    kill(cut.place)
    half = rows(folder)
    assert told_by(words_of(heard_in(progress_of(half).trials))) == truth(half)
    last = Watcher(start_engine(folder))
    assert last.goodbye(300) == Goodbye(1, "failed: WER of first attempts ≤ 1 %")

    entries = rows(folder)
    progress = progress_of(entries)
    heard = heard_in(progress.trials)
    expected = truth(entries)
    assert told_by(words_of(heard)) == expected
    assert len(heard) == progress.totals.final_words.attempts == TRIALS
    (wrong, words, _), (wrong_finally, *_) = expected
    assert wrong >= wrong_finally  # what was misheard was said again
    assert wrong
    live = SessionFigures()
    for _, message in last.arrivals:
        if isinstance(message, Logged):
            live.add(message.entry)
    assert live.snapshot().totals == progress.totals

    levels = dict(by_group(heard, Grouping.LEVEL))
    assert sorted(levels) == ["-26", "-30"]
    assert sum(transcripts.first.counts.substitutions for transcripts in levels.values()) == wrong

    shown = harness("show", folder)
    assert f"{wrong} of {words} words" in shown
    assert "words compared as snor" in shown
    assert "FAIL      WER of first attempts" in shown
    harness("export", folder, "--trn", tmp_path / "trn")
    assert scored(tmp_path / "trn", "first") == expected[0][:2]
    assert scored(tmp_path / "trn", "final") == expected[1][:2]
    report = ElementTree.fromstring(harness("export", folder, "--junit", "-"))
    properties = {node.get("name"): node.get("value") for node in report.iter("property")}
    assert properties["first_attempt_word_errors"] == f"{wrong} of {words}"
