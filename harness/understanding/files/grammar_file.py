"""Grammar files: sentences with intents and slots, from which a corpus is generated.

See docs/how-to/train-understanders.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from harness.base.findings import (
    Findings,
    Id,
    KeyPath,
    Keys,
    Text,
    enum_validator,
    matching,
    optional,
    preset,
    read_keys,
)
from harness.model.choices import FileKind
from harness.model.errors import InputError, nearest
from harness.transcripts.numerals import cardinal, clock_time, ordinal
from harness.understanding.grammar import (
    AlternativePart,
    Grammar,
    GrammarIntent,
    Habits,
    OptionalPart,
    Part,
    PhrasePart,
    Sentence,
    SequencePart,
    SlotPart,
    SpokenKind,
    TextPart,
    Value,
    ValueList,
)

_TOKEN = re.compile(r"[][()|]|\{[^{}]*\}|<[^<>]*>|[^\s\][()|{}<>]+|\S")
_NAME = r"[A-Za-z0-9_.][A-Za-z0-9_.-]*"
_SLOT = re.compile(rf"\{{\s*({_NAME})\s*(?:=\s*({_NAME})\s*)?\}}")
_PHRASE = re.compile(rf"<\s*({_NAME})\s*>")
_CLOSING = {"[": "]", "(": ")"}
MAX_DEPTH = 12
REMEDY = "Use words, [optional words], (one|or another), {concept}, {concept=list} and <phrase>"


def parse_pattern(text: str) -> Part:
    """A pattern as a Part. Raises ValueError with the mistake in it."""
    tokens = _TOKEN.findall(text)
    part, end = _parse_alternatives(tokens, 0, MAX_DEPTH)
    if end < len(tokens):
        raise ValueError(f"{tokens[end]!r} has no opening bracket")
    return part


def _parse_alternatives(tokens: list[str], position: int, depth: int) -> tuple[Part, int]:
    """Reads alternatives up to the closing bracket, or the end. Returns the part, and the position after it."""
    if depth == 0:
        raise ValueError(f"brackets are nested more than {MAX_DEPTH} deep")
    options: list[Part] = []
    while True:
        option, position = _parse_sequence(tokens, position, depth)
        options.append(option)
        if position < len(tokens) and tokens[position] == "|":
            position += 1
            continue
        return (options[0] if len(options) == 1 else AlternativePart(tuple(options))), position


def _parse_sequence(tokens: list[str], position: int, depth: int) -> tuple[Part, int]:
    """Reads parts up to the end of an alternative. Returns them as one part, and the position after it."""
    parts: list[Part] = []
    words: list[str] = []

    def end_words() -> None:
        if words:
            parts.append(TextPart(tuple(words)))
            words.clear()

    while position < len(tokens) and tokens[position] not in ("|", "]", ")"):
        token = tokens[position]
        position += 1
        if token in _CLOSING:
            end_words()
            inner, position = _parse_alternatives(tokens, position, depth - 1)
            if position == len(tokens) or tokens[position] != _CLOSING[token]:
                raise ValueError(f"a {token!r} is not closed")
            position += 1
            parts.append(OptionalPart(inner) if token == "[" else inner)
        elif slot := _SLOT.fullmatch(token):
            end_words()
            parts.append(SlotPart(slot[1], slot[2] or slot[1]))
        elif phrase := _PHRASE.fullmatch(token):
            end_words()
            parts.append(PhrasePart(phrase[1]))
        elif token[0] in "{}<>":
            raise ValueError(f"{token!r} is neither a slot nor a phrase")
        else:
            words.append(token)
    end_words()
    if not parts:
        raise ValueError("an alternative is empty")
    return (parts[0] if len(parts) == 1 else SequencePart(tuple(parts))), position


_MORNING, _AFTERNOON, _EVENING = ("in the morning",), ("in the afternoon",), ("in the evening", "tonight")


def spoken_values(kind: SpokenKind, numbers: Iterable[int]) -> tuple[Value, ...]:
    """All spoken forms of each number. With TIME, numbers are minutes since midnight, 0–1439.

    A form that does not name the part of the day has a value on the 12-hour clock: "seven thirty" is 7:30.
    """
    match kind:
        case SpokenKind.NUMBER:
            return tuple(Value(tuple(cardinal(number).split()), str(number)) for number in numbers)
        case SpokenKind.ORDINAL:
            return tuple(Value(tuple(ordinal(number).split()), str(number)) for number in numbers)
        case SpokenKind.TIME:
            return tuple(dict.fromkeys(form for number in numbers for form in _time_forms(*divmod(number, 60))))


def _time_forms(hour: int, minute: int) -> list[Value]:
    """A time in words, with and without the part of the day. The weights of all forms add up to that of one time."""
    if minute == 0 and hour in (0, 12):
        return [Value(("midnight",) if hour == 0 else ("noon",), f"{hour}:00")]
    twelve = hour % 12 or 12
    twelve_hour_forms = [clock_time(twelve, minute)]
    following = cardinal(twelve % 12 + 1)
    if minute == 0:
        twelve_hour_forms.append(f"{cardinal(twelve)} o'clock")
    elif minute == 15:
        twelve_hour_forms.append(f"quarter past {cardinal(twelve)}")
    elif minute == 30:
        twelve_hour_forms.append(f"half past {cardinal(twelve)}")
    elif minute == 45:
        twelve_hour_forms.append(f"quarter to {following}")
    elif minute % 5 == 0:
        before_half = f"{cardinal(minute)} past {cardinal(twelve)}"
        twelve_hour_forms.append(before_half if minute < 30 else f"{cardinal(60 - minute)} to {following}")
    if hour < 12:
        day_parts = ["a m", *_MORNING]
    elif hour < 17:
        day_parts = ["p m", *_AFTERNOON]
    else:
        day_parts = ["p m", *_EVENING]
    forms = [(text, f"{twelve}:{minute:02}") for text in twelve_hour_forms]
    forms += [(f"{clock_time(twelve, minute)} {part}", f"{hour}:{minute:02}") for part in day_parts]
    return [Value(tuple(text.split()), value, 1 / len(forms)) for text, value in forms]


MAX_NUMBERS = 2000
_LABEL = re.compile(r"[^\s#]{1,80}")
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


Label = Annotated[
    str,
    matching(_LABEL, "an intent", "Use one word of at most 80 characters, without # or spaces"),
    Field(json_schema_extra={"pattern": f"^{_LABEL.pattern}$"}),
]
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(gt=0, le=1e6)]


class HabitsKeys(Keys):
    """How people speak. Shares are of utterances, from 0 to 1."""

    two_intents: Share = preset(0.14, "Share of utterances that join two sentences. Default 0.14.")
    connectives: list[Text] = preset(
        ["and"], "Words that can join the two sentences (see `two_intents`).", min_length=1
    )
    hesitant: Share = preset(0.0, "Share of utterances with a hesitation. Default 0.")
    hesitations: list[Text] = preset(["uh"], "Hesitations, outside slots.", min_length=1)
    false_starts: Share = preset(0.0, "Share of utterances whose beginning is repeated. Default 0.")
    restarts: list[Text] = preset(["no"], "Words between the two beginnings.", min_length=1)
    corrected: Share = preset(0.0, "Share of utterances in which a value is corrected. Default 0.")
    corrections: list[Text] = preset(["no"], "Words between the two values.", min_length=1)


class ValueKeys(Keys):
    """A value with its normalised form."""

    say: Text = Field(description="The words.")
    value: Text | None = optional("Normalised form, for metrics with values. Default: the words.")
    weight: Weight = preset(1.0, "Frequency relative to the list's other values. Default 1.")


class SaidKeys(Keys):
    """A list of values, or numbers that are spoken."""

    say: list[Text | ValueKeys] = preset([], "Values: words, or {say, value, weight}.")
    unseen: list[Text | ValueKeys] = preset([], "Values that occur only in the test split.")
    unseen_share: Share = preset(0.3, "Share of the list's slots in the test split that have an unseen value.")
    spoken: Annotated[SpokenKind, enum_validator(SpokenKind)] | None = optional(
        "number, ordinal or time: every value from `from` to `to`, spoken as words, with its digits as the value."
    )
    from_: int | Text | None = optional("First number, or time such as 06:00.", alias="from")
    to: int | Text | None = optional("Last number or time.")
    step: int = preset(1, "Step, in minutes for times. Default 1.", ge=1, le=100_000)


class SentenceKeys(Keys):
    """A pattern with its weight."""

    say: Text = Field(description="The pattern: words, [optional], (one|another), {concept}, {concept=list}, <phrase>.")
    weight: Weight = preset(1.0, "Frequency relative to the intent's other patterns. Default 1.")
    unseen: bool = preset(False, "Whether the pattern occurs only in the test split. Default false.")


class IntentKeys(Keys):
    """Sentences that mean the same."""

    intent: Label | list[Label] = Field(description="The label or labels of these sentences.")
    weight: Weight = preset(1.0, "Frequency relative to the grammar's other intents. Default 1.")
    alone: bool = preset(False, "Whether the intent is never joined with another intent. Default false.")
    say: list[Text | SentenceKeys] = Field(min_length=1, description="Patterns: texts, or {say, weight, unseen}.")


class GrammarKeys(Keys):
    """A grammar file: a domain for `harness understand generate`."""

    grammar: Id = Field(description="Name of the domain, and group of its utterances.")
    title: Text = preset("", "Title.")
    weight: Weight = preset(1.0, "Frequency relative to the other files of a corpus. Default 1.")
    habits: HabitsKeys = preset(HabitsKeys(), "How people speak: joined sentences, hesitations, restarts, corrections.")
    values: dict[Id, SaidKeys | list[Text | ValueKeys]] = preset(
        {}, "Lists of values by name: a list, or a mapping with more options."
    )
    phrases: dict[Id, Text] = preset({}, "Patterns by name; other patterns refer to them as <name>.")
    intents: list[IntentKeys] = Field(min_length=1, description="Intents with their sentences.")


def load_grammar(path: Path) -> Grammar:
    """The grammar of a file. Raises InputProblems with every mistake, or InputError if it is not YAML."""
    return _GrammarReader(*read_keys(path, FileKind.GRAMMAR, GrammarKeys)).grammar()


class _GrammarReader:
    """Converts the keys of a file to a grammar, and notes every mistake with its place."""

    def __init__(self, keys: GrammarKeys, findings: Findings) -> None:
        self._keys = keys
        self._findings = findings

    def grammar(self) -> Grammar:
        keys = self._keys
        values = tuple(self._read_value_list(name) for name in keys.values)
        phrases = tuple(
            (name, part) for name in keys.phrases if (part := self._read_pattern(keys.phrases[name], ("phrases", name)))
        )
        intents = tuple(self._read_intent(number) for number in range(len(keys.intents)))
        self._refuse_circles(dict(phrases))
        self._findings.refuse()
        return Grammar(
            name=keys.grammar,
            weight=keys.weight,
            values=values,
            phrases=phrases,
            intents=intents,
            habits=_habits(keys.habits),
            path=self._findings.file,
        )

    def _read_value_list(self, name: str) -> ValueList:
        entry, key_path = self._keys.values[name], ("values", name)
        keys = SaidKeys(say=entry) if isinstance(entry, list) else entry
        say_path: KeyPath = key_path if isinstance(entry, list) else (*key_path, "say")
        if keys.spoken is not None:
            if keys.model_fields_set & {"say", "unseen", "unseen_share"}:
                remedy = "Remove `spoken`, or remove `say`, `unseen` and `unseen_share`"
                self._findings.add(key_path, "a spoken list cannot have other values", remedy)
            return ValueList(name, self._read_spoken(keys, keys.spoken, key_path))
        for key in ("from_", "to", "step"):
            if key in keys.model_fields_set:
                problem = "only a spoken list can have `from`, `to` and `step`"
                self._findings.add((*key_path, key.rstrip("_")), problem, "Add `spoken: number`")
        values = self._read_values(keys.say, say_path)
        if not values:
            self._findings.add(
                key_path, f"the list {name!r} has no values", "Add `say: [one, another]` or `spoken: number`"
            )
        unseen = self._read_values(keys.unseen, (*key_path, "unseen"), {value.words for value in values})
        if not unseen and "unseen_share" in keys.model_fields_set:
            self._findings.add(
                (*key_path, "unseen_share"),
                "the list has no unseen values",
                "Add `unseen: […]`, or remove `unseen_share`",
            )
        return ValueList(name, values, unseen, keys.unseen_share if unseen else 0.0)

    def _read_values(
        self, entries: list[str | ValueKeys], key_path: KeyPath, earlier: set[tuple[str, ...]] | None = None
    ) -> tuple[Value, ...]:
        earlier_words = set(earlier or ())
        values = []
        for number, entry in enumerate(entries):
            keys = ValueKeys(say=entry) if isinstance(entry, str) else entry
            words = tuple(keys.say.split())
            if words in earlier_words:
                self._findings.add(
                    (*key_path, number), f"{keys.say!r} is already in the list", "Remove one of the two values"
                )
            earlier_words.add(words)
            values.append(Value(words, keys.value, keys.weight))
        return tuple(values)

    def _read_spoken(self, keys: SaidKeys, kind: SpokenKind, key_path: KeyPath) -> tuple[Value, ...]:
        first = self._read_number(keys.from_, kind, (*key_path, "from"))
        last = self._read_number(keys.to, kind, (*key_path, "to"))
        if first is None or last is None:
            return ()
        if last < first or (last - first) // keys.step >= MAX_NUMBERS:
            problem = (
                f"there are no numbers from {first} to {last}"
                if last < first
                else f"the list has more than {MAX_NUMBERS} numbers"
            )
            self._findings.add((*key_path, "to"), problem, "Change `from`, `to` or `step`")
            return ()
        return spoken_values(kind, range(first, last + 1, keys.step))

    def _read_number(self, value: int | str | None, kind: SpokenKind, key_path: KeyPath) -> int | None:
        """A number; for times, the minutes since midnight. None if it is not valid, which is noted."""
        if value is None:
            self._findings.add(key_path[:-1], f"a spoken list needs `{key_path[-1]}`", f"Add `{key_path[-1]}: …` here")
            return None
        if kind is SpokenKind.TIME:
            if isinstance(value, str) and (time := _TIME.fullmatch(value)):
                return int(time[1]) * 60 + int(time[2])
            self._findings.add(key_path, f"{value!r} is not a time", 'Use a time such as "06:30"')
            return None
        minimum = 1 if kind is SpokenKind.ORDINAL else 0
        if isinstance(value, int) and minimum <= value < 10**12:
            return value
        self._findings.add(
            key_path,
            f"{value!r} is not a number, or is below {minimum}",
            f"Use digits without quotes, at least {minimum}",
        )
        return None

    def _read_intent(self, number: int) -> GrammarIntent:
        keys, key_path = self._keys.intents[number], ("intents", number)
        labels = [keys.intent] if isinstance(keys.intent, str) else keys.intent
        if not labels or len(set(labels)) < len(labels):
            self._findings.add(
                (*key_path, "intent"),
                "there is no label, or a label occurs twice",
                "Specify at least one label, and each label only once",
            )
        if keys.alone and len(labels) > 1:
            self._findings.add(
                (*key_path, "alone"),
                "an intent with `alone` can have only one label",
                "Keep only one label, or remove `alone`",
            )
        sentences = []
        for index, entry in enumerate(keys.say):
            sentence_keys = SentenceKeys(say=entry) if isinstance(entry, str) else entry
            sentence_path = (*key_path, "say", index) if isinstance(entry, str) else (*key_path, "say", index, "say")
            part = self._read_pattern(sentence_keys.say, sentence_path)
            if part is not None:
                place = self._findings.place(sentence_path)
                sentences.append(Sentence(part, sentence_keys.weight, sentence_keys.unseen, place))
        if sentences and all(sentence.unseen for sentence in sentences):
            self._findings.add(
                key_path, "all sentences are for the test split", "Remove `unseen` from at least one of them"
            )
        label = tuple(sorted(set(labels)))
        return GrammarIntent(label, keys.weight, keys.alone, tuple(sentences), self._findings.place(key_path))

    def _read_pattern(self, text: str, key_path: KeyPath) -> Part | None:
        try:
            part = parse_pattern(text)
        except ValueError as error:
            self._findings.add(key_path, f"the pattern cannot be read: {error}", REMEDY)
            return None
        for inner in parts_within(part):
            if isinstance(inner, SlotPart) and inner.values not in self._keys.values:
                problem = f"there is no list of values {inner.values!r}"
                self._findings.add(key_path, problem, nearest(inner.values, list(self._keys.values), listed="Lists"))
            elif isinstance(inner, PhrasePart) and inner.name not in self._keys.phrases:
                problem = f"there is no phrase {inner.name!r}"
                self._findings.add(key_path, problem, nearest(inner.name, list(self._keys.phrases), listed="Phrases"))
        return part

    def _refuse_circles(self, phrases: dict[str, Part]) -> None:
        """Notes each phrase that contains itself, directly or within other phrases."""
        inner = {
            name: [subpart.name for subpart in parts_within(part) if isinstance(subpart, PhrasePart)]
            for name, part in phrases.items()
        }
        for name in inner:
            reached, new = set[str](), set(inner[name])
            while new:
                reached |= new
                new = {inner_name for phrase in new for inner_name in inner.get(phrase, ())} - reached
            if name in reached:
                self._findings.add(
                    ("phrases", name), f"the phrase {name!r} contains itself", "Remove the phrase from its own pattern"
                )


def parts_within(part: Part) -> Iterator[Part]:
    """The part and all parts within it. Phrases are not expanded."""
    yield part
    match part:
        case SequencePart(parts) | AlternativePart(parts):
            for subpart in parts:
                yield from parts_within(subpart)
        case OptionalPart(inner):
            yield from parts_within(inner)
        case TextPart() | PhrasePart() | SlotPart():
            pass


def _habits(keys: HabitsKeys) -> Habits:
    def words(texts: list[str]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(text.split()) for text in texts)

    habits: dict[str, Any] = {name: words(value) if isinstance(value, list) else value for name, value in keys}
    return Habits(**habits)


def load_grammars(paths: list[Path]) -> tuple[Grammar, ...]:
    """The grammars of several files. Raises InputError if two have the same name."""
    grammars = tuple(load_grammar(path) for path in paths)
    first: dict[str, Grammar] = {}
    for grammar in grammars:
        if (original := first.setdefault(grammar.name, grammar)) is not grammar:
            raise InputError(
                f"{grammar.path} and {original.path} both have the name {grammar.name!r}",
                remedy="Rename one of the grammars",
            )
    return grammars
