"""`harness rate --program`: what a program gets, what is stored, faults, limits, and its place beside people."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from harness.base.child_process import start_ticks
from harness.cli import group
from harness.model.errors import HarnessError, InputError
from harness.model.judgment import Category, Judgment, in_force
from harness.model.record import JudgmentGiven
from harness.rating.program_rater import ProgramRater
from harness.session.figures.trials import SessionTrials
from harness.session.log.reader import LogReader, rating_rows
from tests.command import succeeded
from tests.files import file_with
from tests.rating_sessions import rating_session
from tests.seen import until

HARNESS = (sys.executable, "-c", "from harness.cli import main; main()")

EXAMPLE = Path(__file__).parents[3] / "examples" / "rule_rater.py"
FAR_END = """
import json, os, sys, time
def say(line): print(json.dumps(line), flush=True)
say({"protocol": 1, "name": "far", "version": os.environ.get("FAR_VERSION", "1")})
done = 0
for line in sys.stdin:
    item = json.loads(line)
    with open(sys.argv[1], "a") as got:
        got.write(json.dumps({**item, "riff": open(item["clip"], "rb").read(4).decode()}) + "\\n")
    done += 1
"""
GOOD = '    say({"category": "wrong", "confidence": 0.75, "reason": "because\\x1b[31m"})\n'
FAULTS = {
    "crash": (
        '    sys.exit("no key for the model")\n',
        "ended with status 1 before its answer",
        "no key for the model",
    ),
    "garbage": ('    print("hello there", flush=True)\n', "not a JSON object", "'hello there'"),
    "category": (
        '    say({"category": "corect", "confidence": 1, "reason": ""})\n',
        "category that the guide does not have",
        "Did you mean 'correct'?",
    ),
    "confidence": (
        '    say({"category": "wrong", "confidence": 1.5, "reason": ""})\n',
        "confidence 1.5, which is not between 0 and 1",
        "",
    ),
    "reason": ('    say({"category": "wrong", "confidence": 1})\n', "reason that is not text", ""),
    "long": ('    print("x" * 2_000_000, flush=True)\n', "a line of more than 1048576 bytes", ""),
    "silent": (
        '    print("thinking", file=sys.stderr, flush=True)\n    time.sleep(3600)\n',
        "has not sent its answer within 2 s",
        "thinking",
    ),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rating_session(tmp_path_factory.mktemp("program") / "s1", 6)


@pytest.fixture
def session(stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Path(shutil.copytree(stored, tmp_path / "s1"))


def program(tmp_path: Path, answer: str = GOOD) -> str:
    place = file_with(tmp_path / "far.py", FAR_END + answer)
    return f"{sys.executable} {place} {tmp_path / 'got'}"


def rate(session: Path, command: str, *options: str) -> Result:
    return CliRunner().invoke(group, ["rate", str(session), "--program", command, *options])


def got(tmp_path: Path) -> list[dict[str, object]]:
    place = tmp_path / "got"
    return [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []


def given(session: Path) -> list[Judgment]:
    return [row.record.judgment for row in rating_rows(session) if isinstance(row.record, JudgmentGiven)]


def test_a_program_gets_what_a_person_sees_and_its_answers_are_stored(session: Path, tmp_path: Path) -> None:
    result = succeeded(rate(session, program(tmp_path)))
    assert "ended: 6 of 6 done, 6 of them in this run; 0 failed, 0 open, 0 held" in result.output
    assert "\x1b" not in result.output
    items = got(tmp_path)
    assert len({item["item"] for item in items}) == 6
    first = items[0]
    assert (first["protocol"], first["riff"]) == (1, "RIFF")
    assert isinstance(first["guide"], dict)
    assert [entry["name"] for entry in first["guide"]["categories"]] == [category.value for category in Category]
    assert first["transcript"]
    text = json.dumps({**first, "guide": None, "query": "", "transcript": "", "clip": Path(str(first["clip"])).name})
    for secret in ("kitchen", '"den', "/s1", "trial", "device", "moons-"):
        assert secret not in text
    assert not Path(str(first["clip"])).exists()
    rows = given(session)
    assert {(row.rater, row.program, row.category, row.program_confidence) for row in rows} == {
        ("far 1", True, Category.WRONG, 0.75)
    }
    assert rows[0].comment == "because\x1b[31m"
    assert rows[0].confidence is None
    assert rows[0].transcript_shown


def test_items_that_are_judged_are_not_sent_again(session: Path, tmp_path: Path) -> None:
    assert rate(session, program(tmp_path), "--limit", "2").exit_code == 0
    assert rate(session, program(tmp_path)).exit_code == 0
    assert rate(session, program(tmp_path)).exit_code == 0
    assert len(got(tmp_path)) == len({item["item"] for item in got(tmp_path)}) == 6


def test_a_round_that_hides_transcripts_hides_them_from_programs(session: Path, tmp_path: Path) -> None:
    assert rate(session, program(tmp_path), "--transcript", "never").exit_code == 0
    assert {item["transcript"] for item in got(tmp_path)} == {None}
    assert not any(row.transcript_shown for row in given(session))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_reported_retried_and_leaves_the_item_open(session: Path, tmp_path: Path, fault: str) -> None:
    answer, problem, detail = FAULTS[fault]
    timeout = ("--timeout", "2") if fault == "silent" else ()
    result = rate(session, program(tmp_path, answer), "--limit", "1", *timeout)
    assert result.exit_code == 3
    assert problem in result.output
    assert detail in result.output
    assert "0 of 1 done, 0 of them in this run; 1 failed, 1 open" in result.output
    assert len(got(tmp_path)) == 2, "one more try after a restart"
    assert given(session) == []
    assert rate(session, program(tmp_path)).exit_code == 0
    assert len(in_force(given(session))) == 6


def test_a_program_is_restarted_after_one_crash(session: Path, tmp_path: Path) -> None:
    flag = tmp_path / "crashed"
    crash = (
        f"    if done == 2 and not os.path.exists({str(flag)!r}):\n"
        f"        open({str(flag)!r}, 'w').close(); os.kill(os.getpid(), 9)\n"
    )
    succeeded(rate(session, program(tmp_path, crash + GOOD)))
    assert len(in_force(given(session))) == 6
    assert flag.exists()


def test_a_program_that_always_fails_gets_no_further_items(session: Path, tmp_path: Path) -> None:
    result = rate(session, program(tmp_path, "    sys.exit(9)\n"))
    assert (result.exit_code, len(got(tmp_path))) == (3, 6)
    assert "several responses in a row failed" in result.output
    assert "3 failed, 6 open" in result.output


def test_an_item_that_the_program_declines_stays_open(session: Path, tmp_path: Path) -> None:
    answer = (
        '    say({"error": "no sound model"} if done % 2 else {"category": "wrong", "confidence": 0, "reason": ""})\n'
    )
    result = rate(session, program(tmp_path, answer))
    assert (result.exit_code, len(got(tmp_path))) == (3, 6), "a declined item is not sent twice"
    assert "no sound model" in result.output
    assert len(given(session)) == 3


def test_an_error_of_null_declines_nothing(session: Path, tmp_path: Path) -> None:
    answer = '    say({"error": None, "category": "wrong", "confidence": 0, "reason": ""})\n'
    succeeded(rate(session, program(tmp_path, answer)))
    assert len(given(session)) == 6


def test_a_line_that_was_not_asked_for_does_not_become_an_answer(session: Path, tmp_path: Path) -> None:
    answers = [{"category": category, "confidence": 1, "reason": ""} for category in ("correct", "wrong")]
    twice = f"    sys.stdout.write({chr(10).join(map(json.dumps, answers))!r} + chr(10)); sys.stdout.flush()\n"
    succeeded(rate(session, program(tmp_path, twice), "--limit", "3"))
    assert [row.category for row in given(session)] == [Category.CORRECT] * 3


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "--program needs a command"),
        ("'unclosed", "cannot be parsed"),
        ("no-such-program-at-all", "does not exist"),
        (f"{sys.executable} -c 'pass'", "ended with status 0 before its hello"),
        (f"{sys.executable} -c 'print(1)'", "not a JSON object"),
        ("""sh -c 'echo "{\\"protocol\\": 2}"'""", "speaks protocol '2', not 1"),
    ],
)
def test_a_command_that_cannot_rate_is_refused(session: Path, command: str, message: str) -> None:
    result = rate(session, command)
    assert isinstance(result.exception, HarnessError)
    assert message in str(result.exception)


def test_no_shell_interprets_the_command(session: Path, tmp_path: Path) -> None:
    succeeded(rate(session, f"{program(tmp_path)} ; touch {tmp_path / 'by-shell'}"))
    assert not (tmp_path / "by-shell").exists()


def test_the_rate_limit_spaces_items(tmp_path: Path) -> None:
    answer = '    say({"category": "wrong", "confidence": 0, "reason": str(time.monotonic())})\n'
    command = program(tmp_path, answer.replace("say(", "say(", 1)).split()
    clip = file_with(tmp_path / "clip.wav", b"RIFF")
    rater = ProgramRater(tuple(command), timeout_s=60, per_minute=300)
    try:
        begun_s = time.monotonic()
        at_s = [float(rater.ask(json.dumps({"clip": str(clip)}).encode() + b"\n").reason) for _ in range(3)]
    finally:
        rater.close()
    # A busy host delays an answer, never the moment before which the next item may not be sent.
    assert at_s[1] - begun_s >= 0.2
    assert at_s[2] - begun_s >= 0.4


def test_an_interrupt_ends_the_program_and_keeps_what_is_judged(session: Path, tmp_path: Path) -> None:
    slow = (
        f"    if done > 1:\n        open({str(tmp_path / 'slow')!r}, 'w').write(str(os.getpid())); time.sleep(3600)\n"
    )
    harness = subprocess.Popen(
        [*HARNESS, "rate", str(session), "--program", program(tmp_path, slow + GOOD)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    slow_pid = tmp_path / "slow"
    until(lambda: slow_pid.exists() and slow_pid.read_text())
    harness.send_signal(signal.SIGINT)
    out, err = harness.communicate(timeout=60)
    assert harness.returncode == 130, err
    assert "ended: 1 of 6 done, 1 of them in this run" in out
    assert "Traceback" not in err
    until(lambda: start_ticks(int(slow_pid.read_text())) is None)
    assert len(given(session)) == 1


def test_programs_are_kept_apart_from_people_unless_asked_for(session: Path, tmp_path: Path) -> None:
    run = CliRunner()

    def judges(rater: str) -> None:
        arguments = ["rate", str(session), "--rater", rater, "--no-sound"]
        assert run.invoke(group, arguments, input="1\n" * 6).exit_code == 0

    def agreement(*options: str) -> Any:
        return json.loads(run.invoke(group, ["agreement", str(session), "--json", *options]).output)

    def shares(*options: str) -> str:
        return run.invoke(group, ["categories", str(session), "--csv", *options]).output

    judges("ann")
    alone = shares()
    assert rate(session, program(tmp_path)).exit_code == 0
    assert shares() == alone
    assert shares("--with-programs") != alone
    assert shares("--rater", "far 1") != alone
    solo_report = agreement()
    assert (solo_report["disputed"], solo_report["pairs"][0]["raters"]) == (0, ["ann", "far 1"])

    judges("bob")
    report = agreement()
    assert (report["agreement"]["raters"], report["agreement"]["raw"]["value"]) == (2, 1.0)
    assert {rater for item in report["items"] for rater in item["labels"]} == {"ann", "bob"}
    far = next(entry for entry in report["raters"] if entry["program"])
    assert (far["rater"], far["submitted"]) == ("far 1", 6)
    assert (far["as_the_others"]["count"], far["as_the_others"]["of"]) == (0, 6)
    assert {tuple(pair["raters"]) for pair in report["pairs"]} == {("ann", "bob"), ("ann", "far 1"), ("bob", "far 1")}
    assert agreement("--with-programs")["disputed"] == 6
    adjudicated = run.invoke(group, ["rate", str(session), "--rater", "eve", "--adjudicate", "--list", "--no-sound"])
    assert "raters disagree on 0 responses" in adjudicated.output


def test_an_export_and_import_keep_that_a_program_judged(session: Path, stored: Path, tmp_path: Path) -> None:
    run = CliRunner()
    assert rate(session, program(tmp_path)).exit_code == 0
    file = tmp_path / "rows.jsonl"
    assert run.invoke(group, ["judgments", "export", str(session), "--jsonl", str(file)]).exit_code == 0
    other = Path(shutil.copytree(stored, tmp_path / "other"))
    succeeded(run.invoke(group, ["judgments", "import", str(other), str(file)]))
    assert {(row.rater, row.program, row.program_confidence) for row in given(other)} == {("far 1", True, 0.75)}


def test_a_program_with_the_name_of_a_person_is_refused(session: Path, tmp_path: Path) -> None:
    run = CliRunner()
    run.invoke(group, ["rate", str(session), "--rater", "far 1", "--no-sound"], input="1\n")
    result = rate(session, program(tmp_path))
    assert isinstance(result.exception, InputError)
    assert "is already the name of a person who rates" in str(result.exception)
    assert got(tmp_path) == []


def test_the_example_program_rates_responses(session: Path) -> None:
    succeeded(rate(session, f"{sys.executable} {EXAMPLE}"))
    by_query = {row.trial_id.split("-")[0]: row.category for row in given(session)}
    assert by_query["alarm"] is Category.SLOT_REQUEST
    assert by_query["weather"] is Category.CLARIFICATION
    assert by_query["shirt"] is Category.CORRECT_REJECTION


def test_programs_get_no_shares_or_training(session: Path, tmp_path: Path) -> None:
    file = file_with(
        tmp_path / "round.yaml",
        f"round: a\nsessions: [{session}]\nraters: [ann, bob]\nraters_per_item: 1\ntraining: built_in\n",
    )
    assert CliRunner().invoke(group, ["rate", str(file), "--program", program(tmp_path)]).exit_code == 0
    assert {row.round for row in given(session)} == {"a"}
    assert len(given(session)) == 6
    file.write_text(file.read_text() + "must_hear: true\n", encoding="utf-8")
    refused = CliRunner().invoke(group, ["rate", str(file), "--program", program(tmp_path)])
    assert isinstance(refused.exception, InputError)
    assert "which a program cannot show" in str(refused.exception)


def test_a_program_does_not_count_as_judged_at_the_bench(session: Path, tmp_path: Path) -> None:
    assert rate(session, program(tmp_path)).exit_code == 0
    played = SessionTrials()
    with LogReader(session) as reader:
        for entry in reader.entries():
            played.add(entry.record)
    for entry in rating_rows(session):
        played.add(entry.record)
    assert [trial.response.judgments for trial in played.trials if trial.response is not None] == [()] * 6
