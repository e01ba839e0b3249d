"""Makes tests/data/asr: sentences of our own, spoken by synthetic voices in noise, and what recognisers made of them.

    python benchmarks/asr_texts.py speak FOLDER                   # references and 16 kHz WAVs
    python benchmarks/asr_texts.py recognise whisper FOLDER       # faster-whisper tiny.en, greedy
    python benchmarks/asr_texts.py recognise pocketsphinx FOLDER  # in an environment with pocketsphinx 5.1.1
    python benchmarks/asr_texts.py gather FOLDER tests/data/asr   # the trn files

About 3 CPU minutes for the speech, 15 for whisper and 5 for pocketsphinx. A recogniser that was stopped resumes.
Imports are inside functions, so that the environment with pocketsphinx needs neither numpy nor the harness.
"""

from __future__ import annotations

import random
import re
import sys
import wave
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

SEED = 20260131
SENTENCES = 1320
RATE_HZ = 16000
SPEECH_DBFS = -26.0
SNRS_DB = (None, 20.0, 10.0, 3.0)  # None: no noise
VOICES = (  # speaker, engine, voice, language
    ("slt", "flite", "slt", "en-US"),
    ("rms", "flite", "rms", "en-US"),
    ("esus", "espeak", "en-us", "en-US"),
    ("kal", "flite", "kal16", "en-US"),
    ("esgb", "espeak", "en-gb+f3", "en-GB"),
    ("awb", "flite", "awb", "en-GB"),
)
SYSTEMS = ("whisper", "pocketsphinx")
RUDE = re.compile(
    r"\b(\w*(fuck|shit|cunt|bitch|nigg|whore|slut|bastard|penis)\w*|cocks?|dicks?|tits?|rap(e|ed|ist))\b", re.I
)


SLOTS: dict[str, tuple[str, ...]] = {
    "room": (
        "kitchen", "living room", "bedroom", "bathroom", "hallway", "cellar", "garage", "children's room", "study",
        "attic", "dining room", "garden", "guest room", "laundry room",
    ),
    "thing": (
        "lights", "ceiling lamp", "heating", "fan", "blinds", "radio", "air conditioning", "reading lamp",
        "coffee machine", "dehumidifier", "television", "floor lamp",
    ),
    "on": ("on", "off", "up a little", "down a bit", "all the way down", "to half", "back on", "off again"),
    "number": (
        "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "fifteen", "eighteen",
        "twenty", "twenty five", "thirty", "forty five", "sixty", "ninety",
    ),
    "clock": (
        "six o'clock", "half past seven", "seven thirty a.m.", "quarter to nine", "ten fifteen", "noon", "midnight",
        "eight forty five", "five p.m.", "eleven twenty", "twenty past four", "three thirty in the afternoon",
    ),
    "day": (
        "today", "tomorrow", "on Monday", "on Tuesday morning", "on Wednesday", "this Thursday", "next Friday",
        "on Saturday night", "on Sunday", "the day after tomorrow", "at the weekend", "on the third of May",
    ),
    "city": (
        "Boston", "Denver", "Dallas", "San Francisco", "Atlanta", "Pittsburgh", "Philadelphia", "Oakland", "Baltimore",
        "Seattle", "Dublin", "Vienna", "Edinburgh", "Zurich", "Lisbon", "New York", "Salt Lake City",
    ),
    "airline": ("Delta", "United", "Lufthansa", "Swiss", "American", "Continental", "Iberia", "Aer Lingus"),
    "flight": (
        "eight seventy seven", "one oh four", "two twelve", "nineteen", "three thousand and six", "four six one",
        "seven forty seven", "sixty six", "five hundred",
    ),
    "fare": ("one way", "round trip", "first class", "coach", "non-stop", "economy", "refundable", "cheapest"),
    "dish": (
        "a dozen eggs", "oat milk", "two loaves of bread", "some flour", "butter", "olive oil", "a bag of rice",
        "three lemons", "coffee beans", "dish soap", "half a pound of cheese", "fresh basil",
    ),
    "person": ("Anna", "Mister Keller", "my sister", "Doctor O'Brien", "Mohammed", "Siobhan", "the plumber", "Mum",
               "Professor Nguyen", "the new tenant", "Bob and Alice", "my landlady"),
    "music": (
        "some quiet jazz", "the news", "a piano sonata", "the blues", "something by a string quartet", "old folk songs",
        "the second movement", "a podcast about bread", "rain sounds", "the album from last night",
    ),
    "please": ("", "", "", "please ", "could you please ", "can you ", "would you ", "I'd like you to ", "uh ", "hey "),
    "open": ("", "", "", "Well, ", "Um, ", "I think ", "As I said, ", "So, ", "No, wait, ", "Right, "),
    "matter": (
        "the invoice", "the report", "our contract", "the first draft", "the test results", "the spare parts",
        "your letter", "the minutes of the meeting", "the delivery note", "the new timetable", "the floor plan",
    ),
    "did": (
        "has not arrived yet", "was sent on Monday", "is too long", "must be signed by both of us",
        "went to the wrong address", "needs another page", "is ready to be printed", "was lost in the post",
        "is two weeks late", "could be much better",
    ),
    "why": (
        "because the weather was bad", "and nobody told me", "although we had agreed on it",
        "but that is not the point", "which is a pity", "as far as I know", "so we should call them",
        "and I am sorry about that",
        "if I remember it right", "when the office was closed", "before the end of the month",
    ),
    "seen": (
        "an old bicycle", "a heron by the river", "two men with a ladder", "a very small dog", "the last train",
        "a letter without a stamp", "snow on the roof", "the sea between the houses", "a boat called Margaret",
        "three crates of apples", "their neighbour's cat",
    ),
    "place": (
        "behind the station", "at the corner", "in front of the bakery", "under the bridge", "on the way home",
        "next to the church", "near the harbour", "at the bottom of the stairs", "across the road", "by the old mill",
    ),
}  # fmt: skip

PATTERNS = (
    # At home.
    "{please}turn the {thing} in the {room} {on}.",
    "{please}switch {on} the {thing}, the {thing} and the {thing}.",
    "{please}set a timer for {number} minutes and {number} seconds.",
    "{please}wake me up at {clock} {day}.",
    "What's the temperature in the {room}?",
    "{please}set the {room} to {number} degrees.",
    "Is the {thing} in the {room} still on?",
    "{please}add {dish}, {dish} and {dish} to the shopping list.",
    "{please}play {music} in the {room}.",
    "{please}play {music}, and turn it {on}.",
    "Remind me to call {person} {day} at {clock}.",
    "What will the weather be like in {city} {day}?",
    "How long does it take to get to {city}?",
    "{please}lock the door, and turn the {thing} {on} when I leave.",
    "{please}tell {person} that I'll be there at {clock}.",
    # Travel.
    "Show me all the {fare} flights from {city} to {city} {day}.",
    "What does {airline} flight {flight} from {city} to {city} cost?",
    "I want to go from {city} to {city} and stop in {city} on the way.",
    "Does flight {flight} leave before {clock}?",
    "List {airline} flights that arrive in {city} at {clock}, and the {fare} fare.",
    "How far is it from the airport to {city}?",
    "I need a {fare} ticket for {number} people from {city} to {city}.",
    "Which trains leave {city} {day} after {clock}?",
    "What's the {fare} fare to {city} to to {city}?",
    "Is there a there a train to {city} {day}?",
    "Book a room in {city} for {number} nights, please, from {clock} {day}.",
    # Dictation.
    "{open}{matter} {did} {why}.",
    "Dear {person}, {matter} {did}, {why}.",
    "{open}we saw {seen} {place}, and {seen} {place}.",
    "When I walked home {day}, there was {seen} {place}.",
    "{open}please send {matter} and {matter} to {person} by {clock}.",
    "{open}{person} asked {person} whether {matter} {did}.",
    "There were {number} of them {place}, then {number}, and {number} at {clock}.",
    "{open}I saw {seen}, I saw {seen}, and I saw {seen} {place}.",
    "New paragraph. {open}{matter} {did} {why}, {why}.",
    "{person} paid {number} hundred and {number} dollars for {seen}.",
)


def sentences(seed: int = SEED) -> Iterator[str]:
    """Different sentences without end, by each pattern in turn; the same seed gives the same ones."""
    random_source = random.Random(seed)
    seen: set[str] = set()
    while True:
        for pattern in PATTERNS:
            text = pattern
            for slot, choices in SLOTS.items():
                while f"{{{slot}}}" in text:
                    text = text.replace(f"{{{slot}}}", random_source.choice(choices), 1)
            # Repetitions such as "the third" after "the third" are welcome: they make ties for an aligner.
            text = text[0].upper() + text[1:]
            if text not in seen:
                seen.add(text)
                yield text


def speak(folder: Path) -> None:
    """Writes reference.trn and a WAV for each sentence. Voices take turns; after each turn the noise changes."""
    import numpy as np

    from harness.base.plugins import Group, load
    from harness.model.stimulus import NoiseKind, NoiseSpec, VoiceSpec
    from harness.sound.level import at_level
    from harness.sound.recordings import at_rate
    from harness.sound.stimuli.ambience import make_noise

    engines = {engine: load(Group.VOICES, engine)() for engine in ("espeak", "flite")}
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, text in enumerate(islice(sentences(), SENTENCES)):
        speaker, engine, name, language = VOICES[number % len(VOICES)]
        snr_db = SNRS_DB[number // len(VOICES) % len(SNRS_DB)]
        spoken = engines[engine].speak(text, VoiceSpec(engine, name, language=language))
        speech = at_level(at_rate(spoken, RATE_HZ), SPEECH_DBFS, text).samples
        quiet = np.zeros(RATE_HZ // 4, np.float32)
        samples = np.concatenate([quiet, speech, quiet])
        if snr_db is not None:
            noise = NoiseSpec(NoiseKind.PINK, snr_db)
            samples = samples + make_noise(noise, len(samples), RATE_HZ, SPEECH_DBFS - snr_db, SEED + number).samples
        id_ = f"{speaker}_{number:04d}"
        pcm = (np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes()
        with wave.open(str(folder / f"{id_}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE_HZ)
            file.writeframes(pcm)
        lines.append(f"{text} ({id_})\n")
    (folder / "reference.trn").write_text("".join(lines), encoding="utf-8")


def recognise(system: str, folder: Path) -> None:
    """Appends the lines that <system>.trn lacks, one at a time, so that it can be stopped."""
    transcribe = {"whisper": _whisper, "pocketsphinx": _pocketsphinx}[system]()
    target = folder / f"{system}.trn"
    done = len(target.read_text(encoding="utf-8").splitlines()) if target.exists() else 0
    ids = [line.rpartition("(")[2].rstrip(")\n") for line in (folder / "reference.trn").open(encoding="utf-8")]
    with target.open("a", encoding="utf-8") as out:
        for id_ in ids[done:]:
            out.write(f"{' '.join(transcribe(folder / f'{id_}.wav').split())} ({id_})\n".lstrip())
            out.flush()


def _whisper() -> Callable[[Path], str]:
    import numpy as np

    from harness.engines.faster_whisper import FasterWhisper
    from harness.model.stimulus import Waveform

    engine = FasterWhisper(beam_size=1)

    def transcribe(path: Path) -> str:
        samples = np.frombuffer(_frames(path), "<i2").astype(np.float32) / 32768
        return engine.transcribe(Waveform(samples, RATE_HZ))

    return transcribe


def _pocketsphinx() -> Callable[[Path], str]:
    from pocketsphinx import Decoder

    # A much narrower search than its own: a seventh of the time, and a worse recogniser is what is wanted here.
    narrow = {"ds": 3, "topn": 1, "maxhmmpf": 800, "maxwpf": 5, "bestpath": False, "fwdflat": False}
    decoder = Decoder(samprate=RATE_HZ, loglevel="FATAL", **narrow)

    def transcribe(path: Path) -> str:
        decoder.start_utt()
        decoder.process_raw(_frames(path), full_utt=True)
        decoder.end_utt()
        hypothesis = decoder.hyp()
        return hypothesis.hypstr if hypothesis else ""

    return transcribe


def _frames(path: Path) -> bytes:
    with wave.open(str(path), "rb") as file:
        return file.readframes(file.getnframes())


def gather(folder: Path, target: Path) -> None:
    """Copies the trn files to a folder, without the utterances in which somebody is rude."""
    target.mkdir(parents=True, exist_ok=True)
    names = ("reference", *SYSTEMS)
    files = [(folder / f"{name}.trn").read_text(encoding="utf-8").splitlines() for name in names]
    utterances = [lines for lines in zip(*files, strict=True) if not any(map(RUDE.search, lines))]
    for name, lines in zip(names, zip(*utterances, strict=True), strict=True):
        (target / f"{name}.trn").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    match sys.argv[1:]:
        case ["speak", folder]:
            speak(Path(folder))
        case ["recognise", system, folder] if system in SYSTEMS:
            recognise(system, Path(folder))
        case ["gather", folder, target]:
            gather(Path(folder), Path(target))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
