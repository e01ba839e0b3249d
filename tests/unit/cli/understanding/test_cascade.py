"""`harness understanding cascade`, as a user types it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.base.ports import Understander
from harness.cli import group
from harness.cli.understanding.cascade import without_wake_phrase
from harness.model.bench import ObservationKind
from harness.model.errors import InputError
from harness.model.record import AttemptFinished, UnderstandingResult
from harness.model.trial import EvidenceSource, Outcome
from harness.model.understanding import ExpectedFrame, Slot, Utterance
from harness.understanding.models.crf_understander import CrfUnderstander
from harness.understanding.models.model_folder import ModelFacts, save_model
from tests.command import succeeded
from tests.known import known
from tests.unit.session.figures.test_heard import Asked, asked, asked_rows
from tests.written_sessions import written

TEXTS = ("open the door", "open a window", "close the door", "close the window", "close a gate", "open the gate")
HEARD = "Open the floor. (a-1)\nclose the door (a-2)\nnothing (z-1)\n"


def frame(text: str) -> dict[str, object]:
    verb, _, thing = text.split()
    return {"intents": [verb], "tags": ["O", "O", "B-thing"], "slots": [{"concept": "thing", "value": thing}]}


def lines_of(path: Path, rows: Sequence[object]) -> str:
    """The name of a file with a line of JSON for each row."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """gold.jsonl, heard.trn, and a model that knows the few words there are."""
    folder = tmp_path_factory.mktemp("cascade")
    gold = [("a-1", TEXTS[0], "quiet"), ("a-2", TEXTS[2], "quiet"), ("a-3", TEXTS[5], "loud")]
    rows = [{"id": id_, "text": text, **frame(text), "groups": {"room": room}} for id_, text, room in gold]
    lines_of(folder / "gold.jsonl", rows)
    (folder / "heard.trn").write_text(HEARD)
    train = [
        Utterance(f"{number}/{n}", tuple(text.split()), (text.split()[0],), ("O", "O", "B-thing"))
        for number, text in enumerate(TEXTS)
        for n in range(6)
    ]
    understander: Understander = CrfUnderstander({}, seed=1)
    understander.fit(train, (), lambda line: None)
    save_model("crf", understander, folder / "model", ModelFacts(1))
    return folder


def harness(place: Path, *arguments: str) -> Result:
    paths = [str(place / argument) if argument and (place / argument).exists() else argument for argument in arguments]
    result = CliRunner(env={"COLUMNS": "120"}).invoke(group, ["understanding", "cascade", *paths])
    if isinstance(result.exception, InputError):
        raise result.exception
    return result


def asked_of(place: Path, *more: str) -> Result:
    return harness(place, "--gold", "gold.jsonl", "--heard", "heard.trn", "--model", "model", *more)


def test_cascade_reports_the_cost_of_recognition_errors(place: Path) -> None:
    result = succeeded(asked_of(place))
    lines = result.stdout.splitlines()
    assert "utterances    2, compared without positions" in lines
    assert "model reads   transcripts without capitals and without punctuation, as gold is written" in lines
    shown = {line[:18].strip(): line[18:].split() for line in lines}
    assert shown["SFA with values"][:5] == ["100.00", "%", "50.00", "%", "-50.00"]
    assert shown["SFA, by concepts"][:5] == ["100.00", "%", "100.00", "%", "+0.00"]
    # The floor is a thing as the door is, and no door.
    assert lines[lines.index("Other slot values: 1 of 1") + 2] == "a-1"
    assert any(line.startswith("WER           1 of 6 = 16.67 %") for line in lines)
    assert "no transcript 1 (a-3): unknown, not counted" in lines
    assert "no gold       1 (z-1): not counted" in lines
    assert any(line.split()[:3] == ["quiet", "2", "16.67"] for line in lines)


def test_json_has_every_figure_and_every_utterance(place: Path, tmp_path: Path) -> None:
    result = asked_of(place, "--json", "-", "--missing-is-silence")
    report = json.loads(result.stdout)
    assert report["kind"] == "understanding cascade"
    assert report["utterances"] == 3
    assert report["without_transcript"] == ["a-3"]
    for name in ("emr", "sfa"):
        figures = report["total"]["figures"][name]
        assert (figures["reference"], figures["transcript"], figures["difference"]) == (1, 2 / 3, pytest.approx(-1 / 3))
    assert report["total"]["words"]["deletions"] == 3
    assert report["slot_f1_by_places_on_reference"] == 1
    assert report["total"]["figures"]["slot_f1"]["reference"] is None
    assert {utterance["id"]: utterance["heard"] for utterance in report["frames"]}["a-1"] == "Open the floor."
    assert {utterance["id"]: utterance["fate"] for utterance in report["frames"]}["a-3"] == "broken"
    assert [row["label"] for row in report["groups"]["room"]] == ["loud", "quiet"]


def test_the_page_shows_spoken_and_heard_words_as_plain_text(place: Path, tmp_path: Path) -> None:
    heard = [{"id": "a-1", "text": "<script>alert(1)</script> the sky"}, {"id": "a-2", "text": "close the door"}]
    heard_file = lines_of(tmp_path / "h.jsonl", heard)
    page = tmp_path / "page.html"
    succeeded(harness(place, "--gold", "gold.jsonl", "--heard", heard_file, "--model", "model", "--html", str(page)))
    text = page.read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; the sky" in text
    assert "<script>" not in text
    assert "right on both except slot values" in text


def test_predictions_made_elsewhere_are_accepted(place: Path, tmp_path: Path) -> None:
    rows = [{"id": "a-1", "text": "open the floor", "intents": ["open"], "tags": ["O", "O", "O"]},
            {"id": "a-2", "text": "close the door", **frame("close the door")}]  # fmt: skip
    predictions = ("--pred-reference", "gold.jsonl", "--pred-heard", lines_of(tmp_path / "after.jsonl", rows))
    result = harness(place, "--gold", "gold.jsonl", "--heard", "heard.trn", *predictions, "--json", "-")
    figures = json.loads(result.stdout)["total"]["figures"]
    assert (figures["emr"]["transcript"], figures["sfa"]["transcript"], figures["cer"]["transcript"]) == (1, 0.5, 0.5)


def test_a_column_of_too_many_labels_is_stated_and_shown_on_demand(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    rows = [{"id": str(n), "text": TEXTS[0], **frame(TEXTS[0]), "groups": {"<file>": str(n)}} for n in range(61)]
    gold = lines_of(tmp_path / "gold.jsonl", rows)
    files = ("--gold", gold, "--heard", gold, "--pred-reference", gold, "--pred-heard", gold)
    result = harness(tmp_path, *files, "--html", str(page))
    note = "has 61 labels, too many to group by (use --by"
    assert f"no group      <file> {note} <file>)" in result.stdout.splitlines()
    assert f"<dt>no group<dd><bdi>&lt;file&gt; {note} &lt;file&gt;)</bdi>" in page.read_text(encoding="utf-8")
    assert json.loads(harness(tmp_path, *files, "--json", "-").stdout)["groups_left_out"] == {"<file>": 61}
    output = harness(tmp_path, *files, "--by", "<file>").stdout
    assert note not in output
    assert any(line.startswith("60 ") for line in output.splitlines())


def test_a_limit_on_the_cost_of_recognition_sets_the_status(place: Path) -> None:
    assert asked_of(place, "--max-sfa-loss", "100%").exit_code == 0
    result = asked_of(place, "--missing-is-silence", "--max-sfa-loss", "20%")
    assert result.exit_code == 1
    assert "SFA loss by recognition ≤ 20 %: found 33.3 %, fails" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gold", "gold.jsonl"), "no transcripts were given"),
        (("s", "--heard", "heard.trn"), "not both"),
        (("--heard", "heard.trn", "--model", "model"), "--gold is missing"),
        (("--gold", "gold.jsonl", "--heard", "heard.trn"), "neither --model nor predictions were given"),
        (
            ("--gold", "gold.jsonl", "--heard", "gold.jsonl", "--pred-heard", "x"),
            "neither --model nor predictions were given",
        ),
        (
            ("--gold", "gold.jsonl", "--heard", "heard.trn", "--model", "model", "--pred-heard", "x"),
            "--model cannot be combined",
        ),
        (("--gold", "gold.jsonl", "--heard", "heard.trn", "--model", "gold.jsonl"), "model.json"),
        (("--gold", "heard.trn", "--heard", "heard.trn", "--model", "model"), "this file contains no annotations"),
        (("--gold", "gold.jsonl", "--heard", "gold.jsonl", "--model", "model", "--separator", ""), "--separator"),
        (("--live", "s", "--pred-sound", "gold.jsonl", "--groups", "g.csv"), "--groups needs --gold"),
        (("s", "--model", "model", "--split", "test"), "--split needs --gold"),
        (("--gold", "gold.jsonl", "--heard", "heard.trn", "--model", "model", "--attempt", "deciding"), "a session"),
        (("--gold", "gold.jsonl", "--heard", "heard.trn", "--model", "model", "--talkers", "room"), "several systems"),
        (
            ("--gold", "gold.jsonl", "--heard", "x", "--pred-reference", "x", "--pred-heard", "x", "--reads", "heard"),
            "--reads needs --model",
        ),
    ],
)
def test_contradictory_cascade_arguments_are_refused(place: Path, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        harness(place, *arguments)


def test_an_unknown_group_is_refused(place: Path) -> None:
    with pytest.raises(InputError, match="--by: gold has no group 'voice'") as error:
        asked_of(place, "--by", "voice")
    assert "room" in str(error.value)


def test_files_with_different_ids_are_refused(place: Path, tmp_path: Path) -> None:
    (tmp_path / "h.trn").write_text("open the door (b-1)\n")
    with pytest.raises(InputError, match="no transcript has the id of a gold utterance: the first id is 'b-1'"):
        harness(place, "--gold", "gold.jsonl", "--heard", str(tmp_path / "h.trn"), "--model", "model")


def test_gold_of_a_session_comes_from_its_log_or_a_file(place: Path, tmp_path: Path) -> None:
    trial = asked("t1")
    texts = {"t1": trial.reference, "t2": "something else", "t3": None}
    plays: dict[str, list[Asked]] = {name: [(Outcome.RESPONDED, None)] for name in texts}
    rows = asked_rows(plays, reports=(ObservationKind.TRANSCRIPT,))
    for index, row in enumerate(rows):
        if isinstance(row, AttemptFinished):
            rows[index] = replace(row, heard=texts[row.trial_id], evidence=EvidenceSource.DEVICE)
    folder = written(tmp_path / "session", rows, wall_s=lambda: 1_800_000_000.0)
    report = json.loads(harness(place, str(folder), "--model", "model", "--json", "-").stdout)
    assert report["utterances"] == 2
    assert len(report["without_transcript"]) == 1
    assert {utterance["heard"] for utterance in report["frames"]} == {trial.reference, "something else"}
    assert report["frames"][0]["gold"]["intents"] == list(known(trial.expects).intents)
    gold = lines_of(tmp_path / "gold.jsonl", [{"id": trial.query_id, "text": TEXTS[0], **frame(TEXTS[0])}])
    by_query = json.loads(harness(place, str(folder), "--gold", gold, "--model", "model", "--json", "-").stdout)
    assert {utterance["said"] for utterance in by_query["frames"]} == {"open the door"}


def test_sessions_of_one_name_are_not_mixed_up(place: Path, tmp_path: Path) -> None:
    trial = asked("t1")
    folders = []
    for bench, text in (("first", trial.reference), ("second", "something else")):
        rows = asked_rows({"t1": [(Outcome.RESPONDED, None)]}, reports=(ObservationKind.TRANSCRIPT,))
        for index, row in enumerate(rows):
            if isinstance(row, AttemptFinished):
                rows[index] = replace(row, heard=text, evidence=EvidenceSource.DEVICE)
        folders.append(str(written(tmp_path / bench / "night", rows, wall_s=lambda: 1_800_000_000.0)))
    report = json.loads(harness(place, *folders, "--model", "model", "--json", "-").stdout)
    assert [frame["heard"] for frame in report["frames"]] == [trial.reference, "something else"]
    assert len({frame["id"] for frame in report["frames"]}) == 2


def test_the_wake_phrase_does_not_belong_to_the_request() -> None:
    words = ("Hey,", "Computer!", "open", "computer")
    assert without_wake_phrase(words, ["hey computer", "hey"]) == ("open", "computer")
    assert without_wake_phrase(words, ["hey"]) == ("Computer!", "open", "computer")
    assert without_wake_phrase(words, ["ok computer"]) == words
    assert without_wake_phrase((), ["hey"]) == ()


@pytest.fixture(scope="module")
def frames(place: Path) -> str:
    """Predictions from sound of every utterance of gold: right, another thing, and another verb."""
    things = {"a-1": ("open", "door"), "a-2": ("close", "floor"), "a-3": ("close", "gate")}
    rows = [
        {
            "id": id_,
            "intents": [verb],
            "slots": [{"concept": "thing", "value": thing}],
            "cost": {"cpu_s": 0.5, "elapsed_s": 0.25, "sound_s": 2.0},
        }
        for id_, (verb, thing) in things.items()
    ]
    return lines_of(place / "frames.jsonl", rows)


def test_cascades_and_systems_from_sound_are_compared(place: Path, frames: str) -> None:
    systems = ("--heard", f"first={place / 'heard.trn'}", "--pred-sound", f"direct={frames}")
    result = succeeded(harness(place, "--gold", "gold.jsonl", "--model", "model", *systems, "--talkers", "room"))
    output = result.stdout.splitlines()
    assert "utterances    2 that every system answered, compared without positions" in output
    assert "talkers       1 by room, too few for intervals" in output
    assert "no answer     first: 1 (a-3)" in output
    rows = {line.split()[0]: line.split() for line in output[: output.index("Where utterances are lost")] if line}
    assert rows["direct"][-3:] == ["900", "s", "0.125"]
    assert rows["first"][-2:] == ["n/a", "n/a"]
    losses = output[output.index("Where utterances are lost") :]
    assert next(line for line in losses if line.startswith("first")).split() == ["first", "1", "1", "0", "0", "0"]
    assert next(line for line in losses if line.startswith("direct")).split() == ["direct", "1", "n/a", "0", "0", "1"]


def test_systems_from_sound_need_no_model(place: Path, frames: str, tmp_path: Path) -> None:
    files = ("--pred-sound", f"one={frames}", "--pred-sound", f"two={place / 'gold.jsonl'}")
    target, page = tmp_path / "systems.json", tmp_path / "systems.html"
    succeeded(harness(place, "--gold", "gold.jsonl", *files, "--json", str(target), "--html", str(page)))
    document = json.loads(target.read_text())
    assert document["utterances"] == 3
    assert [system["name"] for system in document["systems"]] == ["one", "two"]
    assert document["systems"][0]["figures"]["emr"]["value"] == pytest.approx(2 / 3)
    assert {row["id"]: row["lost"]["one"] for row in document["frames"]} == {
        "a-1": None,
        "a-2": "value",
        "a-3": "intent",
    }
    assert "Where utterances are lost" in page.read_text(encoding="utf-8")


def test_frames_that_a_device_reported_stand_beside_systems_from_sound(place: Path, tmp_path: Path) -> None:
    expected = ExpectedFrame(("book", "greet"), (Slot("time", "7:30"),))
    trial = asked("t1", expects=expected)
    names = ("t1", "t2", "t3")
    plays: dict[str, list[Asked]] = {name: [(Outcome.RESPONDED, None)] for name in names}
    rows = asked_rows(plays, reports=(ObservationKind.INTENT,), expects=expected)
    for index, row in enumerate(rows):
        if isinstance(row, AttemptFinished):
            intents = expected.intents if row.trial_id == "t1" else ("other",)
            understood = UnderstandingResult(
                intents, expected.slots, intents == expected.intents, None, EvidenceSource.DEVICE
            )
            rows[index] = replace(row, understood=understood)
    folder = written(tmp_path / "session", rows, wall_s=lambda: 1_800_000_000.0)
    slots = [{"concept": "time", "value": "half past seven"}]
    by_query = [{"id": trial.query_id, "intents": list(expected.intents), "slots": slots}]
    sound = lines_of(tmp_path / "sound.jsonl", by_query)
    result = succeeded(harness(place, "--live", str(folder), "--pred-sound", sound, "--json", "-"))
    document = json.loads(result.stdout)
    figures = {system["name"]: system["figures"]["emr"]["value"] for system in document["systems"]}
    assert figures == {"sound": 1.0, "live": pytest.approx(1 / 3)}
    assert document["systems"][0]["figures"]["sfa_with_values"]["value"] == 1.0, "another reading of the same time"
    assert document["systems"][1]["kind"] == "live"
    text = harness(place, "--live", str(folder), "--pred-sound", sound).stdout
    assert "repetitions   3 trials of 1 query;" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("s", "--pred-sound", "gold.jsonl"), "cannot be combined with SESSION"),
        (("--pred-sound", "gold.jsonl"), "--gold is missing"),
        (("--gold", "gold.jsonl", "--pred-sound", "gold.jsonl"), "nothing to compare"),
        (("--gold", "gold.jsonl", "--heard", "heard.trn", "--heard", "gold.jsonl"), "--heard needs --model"),
        (
            ("--gold", "gold.jsonl", "--model", "model", "--heard", "heard.trn", "--heard", "heard.trn"),
            "two systems are named 'heard'",
        ),
        (
            ("--gold", "gold.jsonl", "--model", "model", "--pred-sound", "gold.jsonl", "--by", "room"),
            "do not apply to a comparison of systems",
        ),
        (
            ("--gold", "gold.jsonl", "--model", "model", "--pred-sound", "gold.jsonl", "--max-rows", "5"),
            "do not apply to a comparison of systems",
        ),
        (
            ("--gold", "gold.jsonl", "--model", "model", "--pred-sound", "heard.trn"),
            "contains neither intents nor slots",
        ),
        (
            ("--gold", "gold.jsonl", "--model", "model", "--pred-sound", "gold.jsonl", "--talkers", "rom"),
            "--talkers: gold has no group 'rom'. Did you mean 'room'",
        ),
    ],
)
def test_impossible_comparisons_are_refused(place: Path, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        harness(place, *arguments)
