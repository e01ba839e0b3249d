"""The command engine PocketSphinx: which sentence of a grammar was said. https://www.w3.org/TR/jsgf/"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from harness.engines import pocketsphinx_decoder as base
from harness.engines.jsgf import GrammarText, read_grammar
from harness.engines.offline_loading import fingerprint
from harness.model.errors import InputError, InputProblems, Place
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, Said, Setting, SettingKind

RULE = Setting("rule", SettingKind.TEXT, "", "the public rule to listen for; without it all public rules", scores=True)
_EVERY = "harness-every-public-rule"
# A frame of features needs 25 ms of sound.
_LEAST_SAMPLES = 410


class PocketSphinxGrammar:
    """Understands the sentences of a grammar (JSGF) of English words, and nothing else.

    It finds the nearest sentence in whatever is said: a grammar does not refuse. model: path of the grammar.
    PluginError when the package is missing, InputError with the line for a grammar with words in no dictionary.
    """

    kind: ClassVar[EngineKind] = EngineKind.COMMAND
    settings: ClassVar[tuple[Setting, ...]] = (RULE, base.DICTIONARY)

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        if not model:
            raise InputError(
                "pocketsphinx_grammar is given no grammar", remedy="Name a file, as in -t pocketsphinx_grammar:FILE"
            )
        text = base.read_text(model, "grammar")
        grammar = read_grammar(text)
        rule = _rule(grammar, settings.get(RULE.name, ""), model)
        said = _sounds(grammar, settings.get(base.DICTIONARY.name, ""), model)
        self._decoder: Any = _decoder(text, grammar, rule, said, model)
        version = base.package_version()
        searched = hashlib.sha256((text + base.settings_text({}, said)).encode()).hexdigest()
        self.facts = EngineFacts(
            EngineKind.COMMAND,
            f"pocketsphinx {version}",
            base.RATE_HZ,
            (),
            fingerprint(PocketSphinxGrammar, version, searched, settings),
            licence=base.LICENCE,
            settings=tuple(sorted(settings.items())),
        )

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """One entry that says how a model is named: the grammar is the model."""
        base.package()
        return (OfflineModel("FILE.gram", (), base.LICENCE, "a JSGF grammar of yours; words of the dictionary"),)

    def understand(self, samples: npt.NDArray[np.int16]) -> Said | None:
        """The sentence, from its first word to its last; None where no path through the grammar was found."""
        if len(samples) < _LEAST_SAMPLES:
            return None
        self._decoder.reinit_feat()  # What the file before sounded like is of no account.
        self._decoder.start_utt()
        self._decoder.process_raw(np.ascontiguousarray(samples, dtype=np.int16).tobytes(), False, True)
        self._decoder.end_utt()
        found = self._decoder.hyp()
        if found is None or not found.hypstr.strip():
            return None
        words = [part for part in self._decoder.seg() if part.word[0] not in "<["]
        start = words[0].start_frame * base.FRAME_SAMPLES if words else 0
        end = (words[-1].end_frame + 1) * base.FRAME_SAMPLES if words else len(samples)
        end = min(end, len(samples))
        return Said(found.hypstr.strip(), min(start, end), end, float(found.prob))

    def close(self) -> None:
        """Nothing outlives a file."""


def _rule(grammar: GrammarText, wanted: str, path: str) -> str:
    if not grammar.public:
        raise InputError(
            "the grammar has no public rule", place=Place(path), remedy="Write `public <command> = …;` for the top one"
        )
    for name, line in grammar.undefined:  # the search would take it for nothing, without a word
        raise InputError(f"the grammar has no rule <{name}>", place=Place(path, line), remedy="Define it, or import it")
    if wanted and wanted not in grammar.public:
        raise InputError(
            f"the grammar has no public rule {wanted!r}",
            place=Place(path),
            remedy=f"It has: {', '.join(grammar.public)}",
        )
    return wanted or (grammar.public[0] if len(grammar.public) == 1 else _EVERY)


def _sounds(grammar: GrammarText, own: str, path: str) -> base.Sounds:
    said, missing = base.sounds({word for word, _ in grammar.words}, own)
    if missing:
        lines: dict[str, int] = {}
        for word, line in grammar.words:
            lines.setdefault(word, line)
        problems = [
            InputError(
                f"the dictionary of pocketsphinx does not have {word!r}"
                + (" (its words are in lower case)" if word != word.lower() else ""),
                place=Place(path, lines[word]),
                remedy=base.pronunciation_remedy([word]),
            )
            for word in sorted(missing, key=lambda word: lines[word])
        ]
        raise problems[0] if len(problems) == 1 else InputProblems(problems)
    return said


def _decoder(text: str, grammar: GrammarText, rule: str, said: base.Sounds, path: str) -> Any:
    """With the features of a whole file at once: a command is short, and its mean is known."""
    with tempfile.TemporaryDirectory(prefix="harness-grammar-") as folder:
        read = Path(path)
        if rule == _EVERY:
            every = " | ".join(f"<{name}>" for name in grammar.public)
            read = Path(folder) / read.name
            read.write_text(f"{text}\npublic <{_EVERY}> = {every};\n", encoding="utf-8")
        try:
            return base.decoder(said, jsgf=str(read), toprule=f"{grammar.name}.{rule}", cmn="batch")
        except RuntimeError as error:
            imported = "; words of imported grammars must be in it too" if grammar.imports else ""
            raise InputError(
                f"pocketsphinx cannot read the grammar ({error})",
                place=Place(path),
                remedy=f"Check it against JSGF 1.0: a header `#JSGF V1.0;`, a name, rules that end in `;`{imported}",
            ) from error
