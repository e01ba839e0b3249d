"""`harness understanding cascade`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.base.ports import Understander
from harness.cli import group
from harness.cli.understanding.cascade import without_wake_phrase
from harness.model.bench import ObservationKind
from harness.model.errors import InputError
from harness.model.record import AttemptFinished, AttemptStarted, Record, SessionStarted, TrialFinished, TrialStarted
from harness.model.trial import EvidenceSource, Outcome, Recognition
from harness.model.understanding import Utterance
from harness.session.log.writer import SqliteLog
from harness.understanding.files.corpus_file import read_corpus
from harness.understanding.models.crf_understander import CrfUnderstander
from harness.understanding.models.model_folder import ModelFacts, save_model
from tests.unit.session.figures.test_understood import asked

TEXTS = ("open the door", "open a window", "close the door", "close the window", "close a gate", "open the gate")
HEARD = "Open the floor. (a-1)\nclose the door (a-2)\nnothing (z-1)\n"


def frame(text: str) -> dict[str, object]:
    verb, _, thing = text.split()
    return {"intents": [verb], "tags": ["O", "O", "B-thing"], "slots": [{"concept": "thing", "value": thing}]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """gold.jsonl, heard.trn, and a model that knows the few words there are."""
    folder = tmp_path_factory.mktemp("cascade")
    gold = [("a-1", TEXTS[0], "quiet"), ("a-2", TEXTS[2], "quiet"), ("a-3", TEXTS[5], "loud")]
    rows = [{"id": id_, "text": text, **frame(text), "groups": {"room": room}} for id_, text, room in gold]
    (folder / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "heard.trn").write_text(HEARD)
    train = [
        Utterance(f"{at}/{n}", tuple(text.split()), (text.split()[0],), ("O", "O", "B-thing"))
        for at, text in enumerate(TEXTS)
        for n in range(6)
    ]
    understander: Understander = CrfUnderstander({}, seed=1)
    understander.fit(train, (), lambda line: None)
    save_model("crf", understander, folder / "model", ModelFacts(1))
    return folder


def harness(place: Path, *arguments: str) -> Result:
    given = [str(place / one) if one and (place / one).exists() else one for one in arguments]
    done = CliRunner(env={"COLUMNS": "120"}).invoke(group, ["understanding", "cascade", *given])
    if isinstance(done.exception, InputError):
        raise done.exception
    return done


def asked_of(place: Path, *more: str) -> Result:
    return harness(place, "--gold", "gold.jsonl", "--heard", "heard.trn", "--model", "model", *more)


def test_what_recognition_cost_is_told(place: Path) -> None:
    done = asked_of(place)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert "utterances    2, compared without places of words" in lines
    assert "model reads   transcripts without capitals and without marks at words, as gold is written" in lines
    shown = {line[:18].strip(): line[18:].split() for line in lines}
    assert shown["SFA with values"][:5] == ["100.00", "%", "50.00", "%", "-50.00"]
    assert shown["SFA, by concepts"][:5] == ["100.00", "%", "100.00", "%", "+0.00"]
    # The floor is a thing as the door is, and no door.
    assert lines[lines.index("Other values of slots: 1 of 1") + 2] == "a-1"
    assert any(line.startswith("WER           1 of 6 = 16.67 %") for line in lines)
    assert "no transcript 1 id (a-3): not known, counted nowhere" in lines
    assert "no gold       1 id (z-1): counted nowhere" in lines
    assert any(line.split()[:3] == ["quiet", "2", "16.67"] for line in lines)


def test_json_has_every_figure_and_every_utterance(place: Path, tmp_path: Path) -> None:
    done = asked_of(place, "--json", "-", "--missing-is-silence")
    found = json.loads(done.stdout)
    assert found["kind"] == "understanding cascade"
    assert found["utterances"] == 3
    assert found["without_transcript"] == ["a-3"]
    for name in ("emr", "sfa"):
        of = found["total"]["figures"][name]
        assert (of["reference"], of["transcript"], of["difference"]) == (1, 2 / 3, pytest.approx(-1 / 3))
    assert found["total"]["words"]["deletions"] == 3
    assert found["slot_f1_by_places_on_reference"] == 1
    assert found["total"]["figures"]["slot_f1"]["reference"] is None
    assert {one["id"]: one["heard"] for one in found["frames"]}["a-1"] == "Open the floor."
    assert {one["id"]: one["fate"] for one in found["frames"]}["a-3"] == "broken"
    assert [row["label"] for row in found["groups"]["room"]] == ["loud", "quiet"]


def test_a_page_shows_what_was_said_and_heard_and_nothing_of_it_is_markup(place: Path, tmp_path: Path) -> None:
    heard = [{"id": "a-1", "text": "<script>alert(1)</script> the sky"}, {"id": "a-2", "text": "close the door"}]
    (tmp_path / "h.jsonl").write_text("".join(json.dumps(row) + "\n" for row in heard))
    page = tmp_path / "page.html"
    more = ("--model", "model", "--html", str(page))
    done = harness(place, "--gold", "gold.jsonl", "--heard", str(tmp_path / "h.jsonl"), *more)
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; the sky" in text
    assert "<script>" not in text
    assert "right on both but for values of slots" in text


def test_a_model_may_have_made_its_predictions_elsewhere(place: Path, tmp_path: Path) -> None:
    rows = [{"id": "a-1", "text": "open the floor", "intents": ["open"], "tags": ["O", "O", "O"]},
            {"id": "a-2", "text": "close the door", **frame("close the door")}]  # fmt: skip
    (tmp_path / "after.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    predictions = ("--pred-reference", "gold.jsonl", "--pred-heard", str(tmp_path / "after.jsonl"))
    done = harness(place, "--gold", "gold.jsonl", "--heard", "heard.trn", *predictions, "--json", "-")
    figures = json.loads(done.stdout)["total"]["figures"]
    assert (figures["emr"]["transcript"], figures["sfa"]["transcript"], figures["cer"]["transcript"]) == (1, 0.5, 0.5)


def test_a_column_of_too_many_labels_is_stated_and_shown_on_demand(tmp_path: Path) -> None:
    gold, page = tmp_path / "gold.jsonl", tmp_path / "page.html"
    rows = [{"id": str(n), "text": TEXTS[0], **frame(TEXTS[0]), "groups": {"<file>": str(n)}} for n in range(61)]
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows))
    files = ("--gold", str(gold), "--heard", str(gold), "--pred-reference", str(gold), "--pred-heard", str(gold))
    done = harness(tmp_path, *files, "--html", str(page))
    told = "has 61 labels, too many to part by; --by"
    assert f"no group      <file> {told} <file> does" in done.stdout.splitlines()
    assert f"No group: &lt;file&gt; {told} &lt;file&gt; does." in page.read_text(encoding="utf-8")
    assert json.loads(harness(tmp_path, *files, "--json", "-").stdout)["groups_left_out"] == {"<file>": 61}
    asked = harness(tmp_path, *files, "--by", "<file>").stdout
    assert told not in asked
    assert any(line.startswith("60 ") for line in asked.splitlines())


def test_a_limit_on_what_it_may_cost(place: Path) -> None:
    assert asked_of(place, "--max-sfa-loss", "100%").exit_code == 0
    done = asked_of(place, "--missing-is-silence", "--max-sfa-loss", "20%")
    assert done.exit_code == 1
    assert "what recognition cost of SFA is 33.33 %, above 20.00 %" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--gold", "gold.jsonl"), "transcripts come from a session or from --heard"),
        (("s", "--heard", "heard.trn"), "not both"),
        (("--heard", "heard.trn", "--model", "model"), "there is no gold"),
        (("--gold", "gold.jsonl", "--heard", "heard.trn"), "there is nothing that understands"),
        (("--gold", "gold.jsonl", "--heard", "gold.jsonl", "--pred-heard", "x"), "there is nothing that understands"),
        (("--gold", "gold.jsonl", "--heard", "heard.trn", "--model", "model", "--pred-heard", "x"), "not both"),
        (("--gold", "gold.jsonl", "--heard", "heard.trn", "--model", "gold.jsonl"), "model.json"),
        (("--gold", "heard.trn", "--heard", "heard.trn", "--model", "model"), "nothing of it is annotated"),
        (("--gold", "gold.jsonl", "--heard", "gold.jsonl", "--model", "model", "--separator", ""), "--separator"),
    ],
)
def test_what_does_not_go_together_is_refused(place: Path, arguments: tuple[str, ...], told: str) -> None:
    with pytest.raises(InputError, match=told):
        harness(place, *arguments)


def test_a_group_that_there_is_not_is_refused(place: Path) -> None:
    with pytest.raises(InputError, match="--by: gold has no group 'voice'") as told:
        asked_of(place, "--by", "voice")
    assert "room" in str(told.value)


def test_other_ids_are_refused(place: Path, tmp_path: Path) -> None:
    (tmp_path / "h.trn").write_text("open the door (b-1)\n")
    with pytest.raises(InputError, match="no transcript is of an annotated utterance: the first is 'b-1'"):
        harness(place, "--gold", "gold.jsonl", "--heard", str(tmp_path / "h.trn"), "--model", "model")


def test_a_session_has_transcripts_and_gold_of_its_own_or_from_a_file(place: Path, tmp_path: Path) -> None:
    folder = tmp_path / "session"
    trials = tuple(asked(name, reports=(ObservationKind.TRANSCRIPT,)) for name in ("t1", "t2", "t3"))
    rows: list[Record] = [SessionStarted("s1", "frames", "Frames", "a" * 64, "lab", "b" * 64, 0, "wire", (), trials)]
    for trial, heard in zip(trials, (trials[0].reference, "something else", None), strict=True):
        rows += [
            TrialStarted(trial.id, 1),
            AttemptStarted(trial.id, 1, 1, f"{trial.id}.1", "c" * 64, 1.0, 2.0, 2.5, None),
            AttemptFinished(
                trial.id, 1, 1, Outcome.RESPONDED, Recognition.NOT_ASSESSED, EvidenceSource.DEVICE, heard=heard
            ),
            TrialFinished(trial.id, 1, Outcome.RESPONDED, 1, 1),
        ]
    folder.mkdir()
    with SqliteLog(folder, wall_s=lambda: 1_800_000_000.0) as log:
        for row in rows:
            log.append(row)
    found = json.loads(harness(place, str(folder), "--model", "model", "--json", "-").stdout)
    assert found["utterances"] == 2
    assert len(found["without_transcript"]) == 1
    assert {one["heard"] for one in found["frames"]} == {trials[0].reference, "something else"}
    assert found["frames"][0]["gold"]["intents"] == list(trials[0].expects.intents if trials[0].expects else ())
    query = trials[0].query_id
    gold = tmp_path / "gold.jsonl"
    gold.write_text(json.dumps({"id": query, "text": "open the door", **frame("open the door")}) + "\n")
    by_query = json.loads(harness(place, str(folder), "--gold", str(gold), "--model", "model", "--json", "-").stdout)
    assert {one["said"] for one in by_query["frames"]} == {"open the door"}
    assert read_corpus(gold).utterances[0].id == query


def test_a_wake_phrase_is_no_part_of_what_was_asked() -> None:
    words = ("Hey,", "Computer!", "open", "computer")
    assert without_wake_phrase(words, ["hey computer", "hey"]) == ("open", "computer")
    assert without_wake_phrase(words, ["hey"]) == ("Computer!", "open", "computer")
    assert without_wake_phrase(words, ["ok computer"]) == words
    assert without_wake_phrase((), ["hey"]) == ()
