"""Annotated utterances that are written are read back as they were."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings

from harness.model.errors import InputError
from harness.model.understanding import Corpus, Slot, Utterance
from harness.understanding.files.corpus_file import read_corpus
from harness.understanding.files.corpus_writing import write_bio, write_intents_csv, write_jsonl
from tests.unit.understanding.files.corpora import corpora


def frames(corpus: Corpus, *, ids: bool = True) -> list[Utterance]:
    return [replace(one, id=one.id if ids else "", place=None) for one in corpus.utterances]


@settings(max_examples=50, deadline=None)
@given(corpora())
def test_jsonl_loses_nothing(corpus: Corpus) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.jsonl"
        write_jsonl(corpus, path)
        assert path.read_bytes().isascii()
        assert frames(read_corpus(path)) == frames(corpus)


@settings(max_examples=50, deadline=None)
@given(corpora(slots=False))
def test_a_bio_folder_loses_ids_alone(corpus: Corpus) -> None:
    with TemporaryDirectory() as folder:
        write_bio(corpus, Path(folder) / "a")
        assert frames(read_corpus(Path(folder) / "a"), ids=False) == frames(corpus, ids=False)


@settings(max_examples=50, deadline=None)
@given(corpora())
def test_a_file_of_intents_keeps_ids_and_intents(corpus: Corpus) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        write_intents_csv(corpus, path)
        found = read_corpus(path).utterances
        assert [(one.id, one.intents) for one in found] == [(one.id, one.intents) for one in corpus.utterances]


def test_ids_that_a_spreadsheet_would_calculate_come_back(tmp_path: Path) -> None:
    ids = ("=1+1", "@x", "'=y", "-5", "-a#b")
    corpus = Corpus("", tuple(Utterance(id_, intents=("a",)) for id_ in ids))
    write_intents_csv(corpus, tmp_path / "a.csv", "ID")
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()[:2] == ["ID,intent", "'=1+1,a"]
    assert tuple(one.id for one in read_corpus(tmp_path / "a.csv").utterances) == ids


def test_splits_become_folders_and_slots_become_tags(tmp_path: Path) -> None:
    def of(split: str, *slots: Slot) -> Utterance:
        return Utterance("", ("to", "New", "York"), ("go",), None, slots, (("split", split),))

    write_bio(Corpus("", (of("train", Slot("city", "NYC", 1, 3)), of("test"))), tmp_path / "a")
    assert (tmp_path / "a" / "train" / "seq.out").read_text() == "O B-city I-city\n"
    assert (tmp_path / "a" / "test" / "seq.out").read_text() == "O O O\n"
    assert sorted(one.name for one in (tmp_path / "a").iterdir()) == ["test", "train"]


@pytest.mark.parametrize(
    ("slots", "intents", "said"),
    [
        ((Slot("c"),), ("a",), "has no place"),
        ((Slot("c", None, 0, 1), Slot("d", None, 0, 2)), ("a",), "shares a word"),
        ((Slot("c d", None, 0, 1),), ("a",), "a blank"),
        ((), None, "is not annotated in intents, and 1 of 2 are"),
    ],
)
def test_what_a_bio_folder_cannot_say_is_refused_and_nothing_is_left(
    tmp_path: Path, slots: tuple[Slot, ...], intents: tuple[str, ...] | None, said: str
) -> None:
    sound = Utterance("1", ("x", "y"), ("a",), None, ())
    with pytest.raises(InputError, match=said):
        write_bio(Corpus("", (sound, Utterance("2", ("x", "y"), intents, None, slots))), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "seq.in").write_text("mine\n")
    with pytest.raises(InputError, match="there is something in it already"):
        write_bio(Corpus("", (Utterance("1", ("x",), ("a",), ("O",)),)), tmp_path)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("seq.in", "mine\n")]
