"""Collects the problems of one file, to report all at once, each with its place and the nearest correct word."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from harness.base import strict_yaml
from harness.base.strict_yaml import Mark, Node, Plain
from harness.model.choices import FileKind
from harness.model.errors import InputError, InputProblems, Place, nearest, place_of_problem
from harness.model.numbers import exact

KeyPath = Sequence[str | int]


class Keys(BaseModel):
    """The keys of a mapping in a file. The validation context collects the known keys of each mapping, by identity."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _note_known_keys(cls, value: Any, info: ValidationInfo) -> Any:
        """Adds the keys of this mapping to the context, before a wrong one among them raises an error."""
        if info.context is not None:
            info.context[id(value)] = tuple(field.alias or name for name, field in cls.model_fields.items())
        return value


KeysT = TypeVar("KeysT", bound=Keys)


class Findings:
    """The problems of one file; `tree` gives the places."""

    def __init__(self, file: str, tree: Node) -> None:
        self.file = file
        self.tree = tree
        self.problems: list[InputError] = []

    def place(self, path: KeyPath, *, key: bool = False) -> Place:
        """The place of the value (or the key) at a path; if it is missing, of its nearest parent."""
        node, mark = self.tree, self.tree.mark
        for step in path:
            child, key_mark = _child(node, step)
            if child is None:  # pydantic also names the branch of a union, which is not a key
                continue
            mark = key_mark if key and key_mark else child.mark
            node = child
        return Place(self.file, mark.line, mark.column)

    def add(self, path: KeyPath, problem: str, remedy: str, *, key: bool = False) -> None:
        """Notes a problem with the value (or the key) at a path."""
        self.add_at(self.place(path, key=key), problem, remedy)

    def add_at(self, place: Place, problem: str, remedy: str) -> None:
        """Notes a problem at a place, if it is not noted there yet."""
        if not any(other.place == place and other.what == problem for other in self.problems):
            self.problems.append(InputError(problem, place=place, remedy=remedy))

    def is_known(self, path: KeyPath, noun: str, name: str, known: Collection[str], listed: str) -> bool:
        """Whether a name is among the known ones; notes an unknown one. listed: what these are called in the remedy."""
        if name not in known:
            self.add(path, f"there is no {noun} {name!r}", nearest(name, known, listed=listed))
        return name in known

    def refuse_empty(self, node: Node, is_allowed: Callable[[KeyPath], bool], path: KeyPath = ()) -> None:
        """Notes every key without a value, except where `is_allowed` allows null."""
        match node.value:
            case dict() as entries:
                children: list[tuple[str | int, Node]] = list(entries.items())
            case list() as items:
                children = list(enumerate(items))
            case _:
                return
        for step, child in children:
            child_path = (*path, step)
            if child.value is None and not is_allowed(child_path):
                problem = f"the key {step!r} has no value" if isinstance(step, str) else "an entry is empty"
                self.add(child_path, problem, "Add a value, or remove the line", key=True)
            self.refuse_empty(child, is_allowed, child_path)

    def refuse(self) -> None:
        """Raises InputProblems if there are any, in the order of their places."""
        if self.problems:
            raise InputProblems(sorted(self.problems, key=place_of_problem))

    def check(self, model: type[Keys], content: object) -> None:
        """Notes everything in the whole file that does not validate as `model`."""
        known_keys: dict[int, tuple[str, ...]] = {}
        try:
            model.model_validate(content, context=known_keys)
        except ValidationError as error:
            for detail in error.errors(include_url=False):
                self.note(detail, (), _known_keys(detail, content, known_keys))

    def note(self, detail: ErrorDetails, above: KeyPath, known_keys: Sequence[str]) -> None:
        """Notes one of pydantic's errors in the harness's words. above: path of the validated value."""
        path = (*above, *detail["loc"])
        last = str(detail["loc"][-1]) if detail["loc"] else ""
        match detail["type"]:
            case "missing":
                self.add(path[:-1], f"the key {last!r} is missing", f"Add `{last}: …` here")
            case "extra_forbidden" | "unexpected_keyword_argument":
                self.add(path, f"there is no key {last!r} here", nearest(last, known_keys), key=True)
            case _ if detail["input"] is None:
                self.add(path, f"the key {last!r} has no value", "Add a value, or remove the line", key=True)
            case _:
                problem, remedy = explain_error(detail)
                is_wrong_key = last == "[key]"  # pydantic's mark for a key of a mapping that is itself wrong
                self.add(path[:-1] if is_wrong_key else path, problem, remedy, key=is_wrong_key)


def mapping_in(content: Mapping[str, Plain], key: str) -> dict[str, Plain]:
    """The mapping under a key; empty for anything else, which is noted as a wrong key."""
    section = content.get(key)
    return section if isinstance(section, dict) else {}


def list_in(content: Mapping[str, Plain], key: str) -> list[Plain]:
    """The list under a key; empty for anything else, which is noted as a wrong key."""
    section = content.get(key)
    return section if isinstance(section, list) else []


def try_validate(model: type[KeysT], content: object) -> KeysT | None:
    """A mapping as its model; None if it is wrong, which was already noted for the whole file."""
    try:
        return model.model_validate(content)
    except ValidationError:
        return None


def explain_error(detail: ErrorDetails) -> tuple[str, str]:
    """Message and remedy for one of pydantic's errors, in words for the author of the file."""
    context: Mapping[str, Any] = detail.get("ctx", {})
    value = detail["input"]
    value_text = _value_text(value)
    match detail["type"]:
        case "word":
            return f"{value_text} is not supported here", nearest(value, context["choices"])
        case "literal_error" | "enum":
            return f"{value_text} is not supported here", nearest(value, re.findall(r"'([^']*)'", context["expected"]))
        case "string_type":
            quoted = str(value).lower() if isinstance(value, bool) else value
            remedy = "Use text" if isinstance(value, list | dict) else f'Put the value in quotes: "{quoted}"'
            return f"expected text, found {value_text}", remedy
        case "int_type" | "int_from_float" | "int_parsing":
            return (
                f"expected a whole number, found {value_text}",
                "Use digits without quotes and without a decimal point",
            )
        case "float_type" | "float_parsing":
            return f"expected a number, found {value_text}", "Use a number without quotes and without a unit"
        case "finite_number":
            return f"{value_text} is not a finite number", "Use a finite number"
        case "bool_type" | "bool_parsing":
            return f"expected true or false, found {value_text}", "Use true or false, in lower case, without quotes"
        case "list_type" | "tuple_type" | "set_type" | "frozen_set_type":
            return f"expected a list, found {value_text}", "Use [one, two], or lines that begin with -"
        case "dict_type" | "model_type" | "model_attributes_type" | "dataclass_type" | "mapping_type":
            return f"expected keys and values, found {value_text}", "Use {key: value}, or indented lines `key: value`"
        case "greater_than_equal":
            return f"{value_text} is too small", f"Use a value of at least {exact(context['ge'])}"
        case "greater_than":
            return f"{value_text} is too small", f"Use a value of more than {exact(context['gt'])}"
        case "less_than_equal":
            return f"{value_text} is too large", f"Use a value of at most {exact(context['le'])}"
        case "less_than":
            return f"{value_text} is too large", f"Use a value of less than {exact(context['lt'])}"
        case "too_short" | "string_too_short":
            if isinstance(value, str):
                return "the text is empty", "Enter some text"
            return f"{value_text} is empty", "Add at least one entry"
        case "too_long" | "string_too_long":
            unit = "characters" if isinstance(value, str) else "entries"
            return f"{value_text} is too long", f"Use at most {context['max_length']} {unit}"
        case "written":
            return str(context["what"]), str(context["remedy"])
        case "value_error":
            remedy = "Change the value; docs/reference/keys-bench.md lists the options of each driver"
            return str(context["error"]), remedy
    return f"{value_text} is not valid here", "See docs/reference/keys-scenario.md and keys-bench.md for valid values"


def _value_text(value: object) -> str:
    """A value for a message. A long text is cut."""
    match value:
        case bool():
            return str(value).lower()
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return repr(value if len(value) <= 60 else value[:57] + "…")
    return str(value)


def _child(node: Node, step: str | int) -> tuple[Node | None, Mark | None]:
    """The child at a step, and the place of its key. None for steps that are not keys, as pydantic names unions."""
    match node.value, step:
        case dict() as entries, str() if step in entries:
            return entries[step], node.keys[step]
        case list() as items, int() if 0 <= step < len(items):
            return items[step], None
    return None, None


def _known_keys(detail: ErrorDetails, content: object, known_keys: Mapping[int, tuple[str, ...]]) -> tuple[str, ...]:
    """The known keys of the mapping that has the error; () if they were not collected."""
    for step in detail["loc"][:-1]:
        match content, step:
            case dict() as entries, str() if step in entries:
                content = entries[step]
            case list() as items, int() if step < len(items):
                content = items[step]
    return known_keys.get(id(content), ())


_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
MAX_TEXT = 1000


def validation_error(problem: str, remedy: str) -> PydanticCustomError:
    """A problem in the harness's words, for a validator to raise."""
    return PydanticCustomError("written", "{what}", {"what": problem, "remedy": remedy})


def enum_validator(kind: type[StrEnum], *never: StrEnum) -> BeforeValidator:
    """A validator that turns a word into a member of the enum. Its error for another word names the most similar one.

    never: members that are not allowed.
    """
    choices = [member.value for member in kind if member not in never]

    def member_of(value: Any) -> StrEnum:
        if isinstance(value, kind):
            return value
        if not isinstance(value, str) or value not in choices:
            raise PydanticCustomError("word", "unknown word", {"choices": choices})
        return kind(value)

    return BeforeValidator(member_of)


def matching(pattern: re.Pattern[str], kind: str, remedy: str) -> AfterValidator:
    """Accepts texts that match the pattern as a whole. kind: what such a text is, such as `a name`."""

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise validation_error(f"{text!r} is not {kind}", remedy)
        return text

    return AfterValidator(check)


def _check_text(text: str) -> str:
    text = text.strip()
    if not text:
        raise validation_error("the text is empty", "Enter some words")
    if len(text) > MAX_TEXT:
        raise validation_error(f"the text has more than {MAX_TEXT} characters", "Shorten the text")
    if any(ord(letter) < 0x20 for letter in text):
        raise validation_error(
            "the text contains a line break or a tab", "Put the text on one line; > instead of | joins lines"
        )
    return text


def _check_spoken(text: str) -> str:
    if not any(letter.isalnum() for letter in text):
        raise validation_error(f"{text!r} contains nothing to speak", "Enter some words")
    return text


Id = Annotated[
    str,
    matching(_ID, "a name", "Use lowercase letters, digits, - and _, at most 64, beginning with a letter or digit"),
    Field(json_schema_extra={"pattern": f"^{_ID.pattern}$"}),
]
Text = Annotated[str, AfterValidator(_check_text), Field(json_schema_extra={"minLength": 1, "maxLength": MAX_TEXT})]
Spoken = Annotated[Text, AfterValidator(_check_spoken)]
Language = Annotated[
    str,
    matching(_LANGUAGE, "a language tag", "Use a tag such as en-US or de"),
    Field(json_schema_extra={"pattern": f"^{_LANGUAGE.pattern}$"}),
]


def kind_of(path: Path) -> FileKind:
    """The kind of a file. Raises InputError if it is not one of the harness's files, or not YAML."""
    return kind_of_tree(strict_yaml.parse(strict_yaml.read_bytes(path), str(path)), str(path))


def kind_of_tree(tree: Node, file: str) -> FileKind:
    """The kind of a file that has been read."""
    kinds = [kind.value for kind in FileKind]
    for key in tree.keys:
        if key in kinds:
            return FileKind(key)
        mark = tree.keys[key]
        remedy = nearest(key, kinds, listed="The first key is one of")
        raise InputError(f"the first key is {key!r}", place=Place(file, mark.line, mark.column), remedy=remedy)
    raise InputError("the file has no keys", place=Place(file, 1, 1), remedy=f"Begin with one of: {', '.join(kinds)}")


SAMPLES = ".samples.yaml"
"""Suffix of the files in which the monitor collects samples. Each is a part of a profile, to be pasted into one."""


def is_foreign(path: Path) -> bool:
    """Whether a YAML file is not one of the harness's: no key names a kind of file, and the first resembles none."""
    if path.name.endswith(SAMPLES):
        return True
    try:
        tree = strict_yaml.parse(strict_yaml.read_bytes(path), str(path))
    except InputError:
        return False
    kinds = [kind.value for kind in FileKind]
    first_key = next(iter(tree.keys), "")
    return not difflib.get_close_matches(first_key.lower(), kinds, n=1, cutoff=0.8) and not any(
        kind in tree.keys for kind in kinds
    )


def _check_kind(kind: FileKind, tree: Node, file: str) -> None:
    """Raises InputError if the file is of another kind."""
    actual = kind_of_tree(tree, file)
    if actual is not kind:
        mark = tree.keys[actual.value]
        problem = f"this is a {actual.value} file, but a {kind.value} file is expected"
        are_swapped = {actual, kind} == {FileKind.SCENARIO, FileKind.BENCH}
        remedy = "Swap the two files: harness run SCENARIO --bench BENCH" if are_swapped else "Check the path"
        raise InputError(problem, place=Place(file, mark.line, mark.column), remedy=remedy)


def optional(description: str, **limits: Any) -> Any:
    """The field of an optional key, which is None by default. limits: further arguments of `Field`."""
    return Field(default=None, description=description, **limits)


def preset(default: Any, description: str, **limits: Any) -> Any:
    """The field of a key with a default. limits: further arguments of `Field`."""
    return Field(default=default, description=description, **limits)


def read_content(
    path: Path, kind: FileKind, model: type[Keys], may_be_null: Callable[[KeyPath], bool] = lambda key_path: False
) -> tuple[str, dict[str, Plain], Findings]:
    """SHA-256 (hex) of a file, its content, and the problems of its keys, which are not raised yet.

    may_be_null: returns whether the value at a key path may be null. Raises InputError if the file is not YAML or of
    another kind.
    """
    content = strict_yaml.read_bytes(path)
    tree = strict_yaml.parse(content, str(path))
    _check_kind(kind, tree, str(path))
    findings = Findings(str(path), tree)
    findings.refuse_empty(tree, may_be_null)
    plain = tree.plain()
    assert isinstance(plain, dict)  # otherwise it would not be of any kind
    findings.check(model, plain)
    return hashlib.sha256(content).hexdigest(), plain, findings


def parse_keys(content: bytes, file: str, model: type[KeysT]) -> tuple[KeysT, Findings]:
    """The keys of a file that names no kind, and its findings, to which further problems can be added.

    Raises InputProblems with every mistake in the keys. Raises InputError if the file is not YAML.
    """
    tree = strict_yaml.parse(content, file)
    findings, plain = Findings(file, tree), tree.plain()
    findings.check(model, plain)
    findings.refuse()
    return model.model_validate(plain), findings


def read_keys(path: Path, kind: FileKind, model: type[KeysT]) -> tuple[KeysT, Findings]:
    """The keys of a file in which no value may be empty, and its findings, to which further problems can be added.

    Raises InputProblems with every mistake in the keys. Raises InputError if the file is not YAML or of another kind.
    """
    _, plain, findings = read_content(path, kind, model)
    findings.refuse()
    return model.model_validate(plain), findings
