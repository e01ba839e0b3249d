"""Annotated utterances as JSON, one a line."""

from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.model.understanding import Slot, Utterance
from harness.understanding.files.corpus_file import read_corpus


def one(tmp_path: Path, text: str) -> Utterance:
    path = tmp_path / "a.jsonl"
    path.write_text(text, encoding="utf-8")
    (found,) = read_corpus(path).utterances
    return found


def test_tags_slots_values_and_groups_are_read(tmp_path: Path) -> None:
    found = one(
        tmp_path,
        '{"id": "a#1", "text": " book  one room ", "intents": ["b", "a", "b"], "tags": ["O", "B-n", "I-n"],'
        ' "slots": [{"concept": "n", "value": "1", "start": 1, "end": 3}, {"concept": "x"}],'
        ' "groups": {"voice": "anna"}, "scores": {"a": 0.5}}\n\n',
    )
    assert found.id == "a#1"
    assert found.words == ("book", "one", "room")
    assert found.intents == ("a", "b")
    assert found.tags == ("O", "B-n", "I-n")
    assert found.slots == (Slot("n", "1", 1, 3), Slot("x"))
    assert found.groups == (("voice", "anna"),)


def test_what_is_not_there_is_not_annotated_and_an_empty_list_is_none(tmp_path: Path) -> None:
    found = one(tmp_path, '{"id": "a", "text": null}')
    assert (found.words, found.intents, found.tags, found.slots) == ((), None, None, None)
    found = one(tmp_path, '{"id": "a", "intents": "b#a", "slots": []}')
    assert (found.intents, found.slots) == (("a", "b"), ())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "a", "text": "x", "int', "the line ends within its object. See whether the file was cut off"),
        ('{"id": "a", "text": "x"', "the line ends within its object"),
        ("[1]", "the line is no object"),
        ('{"id": 3}', "'id' is no text"),
        ("{}", "'id' is missing"),
        ('{"id": " "}', "the utterance has no id"),
        ('{"id": "a", "intnts": []}', "there is no key 'intnts'. Did you mean 'intents'?"),
        ('{"id": "a", "id": "b"}', "the key 'id' stands twice"),
        ('{"id": "a", "text": "x y", "tags": ["O"]}', "1 tag of 2 words"),
        ('{"id": "a", "tags": ["O"]}', "1 tag of 0 words"),
        ('{"id": "a", "text": "x", "tags": ["E-x"]}', "tag 1, 'E-x', is no BIO tag"),
        ('{"id": "a", "text": "x", "tags": ["B-a b"]}', "tag 1, 'B-a b', is no BIO tag"),
        ('{"id": "a", "slots": [{"value": "1"}]}', "'concept' is missing"),
        ('{"id": "a", "slots": [{"concept": "c", "start": 1}]}', "the slot 'c' has half a place"),
        ('{"id": "a", "text": "x", "slots": [{"concept": "c", "start": 0, "end": 2}]}', "the slot 'c' stands at words"),
        ('{"id": "a", "slots": [{"concept": "c", "start": true, "end": 2}]}', "'start' is no number of a word"),
        ('{"id": "a", "text": "\\u001b[2J"}', "'text': the control character U+001B stands here"),
        ('{"id": "a", "text": "\\ud800"}', "'text': the half character U+D800 stands here"),
        ('{"id": "a", "x": ' + "[" * 100_000, "the line is nested too deeply"),
        ('{"id": "a", "scores": ' + "9" * 5000 + "}", "not JSON: Exceeds the limit"),
        ('{"id": "a", "scores": NaN}', "NaN is no JSON"),
    ],
)
def test_what_is_wrong_has_its_line_and_what_to_do(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "first"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_corpus(path)
    assert str(caught.value).startswith(f"{path}:2: {said}")


def test_an_id_that_is_there_twice_names_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "a"}\n\n{"id": "a"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=rf"{path}:3: the id 'a' is there already, in line 1"):
        read_corpus(path)


def test_an_empty_file_and_one_without_a_suffix_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match="the file is empty"):
        read_corpus(path)
    with pytest.raises(InputError, match=r"no suffix says which format this is. Say it: --pred-format bio\|jsonl"):
        read_corpus(path.rename(tmp_path / "a"), option="--pred-format")
