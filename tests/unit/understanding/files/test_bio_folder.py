"""Folders with seq.in, seq.out and label."""

from pathlib import Path

import pytest

from harness.model.errors import InputError, Place
from harness.understanding.files.corpus_file import read_corpus
from tests.unit.understanding.files.corpora import write_folder


def test_each_line_is_an_utterance_with_its_split_and_line_as_id(tmp_path: Path) -> None:
    for split in ("test", "train"):
        write_folder(tmp_path / split, "book one room\nno thanks\n", "B-task B-n I-n\nO O\n", "booking\nthanks#no#no\n")
    found = read_corpus(tmp_path).utterances
    assert [one.id for one in found] == ["train/1", "train/2", "test/1", "test/2"]
    assert found[0].words == ("book", "one", "room")
    assert found[0].tags == ("B-task", "B-n", "I-n")
    assert found[1].intents == ("no", "thanks")
    assert found[3].groups == (("split", "test"),)
    assert found[3].place == Place(f"{tmp_path}/test/seq.in", 2)
    assert [one.id for one in read_corpus(tmp_path / "test").utterances] == ["1", "2"]


def test_a_byte_order_mark_and_line_ends_of_windows_are_no_words(tmp_path: Path) -> None:
    write_folder(tmp_path, b"\xef\xbb\xbfgo home\r\nstay\r\n", b"O B-p\r\nO\r\n", b"go\r\nstay")
    found = read_corpus(tmp_path).utterances
    assert [one.words for one in found] == [("go", "home"), ("stay",)]
    assert [one.intents for one in found] == [("go",), ("stay",)]


def test_a_space_that_is_no_blank_is_within_a_word(tmp_path: Path) -> None:
    write_folder(tmp_path, "40\u00a0€ ok\n", "B-price O\n", "a\n")
    assert read_corpus(tmp_path).utterances[0].words == ("40\u00a0€", "ok")


def test_without_tags_or_labels_nothing_is_said_of_them(tmp_path: Path) -> None:
    write_folder(tmp_path, "go\n\n", None, None)
    found = read_corpus(tmp_path).utterances
    assert [(one.words, one.tags, one.intents) for one in found] == [(("go",), None, None), ((), None, None)]
    write_folder(tmp_path, "go\n", None, "\n")
    assert read_corpus(tmp_path).utterances[0].intents == ()


@pytest.mark.parametrize(
    ("words", "tags", "labels", "said"),
    [
        ("a b\nc\n", "O O\nO O\n", None, "seq.out:2: 2 tags, where seq.in has 1 word. Write one tag for each word"),
        ("a b\n", "O FROM\n", None, "seq.out:1: tag 2, 'FROM', is no BIO tag. Write O, B-concept or I-concept"),
        ("a b\n", "O B-\n", None, "seq.out:1: tag 2, 'B-', is no BIO tag"),
        ("a\nb\n", "O\n", None, "seq.out:2: 1 line, where seq.in has 2. Each line is of one utterance"),
        ("a\n", "O\n", "x\ny\n", "label:2: 2 lines, where seq.in has 1. Each line is of one utterance"),
        (b"a\nk\xe9\n", "O\nO\n", None, "seq.in:2:2: byte 0xe9 is not UTF-8. Save the file as UTF-8"),
        ("", "", "", "seq.in: the file is empty"),
        ("a " * 2_200_000, "O\n", None, "seq.in:1: the line has more than 4,194,304 characters"),
    ],
)
def test_what_is_wrong_has_its_line_and_what_to_do(
    tmp_path: Path, words: str | bytes, tags: str, labels: str | None, said: str
) -> None:
    write_folder(tmp_path, words, tags, labels)
    with pytest.raises(InputError) as caught:
        read_corpus(tmp_path)
    assert str(caught.value).splitlines()[0].startswith(f"{tmp_path}/{said}")


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    write_folder(tmp_path, "a\nb\nc\n", "X\nO O\nO\n", "1\n2\n")
    with pytest.raises(InputError) as caught:
        read_corpus(tmp_path)
    assert [line.split(": ")[0].rpartition("/")[2] for line in str(caught.value).splitlines()] == [
        "seq.out:1", "seq.out:2", "label:3",
    ]  # fmt: skip


def test_a_split_is_found_by_either_of_its_names(tmp_path: Path) -> None:
    write_folder(tmp_path / "valid", "a\n", "O\n", "x\n")
    write_folder(tmp_path / "train", "b\n", "O\n", "x\n")
    assert [one.id for one in read_corpus(tmp_path, split="dev").utterances] == ["valid/1"]
    with pytest.raises(InputError, match=r"there is no split 'trian'. Did you mean 'train'"):
        read_corpus(tmp_path, split="trian")
    with pytest.raises(InputError, match="the folder has no splits"):
        read_corpus(tmp_path / "train", split="train")


def test_a_folder_of_something_else_says_what_it_wants(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder holds no seq.in. Put seq.in, seq.out and label there"):
        read_corpus(tmp_path)
    with pytest.raises(InputError, match="there is no such file or folder"):
        read_corpus(tmp_path / "nowhere")
