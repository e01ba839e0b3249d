"""The strict loader: what it makes of scalars, what it refuses, and that nothing but InputError gets out."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.base import strict_yaml
from harness.model.errors import InputError, Place
from tests.known import known


def plain(text: str) -> object:
    return strict_yaml.parse(text.encode(), "x.yaml").plain()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("7", 7),
        ("-26", -26),
        ("+3", 3),
        ("0", 0),
        ("0.5", 0.5),
        ("-26.0", -26.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        *[
            (word, word)
            for word in (
                *("no", "yes", "on", "off", "y", "n", "True", "NULL", "12:30", "1:2:3", "0x10", "0o7", "007", "1_000"),
                *("2026-01-02", "2026-01-02 10:00:00", ".inf", ".nan", "=", "1.2.3", "0b1", "<<"),
            )
        ],
        ("'true'", "true"),
        ('"7"', "7"),
        ("|-\n  one\n  two", "one\ntwo"),
    ],
)
def test_only_a_few_plain_scalars_are_read_as_other_than_text(text: str, value: object) -> None:
    document = plain(f"key: {text}")
    assert document == {"key": value}
    assert isinstance(document, dict)
    assert type(document["key"]) is type(value)


def test_values_and_keys_keep_their_places() -> None:
    tree = strict_yaml.parse("# first\nouter:\n  - {name: äöü, next: 1}\n".encode(), "x.yaml")
    assert isinstance(tree.value, dict)
    assert tree.keys["outer"] == strict_yaml.Mark(2, 1)
    items = tree.value["outer"].value
    assert isinstance(items, list)
    assert items[0].keys["next"] == strict_yaml.Mark(3, 17)
    assert isinstance(items[0].value, dict)
    assert items[0].value["next"].mark == strict_yaml.Mark(3, 23)


@pytest.mark.parametrize(
    ("content", "line", "column", "message"),
    [
        (b"a: 1\nb: \xff\n", 2, 4, "0xff is not UTF-8"),
        ("a: x\n".encode("utf-16"), 1, 1, "not UTF-8"),
        (b"a: 1\nb: x\0y\n", 2, 5, "U+0000"),
        (b"a:\n\t- 1\n", 2, 1, "a tab"),
        (b"a: x\ty\n", 1, 5, "a tab"),
        (b"a: \x1b]0;x\x07\n", 1, 4, "U+001B"),
        ("a: x\u202ey\n".encode(), 1, 5, "U+202E"),
        ("a: x\u2028b: y\n".encode(), 1, 5, "U+2028"),
        ("a: x\x85b: y\n".encode(), 1, 5, "U+0085"),
        (b"", 1, 1, "empty"),
        (b"\n\n", 1, 1, "empty"),
        (b"---\n...\n", 1, 1, "empty"),
        (b"null\n", 1, 1, "empty"),
        (b"text\n", 1, 1, "not a mapping"),
        (b"a: 1\rb: c: d\r", 2, 5, "second ': '"),
        (b'a: "\\ud800"\n', 1, 4, "U+D800"),
        (b'a: "\\UFFFFFFFF"\n', 1, 0, ""),
        (b"%YAML 1.99999999999999999999\n---\na: 1\n", 1, 0, ""),
        (b"%YAML " + b"9" * 5000 + b".1\n---\na: 1\n", 1, 0, ""),
    ],
)
def test_invalid_characters_are_refused_at_their_position(content: bytes, line: int, column: int, message: str) -> None:
    with pytest.raises(InputError) as refused:
        strict_yaml.parse(content, "x.yaml")
    place = known(refused.value.place)
    assert place.line == line
    assert not column or place == Place("x.yaml", line, column)
    assert message in refused.value.what
    assert refused.value.remedy


def test_a_byte_order_mark_does_not_belong_to_the_first_key() -> None:
    assert plain("\ufeffkey: 1") == {"key": 1}


def test_windows_line_ends_are_line_ends() -> None:
    tree = strict_yaml.parse(b"a: 1\r\nb: 2\r\n", "x.yaml")
    assert tree.keys["b"] == strict_yaml.Mark(2, 1)


NEXT = dict(zip("abcdefgh", "bcdefghi", strict=True))
LAUGHS = "\n".join(["a: &a [lol]", *(f"{n}: &{n} [{', '.join([f'*{m}'] * 9)}]" for m, n in NEXT.items())])
MERGES = "\n".join(["a: &a {x: 1}", *(f"{n}: &{n} {{<<: [{', '.join([f'*{m}'] * 9)}]}}" for m, n in NEXT.items())])


@pytest.mark.parametrize(
    "bomb",
    [
        pytest.param(LAUGHS, id="aliases"),
        pytest.param(MERGES, id="merges"),
        pytest.param("a: " + "[" * 100_000, id="deep brackets"),
        pytest.param("a: " + "{a: " * 100_000, id="deep braces"),
        pytest.param("- " * 100_000, id="deep dashes"),
        pytest.param("? " * 100_000, id="deep questions"),
        pytest.param("\n".join(" " * n + "a:" for n in range(1000)), id="deep indentation"),
        pytest.param("a: '" + "x" * 2_000_000 + "'", id="many bytes"),
        pytest.param("a: " + "9" * 100_000, id="long number"),
        pytest.param("a: 1e" + "9" * 100_000, id="long exponent"),
        pytest.param("a: &a [*a]", id="alias of itself"),
        pytest.param("a: !!python/object/apply:os.system [true]", id="python tag"),
    ],
)
def test_yaml_bombs_are_refused(bomb: str) -> None:
    with pytest.raises(InputError) as refused:
        strict_yaml.parse(bomb.encode(), "x.yaml")
    assert refused.value.remedy


def test_more_values_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_yaml, "MAX_NODES", 1000)  # reading a hundred times as many takes seconds
    assert strict_yaml.parse(b"a: [" + b"1," * 990 + b"]", "x.yaml")
    with pytest.raises(InputError, match="more than 1000 values"):
        strict_yaml.parse(b"a: [" + b"1," * 1000 + b"]", "x.yaml")


def tree_or_place(content: bytes) -> strict_yaml.Node | Place | None:
    try:
        return strict_yaml.parse(content, "x.yaml")
    except InputError as error:
        return error.place


@given(st.binary(max_size=300))
def test_any_bytes_give_a_tree_or_an_input_error(content: bytes) -> None:
    match tree_or_place(content):
        case Place() as place:
            assert place.line >= 1
        case outcome:
            assert isinstance(outcome, strict_yaml.Node)


@given(st.text(alphabet="ab01:-?,[]{}&*!|>'\"%@`#~<\\ \n.xUu9e+_", max_size=80))
def test_any_yaml_punctuation_gives_a_tree_or_an_input_error(text: str) -> None:
    assert tree_or_place(text.encode()) is not None


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(alphabet="abc xyz:#-'\"\\äöü7", max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abcxyz_-", min_size=1, max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abcxyz", min_size=1, max_size=8), _VALUES, max_size=5, min_size=1))
def test_yaml_from_another_writer_reads_unchanged(value: dict[str, object]) -> None:
    assert plain(yaml.safe_dump(value, allow_unicode=True)) == value


def test_a_file_that_cannot_be_read_is_an_input_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.yaml", tmp_path / ("x" * 300)):
        with pytest.raises(InputError) as refused:
            strict_yaml.read_bytes(path)
        assert refused.value.place == Place(str(path))


def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(10_000_000_000)
    with pytest.raises(InputError, match="larger than"):
        strict_yaml.read_bytes(path)
