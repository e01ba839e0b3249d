"""The log of an offline evaluation: every line in its form, in list order, read back into its own totals."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.offline import (
    CountingRules,
    EngineFacts,
    EngineKind,
    Evaluation,
    FileOutcome,
    ListKind,
    OfflineSpot,
    OperatingPoint,
    RejectReason,
    Said,
    SpotRule,
    Task,
)
from harness.offline.figures.figures import Figures
from harness.offline.journal import Journal, JournalFile
from harness.offline.journal_lines import JournalHeader, JournalledOutcome, JournalMark, ListFacts, Shard, WorkerUse
from harness.offline.reports.log import (
    EvaluationRun,
    head_of,
    point_lines,
    real_time_factor,
    run_of,
    sound_lines,
    summary_json,
    summary_line,
    write_log,
    writing_line,
)
from harness.offline.wake_log import WakeLog, computed_totals, differences, summary
from harness.offline.wake_log_reading import read
from tests.unit.offline.figures.outcomes import outcome, said, spot

DATA = Path(__file__).parents[3] / "data" / "offline"
INV, OOV, REF = ListKind.INV, ListKind.OOV, ListKind.REFERENCED
FACTS = EngineFacts(
    EngineKind.WAKE, "2.5.0", 16_000, ("alexa",), "f" * 64, "Apache-2.0", 1000, SpotRule(0.97, 16_000, 8000), 10,
    tuple(OperatingPoint(number, 1 - number / 25) for number in range(1, 21)),
)  # fmt: skip


def header(counting: CountingRules, planned: int = 0, shard: Shard | None = None) -> JournalHeader:
    return JournalHeader(
        Evaluation(Task("microwakeword", "alexa", (("operating-point", "10"),))),
        counting,
        FACTS,
        (ListFacts("inv list.txt", "a" * 64, INV, 3), ListFacts("oov.txt", "b" * 64, OOV, 3)),
        planned,
        1_709_287_200.1234,
        ("harness", "evaluate", "-t", "microwakeword:alexa", "-i", "inv list.txt"),
        (("voice-harness", "0.1.0"), ("numpy", "2.0")),
        shard,
        ("/data", "/lists"),
        (("x-path", "fast"),),
    )


def run(counting: CountingRules, outcomes: int, planned: int | None = None, duration_s: float = 2.0) -> EvaluationRun:
    return EvaluationRun(
        header(counting, outcomes if planned is None else planned), outcomes, 1_709_287_202.1, duration_s
    )


def written(outcomes: Sequence[FileOutcome], counting: CountingRules | None = None) -> tuple[str, Figures]:
    stream = io.StringIO()
    journalled = [
        JournalledOutcome(outcome, f"{outcome.kind.value}{number}.wav") for number, outcome in enumerate(outcomes)
    ]
    figures = write_log(stream, run(counting or CountingRules(), len(outcomes)), journalled)
    return stream.getvalue(), figures


def events(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.match(r"(INV|OOV|CMD|STT)[A-Z]{2}|REJECT|ERROR", line)]


PLAIN, WORDS = CountingRules(), CountingRules(words=True, lead_in_ms=0)


@pytest.mark.parametrize(
    ("file_outcome", "counting", "expected"),
    [
        (outcome(INV, spot(1.2, 1.9)), PLAIN, ['INVTA "f" 1200 1900 "alexa" sv-score 0']),
        (outcome(INV, spot(1.2, 1.9, score=0.98765432)), PLAIN,
         ['INVTA "f" 1200 1900 "alexa" sv-score 0 x-score=0.987654']),
        (outcome(INV), PLAIN, ['INVFR "f"']),
        (outcome(INV, spot(0.2, 0.8), spot(1.2, 1.25)), PLAIN,
         ['INVFA "f" 200 800 "alexa" sv-score 0', 'INVTA "f" 1200 1250 "alexa" sv-score 0', 'INVTX "f" 2 spots']),
        (FileOutcome(OOV, 0, 99_999, 16_000, 16_000, (OfflineSpot('say "hi"\n', 1, 40),)), PLAIN,
         ['OOVFA "f" 0.062 2.5 "say \\"hi\\"\\n" sv-score 0']),
        (outcome(REF, said=said("on"), reference="on"), PLAIN, ['CMDTA "f" 0 3000 "on" "on" sv-score 0']),
        (outcome(REF, said=said("off"), reference="on"), PLAIN, ['CMDSB "f" 0 3000 "off" "on" sv-score 0']),
        (outcome(REF, reference="turn it on"), PLAIN, ['CMDFR "f" "turn it on"']),
        (outcome(REF, said=said("a b"), reference="a b"), WORDS, ['STTTA "f" 0 3000 "a b" "a b" 2, 0, 0, 0, 0.000']),
        (outcome(REF, said=said("a c d"), reference="a b"), WORDS,
         ['STTSB "f" 0 3000 "a c d" "a b" 2, 1, 1, 0, 100.000']),
        (outcome(REF, said=said("thank you"), reference=""), WORDS,
         ['STTSB "f" 0 3000 "thank you" "" 0, 0, 2, 0, n/a']),
        (outcome(REF, reference="a b"), WORDS, ['STTFR "f" "a b"']),
        (outcome(OOV, rejected=RejectReason.RATE, detail="48000 Hz, and the engine wants 16000"), PLAIN,
         ['REJECT "f" wrong rate x-detail="48000 Hz, and the engine wants 16000"']),
        (outcome(INV, rejected=RejectReason.CRASH, error="signal 11"), PLAIN,
         ['ERROR "f": signal 11', 'REJECT "f" engine crash']),
        (outcome(REF, said=said("a b"), reference="."), CountingRules(normalise=True),
         ['REJECT "f" unreadable reference x-detail="it has no words"']),
        *((outcome(INV, rejected=reason), PLAIN, [f'REJECT "f" {reason.value}']) for reason in RejectReason),
    ],
)  # fmt: skip
def test_each_log_key_has_its_line_format(
    file_outcome: FileOutcome, counting: CountingRules, expected: list[str]
) -> None:
    stream = io.StringIO()
    write_log(stream, run(counting, 1), [JournalledOutcome(file_outcome, "f")])
    assert events(stream.getvalue()) == expected
    assert differences(read(stream.getvalue())) == ()


def test_info_lines_state_files_and_hours() -> None:
    text, _ = written(
        [
            outcome(INV, spot(1.0, 1.5), seconds=4),
            outcome(INV, spot(0.1, 0.5), seconds=3.7504),
            outcome(OOV, spot(1, 2), seconds=3600.25),
            outcome(OOV, rejected=RejectReason.EMPTY),
        ],
        CountingRules(count_in_vocabulary=True),
    )
    for line in (DATA / "info_lines.txt").read_text(encoding="utf-8").splitlines():
        assert line in text.splitlines()
    assert "x-partial" not in text
    assert "x-shard" not in text
    assert "INFO x-farate-interval 0.2417 to 7.2097 / hr, Garwood, 95 %" in text
    assert "INFO x-frratio-interval 1.2579 to 98.7421 %, Clopper-Pearson, 95 %" in text
    assert "INFO x-frratio-interval-wilson 9.4531 to 90.5469 %, Wilson, 95 %" in text


def test_word_totals_are_logged() -> None:
    text, figures = written(
        [outcome(REF, said=said("a c"), reference="a b"), outcome(REF, reference="c d e")],
        CountingRules(words=True, lead_in_ms=0),
    )
    totals = text[text.index("FRCOUNT") :]
    assert totals == (
        "FRCOUNT 1.0\nFRRATIO 50.0000 %\nFR+SBCOUNT 2.0\nFR+SBRATIO 100.0000 %\nTACOUNT 0\nWER 80.000 %\n"
        "WER_WORDS 5\nWER_SUBSTITUTIONS 1\nWER_INSERTIONS 0\nWER_DELETIONS 3\n"
    )
    assert summary_line(run(WORDS, 2, duration_s=4), figures) == (
        "2 files, 0.002 hr, 5 Words, 1 Substitutions, 0 Insertions, 3 Deletions, 80.000% WER, 2.0 xRT"
    )


def test_the_percentage_of_commands_is_of_all_that_went_wrong() -> None:
    file_outcomes = [outcome(REF, said=said(word), reference="on") for word in ("on", "off", "off")] + [
        outcome(REF, reference="on")
    ]
    _, figures = written(file_outcomes)
    assert summary_line(run(CountingRules(), 4), figures).endswith("0 FA n/a/hr, 75.00% FR, 1 TA, 8.0x RT")


def test_console_lines_have_the_manuals_forms() -> None:
    log = WakeLog(
        (("inv-files", "2612"), ("inv-hours", "23:07:39.285"), ("oov-files", "686"), ("oov-hours", "142:59:01.345"))
    )
    assert writing_line("alexa-fr.log") == 'Writing log to "alexa-fr.log"'
    assert list(sound_lines(log)) == [
        "INV: 2612 files, 23.128 hr, 23:07:39.285",
        "OOV: 686 files, 142.984 hr, 142:59:01.345",
        "Total: 3298 files, 166.111 hr, 166:06:40.630",
    ]
    assert [line.split(":")[0] for line in sound_lines(log, inv=False)] == ["OOV", "Total"]
    assert list(point_lines(10, range(1, 21))) == [
        "Using operating point 10.",
        "Available operating points: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20.",
    ]
    assert list(point_lines(None, ())) == []


def test_partial_logs_and_shards_are_marked() -> None:
    stream = io.StringIO()
    part = EvaluationRun(header(CountingRules(), 9, Shard(2, 3)), 1, 0.0, 1.0)
    figures = write_log(stream, part, [JournalledOutcome(outcome(INV, spot(1.2, 1.9)), "a.wav")])
    assert "INFO x-partial 1 of 9 files\n" in stream.getvalue()
    assert "INFO x-shard 2/3\n" in stream.getvalue()
    assert summary_json(part, figures)["partial"] is True


def test_a_journal_becomes_a_log_in_list_order(tmp_path: Path) -> None:
    files = [outcome(OOV, spot(5, 6)), *(outcome(INV, spot(1.2, 1.9)) for _ in range(5))]
    with Journal.create(tmp_path / "a.jsonl", header(CountingRules(), 6)) as journal:
        for file in reversed(files):
            journal.append(file, f"{file.kind.value}-{file.number}")
        journal.close(JournalMark.COMPLETE)
    journal_file = JournalFile(tmp_path / "a.jsonl")
    stream = io.StringIO()
    write_log(stream, run_of(journal_file), journal_file.outcomes())
    names = [line.split('"')[1] for line in events(stream.getvalue())]
    assert names == [f"inv-{file.number}" for file in files[1:]] + [f"oov-{files[0].number}"]


def test_speed_of_a_killed_run_covers_only_timed_files(tmp_path: Path) -> None:
    now = [100.0]
    journal = Journal.create(tmp_path / "a.jsonl", header(CountingRules(), 9), lambda: now[0])
    now[0] += 4e-6
    journal.append(outcome(OOV, seconds=93.016), "a.wav")
    journal.abandon()
    log_text, summary_text = _as_told(tmp_path / "a.jsonl")
    assert "real-time-factor" not in log_text
    assert summary_text.endswith("0 FA 0.00/hr, no in-vocabulary files, 0 TA")
    now[0] = 200.0
    journal = Journal.reopen(tmp_path / "a.jsonl", header(CountingRules(), 9), lambda: now[0])
    now[0] += 10
    journal.append(FileOutcome(OOV, 7, 16_000 * 500, 16_000, 16_000), "b.wav")
    journal.note_lost_worker("a worker was ended by SIGKILL at c.wav")
    journal.append(FileOutcome(OOV, 8, 16_000 * 100, 16_000, 16_000), "c.wav")
    journal.abandon()
    log_text, summary_text = _as_told(tmp_path / "a.jsonl")
    assert "INFO real-time-factor 50.0\n" in log_text
    assert summary_text.endswith(", 50.0x RT")
    assert 'INFO x-lost-worker "a worker was ended by SIGKILL at c.wav"\n' in log_text


@pytest.mark.parametrize(("cached_s", "speed"), [(0.0, 50.0), (20.0, 40.0), (60.0, None), (100.0, None)])
def test_speed_covers_only_audio_that_the_engine_heard(cached_s: float, speed: float | None) -> None:
    _, figures = written([outcome(OOV, seconds=100)])
    used = WorkerUse(cached_s=cached_s, cached_files=1)
    assert real_time_factor(replace(run(CountingRules(), 1), used=used), figures.counts) == speed


def test_the_summary_distinguishes_rejected_files_from_none() -> None:
    text, figures = written([outcome(INV, rejected=RejectReason.SHORT) for _ in range(3)])
    assert "FA n/a/hr, all in-vocabulary files rejected, 0 TA" in summary_line(run(PLAIN, 3), figures)
    assert "FA n/a/hr, all in-vocabulary files rejected, 0 TA" in summary(read(text))
    assert "FA n/a/hr, no in-vocabulary files, 0 TA" in summary_line(run(PLAIN, 3, 6), figures)


def _as_told(journal: Path) -> tuple[str, str]:
    journal_file, stream = JournalFile(journal), io.StringIO()
    figures = write_log(stream, run_of(journal_file), journal_file.outcomes())
    return stream.getvalue(), summary_line(run_of(journal_file), figures)


def test_json_has_exact_samples_and_nulls_over_nothing() -> None:
    file_outcomes = [
        outcome(OOV, spot(1, 2), seconds=10),
        FileOutcome(OOV, 5, 44_101, 44_100, 16_000),
        outcome(OOV, rejected=RejectReason.HANG, error="no answer"),
    ]
    _, figures = written(file_outcomes)
    report = summary_json(run(CountingRules(), 3), figures)
    assert report["samples"]["oov"] == {"16000": 160_000, "44100": 44_101}
    assert report["totals"]["FACOUNT"] == 1
    assert report["totals"]["FRRATIO"] is None
    assert report["intervals_95"]["FRRATIO"] is None
    assert report["rejected"] == {"engine hang": 1}
    assert report["lines"] == {"ERROR": 1, "OOVFA": 1, "REJECT": 1}


spots = st.lists(
    st.builds(lambda start, more, score: OfflineSpot("a b", start, start + more, score),
              st.integers(0, 60_000), st.integers(0, 20_000), st.none() | st.floats(0, 1)),
    max_size=4,
).map(tuple)  # fmt: skip
texts = st.sampled_from(["", "a b", "A, b!", "c", 'say "x"\n', "a b c d"])
outcomes = st.lists(
    st.builds(
        FileOutcome,
        st.sampled_from([INV, OOV]) | st.just(REF),
        st.integers(0, 10**6),
        st.integers(0, 500_000),
        st.sampled_from([8000, 11_025, 16_000, 48_000]),
        st.just(16_000),
        spots,
        st.none() | st.builds(Said, texts, st.integers(0, 10), st.integers(20, 60_000)),
        texts,
        st.none() | st.sampled_from(RejectReason),
        texts,
        texts,
    ),
    max_size=12,
)
countings = st.one_of(
    st.builds(CountingRules, st.booleans(), st.booleans(), st.just(False), st.sampled_from([0.0, 1000.0])),
    st.builds(CountingRules, st.just(False), st.booleans(), st.just(True), st.just(0.0)),
)


@given(outcomes, countings)
def test_a_written_log_reads_back_with_its_totals(of: list[FileOutcome], counting: CountingRules) -> None:
    text, figures = written(of, counting)
    back = read(text)
    assert differences(back) == ()
    assert list(computed_totals(back)) == [key for key, _ in back.totals]
    assert computed_totals(back) == pytest.approx(figures.totals)
    assert summary_line(run(counting, 1), figures).split(", ")[:-1] == summary(back).split(", ")[:-1]
    assert head_of(run(counting, 1), figures).seconds("inv") == back.seconds("inv")
