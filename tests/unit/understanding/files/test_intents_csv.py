"""Intents by id, as the public files have them."""

from pathlib import Path

import pytest

from harness.model.errors import InputError
from harness.understanding.files.corpus_file import read_corpus


@pytest.mark.parametrize("header", ["id,intent", "ID,intent", "\ufeffID,Intent", '"id", intent '])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_the_intents_are_parted(tmp_path: Path, header: str, end: str) -> None:
    path = tmp_path / "a.csv"
    rows = [header, "1047#2#a.wav,saluer#remercier", '"4,5#1", oui ', "6,", "'=7,x"]
    path.write_bytes(end.join(rows).encode())
    found = read_corpus(path).utterances
    assert [(one.id, one.intents) for one in found] == [
        ("1047#2#a.wav", ("remercier", "saluer")),
        ("4,5#1", ("oui",)),
        ("6", ()),
        ("=7", ("x",)),
    ]
    assert [one.tags for one in found] == [None] * 4
    assert found[1].place is not None
    assert found[1].place.line == 3


def test_other_columns_are_groups_and_text_is_the_words(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('split,intent,id,text\ntrain,a,1,"yes, please"\n', encoding="utf-8")
    (one,) = read_corpus(path).utterances
    assert (one.words, one.groups) == (("yes,", "please"), (("split", "train"),))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,intent\n1,a\n1,b\n", ":3: the id '1' is there already, in line 2"),
        ("id,intent\n1\n", ":2: 1 field, where the header has 2. Put a field with commas in quotes"),
        ("id,intent\n1,a,b\n", ":2: 3 fields, where the header has 2"),
        ('id,intent\n"1,a\n', ":2:1: a quote is not closed"),
        ("id,intent\n ,a\n", ":2: the row has no id"),
        ("name,intent\n1,a\n", ":1: the header has no column id: found 'name,intent'; expected id,intent"),
        ("id,intents\n1,a\n", ":1: the header has no column intent: found 'id,intents'; expected id,intent. Write a"),
        ("\nID,labels\n1,a\n", ":2: the header has no column intent: found 'id,labels'; expected id,intent"),
        ("id;intent\n1;a\n", ":1: the header has no column id: found 'id;intent'; expected id,intent. Write a header"),
        ("id,text,Intent labels\n1,hi,a\n", ":1: the header has no column intent: found 'id,text,Intent labels'"),
        ("id,intent,intent\n1,a,b\n", ":1: two columns are called 'intent'"),
        ("id,intent\n", ": the file has no rows below its header"),
        ("\n", ": the file is empty"),
        (b"id,intent\n1,d\xe9j\xe0\n", ":2:4: byte 0xe9 is not UTF-8. Save the file as UTF-8"),
    ],
)
def test_what_is_wrong_has_its_line_and_what_to_do(tmp_path: Path, text: str | bytes, said: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InputError) as caught:
        read_corpus(path)
    assert str(caught.value).startswith(f"{path}{said}")


def test_a_list_of_texts_is_no_file_of_intents(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,text\na.wav,book a room\n", encoding="utf-8")
    (one,) = read_corpus(path).utterances
    assert (one.id, one.words, one.intents) == ("a.wav", ("book", "a", "room"), None)
