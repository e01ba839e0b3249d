"""`harness understanding score` and `merge`, as a user types them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.base.text_file import safe_csv
from harness.cli import group
from harness.model.errors import HarnessError, InputError
from harness.model.record import EndReason, SessionFinished, UnderstandingResult
from harness.model.trial import EvidenceSource, Outcome
from harness.model.understanding import Corpus, Slot
from harness.session.log.database import SqliteLog
from harness.statistics.intervals import wilson
from harness.statistics.text import percent_interval
from harness.statistics.word_intervals import wer_interval
from harness.understanding.files.corpus_writing import write_jsonl
from tests.command import succeeded
from tests.unit.session.figures.test_heard import GOOD, LYON, OPEN, OTHER, SILENT, Asked, asked_rows
from tests.unit.understanding.files.corpora import write_folder
from tests.unit.understanding.reports.frames import made
from tests.written_sessions import written

GOLD = (
    '{"id":"1","text":"to Paris","intents":["go"],"tags":["O","B-city-to"],"groups":{"voice":"anna"}}\n'
    '{"id":"2","text":"hi there","intents":["go","hi"],"tags":["O","O"],"groups":{"voice":"ben"}}\n'
    '{"id":"3","text":"bye","intents":["bye"],"tags":["O"],"groups":{"voice":"ben"}}\n'
)
PREDICTED = (
    '{"id":"1","text":"to Paris","intents":["go"],"tags":["O","I-city-from"]}\n'
    '{"id":"2","text":"hi there","intents":["hi","go"],"tags":["O","O"]}\n'
    '{"id":"9","text":"x","intents":["hi"],"tags":["O"]}\n'
)


def harness(*arguments: str | Path, verb: str = "score", stdin: str = "") -> Result:
    return CliRunner(env={"COLUMNS": "140"}).invoke(group, ["understanding", verb, *map(str, arguments)], input=stdin)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    Path("g.jsonl").write_text(GOLD, encoding="utf-8")
    Path("p.jsonl").write_text(PREDICTED, encoding="utf-8")
    return ["--gold", "g.jsonl", "--pred", "p.jsonl"]


def row(done: Result, name: str) -> list[str]:
    """The columns of the first printed row of that name."""
    assert done.exit_code == 0, done.output
    line = next(line for line in done.stdout.splitlines() if line.startswith(f"{name}  "))
    return re.split(r"  +", line.strip())


def test_surplus_blanks_of_a_slot_value_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    values = {"1": " Paris", "2": "New  York", "3": "Lyon\t", "4": "10\u00a0%", "5": "le Mans"}
    lines = [
        {"id": id_, "text": "go there", "slots": [{"concept": "city", "value": value, "start": 1, "end": 2}]}
        for id_, value in values.items()
    ]
    plain = [
        {**utterance, "slots": [{**utterance["slots"][0], "value": " ".join(values[utterance["id"]].split())}]}
        for utterance in lines
    ]
    for name, written_lines in (("g.jsonl", plain), ("p.jsonl", lines)):
        Path(name).write_text("".join(json.dumps(utterance) + "\n" for utterance in written_lines), encoding="utf-8")
    options = ["--gold", "g.jsonl", "--pred", "p.jsonl"]
    note = "3 (1, 2, 3): a slot value has extra spaces, which count"
    assert row(harness(*options), "blanks")[1] == note
    Path("a.json").write_text(harness(*options, "--json").stdout)
    assert row(harness("a.json", verb="merge"), "blanks")[1] == note
    assert "\nblanks " not in harness(*options, "--values", "plain").stdout
    harness(*options, "--html", "page.html")
    assert "extra spaces" in Path("page.html").read_text(encoding="utf-8")


def test_figures_show_their_counts_and_options(files: list[str]) -> None:
    result = harness(*files)
    assert row(result, "EMR (exact match)") == ["EMR (exact match)", "66.67 %", "20.8–93.9 %", "2 of 3 utterances"]
    assert row(result, "F1, micro")[-1] == "3 right, 4 intents, 3 predicted"
    assert row(result, "slot F1")[1::2] == ["0.00 %", "0 right, 1 chunks, 1 predicted"]
    assert row(result, "CER")[1::2] == ["100.00 %", "1 S + 0 D + 0 I of 1 concepts"]
    assert row(result, "SFA")[1::2] == ["33.33 %", "1 of 3 utterances; slots with their positions"]
    assert row(result, "chunking") == ["chunking", "conlleval (an I- may begin a slot)"]
    assert row(result, "concepts") == ["concepts", "full (whole concepts)"]
    assert row(result, "0/0") == ["0/0", "0 (zero)"]
    assert row(result, "missing")[1] == "1 (3); counted as empty predictions, and never as right"
    assert row(result, "without gold")[1] == "1 (9); not counted"
    assert row(result, "empty")[1] == "1 prediction with no intent, 0 of them correct"
    assert row(result, "never")[1] == "1 never predicted: bye"
    assert row(result, "ben")[:2] == ["ben", "2"]
    assert "\x1b" not in result.stdout


def test_detail_chunking_and_zero_division_change_the_figures(files: list[str]) -> None:
    done = harness(*files, "--detail", "both")
    assert row(done, "slot F1 (full)")[1] == "0.00 %"
    assert row(done, "slot F1 (relax)")[1] == "100.00 %"
    assert row(done, "SFA (relax)")[1] == "66.67 %"
    done = harness(*files, "--chunking", "iob2")
    assert row(done, "slot F1")[-1] == "0 right, 1 chunks, 0 predicted"
    assert row(done, "precision, macro")[1] == "66.67 %"
    done = harness(*files, "--zero-division", "seed", "--labels", "go,hi,bye,no")
    assert row(done, "precision, macro")[1::2] == ["100.00 %", "mean over 4 declared labels"]
    assert row(done, "0/0")[1] == "1 for precision, 0 for recall, 0 for F1, 0 for accuracy (seed)"


def test_a_folder_and_its_split_pair_with_a_flat_folder_and_with_intents_by_id(tmp_path: Path) -> None:
    write_folder(tmp_path / "g" / "valid", "a\nb\n", "O\nB-x\n", "p\nq\n")
    write_folder(tmp_path / "p", "a\nb\n", "O\nB-x\n", "p\np\n")
    done = harness("--gold", tmp_path / "g", "--split", "dev", "--pred", tmp_path / "p")
    assert row(done, "EMR (exact match)")[-1] == "1 of 2 utterances"
    assert row(done, "slot F1")[1] == "100.00 %"
    (tmp_path / "p.csv").write_text("id,intent\nvalid/2,q\nvalid/1,q\n", encoding="utf-8")
    done = harness("--gold", tmp_path / "g", "--split", "dev", "--pred", tmp_path / "p.csv")
    assert row(done, "EMR (exact match)")[-1] == "1 of 2 utterances"
    assert row(done, "slot F1")[1] == "n/a"


def test_a_list_of_groups_splits_the_figures(files: list[str]) -> None:
    for name in ("g.jsonl", "p.jsonl"):
        Path(name).write_text(Path(name).read_text(encoding="utf-8").replace('"2"', '"=2"'), encoding="utf-8")
    Path("l.csv").write_text(safe_csv([("id", "noise"), ("1", "quiet"), ("=2", "street")]), encoding="utf-8")
    result = harness(*files, "--groups", "l.csv", "--by", "noise")
    assert row(result, "(none)")[:3] == ["(none)", "1", "0.00 %"]
    assert row(result, "street")[2] == "100.00 %"
    assert "by voice" not in result.stdout


@pytest.mark.parametrize(
    ("limit", "holds", "message"),
    [
        (["--min-emr", "60%"], True, ""),
        (["--min-emr", "0.7"], False, "EMR (exact match) of p.jsonl ≥ 70 %: found 66.7 %, fails"),
        (["--min-emr", "0.3", "--limits-on", "bound"], False, "found 66.7 % (interval down to 20.8 %), fails"),
        (["--min-sfa", "50%"], False, "SFA (full) of p.jsonl ≥ 50 %: found 33.3 %, fails"),
        (["--min-slot-f1", "0"], True, ""),
        (["--max-cer", "99%"], False, "CER (full) of p.jsonl ≤ 99 %: found 100 %, fails"),
        (["--max-cer", "100%"], True, ""),
    ],
)
def test_a_failed_limit_sets_exit_status_1(files: list[str], limit: list[str], holds: bool, message: str) -> None:
    result = harness(*files, *limit)
    assert result.exit_code == (0 if holds else 1)
    assert message in result.stderr
    assert bool(result.stderr) is not holds


def test_a_limit_on_an_undefined_figure_fails(files: list[str]) -> None:
    Path("p.csv").write_text("id,intent\n1,go\n", encoding="utf-8")
    result = harness("--gold", "g.jsonl", "--pred", "p.csv", "--min-slot-f1", "0")
    assert (result.exit_code, "slot F1 (full) of p.csv ≥ 0 %: no data (no slots in" in result.stderr) == (1, True)


def test_systems_are_compared_on_their_common_utterances(files: list[str]) -> None:
    Path("q.jsonl").write_text('{"id":"1","intents":["hi"],"slots":[]}\n', encoding="utf-8")
    result = harness(*files, "--pred", "q.jsonl")
    assert "first: p.jsonl, second: q.jsonl; on 1 utterance that both have" in result.stdout
    assert row(result, "EMR")[1:4] == ["100.00 %", "0.00 %", "+100.00"]


def test_shards_are_merged_to_the_json_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # An empty list of slots beside tags that mark some is refused.
    gold, predicted = (
        replace(corpus, utterances=tuple(replace(frame, slots=frame.slots or None) for frame in corpus.utterances))
        for corpus in made(7, 90)
    )
    ids = [utterance.id for utterance in gold.utterances]
    for name, some in (("all", set(ids)), ("one", set(ids[::3])), ("two", set(ids) - set(ids[::3]))):
        # What has no gold goes with the whole and with one of the parts.
        predicted_ids = some | ({"nobody"} if name != "two" else set())
        write_jsonl(
            Corpus("", tuple(utterance for utterance in gold.utterances if utterance.id in some)),
            Path(f"{name}.g.jsonl"),
        )
        write_jsonl(
            Corpus("", tuple(utterance for utterance in predicted.utterances if utterance.id in predicted_ids)),
            Path(f"{name}.p.jsonl"),
        )
        result = harness(
            "--gold", f"{name}.g.jsonl", "--pred", f"{name}.p.jsonl", "--detail", "both", "--spoken",
            "--json", f"{name}.json",
        )  # fmt: skip
        assert result.exit_code == 0, result.output
    result = succeeded(harness("two.json", "one.json", "--json", "merged.json", "--html", "m.html", verb="merge"))
    merged, whole = (Path(f"{name}.json").read_text(encoding="ascii") for name in ("merged", "all"))
    assert merged.replace("two.", "all.") == whole
    assert re.sub(
        "all.[gp]", "", harness("--gold", "all.g.jsonl", "--pred", "all.p.jsonl", "--detail", "both", "--spoken").stdout
    ) == re.sub("two.[gp]", "", result.stdout)
    assert "<article" not in Path("m.html").read_text(encoding="utf-8")


def test_shards_with_different_scoring_options_are_not_merged(files: list[str]) -> None:
    for name, more in (
        ("a", []),
        ("b", ["--chunking", "iob2"]),
        ("c", ["--zero-division", "1"]),
        ("d", ["--labels", "go"]),
    ):
        assert harness(*files, "--json", f"{name}.json", *more).exit_code == 0
    for name, message in (
        ("b", "a different rule"),
        ("c", "--zero-division differs from the one in a.json"),
        ("d", "declared labels differ"),
    ):
        result = harness("a.json", f"{name}.json", verb="merge")
        assert isinstance(result.exception, InputError)
        assert str(result.exception).startswith(f"{name}.json: ")
        assert message in str(result.exception)


def test_json_is_the_only_standard_output(files: list[str]) -> None:
    result = harness("--gold", "-", "--gold-format", "jsonl", "--pred", "p.jsonl", "--json", "-", stdin=GOLD)
    report = json.loads(result.stdout)
    assert (report["kind"], report["format"]) == ("understanding", 1)
    assert report["systems"][0]["gold"] == {"file": "<stdin>"}
    assert report["systems"][0]["scores"][0]["figures"]["emr"]["value"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "neither a session nor both --gold and --pred were specified. Add --gold"),
        (["--gold", "g.jsonl"], "neither a session nor both --gold and --pred were specified"),
        (["--gold", "g.jsonl", "--pred", "other.jsonl"], "other.jsonl: no id of these predictions occurs in gold"),
        (["--gold", "g.jsonl", "--pred", "g.txt"], "the file or folder does not exist"),
        (["--gold", "-", "--pred", "-"], "only one file can come from standard input"),
        (
            ["--gold", "-", "--pred", "p.jsonl"],
            "<stdin>: the name has no suffix, so the format is unknown. Add --gold-format",
        ),
        (["--gold", "g.jsonl", "--pred", "p.jsonl", "--json", "g.jsonl"], "this file is both an input and an output"),
        (
            ["--gold", "g.jsonl", "--pred", "p.jsonl", "--by", "vioce"],
            "gold has no group 'vioce'. Did you mean 'voice'",
        ),
        (["--gold", "g.jsonl", "--pred", "p.jsonl", "--split", "dev"], "a file has no splits"),
        (["--gold", "bare.txt", "--pred", "p.jsonl"], "this file contains no annotations"),
        (["a_session", "--gold", "g.jsonl"], "sessions cannot be combined with --gold or --pred"),
        (["a_session", "--split", "test"], "--split needs --gold"),
        (["a_session", "--pred-format", "csv"], "--pred-format needs --pred"),
        (["--gold", "g.jsonl", "--pred", "p.jsonl", "--attempt", "first"], "--attempt needs a session"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_written(
    files: list[str], arguments: list[str], message: str
) -> None:
    Path("other.jsonl").write_text('{"id": "z", "intents": []}\n', encoding="utf-8")
    Path("bare.txt").write_text("1\n", encoding="utf-8")
    result = harness(*arguments)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert Path("g.jsonl").read_text(encoding="utf-8") == GOLD


def test_a_folder_without_a_session_is_refused(files: list[str]) -> None:
    result = harness("nowhere")
    assert isinstance(result.exception, HarnessError)
    assert "nowhere is not a session" in str(result.exception)


def store(folder: Path, plays: dict[str, list[Asked]]) -> Path:
    return written(folder, asked_rows(plays), wall_s=lambda: 1_800_000_000.0)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    return store(tmp_path / "s", {"ann1": [GOOD], "ann2": [OTHER, GOOD], "bob1": [SILENT], "bob2": [OPEN]})


def test_reported_frames_are_scored_by_voice(session: Path) -> None:
    result = succeeded(harness(session, "--by", "voice"))
    lines = result.stdout.splitlines()
    assert any(line.startswith("EMR (exact match)") and line.endswith("2 of 3 utterances") for line in lines)
    assert any(line.startswith("slot F1") and "slots have no positions" in line for line in lines)
    assert any(line.startswith("SFA  ") and "2 of 3 utterances; slots as lists of concepts" in line for line in lines)
    assert {"ann 2 100.00", "bob 1 0.00"} <= {" ".join(line.split()[:3]) for line in lines}
    assert "attempt       the deciding of each trial" in lines
    assert f"unfinished    {session}: the run has not ended; 4 of 4 trials are finished" in lines
    assert lines[-1] == "unknown       1 (bob2): no report of what was understood; not counted"


def test_limits_of_a_session_that_was_not_completed_are_undecided(session: Path) -> None:
    limited = (session, "--min-emr", "50%")
    done = harness(*limited, "--json", session / "score.json")
    assert done.exit_code == 1
    assert f"harness: the limits are undecided: {session}: the run has not ended; 4 of 4" in done.stderr
    left_out = json.loads((session / "score.json").read_text())["sessions"]
    assert (left_out["not_counted"], len(left_out["unfinished"])) == (["bob2"], 1)
    merged = harness(session / "score.json", "--min-emr", "50%", "--json", session / "merged.json", verb="merge")
    assert (merged.exit_code, "harness: the limits are undecided: " in merged.stderr) == (1, True)
    assert json.loads((session / "merged.json").read_text())["sessions"] == left_out
    harness(session, "--attempt", "first", "--json", session / "first.json")
    refused = harness(session / "score.json", session / "first.json", verb="merge")
    assert "the first attempts count here, but the deciding ones in" in str(refused.exception)
    with SqliteLog(session) as log:
        log.append(SessionFinished(EndReason.COMPLETED))
    assert harness(*limited).exit_code == 0


def test_the_first_attempt_is_scored_on_request(session: Path) -> None:
    result = harness(session, "--attempt", "first", "--min-emr", "50%")
    assert result.exit_code == 1
    assert "EMR (exact match) of devices in" in result.stderr
    assert "≥ 50 %: found 33.3 %, fails" in result.stderr
    assert "by attempt" not in result.stdout


def test_values_count_beside_concepts(tmp_path: Path) -> None:
    other = UnderstandingResult(("book", "greet"), (Slot("city", "Bern"),), True, False, EvidenceSource.DEVICE)
    assert LYON.value == "Lyon"
    result = harness(store(tmp_path / "s", {"ann1": [(Outcome.MISHEARD, other)], "ann2": [GOOD]}))
    rows = [line.split("  ") for line in result.stdout.splitlines() if line.startswith(("SFA", "CER"))]
    assert [[cell.strip() for cell in row if cell][1] for row in rows] == ["0.00 %", "100.00 %", "50.00 %", "50.00 %"]


def test_session_without_understanding_evidence_is_refused(tmp_path: Path) -> None:
    result = harness(store(tmp_path / "s", {"ann1": [OPEN]}))
    assert isinstance(result.exception, InputError)
    assert "no trial has an intent to score: no report says what was understood in 1 (ann1)" in str(result.exception)


def test_out_of_scope_utterances_are_reported_separately_and_merge(files: list[str]) -> None:
    done = harness(*files, "--out-of-scope", "bye")
    assert row(done, "out of scope found")[1::2] == ["0.00 %", "0 of 1 utterances"]
    assert row(done, "in scope refused")[1::2] == ["0.00 %", "0 of 2 utterances"]
    assert row(done, "EMR in scope")[1::2] == ["100.00 %", "2 of 2 utterances"]
    for number in "ab":
        harness(*files, "--out-of-scope", "bye", "--json", f"{number}.json")
    merged = harness("a.json", "b.json", verb="merge")
    assert row(merged, "EMR in scope")[-1] == "4 of 4 utterances"
    assert "b.json has the same counts of the same files as a.json. Is it the same shard?" in merged.stderr
    harness(*files, "--json", "c.json")
    for arguments, verb, message in (
        ((*files, "--out-of-scope", "by"), "score", "no utterance of gold has the intent 'by'"),
        (("a.json", "c.json"), "merge", "--out-of-scope differs"),
    ):
        refused = harness(*arguments, verb=verb).exception
        assert isinstance(refused, InputError)
        assert message in str(refused)


@pytest.mark.parametrize(("label", "gold_intents"), [("oos", '"oos"'), ("none", "")])
def test_a_shard_may_lack_a_declared_intent_out_of_scope(tmp_path: Path, label: str, gold_intents: str) -> None:
    for number, intents in enumerate((gold_intents, '"a"')):
        for side in "gp":
            path = tmp_path / f"{side}{number}.jsonl"
            path.write_text(f'{{"id": "{number}", "intents": [{intents}]}}\n', "utf-8")
        shard = ("--gold", tmp_path / f"g{number}.jsonl", "--pred", tmp_path / f"p{number}.jsonl")
        done = harness(*shard, "--out-of-scope", label, "--labels", "a,oos", "--json", tmp_path / f"{number}.json")
        assert done.exit_code == 0, done.exception
    assert row(done, "out of scope found")[1] == "n/a"
    merged = harness(tmp_path / "0.json", tmp_path / "1.json", verb="merge")
    assert row(merged, "out of scope found")[-1] == "1 of 1 utterances"
    refused = harness(*shard, "--out-of-scope", label).exception
    assert "If gold is a shard, declare all intents with --labels" in str(refused)


def test_missing_intent_can_mean_out_of_scope(tmp_path: Path) -> None:
    def lines(*intents: str) -> str:
        return "".join(f'{{"id": "{number}", "intents": [{intent}]}}\n' for number, intent in enumerate(intents))

    (tmp_path / "g.jsonl").write_text(lines("", "", '"a"', '"a"', '"b"'), "utf-8")
    (tmp_path / "p.jsonl").write_text(lines("", '"a"', "", '"a"', '"a"'), "utf-8")
    done = harness("--gold", tmp_path / "g.jsonl", "--pred", tmp_path / "p.jsonl", "--out-of-scope", "none")
    cells = [row(done, name)[-1] for name in ("out of scope found", "in scope refused", "EMR in scope")]
    assert cells == ["1 of 2 utterances", "1 of 3 utterances", "1 of 3 utterances"]


def test_a_crash_rejects_nothing(tmp_path: Path) -> None:
    (tmp_path / "g.jsonl").write_text('{"id": "1", "intents": []}\n{"id": "2", "intents": []}\n', "utf-8")
    (tmp_path / "p.jsonl").write_text('{"id": "1", "intents": []}\n', "utf-8")
    arguments = "--gold", tmp_path / "g.jsonl", "--pred", tmp_path / "p.jsonl", "--out-of-scope", "none"
    harness(*arguments, "--json", tmp_path / "a.json")
    for result in (harness(*arguments), harness(tmp_path / "a.json", verb="merge")):
        assert row(result, "EMR (exact match)")[-1] == "1 of 2 utterances"
        assert row(result, "out of scope found")[-1] == "1 of 2 utterances"
        assert row(result, "empty")[1] == "2 predictions with no intent, 1 of them correct (0/0)"
        assert row(result, "missing")[1] == "1 (2); counted as empty predictions, and never as right"


def repeated(folder: Path, queries: int) -> tuple[str | Path, ...]:
    """Options with files in which each query is there four times, and always understood alike; every fifth wrongly."""
    for name in ("g", "p"):
        rows = [
            {
                "id": f"{query}.{number}",
                "intents": ["b" if name == "p" and query % 5 == 0 else "a"],
                "slots": [{"concept": "c"}],
                "groups": {"query": f"q{query}", "device": ("shelf", "desk")[number % 2]},
            }
            for query in range(queries)
            for number in range(4)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return "--gold", folder / "g.jsonl", "--pred", folder / "p.jsonl"


def test_repetitions_of_a_query_are_not_independent(tmp_path: Path) -> None:
    arguments = repeated(tmp_path, 10)
    harness(*arguments, "--by", "device", "--json", tmp_path / "a.json")
    result = harness(*arguments, "--by", "device")

    def over_queries(repetitions: int) -> str:
        low, high = wer_interval([repetitions, 0, 0, 0, 0] * 2, [repetitions] * 10) or (0, 0)
        return percent_interval((1 - high, 1 - low), digits=1)

    for metric in ("EMR (exact match)", "intent accuracy", "F1, micro", "SFA"):
        assert row(result, metric)[1:3] == ["80.00 %", over_queries(4)]
    assert row(result, "shelf")[2:4] == ["80.00 %", over_queries(2)]
    # No query had a wrong slot, which says as much as ten utterances.
    assert row(result, "CER")[2] == percent_interval(wer_interval([0] * 10, [4] * 10), digits=1)
    assert row(result, "intervals")[1] == "over 10 queries, since some are repeated"
    merged = harness(tmp_path / "a.json", verb="merge")
    assert row(merged, "EMR (exact match)")[2] == row(merged, "F1, micro")[2] == over_queries(4)
    assert row(merged, "shelf")[2:4] == ["80.00 %", "n/a"]
    # A shard without the column does not make the others independent.
    lines = [json.loads(line) for line in (tmp_path / "g.jsonl").read_text("utf-8").splitlines()]
    for line in lines:
        line["groups"] = {"query": f"other {line['groups']['query']}"}
    (tmp_path / "g.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    harness(*arguments, "--json", tmp_path / "b.json")
    assert row(harness(tmp_path / "a.json", tmp_path / "b.json", verb="merge"), "shelf")[2:4] == ["80.00 %", "n/a"]


def test_few_queries_do_not_stand_for_others(tmp_path: Path) -> None:
    result = harness(*repeated(tmp_path, 5))
    assert row(result, "EMR (exact match)")[2] == percent_interval(wilson(16, 20), digits=1)
    assert row(result, "intervals")[1] == "over utterances of few queries; for other queries, they are too narrow"


def test_the_mean_over_groups_weighs_each_group_equally(files: list[str]) -> None:
    done = harness(*files)
    assert row(done, "mean of 2")[1] == "75.00 %"
    harness(*files, "--json", "a.json")
    (system,) = json.loads(Path("a.json").read_text())["systems"]
    assert system["scores"][0]["group_means"]["voice"]["emr"] == 0.75


def test_confidence_scores_are_compared_with_correctness(files: list[str]) -> None:
    scored = PREDICTED.replace('"tags"', '"scores":{"go":0.9,"hi":0.2},"tags"', 1)
    scored = scored.replace('{"id":"2"', '{"scores":{"go":0.6,"hi":0.7,"bye":0.1},"id":"2"', 1)
    Path("p.jsonl").write_text(scored, "utf-8")
    harness(*files, "--json", "a.json", "--html", "page.html")
    assert Path("page.html").read_text("utf-8").count("class=many") == 2
    (system,) = json.loads(Path("a.json").read_text())["systems"]
    confidence = system["confidence"]
    assert [(bucket["low"], bucket["mean"]) for bucket in confidence["bins"]] == [(0.6, 0.6), (0.8, 0.8)]
    assert (confidence["correct"]["count"], confidence["left_out"]) == (2, 1)
    assert re.search("without confidence +1 utterances", harness(*files).stdout)
    Path("p.jsonl").write_text(scored.replace("0.9", "1.9"), "utf-8")
    refused = harness(*files).exception
    assert isinstance(refused, InputError)
    assert "the score of 'go' is not a number from 0 to 1" in str(refused)
