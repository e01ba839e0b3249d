"""The synthetic speech that the spotter's tables are made from, and the held-out speech that they are judged by.

Speech is kept as 16 kHz PCM16, normalised to a peak of half of full scale, in one .npz file a part.
"""

from __future__ import annotations

import hashlib
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soxr

from harness.model.errors import VoiceError
from harness.model.stimulus import VoiceSpec
from harness.sound.stimuli.voices.espeak import EspeakVoice
from harness.sound.stimuli.voices.flite import FliteVoice
from harness.sound.stimuli.voices.hibari import HibariVoice

RATE_HZ = 16_000
PCM = npt.NDArray[np.int16]

HELD_OUT_FLITE = "slt"
# They whisper, quack or sing: no listener would take them for a person who speaks.
UNLIKE_SPEECH = frozenset({"whisper", "whisperf", "Demonic", "Half-LifeAnnouncementSystem", "fast_test", "Alien"})
ACCENTS = ("en-us", "en-gb", "en-gb-x-rp", "en-gb-scotland", "en-029", "en-gb-x-gbclan", "en-gb-x-gbcwmd")
OTHER_LANGUAGES = ("fr-fr", "de", "es", "it", "nl", "pl", "pt", "sv")

PHRASES = ("Alexa", "Alexa.", "Alexa!", "Alexa?", "Alexa,")

SYLLABLES = (
    "a", "lex", "sa", "la", "le", "ex", "xa", "ki", "to", "mer", "lin", "sel", "tak", "so", "der", "ness", "bo", "ix",
)  # fmt: skip

# Sounds that share a part with the phrase; none contains it.
NEAR_WORDS = """
alex alexis elect election elector electric electricity a lesson lessons less a lexus lexicon lexical alaska
relax relaxing relaxes axle axis access excess a taxi taxes texas a texan flex flexes reflex reflects elex
elixir collects selects annex annexes a lecture lecturer a legacy allergic a letter alerts eleven else elsa a
lake alike alice alicia election day a lock alec aleck alas a lass a lasso select a collect a wreck a lax
lacks a likes a milk silk salsa celsius a length next a mexico exit exile extra a lemon a leg say sir a sexton
a lexeme a licence licks a lick so a leak pixel excel a lesser illicit a luxor luxury deluxe galaxy galaxies a
lapse elapsed collapse hey siri hey jarvis okay computer hello amelia rebecca jessica erica monica angelica
electra
"""

WORDS = """
the of and to in is that for it as was with be by on not he his but at are this have from or had an they which
one you were all her she there would their we him been has when who will no more if out so up said what its
about than into them can only other time new some could these two may first then do any like my now over such
our man me even most made after also did many off before must well back through years where much your way down
should because long each just state those people too mister how little good world make very year still see own
work men day get here between both under never week house water night light left right kitchen window garden
weather tomorrow music volume lamp door street summer winter morning evening coffee table number seven eleven
twelve thirty hundred thousand minutes second hour timer alarm radio channel recipe butter sugar oven traffic
station airport train bus ticket letter doctor school teacher question answer story picture mother father
sister brother friend market money office paper machine engine signal battery button switch speaker microphone
language sentence example river mountain forest animal yellow purple orange silver simple possible difficult
important different together however already always perhaps almost against during without another nothing
something everything turn play stop pause call send read write open close start listen speak tell ask remind
order cancel set add remove find show help express expect exactly example next text context complex mix fix
six box tax wax fox relax luxury success access lettuce election electric select collect reflect lesson less
else elephant elevator salad balance allow along alone alarm album alert follow yellow hello believe delay
relay release palace police alas
"""

COMMANDS = (
    "what time is it", "turn on the kitchen light", "play some music", "set a timer for ten minutes", "stop",
    "what is the weather like tomorrow", "tell me a joke", "add milk to my shopping list", "volume up", "who are you",
    "how do you spell rhythm", "call my mother", "is it going to rain", "open the garage door", "good morning",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """What is to be said: by which engine, how, and the text."""

    engine: str
    voice: VoiceSpec
    text: str


def variants(espeak: EspeakVoice, held_out: bool) -> list[str]:
    """Espeak's variants of one side: a fifth of them, by the hash of their names, is held out."""
    prefix = "en-us+"
    names = [name.removeprefix(prefix) for name in espeak.names() if name.startswith(prefix)]
    chosen = (name for name in names if name not in UNLIKE_SPEECH)
    return [name for name in chosen if (hashlib.sha256(name.encode()).digest()[0] % 5 == 0) == held_out]


def flite_voices(held_out: bool) -> tuple[str, ...]:
    return (HELD_OUT_FLITE,) if held_out else ("awb", "kal16", "rms")


def positives(espeak: EspeakVoice, held_out: bool, count: int, seed: int) -> list[Line]:
    """The phrase by espeak's variants, a sixth of them of voices for other languages, then by flite and hibari."""
    rng = random.Random(f"positives {held_out} {seed}")
    names = variants(espeak, held_out)
    lines = []
    for index in range(count):
        code = rng.choice(ACCENTS if held_out or index % 6 else OTHER_LANGUAGES)
        voice, language = f"{code}+{names[index % len(names)]}", "en" if code in ACCENTS else code
        spec = VoiceSpec("espeak", voice, rng.randint(110, 240), rng.randint(20, 80), language)
        lines.append(Line("espeak", spec, rng.choice(PHRASES)))
    for name in flite_voices(held_out):
        for rate in range(100, 241, 5):
            for text in ("Alexa", "Alexa?"):
                lines.append(Line("flite", VoiceSpec("flite", name, rate, None, "en"), text))
    # hibari has one voice only, so the held-out part has other rates of it, not another speaker.
    for rate in range(105, 256, 10) if held_out else range(100, 261, 10):
        for text in ("Alexa.", "Alexa!", "Alexa", "Alexa?"):
            lines.append(Line("hibari", VoiceSpec("hibari", "heart", rate, None, "en"), text))
    return lines


def pseudo_word(rng: random.Random) -> str:
    """Syllables in any order, those of the phrase among them, never the phrase."""
    while True:
        word = "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(2, 4)))
        if "lexa" not in word and "lexsa" not in word and "lessa" not in word:
            return word


def sentence(rng: random.Random) -> str:
    """A few seconds of words in no order, near words and pseudo-words among them; or near words alone."""
    words, draw = WORDS.split(), rng.random()
    if draw < 0.35:
        return ". ".join(rng.choice(near_phrases()) for _ in range(rng.randint(3, 5)))
    if draw < 0.5:
        return ". ".join(pseudo_word(rng) for _ in range(rng.randint(3, 6)))
    return " ".join(rng.choice(words) for _ in range(rng.randint(8, 18))) + "."


def near_phrases() -> list[str]:
    """Near words, one or two at a time ("a lesson", "elixir")."""
    words = NEAR_WORDS.split()
    pairs = [f"{first} {second}" for first, second in pairwise(words) if first in {"a", "hey", "okay", "select"}]
    return [word for word in words if len(word) > 2] + pairs


def negatives(espeak: EspeakVoice, held_out: bool, count: int, seed: int) -> list[Line]:
    """Speech without the phrase: espeak in English and in other languages, flite and hibari."""
    rng = random.Random(f"negatives {held_out} {seed}")
    names = variants(espeak, held_out)
    lines = []
    for index in range(count):
        text, draw = sentence(rng), rng.random()
        if draw < 0.2:
            name = rng.choice(flite_voices(held_out))
            lines.append(Line("flite", VoiceSpec("flite", name, rng.randint(110, 230), None, "en"), text))
        elif draw < 0.32:
            lines.append(Line("hibari", VoiceSpec("hibari", "heart", rng.randint(120, 230), None, "en"), text))
        else:
            code = rng.choice(OTHER_LANGUAGES) if draw > 0.85 else rng.choice(ACCENTS)
            language = code if draw > 0.85 else "en"
            spec = VoiceSpec(
                "espeak", f"{code}+{names[index % len(names)]}", rng.randint(110, 260), rng.randint(15, 85), language
            )
            lines.append(Line("espeak", spec, text))
    return lines


def commands(espeak: EspeakVoice, held_out: bool, count: int, seed: int) -> list[Line]:
    """What people say after the phrase."""
    rng = random.Random(f"commands {held_out} {seed}")
    names = variants(espeak, held_out)
    return [
        Line(
            "espeak",
            VoiceSpec(
                "espeak",
                f"{rng.choice(ACCENTS)}+{names[i % len(names)]}",
                rng.randint(120, 220),
                rng.randint(25, 75),
                "en",
            ),
            rng.choice(COMMANDS),
        )
        for i in range(count)
    ]


class Speakers:
    """All engines, one of each."""

    def __init__(self) -> None:
        self.espeak = EspeakVoice()
        self._engines = {"espeak": self.espeak, "flite": FliteVoice(), "hibari": HibariVoice()}

    def say(self, line: Line) -> PCM | None:
        """The speech of a line; None if its engine refuses it, or if it is silent."""
        try:
            waveform = self._engines[line.engine].speak(line.text, line.voice)
        except VoiceError:
            return None
        samples = np.asarray(soxr.resample(waveform.samples.astype(np.float64), waveform.rate_hz, RATE_HZ))
        peak = float(np.abs(samples).max())
        return np.round(samples * (16_384 / peak)).astype(np.int16) if peak > 0 else None

    def say_all(self, lines: list[Line], cache: Path) -> list[PCM]:
        """The speech of the lines in their order, without those of which there is none.

        Reads it from a file of the cache, or makes that file.
        """
        digest = hashlib.sha256("\n".join(map(repr, lines)).encode()).hexdigest()[:16]
        path = cache / f"{digest}.npz"
        if not path.exists():
            cache.mkdir(parents=True, exist_ok=True)
            with ThreadPoolExecutor(2) as pool:
                spoken = [samples for samples in pool.map(self.say, lines) if samples is not None]
            np.savez(path, sound=np.concatenate(spoken), lengths=[len(samples) for samples in spoken])
        with np.load(path) as part:
            return np.split(part["sound"], np.cumsum(part["lengths"])[:-1])
