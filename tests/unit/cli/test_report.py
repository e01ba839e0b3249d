"""`harness report`, as a user types it."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli import group
from harness.model.errors import InputError
from harness.model.offline import CountingRules
from harness.offline.journal import Journal
from harness.offline.reports.log_summary import read_sums, summarise_log
from tests.command import succeeded
from tests.unit.offline.figures.outcomes import outcome, spot
from tests.unit.offline.reports.test_log import INV, header
from tests.unit.session.figures.rows import Rows, planned
from tests.written_sessions import written

ORIGINAL = """\
INFO start-time 2024-03-01 10:00:00.000 UTC
INFO sdk-name TrulyHandsfree
INFO sdk-version 7.1.0
INFO command-line snsr-eval-batch -t alexa.snsr -i inv.txt -o oov.txt
INFO operating-point 10
INFO inv-files 3
INFO inv-seconds 12
INFO inv-hours 0:00:12.000
INFO oov-files 1
INFO oov-seconds 36000
INFO oov-hours 010:00:00.000
INFO rejected-files 1
INFO real-time-factor 658.9
INVTA "a.wav" 1010 1600 "alexa" sv-score 0
INVTA "b.wav" 1010 1600 "alexa" sv-score 0
INVFR "c.wav"
OOVFA "long one.wav" 12 345 "alexa" sv-score 0
REJECT "odd.wav" unreadable
FACOUNT 1
FARATE 0.10 / hr
FRCOUNT 1.000000
FRRATIO 33.33 %
TACOUNT 2
"""


def report(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "100"}).invoke(group, ["report", *map(str, arguments)])


def refused(result: Result) -> str:
    """The words of an error of wrong input, whose status is 2."""
    assert isinstance(result.exception, InputError), result.output
    assert result.exception.exit_code == 2
    return str(result.exception)


def test_a_log_of_the_original_tool_is_summarised(tmp_path: Path) -> None:
    (tmp_path / "old.log").write_text(ORIGINAL)
    result = succeeded(report(tmp_path / "old.log"))
    assert result.stdout.splitlines() == [
        "INV: 3 files, 0.003 hr, 0:00:12.000",
        "OOV: 1 files, 10.000 hr, 10:00:00.000",
        "Total: 4 files, 10.003 hr, 10:00:12.000",
        "Using operating point 10.",
        "4 files, 10.003 hr, 1 FA 0.10/hr, 33.33% FR, 2 TA, 658.9x RT",
        "False accepts: 95 % interval 0.0025–0.56 per hour (Garwood).",
        "False rejects: 95 % interval 0.84–90.6 % (Clopper-Pearson).",
        "Missed: c.wav.",
        "Rejected: 1 unreadable.",
    ]
    stated = "2.5000 to 91.0000 %, over 2 voices, 95 %"
    (tmp_path / "voices.log").write_text(f"INFO x-frratio-interval {stated}\n{ORIGINAL}")
    over_voices = report(tmp_path / "voices.log").stdout
    assert f"False rejects: {stated}.\n" in over_voices
    assert "Clopper-Pearson" not in over_voices
    intervals = json.loads(report(tmp_path / "voices.log", "--json").stdout)["intervals_95"]
    assert (intervals["FRRATIO"], intervals["FRRATIO_wilson"]) == (pytest.approx([2.5, 91.0]), None)
    (tmp_path / "odd.log").write_text(ORIGINAL.replace("TACOUNT 2", "TACOUNT 3"))
    result = report(tmp_path / "odd.log")
    assert result.exit_code == 3
    assert result.stdout.splitlines()[-1] == "Mismatch: TACOUNT is 3, but its lines add up to 2."
    summary = json.loads(report(tmp_path / "odd.log", "--json").stdout)
    assert summary["totals"]["TACOUNT"] == 2
    assert summary["stated_totals"]["TACOUNT"] == 3
    assert summary["totals"]["WER"] is None
    assert summary["differences"] == ["TACOUNT is 3, but its lines add up to 2"]


@pytest.mark.parametrize("stated", [None, (12.5, 60.0)])
def test_a_log_in_conditions_has_only_the_intervals_that_it_states(
    tmp_path: Path, stated: tuple[float, float] | None
) -> None:
    """Its lines do not show which of them are plays of one file."""
    words = 'STTSB "{}" 0 900 "turn on" "turn off" 2, 1, 0, 0, 50.000'
    lines = ["INFO inv-files 2", *(words.format(name) for name in ("a.wav", "a.wav @ speed 2"))]
    (tmp_path / "one.log").write_text("\n".join(lines))
    alone = json.loads(report(tmp_path / "one.log", "--json").stdout)["intervals_95"]
    lines += ['INFO x-condition "as it is"', 'INFO x-condition "speed 2"']
    if stated is not None:
        for name in ("x-fr+sbratio-interval", "x-wer-interval"):
            lines.append(f"INFO {name} {stated[0]} to {stated[1]} %, by file, 95 %")
    (tmp_path / "two.log").write_text("\n".join(lines))
    both = json.loads(report(tmp_path / "two.log", "--json").stdout)["intervals_95"]
    assert None not in (alone["FR+SBRATIO"], alone["FR+SBRATIO_wilson"], alone["WER"])
    expected = None if stated is None else pytest.approx(list(stated))
    assert (both["FR+SBRATIO"], both["WER"], both["FR+SBRATIO_wilson"]) == (expected, expected, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "this log is empty"),
        ("a.wav\n", "unknown key 'a.wav'"),
        ("INFO inv-files many\n", "an INFO line does not state a valid number"),
        ("INFO x-task a\nINFO inv-files\n", "an INFO line does not state a valid number"),
        ("INFO oov-hours 3\n", "an INFO line does not state a valid number"),
        ("\0\0\0", "unknown key"),
    ],
)
def test_invalid_log_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.log").write_text(text)
    assert message in refused(report(tmp_path / "x.log"))


def test_a_log_on_standard_input_is_read_and_hostile_names_are_escaped(tmp_path: Path) -> None:
    text = ORIGINAL.replace('REJECT "odd.wav" unreadable', 'REJECT "odd.wav" \x1b[31munreadable')
    result = succeeded(CliRunner().invoke(group, ["report", "-"], input=text))
    assert "\x1b" not in result.stdout
    assert "Rejected: 1 \\e[31munreadable." in result.stdout


def test_partial_and_shard_logs_are_marked_in_the_report(tmp_path: Path) -> None:
    marks = "INFO x-partial 4 of 9 files\nINFO x-shard 2/3\nINFO x-warning false accepts come in clusters\n"
    (tmp_path / "p.log").write_text(marks + ORIGINAL)
    lines = report(tmp_path / "p.log").stdout.splitlines()
    assert lines[:2] == ["Partial: 4 of 9 files.", "Shard 2/3."]
    (tmp_path / "q.log").write_text(f'INFO x-list oov "o.txt" {"0" * 64}\nREJECT "a.wav" wrong rate\n')
    assert "OOV: 0 files, 0.000 hr, 0:00:00.000" in report(tmp_path / "q.log").stdout.splitlines()
    assert lines[-1] == "Warning: false accepts come in clusters."


def test_naming_a_session_writes_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "sessions" / "s1", Rows.of(planned(1)))
    monkeypatch.chdir(tmp_path)
    for name in ("s1", "sessions/s1"):
        result = CliRunner().invoke(group, ["report", name])
        assert isinstance(result.exception, InputError)
        assert f"harness report {name} --html report.html" in result.exception.remedy
        export = report(name, "--html", tmp_path / "page.html", "--junit", tmp_path / "junit.xml")
        assert isinstance(export.exception, InputError)
        assert f"harness report export {name} --junit FILE" in export.exception.remedy


def test_missing_file_lines_in_our_log_are_detected(tmp_path: Path) -> None:
    (tmp_path / "o.log").write_text("INFO x-task a:b\n" + ORIGINAL.replace("inv-files 3", "inv-files 4"))
    result = report(tmp_path / "o.log")
    assert result.exit_code == 3
    assert "Mismatch: inv-files is 4, but its lines add up to 3." in result.stdout


def test_the_journal_of_a_killed_run_is_summarised(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "a.log.jsonl", header(CountingRules(), planned=3))
    journal.append(outcome(INV, spot(1.2, 1.9)), "a.wav")
    journal.append(outcome(INV), "b.wav")
    journal.abandon()
    result = succeeded(report(tmp_path / "a.log.jsonl"))
    assert result.stdout.startswith("Partial: 2 of 3 files.\nINV: 2 files, ")
    assert "50.00% FR, 1 TA" in result.stdout
    with (tmp_path / "a.log.jsonl").open("rb") as file:
        first = file.readline()
    (tmp_path / "odd.jsonl").write_bytes(first[:40])
    assert "is not an evaluation journal" in refused(report(tmp_path / "odd.jsonl"))


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    def peak(files: int) -> int:
        spots = "".join(f'INVTA "/data/{n:06d}.wav" 1010 1600 "alexa" sv-score 0\n' for n in range(files))
        (tmp_path / "many.log").write_text(spots + f"TACOUNT {files}\n")
        tracemalloc.start()
        try:
            log, sums = read_sums(tmp_path / "many.log", "many.log")
            assert summarise_log(log, sums).totals["TACOUNT"] == files
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(3000) < peak(500) + 20_000
