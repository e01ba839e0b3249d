"""Annotated corpora in every format: read, refused, and read back as they were written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.choices import CorpusFormat
from harness.model.errors import InputError, Place
from harness.model.understanding import Corpus, Slot, Utterance
from harness.understanding.files.corpus_file import read_corpus
from harness.understanding.files.corpus_writing import intents_csv, slots_of, write_bio, write_jsonl
from tests.files import file_with
from tests.known import known
from tests.unit.understanding.files.corpora import corpora, write_folder


def test_each_line_is_an_utterance_with_its_split_and_line_as_id(tmp_path: Path) -> None:
    for split in ("test", "train"):
        write_folder(tmp_path / split, "book one room\nno thanks\n", "B-task B-n I-n\nO O\n", "booking\nthanks#no#no\n")
    utterances = read_corpus(tmp_path).utterances
    assert [utterance.id for utterance in utterances] == ["train/1", "train/2", "test/1", "test/2"]
    assert utterances[0].words == ("book", "one", "room")
    assert utterances[0].tags == ("B-task", "B-n", "I-n")
    assert utterances[1].intents == ("no", "thanks")
    assert utterances[3].groups == (("split", "test"),)
    assert utterances[3].place == Place(f"{tmp_path}/test/seq.in", 2)
    assert [utterance.id for utterance in read_corpus(tmp_path / "test").utterances] == ["1", "2"]


@pytest.mark.parametrize(
    ("words", "tags", "labels", "read"),
    [
        (b"\xef\xbb\xbfgo home\r\nstay\r\n", b"O B-p\r\nO\r\n", b"go\r\nstay", [("go", "home"), ("stay",)]),
        ("40\u00a0€ ok\n", "B-price O\n", "go\n", [("40\u00a0€", "ok")]),
    ],
)
def test_windows_line_ends_are_not_words_and_other_spaces_belong_to_words(
    tmp_path: Path, words: str | bytes, tags: str | bytes, labels: str | bytes, read: list[tuple[str, ...]]
) -> None:
    utterances = read_corpus(write_folder(tmp_path, words, tags, labels)).utterances
    assert [utterance.words for utterance in utterances] == read
    assert [utterance.intents for utterance in utterances] == [("go",), ("stay",)][: len(read)]


def test_missing_tags_or_labels_stay_unknown(tmp_path: Path) -> None:
    write_folder(tmp_path, "go\n\n", None, None)
    utterances = read_corpus(tmp_path).utterances
    assert [(utterance.words, utterance.tags, utterance.intents) for utterance in utterances] == [
        (("go",), None, None),
        ((), None, None),
    ]
    write_folder(tmp_path, "go\n", None, "\n")
    assert read_corpus(tmp_path).utterances[0].intents == ()


@pytest.mark.parametrize(
    ("words", "tags", "labels", "message"),
    [
        ("a b\nc\n", "O O\nO O\n", None, "seq.out:2: 2 tags, but seq.in has 1 word. Use one tag for each word"),
        ("a b\n", "O FROM\n", None, "seq.out:1: tag 2, 'FROM', is not a BIO tag. Use O, B-concept or I-concept"),
        ("a b\n", "O B-\n", None, "seq.out:1: tag 2, 'B-', is not a BIO tag"),
        ("a\nb\n", "O\n", None, "seq.out:2: 1 line, but seq.in has 2. Each line must be one utterance"),
        ("a\n", "O\n", "x\ny\n", "label:2: 2 lines, but seq.in has 1. Each line must be one utterance"),
        (b"a\nk\xe9\n", "O\nO\n", None, "seq.in:2:2: byte 0xe9 is not UTF-8. Save the file as UTF-8"),
        ("", "", "", "seq.in: the file is empty"),
        ("a " * 2_200_000, "O\n", None, "seq.in:1: the line has more than 4,194,304 characters"),
    ],
)
def test_corpus_folder_mistakes_name_their_line(
    tmp_path: Path, words: str | bytes, tags: str, labels: str | None, message: str
) -> None:
    write_folder(tmp_path, words, tags, labels)
    with pytest.raises(InputError) as caught:
        read_corpus(tmp_path)
    assert str(caught.value).splitlines()[0].startswith(f"{tmp_path}/{message}")


def test_a_split_is_found_by_either_of_its_names(tmp_path: Path) -> None:
    write_folder(tmp_path / "valid", "a\n", "O\n", "x\n")
    write_folder(tmp_path / "train", "b\n", "O\n", "x\n")
    assert [utterance.id for utterance in read_corpus(tmp_path, split="dev").utterances] == ["valid/1"]
    with pytest.raises(InputError, match=r"there is no split 'trian'. Did you mean 'train'"):
        read_corpus(tmp_path, split="trian")
    with pytest.raises(InputError, match="the folder has no splits"):
        read_corpus(tmp_path / "train", split="train")


def test_folder_without_corpus_files_names_the_required_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the folder has no seq.in. Add seq.in, seq.out and label, or folders train"):
        read_corpus(tmp_path)
    with pytest.raises(InputError, match="the file or folder does not exist"):
        read_corpus(tmp_path / "nowhere")


@pytest.mark.parametrize("header", ["id,intent", "ID,intent", "\ufeffID,Intent", '"id", intent '])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_intents_are_split_at_separators(tmp_path: Path, header: str, end: str) -> None:
    path = tmp_path / "a.csv"
    rows = [header, "1047#2#a.wav,saluer#remercier", '"4,5#1", oui ', "6,", "'=7,x"]
    path.write_bytes(end.join(rows).encode())
    utterances = read_corpus(path).utterances
    assert [(utterance.id, utterance.intents) for utterance in utterances] == [
        ("1047#2#a.wav", ("remercier", "saluer")),
        ("4,5#1", ("oui",)),
        ("6", ()),
        ("=7", ("x",)),
    ]
    assert [utterance.tags for utterance in utterances] == [None] * 4
    assert known(utterances[1].place).line == 3


def test_other_columns_are_groups_and_text_is_the_words(tmp_path: Path) -> None:
    path = file_with(tmp_path / "a.csv", 'split,intent,id,text\ntrain,a,1,"yes, please"\n')
    (utterance,) = read_corpus(path).utterances
    assert (utterance.words, utterance.groups) == (("yes,", "please"), (("split", "train"),))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,intent\n1,a\n1,b\n", ":3: the id '1' is already on line 2"),
        ("id,intent\n1\n", ":2: 1 field, but the header has 2. Quote fields that contain commas"),
        ("id,intent\n1,a,b\n", ":2: 3 fields, but the header has 2"),
        ('id,intent\n"1,a\n', ":2:1: a quote is not closed"),
        ("id,intent\n ,a\n", ":2: the row has no id"),
        ("name,intent\n1,a\n", ":1: the header has no column id: found 'name,intent'; expected id,intent"),
        (
            "id,text,intent,Slots\n1,hi,a,{}\n",
            ":1: a CSV file of intents cannot have slots, but it has a column 'Slots'",
        ),
        (
            "id,intents\n1,a\n",
            ":1: the header has no column intent: found 'id,intents'; expected id,intent. Begin with",
        ),
        ("\nID,labels\n1,a\n", ":2: the header has no column intent: found 'id,labels'; expected id,intent"),
        ("id;intent\n1;a\n", ":1:1: the columns are separated by semicolons, not by commas. Save the file with commas"),
        ("id,text,Intent labels\n1,hi,a\n", ":1: the header has no column intent: found 'id,text,Intent labels'"),
        ("id,intent,intent\n1,a,b\n", ":1: two columns have the name 'intent'"),
        ("id,intent\n", ": the file has no rows below its header"),
        ("\n", ": the file is empty"),
        (b"id,intent\n1,d\xe9j\xe0\n", ":2:4: byte 0xe9 is not UTF-8. Save the file as UTF-8"),
    ],
)
def test_intent_file_mistakes_name_their_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    path = file_with(tmp_path / "a.csv", text.encode() if isinstance(text, str) else text)
    with pytest.raises(InputError) as caught:
        read_corpus(path)
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_list_of_texts_is_not_a_file_of_intents(tmp_path: Path) -> None:
    path = file_with(tmp_path / "a.csv", "id,text\na.wav,book a room\n")
    (utterance,) = read_corpus(path).utterances
    assert (utterance.id, utterance.words, utterance.intents) == ("a.wav", ("book", "a", "room"), None)


def one(tmp_path: Path, text: str) -> Utterance:
    path = file_with(tmp_path / "a.jsonl", text)
    (utterance,) = read_corpus(path).utterances
    return utterance


def test_tags_slots_values_and_groups_are_read(tmp_path: Path) -> None:
    utterance = one(
        tmp_path,
        '{"id": "a#1", "text": " book  one room ", "intents": ["b", "a", "b"], "tags": ["O", "B-n", "I-n"],'
        ' "slots": [{"concept": "n", "value": "1", "start": 1, "end": 3}, {"concept": "x"}],'
        ' "groups": {"voice": "anna"}, "scores": {"a": 0.5}}\n\n',
    )
    assert utterance.id == "a#1"
    assert utterance.words == ("book", "one", "room")
    assert utterance.intents == ("a", "b")
    assert utterance.tags == ("O", "B-n", "I-n")
    assert utterance.slots == (Slot("n", "1", 1, 3), Slot("x"))
    assert utterance.groups == (("voice", "anna"),)


def test_absent_annotation_is_none_and_empty_list_is_empty(tmp_path: Path) -> None:
    utterance = one(tmp_path, '{"id": "a", "text": null}')
    assert (utterance.words, utterance.intents, utterance.tags, utterance.slots) == ((), None, None, None)
    utterance = one(tmp_path, '{"id": "a", "intents": "b#a", "slots": []}')
    assert (utterance.intents, utterance.slots) == (("a", "b"), ())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "a", "text": "x", "int', "the line ends within an object. Check whether the file was cut off"),
        ('{"id": "a", "text": "x"', "the line ends within an object"),
        ("[1]", "the line is not a JSON object"),
        ('{"id": 3}', "'id' is not a string"),
        ("{}", "'id' is missing"),
        ('{"id": " "}', "the utterance has no id"),
        ('{"id": "a", "intnts": []}', "there is no key 'intnts'. Did you mean 'intents'?"),
        ('{"id": "a", "id": "b"}', "the key 'id' occurs twice"),
        ('{"id": "a", "text": "x y", "tags": ["O"]}', "1 tag for 2 words"),
        ('{"id": "a", "tags": ["O"]}', "1 tag for 0 words"),
        (
            '{"id": "a", "text": "x y", "tags": ["O", "B-c"], "slots": [{"concept": "d", "start": 1, "end": 2}]}',
            "the tags and the slots mark different words",
        ),
        (
            '{"id": "a", "text": "x y", "tags": ["O", "B-c"], "slots": []}',
            "the tags and the slots mark different words",
        ),
        ('{"id": "a", "text": "x", "tags": ["E-x"]}', "tag 1, 'E-x', is not a BIO tag"),
        ('{"id": "a", "text": "x", "tags": ["B-a b"]}', "tag 1, 'B-a b', is not a BIO tag"),
        ('{"id": "a", "slots": [{"value": "1"}]}', "'concept' is missing"),
        ('{"id": "a", "slots": [{"concept": "c", "start": 1}]}', "the slot 'c' has only one of `start` and `end`"),
        ('{"id": "a", "text": "x", "slots": [{"concept": "c", "start": 0, "end": 2}]}', "the slot 'c' covers words"),
        ('{"id": "a", "slots": [{"concept": "c", "start": true, "end": 2}]}', "'start' is not a word number"),
        ('{"id": "a", "text": "\\u001b[2J"}', "'text': this is the control character U+001B"),
        ('{"id": "a", "text": "\\ud800"}', "'text': this is the half character U+D800"),
        ('{"id": "a", "x": ' + "[" * 100_000, "the line is nested too deeply"),
        ('{"id": "a", "scores": ' + "9" * 5000 + "}", "not JSON: Exceeds the limit"),
        ('{"id": "a", "scores": NaN}', "NaN is not JSON"),
    ],
)
def test_jsonl_mistakes_are_reported_with_their_line(tmp_path: Path, line: str, message: str) -> None:
    path = file_with(tmp_path / "a.jsonl", '{"id": "first"}\n' + line + "\n")
    with pytest.raises(InputError) as caught:
        read_corpus(path)
    assert str(caught.value).startswith(f"{path}:2: {message}")


def test_an_id_that_is_there_twice_names_both_lines(tmp_path: Path) -> None:
    path = file_with(tmp_path / "a.jsonl", '{"id": "a"}\n\n{"id": "a"}\n')
    with pytest.raises(InputError, match=rf"{path}:3: the id 'a' is already on line 1"):
        read_corpus(path)


def test_an_empty_file_and_one_without_a_suffix_are_refused(tmp_path: Path) -> None:
    path = file_with(tmp_path / "a.jsonl", "\n")
    with pytest.raises(InputError, match="the file is empty"):
        read_corpus(path)
    with pytest.raises(
        InputError, match=r"the name has no suffix, so the format is unknown. Add --pred-format bio\|jsonl"
    ):
        read_corpus(path.rename(tmp_path / "a"), option="--pred-format")
    with pytest.raises(InputError, match=r"Choose a .jsonl, .csv, .txt or .trn file, or a folder"):
        read_corpus(tmp_path / "a")  # for a command without such an option


SOUND = {
    CorpusFormat.JSONL: b'{"id": "a", "text": "x y", "intents": ["p"], "tags": ["O", "O"], "slots": []}',
    CorpusFormat.CSV: b'id,intent\n"a,1#2",p#q\nb,\n',
    CorpusFormat.TXT: b"x y\nz\n",
    CorpusFormat.TRN: b"x y (a_1)\nz (a_2)\n",
}


def damaged(data: st.DataObject, content: bytes) -> bytes:
    position = data.draw(st.integers(0, len(content)))
    cut = data.draw(st.integers(0, 6))
    return content[:position] + data.draw(st.binary(max_size=6)) + content[position + cut :]


def place_of_what_is_wrong(path: Path, form: CorpusFormat) -> str | None:
    """None of what can be read."""
    try:
        corpus = read_corpus(path, form)
    except InputError as error:
        return error.place.file if error.place else ""
    assert corpus.utterances
    return None


@pytest.mark.parametrize("form", SOUND)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(form: CorpusFormat, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = file_with(Path(folder) / f"a.{form}", damaged(data, SOUND[form]))
        place = place_of_what_is_wrong(path, form)
        assert place in (None, str(path))


@given(data=st.data(), position=st.integers(0, 2))
def test_a_damaged_folder_is_read_or_refused(data: st.DataObject, position: int) -> None:
    files = [b"a b\nc\n", b"B-x I-x\nO\n", b"p#q\nr\n"]
    files[position] = damaged(data, files[position])
    with TemporaryDirectory() as folder:
        path = write_folder(Path(folder) / "f", *files)
        place = place_of_what_is_wrong(path, CorpusFormat.BIO)
        assert place in (None, *(f"{path}/{name}" for name in ("seq.in", "seq.out", "label")))


def frames(corpus: Corpus, *, ids: bool = True) -> list[Utterance]:
    return [replace(utterance, id=utterance.id if ids else "", place=None) for utterance in corpus.utterances]


@given(corpora())
def test_jsonl_loses_nothing(corpus: Corpus) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        write_jsonl(corpus, path)
        assert path.read_bytes().isascii()
        assert frames(read_corpus(path)) == frames(corpus)


@given(corpora(slots=False))
def test_a_bio_folder_loses_ids_alone(corpus: Corpus) -> None:
    with TemporaryDirectory() as folder:
        write_bio(corpus, Path(folder) / "a")
        assert frames(read_corpus(Path(folder) / "a"), ids=False) == frames(corpus, ids=False)


def test_blanks_within_names_are_the_same_in_every_format(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "c", "a b\n", "B-x\u00a0y I-x\u00a0y\n", "book  a\u00a0room\n")
    (utterance,) = read_corpus(folder).utterances
    utterance = replace(utterance, slots=slots_of(utterance))
    write_jsonl(Corpus("", (utterance,)), tmp_path / "a.jsonl")
    assert frames(read_corpus(tmp_path / "a.jsonl")) == [replace(utterance, place=None)]


@given(corpora())
def test_a_file_of_intents_keeps_ids_and_intents(corpus: Corpus) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text(intents_csv(corpus), encoding="utf-8")
        utterances = read_corpus(path).utterances
        assert [(utterance.id, utterance.intents) for utterance in utterances] == [
            (utterance.id, utterance.intents) for utterance in corpus.utterances
        ]


def test_ids_that_a_spreadsheet_would_calculate_come_back(tmp_path: Path) -> None:
    ids = ("=1+1", "@x", "'=y", "-5", "-a#b")
    corpus = Corpus("", tuple(Utterance(id_, intents=("a",)) for id_ in ids))
    (tmp_path / "a.csv").write_text(intents_csv(corpus, "ID"), encoding="utf-8")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()[:2] == ["ID,intent", "'=1+1,a"]
    assert tuple(utterance.id for utterance in read_corpus(tmp_path / "a.csv").utterances) == ids


def test_splits_become_folders_and_slots_become_tags(tmp_path: Path) -> None:
    def of(split: str, *slots: Slot) -> Utterance:
        return Utterance("", ("to", "New", "York"), ("go",), None, slots, (("split", split),))

    write_bio(Corpus("", (of("train", Slot("city", "NYC", 1, 3)), of("test"))), tmp_path / "a")
    assert (tmp_path / "a" / "train" / "seq.out").read_text() == "O B-city I-city\n"
    assert (tmp_path / "a" / "test" / "seq.out").read_text() == "O O O\n"
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["test", "train"]


@pytest.mark.parametrize(
    ("slots", "intents", "message"),
    [
        ((Slot("c"),), ("a",), "has no position"),
        ((Slot("c", None, 0, 9),), ("a",), "ends at word 9, but the text has 2 words"),
        ((Slot("c", None, 0, 1), Slot("d", None, 0, 2)), ("a",), "shares a word"),
        ((Slot("c d", None, 0, 1),), ("a",), "a space"),
        ((), None, "is not annotated with intents, unlike 1 of 2 utterances"),
    ],
)
def test_corpus_unfit_for_bio_is_refused_and_writes_nothing(
    tmp_path: Path, slots: tuple[Slot, ...], intents: tuple[str, ...] | None, message: str
) -> None:
    sound = Utterance("1", ("x", "y"), ("a",), None, ())
    with pytest.raises(InputError, match=message):
        write_bio(Corpus("", (sound, Utterance("2", ("x", "y"), intents, None, slots))), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_empty_is_left_unchanged(tmp_path: Path) -> None:
    (tmp_path / "seq.in").write_text("mine\n")
    with pytest.raises(InputError, match="the folder is not empty"):
        write_bio(Corpus("", (Utterance("1", ("x",), ("a",), ("O",)),)), tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("seq.in", "mine\n")]
