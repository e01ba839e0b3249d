"""The command engine PocketSphinx: finds which sentence of a grammar was said. https://www.w3.org/TR/jsgf/"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from harness.engines.offline_loading import fingerprint
from harness.engines.pocketsphinx_keyphrase import (
    DICTIONARY,
    FRAME_SAMPLES,
    LICENCE,
    RATE_HZ,
    Sounds,
    decoder,
    package,
    package_version,
    pronunciation_remedy,
    read_text,
    settings_text,
    sounds,
)
from harness.model.errors import InputError, InputProblems, Place
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, Said, Setting, SettingKind

_TOKEN = re.compile(
    "|".join(
        (
            r"(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\{(?:\\.|[^}\\])*\}|/[\d.eE+-]+/)",
            r"(?P<header>#JSGF[^;\n]*;?)",
            r"(?P<rule><[^>]*>)",
            r"(?P<mark>[=|*+()\[\];])",
            r'(?P<quoted>"(?:\\.|[^"\\])*")',
            r'(?P<word>[^\s=|*+()\[\];{}<>"/]+|.)',
        )
    ),
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class GrammarText:
    """The content of a grammar. words: (word, line) for every word in a rule. public: names of public rules, without
    brackets. undefined: (rule, line) for rules that are used but not defined."""

    name: str
    words: tuple[tuple[str, int], ...]
    public: tuple[str, ...]
    imports: bool
    undefined: tuple[tuple[str, int], ...]


def read_grammar(text: str) -> GrammarText:
    """Words, public rules and imports of a grammar. Never fails: the search reports a broken grammar."""
    words: list[tuple[str, int]] = []
    public: list[str] = []
    defined: set[str] = {"NULL", "VOID"}
    used: list[tuple[str, int]] = []
    statement: list[str] = []  # of the statement before its "="
    name = ""
    imports = inside = False
    line = 1
    for token in _TOKEN.finditer(text):
        kind, said = token.lastgroup, token[0]
        if said == ";":
            imports = imports or statement[:1] == ["import"]
            if statement[:1] == ["grammar"] and len(statement) > 1:
                name = statement[1]
            statement, inside = [], False
        elif said == "=" and not inside:
            inside = True
            rule = statement[-1].strip("<> ") if statement else ""
            defined.add(rule)
            if statement[:1] == ["public"] and len(statement) > 1:
                public.append(rule)
        elif kind in ("word", "quoted"):
            if inside:
                words += [(word, line) for word in said.strip('"').split()]
            else:
                statement.append(said)
        elif kind == "rule" and inside:
            used.append((said.strip("<> ").removeprefix(f"{name}."), line))
        elif kind == "rule":
            statement.append(said)
        line += said.count("\n")
    undefined = () if imports else tuple((rule, at) for rule, at in used if rule not in defined)
    return GrammarText(name, tuple(words), tuple(public), imports, undefined)


RULE = Setting("rule", SettingKind.TEXT, "", "the public rule to recognise (default: all public rules)", scores=True)
_EVERY = "harness-every-public-rule"
# A frame of features needs 25 ms of sound.
_LEAST_SAMPLES = 410


class PocketSphinxGrammar:
    """Recognises the sentences of a grammar (JSGF) of English words.

    It finds the nearest sentence in any speech: a grammar rejects almost nothing. model: path of the grammar.
    PluginError if the package is missing, InputError with the line for words in no dictionary.
    """

    kind: ClassVar[EngineKind] = EngineKind.COMMAND
    settings: ClassVar[tuple[Setting, ...]] = (RULE, DICTIONARY)

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        if not model:
            raise InputError(
                "pocketsphinx_grammar needs a grammar", remedy="Name a grammar file: -t pocketsphinx_grammar:FILE"
            )
        text = read_text(model, "grammar")
        grammar = read_grammar(text)
        rule = _rule(grammar, settings.get(RULE.name, ""), model)
        said = _sounds(grammar, settings.get(DICTIONARY.name, ""), model)
        self._decoder: Any = _decoder(text, grammar, rule, said, model)
        version = package_version()
        searched = hashlib.sha256((text + settings_text({}, said)).encode()).hexdigest()
        self.facts = EngineFacts(
            EngineKind.COMMAND,
            f"pocketsphinx {version}",
            RATE_HZ,
            (),
            fingerprint(PocketSphinxGrammar, version, searched, settings),
            licence=LICENCE,
            settings=tuple(sorted(settings.items())),
        )

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """One entry that shows how a model is named: the grammar is the model."""
        package()
        return (OfflineModel("FILE.gram", (), LICENCE, "your JSGF grammar, with words of the dictionary"),)

    def understand(self, samples: npt.NDArray[np.int16]) -> Said | None:
        """The sentence, from its first word to its last. None if no path through the grammar was found."""
        if len(samples) < _LEAST_SAMPLES:
            return None
        self._decoder.reinit_feat()  # Forget the sound of the previous file.
        self._decoder.start_utt()
        self._decoder.process_raw(np.ascontiguousarray(samples, dtype=np.int16).tobytes(), False, True)
        self._decoder.end_utt()
        found = self._decoder.hyp()
        if found is None or not found.hypstr.strip():
            return None
        words = [part for part in self._decoder.seg() if part.word[0] not in "<["]
        start = words[0].start_frame * FRAME_SAMPLES if words else 0
        end = (words[-1].end_frame + 1) * FRAME_SAMPLES if words else len(samples)
        end = min(end, len(samples))
        return Said(found.hypstr.strip(), min(start, end), end, float(found.prob))

    def close(self) -> None:
        """Nothing outlives a file."""


def _rule(grammar: GrammarText, wanted: str, path: str) -> str:
    if not grammar.public:
        raise InputError(
            "the grammar has no public rule",
            place=Place(path),
            remedy="Make the top rule public: `public <command> = …;`",
        )
    for name, line in grammar.undefined:  # the search would ignore it silently
        raise InputError(f"the grammar has no rule <{name}>", place=Place(path, line), remedy="Define it, or import it")
    if wanted and wanted not in grammar.public:
        raise InputError(
            f"the grammar has no public rule {wanted!r}",
            place=Place(path),
            remedy=f"Its public rules are: {', '.join(grammar.public)}",
        )
    return wanted or (grammar.public[0] if len(grammar.public) == 1 else _EVERY)


def _sounds(grammar: GrammarText, own: str, path: str) -> Sounds:
    said, missing = sounds({word for word, _ in grammar.words}, own)
    if missing:
        lines: dict[str, int] = {}
        for word, line in grammar.words:
            lines.setdefault(word, line)
        problems = [
            InputError(
                f"the dictionary of pocketsphinx does not have {word!r}"
                + (" (its words are in lower case)" if word != word.lower() else ""),
                place=Place(path, lines[word]),
                remedy=pronunciation_remedy([word]),
            )
            for word in sorted(missing, key=lambda word: lines[word])
        ]
        raise problems[0] if len(problems) == 1 else InputProblems(problems)
    return said


def _decoder(text: str, grammar: GrammarText, rule: str, said: Sounds, path: str) -> Any:
    """With the features of a whole file at once: a command is short, and its mean is known."""
    with tempfile.TemporaryDirectory(prefix="harness-grammar-") as folder:
        read = Path(path)
        if rule == _EVERY:
            every = " | ".join(f"<{name}>" for name in grammar.public)
            read = Path(folder) / read.name
            read.write_text(f"{text}\npublic <{_EVERY}> = {every};\n", encoding="utf-8")
        try:
            return decoder(said, jsgf=str(read), toprule=f"{grammar.name}.{rule}", cmn="batch")
        except RuntimeError as error:
            imported = ". It must also contain the words of imported grammars" if grammar.imports else ""
            raise InputError(
                f"pocketsphinx cannot read the grammar ({error})",
                place=Place(path),
                remedy=f"Check it against JSGF 1.0: a header `#JSGF V1.0;`, a name, rules that end in `;`{imported}",
            ) from error
