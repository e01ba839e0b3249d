"""Which sessions figures of raters are about; what was heard, as `show` and `export` tell it."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.base.text_table import width_of
from harness.cli.options import RatedSessionOptions
from harness.cli.sessions import figures_of, rated_sessions
from harness.model.choices import Grouping
from harness.model.errors import InputError
from harness.model.judgment import Category, JudgmentStatus
from harness.model.observation import SpeechStarted
from harness.model.record import Entry, Observed, TrialFinished, TrialStarted
from harness.model.scenario import Normalisation, RecognitionRule, TrialKind
from harness.model.time import Stamp
from harness.model.transcript import WordCounts
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.rating.exercises import BUILT_IN_EXERCISES
from harness.session import summary
from harness.session.figures.progress import SessionFigures
from harness.session.figures.trials import AttemptTranscript, TranscribedTrial, heard_in, words_of
from harness.session.log.reader import LogReader
from harness.transcripts.recognition import GroupTranscripts
from tests.command import harness, succeeded
from tests.files import file_with
from tests.judged_sessions import answers, clips_of, give, judged, store_session
from tests.known import known
from tests.unit.session.figures.rows import Rows, planned
from tests.unit.wake.wake_rows import WakeRows, rows_of, wake_trial
from tests.written_sessions import progress_of, wake_of, written

C, W = Category.CORRECT, Category.WRONG


def figures(verb: str, *arguments: str | Path) -> dict[str, Any]:
    result = succeeded(harness(verb, "--json", *arguments))
    report: dict[str, Any] = json.loads(result.output)
    return report


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four responses; ann and bob judge all of them in the round `spring`, and cem the first one elsewhere."""
    folder = store_session(tmp_path / "s1", answers(4))
    clips = clips_of(folder)
    rows = [
        judged(trial, clip, rater, C if rater == "ann" or trial != "q1-kitchen" else W, round="spring")
        for rater in ("ann", "bob")
        for trial, (_, clip) in clips.items()
    ]
    give(folder, [*rows, judged("q1-kitchen", clips["q1-kitchen"][1], "cem", C, round="other")])
    return folder


@pytest.fixture
def round_file(folder: Path) -> Path:
    (folder.parent / "known.yaml").write_text(
        "gold: known\nresponses:\n  - {session: s1, trial: q2-kitchen, category: correct}\n"
    )
    return file_with(folder.parent / "spring.yaml", "round: spring\nsessions: [s1]\ntraining: none\ngold: known.yaml\n")


def test_round_file_selects_sessions_gold_answers_and_exercises(folder: Path, round_file: Path) -> None:
    request = rated_sessions(RatedSessionOptions((str(round_file),), None))
    assert [path.resolve() for path in request.folders] == [folder.resolve()]
    assert request.round_id == "spring"
    assert request.round is not None
    assert [answer.trial for answer in request.round.gold] == ["q2-kitchen"]
    assert request.round.exercises != BUILT_IN_EXERCISES
    assert rated_sessions(RatedSessionOptions((str(round_file),), "other")).round_id == "other"
    assert rated_sessions(RatedSessionOptions((str(folder),), None)).round_id is None


def test_agreement_of_a_round_file_excludes_gold_and_other_judgments(folder: Path, round_file: Path) -> None:
    of_round, of_all = figures("agreement", round_file), figures("agreement", folder)
    assert [rater["rater"] for rater in of_round["raters"]] == ["ann", "bob"]
    assert [rater["rater"] for rater in of_all["raters"]] == ["ann", "bob", "cem"]
    assert (of_round["agreement"]["items"], of_all["agreement"]["items"]) == (3, 4)
    assert of_round["raters"][0]["gold"]["of"] == 1
    assert figures("agreement", folder, "--round", "other")["judged"] == 1


def test_categories_of_a_round_file_keep_gold_and_exclude_other_judgments(folder: Path, round_file: Path) -> None:
    of_round, of_all = figures("categories", round_file), figures("categories", folder)
    assert (of_round["total"], of_round["funnel"]["fates"]["disputed"]) == (3, 1)
    assert (of_all["total"], of_all["funnel"]["fates"]["disputed"]) == (4, 0), "two of three raters agree"
    assert of_round["round"] == "spring"
    assert figures("categories", round_file, "--round", "other")["total"] == 1


@pytest.mark.parametrize("verb", ["agreement", "categories", "rate"])
def test_round_file_cannot_be_combined_with_sessions(folder: Path, round_file: Path, verb: str) -> None:
    result = harness(verb, round_file, folder)
    assert isinstance(result.exception, InputError)
    assert "already names its sessions" in str(result.exception)


@pytest.mark.parametrize("verb", ["agreement", "categories"])
def test_an_unjudged_round_is_refused_on_the_command_line(folder: Path, round_file: Path, verb: str) -> None:
    result = harness(verb, folder, "--round", "sprin")
    assert isinstance(result.exception, InputError)
    assert "Did you mean 'spring'" in str(result.exception)
    round_file.write_text(round_file.read_text().replace("round: spring", "round: autumn"))
    assert figures(verb, round_file)["judged" if verb == "agreement" else "total"] == 0


def test_show_check_names_changed_and_unsealed_files(tmp_path: Path) -> None:
    folder = store_session(tmp_path / "s1", answers(2))
    result = succeeded(harness("show", folder, "--check"))
    assert "seal   log.sqlite: row" in result.output
    assert result.output.endswith(": whole\n")
    with sqlite3.connect(folder / "log.sqlite") as connection:
        connection.execute("DROP TRIGGER never_changed")
        connection.execute("UPDATE entries SET body = replace(body, 'answer 1 of', 'answer 9 of')")
        (seq,) = connection.execute("SELECT min(seq) FROM entries WHERE body LIKE '%answer 9 of%'").fetchone()
    connection.close()
    result = harness("show", folder, "--check")
    assert result.exit_code == 3
    assert "DAMAGE the trigger never_changed" in result.output
    assert f"DAMAGE row {seq} has changed since it was written" in result.output
    old = shutil.copytree(Path(__file__).parents[2] / "data" / "unsealed" / "session", tmp_path / "old")
    result = succeeded(harness("show", old, "--check"))
    assert result.output.endswith("17 rows and 1 clip: undamaged, but not sealed\n")
    assert "1 of 1 = 100 %" in harness("show", old).output


def test_show_counts_judgments_made_after_the_session(tmp_path: Path) -> None:
    folder = store_session(tmp_path / "s1", answers(3))
    clips = clips_of(folder)
    assert "judged               0 of 3 responses" in harness("show", folder).output
    rows = [judged(trial, clip, "ann") for trial, (_, clip) in clips.items()]
    give(folder, rows[:2])
    assert "judged               2 of 3 responses" in harness("show", folder).output
    undone = judged(
        rows[0].trial_id, rows[0].clip_sha256, "ann", status=JudgmentStatus.WITHDRAWN, id="u", replaces=rows[0].id
    )
    give(folder, [undone])
    progress, _ = figures_of(folder)
    assert progress.totals.judged == 1
    assert progress.seq == max(row.seq for row in _rows(folder)), "rows of raters are no rows of the log"


def _rows(folder: Path) -> list[Entry]:
    with LogReader(folder) as reader:
        return list(reader.entries())


ASKED = "what time is it"
HOSTILE = "\x1b]0;owned\x07 what { time / it } ;; (1) @ <is> (it)"


def stored(rows: Rows, queried: Path) -> Path:
    return written(queried, rows)


def asked(rows: Rows, trial_id: str, *heard: str | None) -> None:
    rows.add(TrialStarted(trial_id, 1))
    for attempt, text in enumerate(heard, 1):
        last = attempt == len(heard)
        outcome = Outcome.RESPONDED if last else Outcome.NO_WAKE if text is None else Outcome.MISHEARD
        recognition = Recognition.YES if last else Recognition.NO
        rows.attempt(trial_id, attempt, outcome, recognition, heard=text, latency_s=None)
    rows.add(TrialFinished(trial_id, 1, Outcome.RESPONDED, len(heard), len(heard)))


def queries(rule: RecognitionRule = RecognitionRule()) -> Rows:  # noqa: B008 (frozen)
    """Two voices: right, misheard first, no transcript first, an alternative, and a hostile transcript."""
    rows = Rows()
    voices = ("ann", "ann", "bob", "bob", "bob")
    plan = [
        replace(
            planned(number, trial_id="time (5)" if number == 5 else ""),
            recognised=rule,
            alternatives=("tell me the time please",),
            conditions=(("voice", voice),),
        )
        for number, voice in enumerate(voices, 1)
    ]
    rows.start(*plan)
    asked(rows, "time-1", "What time is it?")
    asked(rows, "time-2", "what lime is", "what time is it")
    asked(rows, "time-3", None, "what time is it")
    asked(rows, "time-4", "Tell me the dime please", "what time is it")
    asked(rows, "time (5)", HOSTILE, "")
    return rows


@pytest.fixture
def query_session(tmp_path: Path) -> Path:
    return stored(queries(), tmp_path / "s1")


def test_totals_include_first_and_final_wer(query_session: Path) -> None:
    lines = harness("show", query_session).output.splitlines()
    (first,) = [line for line in lines if line.startswith("WER, first attempt")]
    (final,) = [line for line in lines if line.startswith("WER, final attempt")]
    assert " of 17 words = " in first
    assert final.startswith("WER, final attempt   4 of 20 words = 20.0 % (95 % over attempts ")
    assert max(map(len, (first, final))) <= 80
    assert "transcripts          4 of 5 first and 5 of 5 final attempts; words compared as spoken" in lines
    assert "attempts             1 at the 1st (20.0 %), 4 at the 2nd (80.0 %), 0 not recognised (0.00 %)" in lines


def test_show_prints_wer_by_group(query_session: Path) -> None:
    every = harness("show", query_session, "--wer").output
    assert "words compared as spoken" in every
    assert [line.split()[1] for line in every.splitlines() if line.startswith("by ")] == ["voice"]
    lines = harness("show", query_session, "--wer", "--by", "voice").output.splitlines()
    row = next(number for number, line in enumerate(lines) if line.startswith("ann"))
    cells = lines[row].split()
    assert cells[:3] == ["ann", "first", "25.0"]
    assert cells[-7:] == ["1", "1", "0", "8", "2", "of", "2"]
    assert lines[row + 1].split()[:2] == ["final", "0.00"]
    none = harness("show", query_session, "--wer", "--by", "position", "--by", "query_class").output
    assert none.count("(none)") == 2


@pytest.mark.parametrize("width", [80, 100, 200])
def test_tables_fit_the_terminal_width(width: int) -> None:
    figures = SessionFigures()
    rows = Rows.of(replace(planned(1), query_class="北京 \x1b[31m" * 20))
    asked(rows, "time-1", HOSTILE)
    for entry in rows.entries:
        figures.add(entry)
    for line in summary.wer_tables(heard_in(figures.snapshot().trials), "spoken", width=width):
        assert width_of(line) <= width
        assert line.isprintable()


def test_the_unit_of_an_interval_is_named_and_no_figure_is_cut() -> None:
    wrong = WordCounts(10, 5, 0, 123_456, 1, 1)
    transcripts = GroupTranscripts.of((f"q{number}", wrong) for number in range(6))
    assert " (95 % over queries " in summary.wer_in_words(transcripts)
    trials = tuple(
        TranscribedTrial(replace(planned(1), query_id=f"q{number}"), "", AttemptTranscript(1, "", wrong), None)
        for number in range(6)
    )
    first, final = summary.wer_tables(trials, "plain", [Grouping.KIND], width=80)[-2:]
    assert first.split()[-8:] == ["query", "30", "0", "740736", "90", "6", "of", "6"]
    assert final.split() == ["final", "n/a", "n/a", "0", "0", "0", "0", "0", "of", "0"]


def test_rates_without_words_are_not_available() -> None:
    nothing = GroupTranscripts.of([("time", None), ("time", None)])
    assert summary.wer_lines(GroupTranscripts(), GroupTranscripts(), "plain") == []
    assert summary.wer_lines(nothing, nothing, "plain")[0] == "WER, first attempt   n/a (no reference words)"
    inserted = GroupTranscripts.of([("time", WordCounts(insertions=2, sentences=1, sentences_with_error=1))])
    assert summary.wer_in_words(inserted) == "n/a (no reference words, 2 inserted)"
    assert summary.wer_tables((), "plain") == ["no attempts that could have a transcript"]


def test_options_that_exclude_each_other_are_refused(query_session: Path) -> None:
    for wrong in (["--wer", "--csv"], ["--by", "voice"]):
        refused = harness("show", query_session, *wrong)
        assert isinstance(refused.exception, InputError)


def test_csv_has_the_word_errors_of_the_deciding_attempt(tmp_path: Path) -> None:
    rows = queries()
    rows.start()
    table = list(csv.DictReader(io.StringIO(harness("show", stored(queries(), tmp_path / "s"), "--csv").output)))
    edits = [(row["substitutions"], row["deletions"], row["insertions"], row["normalisation"]) for row in table]
    assert edits == [*[("0", "0", "0", "spoken")] * 4, ("0", "4", "0", "spoken")]
    header = list(table[0])
    # What comes later is added after them, so that whoever reads columns by place goes on doing so.
    assert header[-11:] == [
        "unproven_s", "substitutions", "deletions", "insertions", "normalisation",
        "expected", "understood", "intents_right", "frame_right", "recording", "speaker",
    ]  # fmt: skip


@pytest.fixture
def commands() -> WakeRows:
    trials = [wake_trial(number, TrialKind.COMMAND, ("kitchen", "den")) for number in (1, 2)]
    rows = WakeRows()
    rows.plan(*trials)
    rows.play(trials[0], words=[("kitchen", 2.6, "turn on the light"), ("den", 2.7, "turn it off the light")])
    rows.play(trials[1], words=[("kitchen", 2.6, "intent:lights"), ("den", 2.8, "turn on light")])
    return rows


def test_csv_has_the_word_errors_of_commands(commands: WakeRows, tmp_path: Path) -> None:
    table = list(csv.DictReader(io.StringIO(harness("show", stored(commands, tmp_path / "s"), "--csv").output)))
    edits = {(row["trial"], row["device"]): (row["errors"], row["words"], row["substitutions"]) for row in table}
    assert edits == {
        ("command-1", "kitchen"): ("0", "4", "0"),
        ("command-1", "den"): ("2", "4", "1"),
        ("command-2", "kitchen"): ("", "", ""),
        ("command-2", "den"): ("1", "4", "0"),
    }


def test_csv_has_the_first_sound_after_a_command(tmp_path: Path) -> None:
    command = replace(wake_trial(1, TrialKind.COMMAND, injected=False), microphone="mic")
    rows = rows_of(command)
    rows.play(command, [("kitchen", 1.7)], words=[("kitchen", 3.0, "turn on the light")])
    rows.add(Observed(SpeechStarted("mic", Stamp(rows.at_s + 2.0), -20.0), command.id, 1, 1))
    sounds = known(rows.device().first_sounds.heard.p50)
    (row,) = csv.DictReader(io.StringIO(harness("show", stored(rows, tmp_path / "s"), "--csv").output))
    assert float(row["first_sound_ms"]) == pytest.approx(1000 * sounds.value_s, abs=0.1)
    assert float(row["first_sound_error_ms"]) == pytest.approx(1000 * sounds.clock_error_s, abs=0.1)


def scored(queried: Path, name: str) -> dict[str, int]:
    target = queried / f"{name}.json"
    succeeded(harness("score", "-r", queried / f"{name}.ref.trn", "-H", queried / f"{name}.trn", "--json", target))
    report = json.loads(target.read_text(encoding="utf-8"))
    totals = (report if "totals" in report else report["systems"][0])["totals"]
    return {name: totals[name] for name in ("correct", "substitutions", "deletions", "insertions")}


RULES = [
    RecognitionRule(),
    RecognitionRule(Normalisation.PLAIN),
    RecognitionRule(Normalisation.VERBATIM),
    RecognitionRule(Normalisation.SNOR),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_scored_again_from_trn_files_the_counts_are_the_same(rule: RecognitionRule, tmp_path: Path) -> None:
    rows = queries(rule)
    session, target = stored(rows, tmp_path / "s"), tmp_path / "trn"
    result = succeeded(harness("export", session, "--trn", target))
    assert f"{target / 'first'}.ref.trn" in result.output
    heard = words_of(heard_in(progress_of(rows).trials))
    for name, words in (("first", heard.first), ("final", heard.final)):
        counts = words.counts
        assert scored(target, name) == {
            "correct": counts.correct,
            "substitutions": counts.substitutions,
            "deletions": counts.deletions,
            "insertions": counts.insertions,
        }
    ids = [line.rpartition("(")[2].rstrip(")") for line in (target / "final.trn").read_text("utf-8").splitlines()]
    assert ids == ["ann-time-1", "ann-time-2", "bob-time-3", "bob-time-4", "bob-time_5_"]


def test_trn_files_of_commands_name_their_device(commands: WakeRows, tmp_path: Path) -> None:
    assert harness("export", stored(commands, tmp_path / "s"), "--trn", tmp_path / "trn").exit_code == 0
    assert (tmp_path / "trn" / "first.trn").read_text("utf-8").splitlines() == [
        "turn on the light (espeak.en.us-command-1.kitchen)",
        "turn it off the light (espeak.en.us-command-1.den)",
        "turn on light (espeak.en.us-command-2.den)",
    ]
    assert harness("export", tmp_path / "s", "--trn", tmp_path / "den", "--device", "den").exit_code == 0
    assert len((tmp_path / "den" / "first.trn").read_text("utf-8").splitlines()) == 2
    figures = wake_of(commands.entries)
    counts = words_of(heard_in((), figures)).final.counts
    totals = scored(tmp_path / "trn", "final")
    assert (totals["substitutions"], totals["deletions"], totals["insertions"]) == (
        counts.substitutions, counts.deletions, counts.insertions
    )  # fmt: skip


def test_a_session_without_transcripts_has_no_trn(tmp_path: Path) -> None:
    rows = Rows.of(planned(1))
    rows.trial("time-1")
    session = stored(rows, tmp_path / "s")
    for more in ([], ["--device", "attic"]):
        refused = harness("export", session, "--trn", tmp_path / "trn", *more)
        assert isinstance(refused.exception, InputError)
    assert not (tmp_path / "trn").exists()


def test_json_in_a_file_leaves_standard_output_to_another_form(query_session: Path, tmp_path: Path) -> None:
    result = succeeded(harness("export", query_session, "--json", tmp_path / "results.json", "--csv", "-"))
    assert result.stdout.startswith("number,trial,")
    assert "heard" in json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))


def test_a_session_of_queries_is_exported_as_json(query_session: Path) -> None:
    result = succeeded(harness("export", query_session, "--json"))
    heard = json.loads(result.stdout)["heard"]
    assert heard["normalisation"] == "spoken"
    assert (heard["totals"]["final"]["deletions"], heard["totals"]["final"]["wer"]) == (4, 0.2)
    assert (heard["totals"]["first"]["attempts"], heard["totals"]["first"]["sentences"]) == (5, 4)
    assert heard["attempts_to_recognition"][1] == {"attempts": 2, "trials": 4, "of": 5}
    assert [row["label"] for row in heard["by"]["voice"]] == ["ann", "bob"]
    assert heard["by"]["position"][0]["label"] is None


@pytest.mark.parametrize(
    ("options", "without"),
    [
        (("--words", "--junit"), "--words applies to wake-evaluation logs"),
        (("--words", "--json"), "--words applies to wake-evaluation logs"),
        (("--words", "--trn", "there"), "--words applies to wake-evaluation logs"),
        (("--reviewed", "--junit", "-"), "--reviewed applies to"),
        (("--reviewed", "--trn", "there"), "--reviewed applies to"),
        (("--device", "kitchen", "--junit", "-"), "--device applies to"),
    ],
)
def test_dependent_option_without_its_main_option_is_refused(
    commands: WakeRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], without: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = harness("export", stored(commands, tmp_path / "s"), *options)
    assert isinstance(refused.exception, InputError)
    assert refused.exception.what.startswith(without)
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    assert harness("export", "s", "--json", "--reviewed").exit_code == 0
    main_options = ("--trn", "there", "--wake-log", "den.log")
    assert harness("export", "s", *main_options, "--words", "--reviewed", "--device", "den").exit_code == 0


def test_transcripts_typed_by_the_operator_are_marked(tmp_path: Path) -> None:
    rows = Rows.of(planned(1), planned(2))
    for number, heard, evidence in ((1, "what lime is it", EvidenceSource.OPERATOR), (2, ASKED, EvidenceSource.DEVICE)):
        rows.trial(f"time-{number}", heard=heard, evidence=evidence)
    session = stored(rows, tmp_path / "s")
    note = "by the operator, mostly for misheard queries: 1 first and 1 final attempts"
    assert f"typed                {note}" in harness("show", session).output.splitlines()
    assert f"transcripts typed {note}" in harness("show", session, "--wer").output.splitlines()
    table = list(csv.DictReader(io.StringIO(harness("show", session, "--csv").output)))
    assert [row["evidence"] for row in table] == ["operator", "device"]
    heard = json.loads(harness("export", session, "--json").stdout)["heard"]
    assert [heard["totals"][which]["typed"] for which in ("first", "final")] == [1, 1]


def test_the_next_steps_work_for_a_folder_with_blanks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = summary.next_steps(SessionFigures().snapshot(), tmp_path / "my tests" / "s")
    assert "results:        harness report show 'my tests/s'" in lines
