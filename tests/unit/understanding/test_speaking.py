"""A corpus spoken by synthetic voices, and the lists of its sounds."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import soundfile

from harness.model.errors import InputError
from tests.command import harness, succeeded

TEXTS = ("turn on the light", "stop", "play the river song", "what time is it")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Two splits in BIO form, train with three utterances and test with one."""
    for split, texts in (("train", TEXTS[:3]), ("test", TEXTS[3:])):
        (tmp_path / "data" / split).mkdir(parents=True)
        (tmp_path / "data" / split / "seq.in").write_text("".join(f"{text}\n" for text in texts))
    return tmp_path / "data"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_each_text_is_spoken_once_and_test_voices_are_not_in_training(corpus: Path, tmp_path: Path) -> None:
    voices = ("--voices", "espeak:en-us,espeak:en-gb", "--test-voices", "espeak:en-us+f3")
    for name in ("one", "two"):
        result = succeeded(harness("understand", "speak", corpus, *voices, "--output", tmp_path / name))
    assert "3 train, 1 test" in result.stderr
    train, test = rows_of(tmp_path / "one" / "train.csv"), rows_of(tmp_path / "one" / "test.csv")
    assert [row["id"] for row in train] == ["train/1", "train/2", "train/3"]
    assert {row["voice"] for row in train} <= {"espeak:en-us", "espeak:en-gb"}
    assert [row["voice"] for row in test] == ["espeak:en-us+f3"]
    samples, rate_hz = soundfile.read(tmp_path / "one" / train[0]["audio"])
    assert rate_hz == 16000
    assert 0.5 < len(samples) / rate_hz < 5
    for row in (*train, *test):
        first, second = ((tmp_path / name / row["audio"]).read_bytes() for name in ("one", "two"))
        assert first == second


@pytest.mark.parametrize(
    ("voices", "message"),
    [
        (("--voices", "espeak"), "must have the form ENGINE:NAME"),
        (("--voices", ","), "there are no voices"),
        (("--voices", "espeak:en-us", "--test-voices", "espeak:en-us"), "is in --voices and in --test-voices"),
    ],
)
def test_voices_that_do_not_fit_are_refused(
    corpus: Path, tmp_path: Path, voices: tuple[str, ...], message: str
) -> None:
    result = harness("understand", "speak", corpus, *voices, "--output", tmp_path / "new")
    assert isinstance(result.exception, InputError)
    assert message in str(result.exception)
    assert not (tmp_path / "new").exists()


def test_a_split_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text(f'{{"id": "a", "text": "stop", "groups": {{"split": "{tmp_path}/owned"}}}}\n')
    result = harness(
        "understand", "speak", tmp_path / "data.jsonl", "--voices", "espeak:en-us", "--output", tmp_path / "new"
    )
    assert isinstance(result.exception, InputError)
    assert "cannot be a folder name" in str(result.exception)
    assert not (tmp_path / "owned.csv").exists()


def test_a_corpus_without_texts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "intents.csv").write_text("id,intent\na,stop\n")
    result = harness(
        "understand", "speak", tmp_path / "intents.csv", "--voices", "espeak:en-us", "--output", tmp_path / "new"
    )
    assert isinstance(result.exception, InputError)
    assert "'a' has no text" in str(result.exception)


def test_test_voices_need_a_split_called_test(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"id": "a", "text": "stop", "groups": {"split": "test2"}}\n')
    voices = ("--voices", "espeak:en-us", "--test-voices", "espeak:en-gb")
    result = harness("understand", "speak", tmp_path / "data.jsonl", *voices, "--output", tmp_path / "new")
    assert isinstance(result.exception, InputError)
    assert "there is no split named test" in str(result.exception)
    assert not (tmp_path / "new").exists()
