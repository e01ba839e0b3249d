"""`harness understanding distribution`, as a user types it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli import group
from harness.model.errors import InputError
from tests.command import succeeded
from tests.files import file_with
from tests.unit.understanding.files.corpora import write_folder


def harness(*arguments: str | Path, stdin: str = "") -> Result:
    runner = CliRunner(env={"COLUMNS": "100"})
    return runner.invoke(group, ["understanding", "distribution", *map(str, arguments)], input=stdin)


def table(done: Result) -> dict[str, tuple[int, ...]]:
    """The counts of each printed row, by name, up to the combinations."""
    assert done.exit_code == 0, done.output
    rows: dict[str, tuple[int, ...]] = {}
    for line in done.stdout.split("intents per utterance")[0].splitlines()[1:]:
        name, *cells = [cell.strip() for cell in line.split("  ") if cell.strip()] or [""]
        if cells:
            rows[name] = tuple(int(cell.replace(",", "")) for cell in cells if not cell.endswith("%"))
    return rows


@pytest.mark.parametrize("number", ["2", "5", "18"])
def test_the_tables_of_the_seed_come_back_from_files_of_intents(tmp_path: Path, number: str) -> None:
    seed, utterances = seed_table(number)
    files = write_intents(tmp_path, seed, utterances)
    options = [f"{split}={file}" for split, file in zip(SPLITS, files, strict=False)]
    result = harness(*options, "--max-rows", "0", "--json", tmp_path / "a.json", "--csv", tmp_path / "a.csv")
    counts = table(result)
    assert {name: counts[name] for name in seed} == seed
    assert counts["utterances"] == (*utterances, sum(utterances))
    columns = zip(*seed.values(), strict=True)
    assert counts["intents given"] == tuple(map(sum, columns))
    assert counts["without intent"] == counts["not annotated"] == (0,) * (len(utterances) + 1)
    assert result.stdout.splitlines()[0].split() == ["intent", *SPLITS[: len(files)], "total", "share"]
    assert (
        "checked: the splits add up to the total in every row, and so do the intents of combinations" in result.stdout
    )
    report = json.loads((tmp_path / "a.json").read_text())
    assert {row["intent"]: (*row["splits"].values(), row["total"]) for row in report["intents"]} == seed
    assert sum(row["total"] for row in report["combinations"]) == sum(utterances)
    with (tmp_path / "a.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.reader(stream) if row[0] == "intent"]
    assert {row[1]: tuple(map(int, row[2:])) for row in rows} == seed


def test_a_folder_has_its_splits_and_slots_are_counted(tmp_path: Path) -> None:
    write_folder(tmp_path / "train", "a b c\nd\n", "B-n-x I-n-x B-n-y\nO\n", "p#q\n\n")
    write_folder(tmp_path / "valid", "a\n", "I-n-x\n", "p\n")
    result = harness(tmp_path)
    assert table(result) == {
        "p": (1, 1, 2),
        "q": (1, 0, 1),
        "intents given": (2, 1, 3),
        "utterances": (2, 1, 3),
        "with several intents": (1, 0, 1),
        "without intent": (1, 0, 1),
        "not annotated": (0, 0, 0),
        "slots": (2, 1, 3),
        "different concepts": (2, 1, 2),
        "without specifiers": (1, 1, 1),
    }
    assert ["p", "1", "1", "2", "66.67", "%"] in [line.split() for line in result.stdout.splitlines()]
    assert table(harness(tmp_path, "--chunking", "iob2"))["slots"] == (2, 0, 2)


def test_named_attributes_keep_their_separator(tmp_path: Path) -> None:
    write_folder(tmp_path / "train", "a b c\n", "B-time-date B-time-date-end B-room-kind\n", "p\n")
    relaxed = table(harness(tmp_path))["without specifiers"]
    assert relaxed == (3, 3)  # time, time-date, room
    result = harness(tmp_path, "--attributes", "time-date", "--json", tmp_path / "a.json")
    assert table(result)["without specifiers"] == (2, 2)
    report = json.loads((tmp_path / "a.json").read_text())
    assert report["total"]["without_specifiers"] == report["splits"][0]["without_specifiers"] == 2


def test_undeclared_label_fails_and_unused_declared_label_has_a_row(tmp_path: Path) -> None:
    path = file_with(tmp_path / "a.csv", "id,intent\n1,p\n2,p#q\n")
    result = succeeded(harness(path, "--labels", "r,q,p"))
    assert [line.split()[:2] for line in result.stdout.splitlines()[2:5]] == [["r", "0"], ["q", "1"], ["p", "2"]]
    result = harness(path, "--labels", "p")
    assert result.exit_code == 1
    assert result.stderr == "harness: 1 × p#q: there is no label 'q'\n"


def test_a_label_set_that_forbids_a_combination_fails(tmp_path: Path) -> None:
    labels = file_with(
        tmp_path / "labels.yaml",
        "label_set: two\nlabels:\n- {id: p, description: The one., alone: true}\n- {id: q, description: Other.}\n",
    )
    path = file_with(tmp_path / "a.csv", "id,intent\n1,p\n2,p#q\n")
    result = harness(path, "--labels", labels)
    assert (result.exit_code, result.stderr) == (1, "harness: 1 × p#q: p must be the only label\n")


def test_ids_shared_by_two_splits_are_reported(tmp_path: Path) -> None:
    for name, ids in (("a", ("x", "y")), ("b", ("y", "z"))):
        (tmp_path / f"{name}.csv").write_text("id,intent\n" + "".join(f"{id_},p\n" for id_ in ids), encoding="utf-8")
    result = harness(tmp_path / "a.csv", tmp_path / "b.csv")
    assert result.stdout.splitlines()[-1] == "1 ids of b are also in a, such as y"
    result = harness(tmp_path / "a.csv", tmp_path / "b.csv", "--json")
    assert "also in" not in result.stdout
    assert result.stderr == "harness: 1 ids of b are also in a, such as y\n"


def test_shared_ids_are_counted_for_each_earlier_split(tmp_path: Path) -> None:
    files = []
    for name, ids in (("train", "1"), ("dev", "234"), ("test", "12345")):
        files.append(tmp_path / f"{name}.csv")
        files[-1].write_text("id,intent\n" + "".join(f"{id_},p\n" for id_ in ids), encoding="utf-8")
    assert harness(*files).stdout.splitlines()[-2:] == [
        "1 ids of test are also in train, such as 1",
        "3 ids of test are also in dev, such as 2",
    ]


def test_line_numbers_are_not_shared_ids(tmp_path: Path) -> None:
    write_folder(tmp_path / "train", "a\n", "O\n", "p\n")
    (tmp_path / "b.csv").write_text("id,intent\n1,p\n", encoding="utf-8")
    for other in ("b.csv", "train"):
        result = succeeded(harness(f"x={tmp_path / 'train'}", f"y={tmp_path / other}"))
        assert "also in" not in result.stdout


def test_help_says_that_a_file_does_not_replace_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,intent\n1,p\n", encoding="utf-8")
    assert harness(tmp_path / "a.csv", "--json", tmp_path / "a.json").stdout == harness(tmp_path / "a.csv").stdout
    text = " ".join(harness("--help").stdout.split())
    assert "Print JSON instead of text. FILE: write to this file, and print the text too." in text
    assert "1 labels do not fit --labels" in text


def test_a_single_file_is_split_by_groups(tmp_path: Path) -> None:
    path = file_with(tmp_path / "a.csv", "id,intent,split,voice\n1,p,dev,x\n2,p,train,x\n3,q,train,y\n")
    assert table(harness(path))["p"] == (1, 1, 2)
    assert harness(path, "--split-column", "voice").stdout.splitlines()[0].split()[1:4] == ["x", "y", "total"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x=a.csv", "x=a.csv"], "two splits are named 'x'"),
        (["a.csv", "--json", "a.csv"], "this file is both an input and an output"),
        (["-", "-"], "only one file can come from standard input"),
        (["a.csv", "--separator", ""], "--separator is empty"),
        (["a.csv", "--json", "-", "--csv", "-"], "both go to standard output"),
        (["nowhere.csv"], "the file or folder does not exist"),
    ],
)
def test_wrong_usage_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,intent\n1,p\n", encoding="utf-8")
    result = harness(*arguments)
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert Path("a.csv").read_text(encoding="utf-8") == "id,intent\n1,p\n"


def test_standard_input_is_read_and_hostile_labels_are_escaped() -> None:
    result = succeeded(harness("-", "--format", "csv", stdin="id,intent\n1,[red]\u202eb\n"))
    assert "[red]\\u202eb" in result.stdout


DATA = Path(__file__).parents[3] / "data" / "seed_intents.csv"
ALONE = "marqueur_discursif"
SPLITS = ("train", "dev", "test", "test2")
Rows = dict[str, tuple[int, ...]]


def seed_table(number: str) -> tuple[Rows, tuple[int, ...]]:
    """Its rows, and the utterances of each split."""
    with DATA.open(encoding="utf-8", newline="") as stream:
        rows = {row[1]: tuple(map(int, filter(None, row[2:]))) for row in csv.reader(stream) if row[0] == number}
    return rows, rows.pop("(utterances)")[:-1]


def write_intents(folder: Path, table: Rows, utterances: tuple[int, ...]) -> list[Path]:
    """A file for each split, whose utterances together have the intents of the table; ids have # and commas."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for index, number in enumerate(utterances):
        alone = table[ALONE][index]
        labels: list[list[str]] = [[ALONE] if place < alone else [] for place in range(number)]
        intents = [name for name, counts in table.items() if name != ALONE for _ in range(counts[index])]
        # Each goes to the next utterance, so that none gets the same intent twice, and all get one.
        for turn, name in enumerate(intents):
            labels[alone + turn % (number - alone)].append(name)
        assert all(labels)
        rows = [
            f'"{index}#{place},{place % 7}#s.wav",{"#".join(combination)}\n' for place, combination in enumerate(labels)
        ]
        path = file_with(
            folder / f"{SPLITS[index]}.csv", ("id,intent\n" if index % 2 else "\ufeffID,intent\n") + "".join(rows)
        )
        files.append(path)
    return files
