"""Files of any bytes: they are read, or refused with a place; nothing else happens."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.choices import CorpusFormat
from harness.model.errors import InputError
from harness.understanding.files.corpus_file import read_corpus
from tests.unit.understanding.files.corpora import write_folder

SOUND = {
    CorpusFormat.JSONL: b'{"id": "a", "text": "x y", "intents": ["p"], "tags": ["O", "B-c"], "slots": []}',
    CorpusFormat.CSV: b'id,intent\n"a,1#2",p#q\nb,\n',
    CorpusFormat.TXT: b"x y\nz\n",
    CorpusFormat.TRN: b"x y (a_1)\nz (a_2)\n",
}


def damaged(data: st.DataObject, content: bytes) -> bytes:
    at = data.draw(st.integers(0, len(content)))
    cut = data.draw(st.integers(0, 6))
    return content[:at] + data.draw(st.binary(max_size=6)) + content[at + cut :]


def place_of_what_is_wrong(path: Path, form: CorpusFormat) -> str | None:
    """None of what can be read."""
    try:
        found = read_corpus(path, form)
    except InputError as error:
        return error.place.file if error.place else ""
    assert found.utterances
    return None


@pytest.mark.parametrize("form", SOUND)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused(form: CorpusFormat, data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"a.{form}"
        path.write_bytes(damaged(data, SOUND[form]))
        where = place_of_what_is_wrong(path, form)
        assert where in (None, str(path))


@settings(max_examples=150, deadline=None)
@given(data=st.data(), which=st.integers(0, 2))
def test_a_damaged_folder_is_read_or_refused(data: st.DataObject, which: int) -> None:
    files = [b"a b\nc\n", b"B-x I-x\nO\n", b"p#q\nr\n"]
    files[which] = damaged(data, files[which])
    with TemporaryDirectory() as folder:
        path = write_folder(Path(folder) / "f", *files)
        where = place_of_what_is_wrong(path, CorpusFormat.BIO)
        assert where in (None, *(f"{path}/{name}" for name in ("seq.in", "seq.out", "label")))
