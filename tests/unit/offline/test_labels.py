"""Files of labels, and the recordings that they belong to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.model.errors import InputError, InputProblems
from harness.model.offline import LabelledPhrase, ListKind
from harness.offline.file_sources import CollectedFiles, collect_files
from harness.offline.labels import LabelsOfRecordings, read_labels
from harness.offline.lists import read_lists
from tests.files import file_with

SAID = (LabelledPhrase(1.5, 2.25, "okay nabu"), LabelledPhrase(10.0, 11.0, 'say "hey" 5'))
CSV = 'audio,begin,end,phrase\nhour.wav,10,11,"say ""hey"" 5"\nhour.wav,1.5,2.25,okay nabu\nquiet.wav,,,\n'
RTTM = ";; comment\nSPKR-INFO hour 1 <NA> <NA> <NA> unknown ann <NA>\n" + "".join(
    f"LEXEME hour 1 {start_s} {lasts} {words} lex <NA> <NA>\n"
    for start_s, lasts, words in ((1.5, 0.75, "okay_nabu"), (10, 1, 'say_"hey"_5'))
)
AUDACITY = '1.500000\t2.250000\tokay nabu\n\\\t100.0\t4000.0\n10.0\t11.0\tsay "hey" 5\n'
LONG_GRID = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 11.0
tiers? <exists>
size = 2
item []:
    item [1]:
        class = "TextTier"
        name = "clicks 1"
        xmin = 0
        xmax = 11.0
        points: size = 1
        points [1]:
            number = 3.5
            mark = "x"
    item [2]:
        class = "IntervalTier"
        name = "wake"
        xmin = 0
        xmax = 11.0
        intervals: size = 4
        intervals [1]:
            xmin = 0
            xmax = 1.5
            text = ""
        intervals [2]:
            xmin = 1.5
            xmax = 2.25
            text = "okay nabu"
        intervals [3]:
            xmin = 2.25
            xmax = 10
            text = ""
        intervals [4]:
            xmin = 10
            xmax = 11.0
            text = "say ""hey"" 5"
"""
SHORT_GRID = """"ooTextFile"
"TextGrid"
0
11
<exists>
1
"IntervalTier"
"wake"
0
11
2
1.5
2.25
"okay nabu"
10
11
"say ""hey"" 5"
"""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("l.csv", CSV.encode()),
        ("l.rttm", RTTM.encode()),
        ("hour.txt", AUDACITY.encode()),
        ("hour.TextGrid", LONG_GRID.encode()),
        ("hour.textgrid", SHORT_GRID.encode("utf-16")),
        ("hour.csv", b'start,duration,label\n1.5,0.75,okay nabu\n10,1,"say ""hey"" 5"\n'),
    ],
)
def test_each_format_gives_the_same_labels(tmp_path: Path, name: str, content: bytes) -> None:
    file_with(tmp_path / name, content)
    (tmp_path / "hour.wav").write_bytes(b"")
    recordings = collect_files(str(tmp_path / "hour.wav"))
    (labels,) = LabelsOfRecordings([str(tmp_path)]).labels_of(recordings)
    assert tuple(LabelledPhrase(label.start_s, label.end_s, label.phrase) for label in labels) == SAID


@pytest.mark.parametrize("name", ["hour.csv", "hour.rttm", "hour.txt"])
def test_an_empty_file_says_that_a_recording_has_no_phrases(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert LabelsOfRecordings([]).labels_of(CollectedFiles("x", (str(tmp_path / "hour.wav"),), {})) == ((),)


def test_further_columns_are_kept_for_each_phrase(tmp_path: Path) -> None:
    (tmp_path / "hour.csv").write_text("start,end,phrase,talker\n1,2,alexa,ann\n3,4,alexa,\n", encoding="utf-8")
    (tmp_path / "hour.wav").write_bytes(b"")
    gathered = collect_files(str(tmp_path / "hour.wav"))
    labels = LabelsOfRecordings([]).labels_of(gathered)
    assert [label.traits for label in labels[0]] == [(("talker", "ann"),), (("talker", ""),)]
    long = CollectedFiles(gathered.place, gathered.names, gathered.columns, labels=labels)
    listing = read_lists([], [], [], [], [], [long])
    assert listing.label_columns == ("phrase", "talker")
    assert (listing.files[0].kind, listing.files[0].labels) == (ListKind.LABELLED, labels[0])
    other = CollectedFiles(gathered.place, gathered.names, gathered.columns, labels=(labels[0][:1],))
    assert listing.lists[0].sha256 != read_lists([], [], [], [], [], [other]).lists[0].sha256


def _two(path: Path) -> object:
    (path.parent / "hour.txt").write_text("1\t2\n", encoding="utf-8")
    (path.parent / "hour.rttm").write_text("", encoding="utf-8")
    return LabelsOfRecordings([]).labels_of(CollectedFiles("x", (str(path.parent / "hour.wav"),), {}))


def _none(path: Path) -> object:
    return LabelsOfRecordings([]).labels_of(CollectedFiles("x", ("nowhere/hour.wav",), {}))


def _other(path: Path) -> object:
    (path.parent / "hour.csv").write_text("audio,start,end\nHOUR.wav,1,2\n", encoding="utf-8")
    return LabelsOfRecordings([]).labels_of(CollectedFiles("x", (str(path.parent / "hour.wav"),), {}))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "audio,begin\nx.wav,1\n", "a.csv:1: there is no column for the end"),
        ("a.csv", "start,end\n1,x\n2,1\n", "a.csv:2: 'x' is not a time in seconds.*a.csv:3: the phrase ends at 1 s"),
        ("a.csv", "start,end\n1,2,3\n", "a.csv:2: 3 fields, but the header has 2"),
        ("a.csv", "start,end,room,Room\n1,2,hall,lab\n", "a.csv:1: two columns are named 'room'"),
        ("a.csv", "start,end,phras\n1,2,alexa\n", "a.csv:1: the column 'phras' is not known.*Did you mean 'phrase'"),
        ("a.rttm", "LEXEME a 1 0\nWORD a 1 0 1 x lex y <NA>\n", "a.rttm:1:1: only 4 fields.*'WORD' is not an RTTM"),
        ("a.txt", "1 2 alexa\n", "a.txt:1:1: '1 2 alexa' is not an Audacity label.*tabs"),
        ("a.TextGrid", '"ooTextFile"\n"TextGrid"\n0\n1\n<exists>\n1\n"IntervalTier"\n"w"\n0\n1\n1\n0\n"x"\n',
         "a.TextGrid:13: expected a number, but found 'x'"),
        ("a.TextGrid", "hello\n", "a.TextGrid:2: expected a text in quotes, but found the end of the file"),
        ("a.lab", "", "labels cannot be read from this type of file"),
        ("a.csv", "start;end\n1;2\n", "a.csv:1:1: the columns are separated by semicolons.*sep=;"),
        ("a.txt", "1\t1\talexa\n", "a.txt:1: the label at 1 s has no length"),
        ("a.csv", "start,end,phrase\n1,2,alexa\n5,6,alexa\n1,2,Alexa!\n",
         r"a.csv:4: this label \(1 to 2 s\) overlaps the label on line 2"),
        ("a.txt", "1\t2\talexa\n1.4\t3\talexa\n", "a.txt:2: .* overlaps the label on line 1"),
        ("a.rttm", "LEXEME a 1 1 1 hi lex ann <NA>\nLEXEME a 1 1 1 hi lex ben <NA>\n", "a.rttm:2: .* on line 1"),
    ],
)  # fmt: skip
def test_all_mistakes_are_listed_with_their_lines(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises((InputError, InputProblems), match=f"(?s){message}"):
        read_labels(str(tmp_path / name))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (_two, "several label files"),
        (_none, "no labels were found for this recording.*--long-labels"),
        (_other, r"hour\.csv: no label in this file is for 'hour\.wav'"),
    ],
)
def test_a_recording_has_one_file_of_labels(tmp_path: Path, write: Callable[[Path], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        write(tmp_path / "x")


def test_either_all_labels_or_none_name_a_phrase(tmp_path: Path) -> None:
    (tmp_path / "hour.txt").write_text("1\t2\talexa\n3\t4\n", encoding="utf-8")
    with pytest.raises(InputError, match="1 labels name a phrase, and 1 do not, such as the one at 3 s"):
        LabelsOfRecordings([]).labels_of(CollectedFiles("x", (str(tmp_path / "hour.wav"),), {}))


@pytest.mark.parametrize(
    ("name", "content", "labels"),
    [
        ("a.csv", "start,end,phrase\n1,2,alexa\n1,2,computer\n2,3,alexa\n", 3),  # at once, and one after the other
        ("a.txt", "1\t2\talexa\n1.8\t2.8\talexa\n", 2),  # labelled with a margin
        ("a.csv", "audio,start,end,phrase\nx.wav,1,2,alexa\ny.wav,1,2,alexa\n", 2),
    ],
)
def test_labels_of_several_phrases_may_meet(tmp_path: Path, name: str, content: str, labels: int) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert sum(map(len, read_labels(str(tmp_path / name)).labels.values())) == labels


def test_one_tier_of_several_annotators_is_selected(tmp_path: Path) -> None:
    path = tmp_path / "two.TextGrid"
    tier = SHORT_GRID[SHORT_GRID.index('"IntervalTier"') :]
    path.write_text(SHORT_GRID.replace("\n1\n", "\n2\n", 1) + tier.replace('"wake"', '"ben s"'), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_labels(str(path))
    message = "(1.5 to 2.25 s, tier 'ben s') overlaps the label on line 12 (1.5 to 2.25 s, tier 'wake')"
    assert f"{message}. The file has 1 more overlap" in str(refused.value)
    assert "--tier wake" in str(refused.value)
    for name in ("wake", "ben s"):
        assert [label.traits for label in read_labels(str(path), tier=name).labels[""]] == [(("tier", name),)] * 2
    with pytest.raises(InputError, match=r"there is no tier 'bin s'.*Did you mean 'ben s'"):
        read_labels(str(path), tier="bin s")


def test_label_tables_saved_by_spreadsheets_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    table = 'sep=;\r\nstart;end;phrase;talker\r\n1,5;2,25;okay nabu;"J\u00f6rg\r\nM."\r\n'
    path.write_bytes(table.encode("cp1252"))
    with pytest.raises(InputError, match=r"a.csv:3:\d+: byte 0xf6 is not UTF-8.*--encoding"):
        read_labels(str(path))
    ((label,),) = read_labels(str(path), "cp1252").labels.values()
    assert (label.start_s, label.end_s, label.phrase) == (1.5, 2.25, "okay nabu")
    assert label.traits == (("talker", "J\u00f6rg M."),)
    (tmp_path / "a.tsv").write_text("start\tend\tphrase\n1,5\t2.25\tokay nabu\n", "utf-8")
    assert read_labels(str(tmp_path / "a.tsv")).labels[""] == SAID[:1]
    (tmp_path / "a.txt").write_text("1,500000\t2,250000\tokay nabu\n", "utf-8")  # by Audacity in German
    assert read_labels(str(tmp_path / "a.txt")).labels[""] == SAID[:1]
    (tmp_path / "b.csv").write_text('start,end\n"1,234","1,235"\n', "utf-8")  # thousands, or a decimal comma
    with pytest.raises(InputError, match="'1,234' is not a time"):
        read_labels(str(tmp_path / "b.csv"))


def two_recordings_of_one_name(folder: Path) -> CollectedFiles:
    return CollectedFiles("x", tuple(str(folder / "long" / name / "rec.wav") for name in ("a", "b")), {})


def test_labels_are_those_of_the_recording_in_the_same_folder(tmp_path: Path) -> None:
    path = file_with(tmp_path / "labels.csv", "audio,start,end\na/rec.wav,1,2\nb/rec.wav,5,6\n")
    labels = LabelsOfRecordings([str(path)]).labels_of(two_recordings_of_one_name(tmp_path))
    assert [label.start_s for (label,) in labels] == [1.0, 5.0]


COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"


@pytest.mark.parametrize(("written", "on_disk"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
@pytest.mark.parametrize("ending", [".wav", ""])
def test_names_match_however_an_accent_is_encoded(tmp_path: Path, written: str, on_disk: str, ending: str) -> None:
    named, unnamed = tmp_path / "named.csv", tmp_path / f"{written}.csv"
    named.write_text(f"audio,start,end\n{written}{ending},1,2\n", encoding="utf-8")
    unnamed.write_text("start,end\n1,2\n", encoding="utf-8")
    for path in (named, unnamed):
        labels = LabelsOfRecordings([str(path)])
        recordings = CollectedFiles("x", (f"folder/{on_disk}.wav", f"other/{on_disk}.wav"), {})
        assert [len(of_recording) for of_recording in labels.labels_of(recordings)] == [1, 1]
        assert labels.unused() == []


def test_one_name_in_two_encodings_is_refused(tmp_path: Path) -> None:
    path, twin = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text(f"audio,start,end\n{COMPOSED},1,2\n{DECOMPOSED},3,4\n{COMPOSED},5,6\n", encoding="utf-8")
    with pytest.raises(InputProblems) as refused:
        read_labels(str(path))
    assert str(refused.value).startswith(f"{path}:3: the recording 'café' is spelt with other characters on line 2")
    path.write_text(f"audio,start,end\n{COMPOSED},1,2\n", encoding="utf-8")
    twin.write_text(f"audio,start,end\n{DECOMPOSED},1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match=f"'café' also has labels in {path}") as clash:
        LabelsOfRecordings([str(path), str(twin)])
    assert clash.value.place is not None
    assert clash.value.place.file == str(twin)


def test_labels_that_may_be_those_of_two_recordings_are_refused(tmp_path: Path) -> None:
    path = file_with(tmp_path / "labels.csv", "audio,start,end\nc/rec.wav,1,2\nd/rec.wav,5,6\n")
    with pytest.raises(
        InputError, match=r"the labels are ambiguous: 'c/rec\.wav' and 'd/rec\.wav' both match this recording"
    ):
        LabelsOfRecordings([str(path)]).labels_of(two_recordings_of_one_name(tmp_path))


def test_a_grid_with_an_infinite_count_is_refused(tmp_path: Path) -> None:
    path = file_with(
        tmp_path / "hour.TextGrid", 'File type = "ooTextFile"\nObject class = "TextGrid"\n0\n1\n<exists>\n1e999\n'
    )
    with pytest.raises(InputError, match="'1e999' is not a count"):
        read_labels(str(path))
