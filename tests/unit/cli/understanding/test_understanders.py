"""`harness understanding generate | train | predict | bench`, as their users call them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli import group
from harness.model.errors import HarnessError, InputError, PluginError
from harness.model.understanding import Corpus
from harness.understanding.files.corpus_file import read_corpus, read_splits
from harness.understanding.files.corpus_writing import slots_of, write_jsonl
from harness.understanding.models.model_folder import load_model
from tests.command import succeeded
from tests.known import known
from tests.unit.understanding.models.learned_from import TEA

HARNESS = [sys.executable, "-c", "from harness.cli import main; main()", "understanding"]
DEADLINE_S = 60.0


def ran(*arguments: object, stdin: bytes = b"") -> Result:
    result = CliRunner().invoke(group, ["understanding", *map(str, arguments)], input=stdin)
    if isinstance(result.exception, HarnessError):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a grammar, a corpus `data` and a model `model` of it."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "tea.yaml").write_text(TEA)
    sizes = ("--train", 80, "--dev", 20, "--test", 30)
    assert ran("generate", folder / "tea.yaml", *sizes, "--output", folder / "data").exit_code == 0
    result = succeeded(
        ran("train", "--data", folder / "data", "--output", folder / "model", "-s", "iterations=30", "--seed", 7)
    )
    assert "80 utterances" in result.stdout
    return folder


@pytest.mark.parametrize("form", ["bio", "jsonl"])
def test_the_same_seed_gives_the_same_bytes(place: Path, tmp_path: Path, form: str) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        sizes = ("--train", 30, "--dev", 0, "--test", 10)
        ran(
            "generate", place / "tea.yaml", "--seed", seed, *sizes, "--output", tmp_path / name, "--output-format", form
        )
    folders = [tmp_path / name for name in "abc"]
    a, b, c = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in folders
    )
    assert a == b != c
    splits = read_splits(tmp_path / "a")
    assert {name: len(corpus.utterances) for name, corpus in splits.items()} == {"train": 30, "test": 10}
    if form == "jsonl":
        values = {slot.value for utterance in splits["train"].utterances for slot in utterance.slots or ()}
        assert values & {str(number) for number in range(1, 13)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generate", "few.yaml", "--train", 5000, "--output", "out"), "different sentences"),
        (("generate", "tea.yaml", "--output", "data"), "already exists"),
        (("generate", "tea.yaml", "--train", 0, "--dev", 0, "--test", 0, "--output", "out"), "all splits are empty"),
        (("generate", "none.yaml", "--output", "out"), "no such file"),
        (("train", "--data", "nowhere", "--output", "no/model"), "the folder no does not exist"),
        (("train", "--data", "nowhere", "--output", "model"), "nowhere: the file or folder does not exist"),
        (("train", "--data", "data", "--output", "model"), "already exists"),
        (("train", "--data", "nowhere", "--output", "out", "-s", "iteration=3"), "Did you mean 'iterations'"),
        (("train", "--data", "nowhere", "--output", "out", "--understander", "oracle"), r"Installed: .*crf"),
        (("train", "--data", "nowhere", "--output", "out", "-s", "iterations"), "the value is missing"),
        (("train", "--data", "nowhere", "--output", "out", "-s", "=3"), "the name is missing"),
        (("bench", "--data", "data", "--understander", "crf", "-s", "l1"), "Write -s crf:name=value"),
        (("train", "--data", "texts.jsonl", "--output", "out"), "not annotated with BIO tags"),
        (
            ("bench", "--data", "data", "--understander", "crf", "-s", "oracle:l1=3"),
            "does not name an understander of this run",
        ),
        (("bench", "--data", "half", "--understander", "crf"), "no split named test"),
    ],
)
def test_invalid_understander_commands_are_refused_before_anything_is_written(
    place: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[object, ...], message: str
) -> None:
    monkeypatch.chdir(place)
    Path("few.yaml").write_text(TEA.replace("two_intents: 0.15", "two_intents: 0"))
    Path("texts.jsonl").write_text('{"id": "1", "text": "a", "intents": ["b"]}\n')
    if not Path("half").exists():
        ran("generate", "tea.yaml", "--train", 20, "--dev", 0, "--test", 0, "--output", "half")
    with pytest.raises(HarnessError, match=message):
        ran(*arguments)
    assert not Path("out").exists()


def test_a_model_states_how_it_was_trained(place: Path) -> None:
    facts = load_model(place / "model").facts
    assert (facts.seed, facts.settings) == (7, (("iterations", "30"),))
    assert (facts.utterances, facts.held_out_utterances) == (80, 20)


def test_predictions_of_a_folder_can_be_scored(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "said.jsonl"
    succeeded(ran("predict", place / "data", "--split", "test", "--model", place / "model", "--output", out))
    gold = read_corpus(place / "data", split="test").utterances
    predictions = {utterance.id: utterance for utterance in read_corpus(out).utterances}
    assert set(predictions) == {utterance.id for utterance in gold}
    right = sum(
        utterance.intents == predictions[utterance.id].intents and utterance.tags == predictions[utterance.id].tags
        for utterance in gold
    )
    assert right >= 20
    bio = tmp_path / "bio"
    ran(
        "predict",
        place / "data",
        "--split",
        "test",
        "--model",
        place / "model",
        "--output-format",
        "bio",
        "--output",
        bio,
    )
    assert [utterance.tags for utterance in read_corpus(bio).utterances] == [
        predictions[utterance.id].tags for utterance in gold
    ]


def test_a_prediction_loses_the_scores_and_the_cost_of_an_earlier_one(place: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    cost = {"cpu_s": 0.4, "elapsed_s": 0.4, "sound_s": 2.0}
    earlier = {"id": "1", "text": "brew some green tea", "intents": ["ask"], "scores": {"ask": 0.9}, "cost": cost}
    data.write_text(json.dumps(earlier) + "\n", encoding="utf-8")
    ran("predict", data, "--model", place / "model", "--output", tmp_path / "out.jsonl")
    prediction = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8"))
    assert prediction["intents"] == ["brew"]
    assert not {"scores", "cost"} & set(prediction)


def test_lines_are_answered_with_slots_and_scores(place: Path) -> None:
    texts = "brew some green tea at seven\n\nm\u00fcnze \U0001f375 \x1b[31m\n"
    result = ran("predict", "--model", place / "model", "--scores", stdin=texts.encode())
    first, empty, strange = (json.loads(line) for line in result.stdout.splitlines())
    assert first["intents"] == ["brew"]
    assert {"concept": "kind", "value": "green", "start": 2, "end": 3} in first["slots"]
    assert set(first["scores"]) == {"ask", "brew", "stop"}
    assert all(0 <= score <= 1 for score in first["scores"].values())
    assert (empty["id"], empty.get("tags", [])) == ("2", [])
    assert len(strange["tags"]) == 3
    assert "\x1b" not in result.stdout


def test_each_line_is_answered_before_the_next_is_read(place: Path) -> None:
    program = subprocess.Popen(
        [*HARNESS, "predict", "--model", place / "model"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with program:
        questions, answers = known(program.stdin), known(program.stdout)
        for text in (b"brew some mint tea\n", b"no more mint tea\n"):
            questions.write(text)
            questions.flush()
            assert json.loads(answers.readline())["text"] == text.decode().strip()
        questions.close()
        assert program.wait(DEADLINE_S) == 0


def test_undecodable_input_line_is_refused_with_its_number(place: Path) -> None:
    with pytest.raises(InputError, match="line is not UTF-8") as caught:
        ran("predict", "--model", place / "model", stdin=b"tea\n\xff\n")
    assert str(caught.value.place) == "<stdin>:2"


def test_a_training_that_is_killed_leaves_no_model(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    program = subprocess.Popen(
        [*HARNESS, "train", "--data", place / "data", "--output", out, "-s", "iterations=2000", "-s", "l1=0"],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    with program:
        deadline = time.monotonic() + DEADLINE_S
        while not known(program.stderr).readline().startswith(b"slots"):
            assert time.monotonic() < deadline
        os.kill(program.pid, signal.SIGKILL)
        assert program.wait(DEADLINE_S) == -signal.SIGKILL
    assert not out.exists()
    succeeded(ran("train", "--data", place / "data", "--output", out, "-s", "iterations=5"))
    assert load_model(out).facts.utterances == 80


def test_bench_prints_a_row_with_intervals_and_yardsticks(place: Path, tmp_path: Path) -> None:
    atis = tmp_path / "my-atis"
    atis.symlink_to(place / "data")
    output = tmp_path / "rows.json"
    result = succeeded(
        ran("bench", "--data", atis, "--understander", "crf", "-s", "crf:iterations=30", "--json", output)
    )
    lines = result.stdout.splitlines()
    assert "SFA" in lines[1]
    assert lines[3].startswith("crf ")
    assert any(line.startswith("JointBERT, published *") for line in lines)
    ((ours, *others),) = (report["rows"] for report in json.loads(output.read_text()))
    assert ours["utterances"] == 30
    assert all(row["from_elsewhere"] for row in others)
    # Papers take `a#b` for a class of its own: a right set is all or nothing.
    assert all(set(row["figures"]) == {"emr", "slot_f1", "sfa"} for row in others)
    predictions = tmp_path / "said.jsonl"
    ran("predict", place / "data", "--split", "test", "--model", place / "model", "--output", predictions)
    gold = {utterance.id: utterance for utterance in read_corpus(place / "data", split="test").utterances}
    exact = [utterance.intents == gold[utterance.id].intents for utterance in read_corpus(predictions).utterances]
    assert ours["figures"]["emr"]["value"] == pytest.approx(sum(exact) / 30)
    scored = tmp_path / "scored.json"
    ran("score", "--gold", place / "data", "--split", "test", "--pred", predictions, "--json", scored)
    (system,) = json.loads(scored.read_text())["systems"]
    figures = system["scores"][0]["figures"]
    for name, figure in ours["figures"].items():
        # A figure has one interval, whichever command prints it.
        assert (figure["value"], figure["interval_95"]) == (figures[name]["value"], figures[name]["interval"]), name
    plain = ran("bench", "--data", place / "data", "--understander", "crf", "-s", "crf:iterations=5")
    assert "*" not in plain.stdout


def test_folds_give_means_with_deviations_over_a_split_corpus(place: Path, tmp_path: Path) -> None:
    result = succeeded(ran("split", place / "data", "--parts", "train=3,test=1", "--output", tmp_path / "parts"))
    parts = [read_corpus(tmp_path / "parts", split=name).utterances for name in ("train", "test")]
    whole = read_corpus(place / "data").utterances
    assert sorted(utterance.text for part in parts for utterance in part) == sorted(
        utterance.text for utterance in whole
    )
    output = tmp_path / "rows.json"
    bench = ("bench", "--data", place / "data", "--understander", "crf", "-s", "crf:iterations=5", "--folds", "3")
    result = ran(*bench, "--json", output)
    assert "±" in result.stdout.splitlines()[4]
    ((row,),) = (report["rows"] for report in json.loads(output.read_text()))
    assert row["utterances"] == len(whole)
    assert 0 < row["figures"]["sfa"]["value"] <= 1
    assert row["figures"]["sfa"]["sd"] >= 0
    with pytest.raises(InputError, match="--published and --folds cannot be combined"):
        ran(*bench, "--published", "atis")
    for wrong in ("train", "train=0", "a=1,a=2"):
        assert ran("split", place / "data", "--parts", wrong, "--output", tmp_path / "no").exit_code == 2


def test_one_file_with_slots_is_divided_by_the_splits_that_it_names(place: Path, tmp_path: Path) -> None:
    utterances = [replace(utterance, tags=None, slots=slots_of(utterance))
                  for utterance in read_corpus(place / "data").utterances]  # fmt: skip
    file = tmp_path / "all.jsonl"
    write_jsonl(Corpus("", tuple(utterances)), file)
    trained = ran("train", "--data", file, "--output", tmp_path / "model", "-s", "iterations=5")
    assert "80 utterances" in trained.stdout
    assert "held-out (20)" in trained.stdout
    result = ran("bench", "--data", file, "--understander", "crf", "-s", "crf:iterations=5")
    assert result.stdout.startswith(f"{file}: 30 test utterances")


def test_bench_skips_understanders_that_are_not_installed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    result = succeeded(ran("bench", "--data", place / "data", "-s", "crf:iterations=2"))
    assert "transformer is skipped: torch is not installed" in result.stderr
    assert [line.split()[0] for line in result.stdout.splitlines()[1:4:2]] == ["understander", "crf"]
    with pytest.raises(PluginError, match="torch is not installed"):
        ran("bench", "--data", place / "data", "--understander", "crf,transformer")


@pytest.mark.speech
def test_a_system_from_sound_is_trained_and_used_by_two_commands(place: Path, tmp_path: Path) -> None:
    data, sounds = tmp_path / "data", tmp_path / "sounds"
    sizes = ("--train", 8, "--dev", 2, "--test", 2)
    assert ran("generate", place / "tea.yaml", *sizes, "--output", data).exit_code == 0
    assert ran("speak", data, "--voices", "espeak:en-us", "--output", sounds).exit_code == 0
    lists = ("--audio", sounds / "train.csv", "--audio", sounds / "dev.csv")
    small = ("-s", "epochs=1", "-s", "hidden=4")
    for name in ("one", "two"):
        result = succeeded(
            ran("train", "--data", data, *lists, "--understander", "ctc", *small, "--output", tmp_path / name)
        )
        assert "8 utterances" in result.stdout
        assert "held-out (2): EMR" in result.stdout
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir() if path.suffix in (".npy", ".json")}
        for name in ("one", "two")
    )
    assert {name: content for name, content in first.items() if name != "model.json"} == {
        name: content for name, content in second.items() if name != "model.json"
    }
    out = tmp_path / "frames.jsonl"
    result = succeeded(ran("predict", "--audio", sounds / "test.csv", "-t", f"ctc:{tmp_path / 'one'}", "--output", out))
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["id"] for row in rows] == ["test/1", "test/2"]
    assert all(row["cost"]["sound_s"] > 0.3 for row in rows)
    with pytest.raises(InputError, match="this model understands sound, not texts"):
        ran("predict", "--model", tmp_path / "one", data)


def test_a_system_from_sound_is_not_trained_without_sounds_of_its_utterances(place: Path, tmp_path: Path) -> None:
    sounds = tmp_path / "sounds.csv"
    (tmp_path / "a.wav").write_bytes(b"")
    sounds.write_text("id,audio\nother,a.wav\n")
    with pytest.raises(InputError, match=r"the list has no sound for any training utterance.*'train/1'"):
        ran("train", "--data", place / "data", "--audio", sounds, "--output", tmp_path / "model")
    with pytest.raises(PluginError, match="there is no audio understander 'crv'"):
        ran("train", "--data", place / "data", "--audio", sounds, "--understander", "crv", "--output", tmp_path / "m")
