"""The reference system `ctc`: sound in, intents, slots and words out. It is a small yardstick, trained in minutes.

The encoder of a recogniser, which is not trained further, turns sound into frames. From them, a head writes the words
letter by letter. A mark stands before and after the value of each slot, instead of a blank: `book a room
in<city>nice</>`. Needs the extras `recogniser` and `understanding`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from harness.base.plugins import import_extra
from harness.engines.faster_whisper import FasterWhisper, packaged_model
from harness.engines.framed import Pcm
from harness.engines.offline_loading import fingerprint
from harness.engines.voice_activity import RATE_HZ
from harness.model.errors import EngineError, InputError, Place
from harness.model.frozen import frozen
from harness.model.numbers import counted, fixed
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, Said, Setting, SettingKind
from harness.model.stimulus import Samples
from harness.model.understanding import Chunking, Slot, Utterance
from harness.understanding.files.corpus_writing import tags_of
from harness.understanding.models.ctc import WEIGHTS, Array, CtcExample, CtcHead, best_path, fewest_frames, learn
from harness.understanding.models.model_folder import damaged_model, read_model
from harness.understanding.models.tfidf_classifier import DAMAGE
from harness.understanding.models.votes import selected_labels, sets_of
from harness.understanding.tag_chunks import TagChunk, chunks

NAME = "ctc"
NAMES_FILE = "ctc.json"
MAX_SAMPLES = 28 * RATE_HZ
"""Longest speech. Whisper takes 30 s, half a second of which is the silence around the sound."""
BLOCK = RATE_HZ // 50
"""Samples of a block whose level decides whether it is quiet."""
QUIET_DBFS = -66.0
"""No block at or below this level is loud."""
RANGE_DB = 40.0
"""A block this much below the loudest one is not loud."""
MARGIN_BLOCKS = 5
"""Number of blocks that are kept before the first loud one, and after the last: 0.1 s."""
PEAK = 0.5
"""Every sound is scaled to this peak, so that its loudness does not matter."""
UTTERANCES_PER_NOISE = 20
"""For every so many utterances, training adds two seconds of noise, without words and intents."""
EPOCHS = Setting("epochs", SettingKind.WHOLE, "15", "number of passes over the training utterances", low=1, high=500)
HIDDEN = Setting("hidden", SettingKind.WHOLE, "256", "units of the hidden layer", low=1, high=4096)
CONTEXT = Setting(
    "context",
    SettingKind.WHOLE,
    "5",
    "number of frames that a hidden unit sees, 120 ms apart; must be odd",
    low=1,
    high=31,
)
RATE = Setting("learning-rate", SettingKind.NUMBER, "0.002", "highest learning rate", low=1e-6, high=1)


class SoundEncoder(Protocol):
    """Turns sound into frames. FasterWhisper is one."""

    @property
    def name(self) -> str: ...
    def encode(self, samples: Samples) -> Samples:
        """Samples at 16 kHz → shape (frames, width), at least two frames, of 20 ms each."""


@frozen
class Alphabet:
    """The labels that the head can write.

    Their order: the blank, the characters, the mark after a value, and for each concept a mark before its values.
    """

    characters: tuple[str, ...]
    concepts: tuple[str, ...]

    @classmethod
    def of(cls, utterances: Sequence[Utterance]) -> Self:
        """The characters and concepts of annotated utterances, sorted."""
        concepts = {chunk.concept for utterance in utterances for chunk in _chunks(utterance)}
        characters = {letter for utterance in utterances for letter in utterance.text}
        return cls(tuple(sorted(characters)), tuple(sorted(concepts)))

    @property
    def end(self) -> int:
        """The mark after a value."""
        return len(self.characters) + 1

    @property
    def labels(self) -> int:
        return self.end + 1 + len(self.concepts)

    def write(self, utterance: Utterance) -> list[int] | None:
        """The labels of an utterance. None if its words are unknown.

        Raises ValueError for other characters or concepts.
        """
        concept_at = {chunk.start: chunk.concept for chunk in _chunks(utterance)}
        value_ends = {chunk.end - 1 for chunk in _chunks(utterance)}
        labels: list[int] = []
        for index, word in enumerate(utterance.words):
            if index and index not in concept_at and index - 1 not in value_ends:
                labels.append(self.characters.index(" ") + 1)
            if index in concept_at:
                labels.append(self.end + 1 + self.concepts.index(concept_at[index]))
            labels += [self.characters.index(letter) + 1 for letter in word]
            if index in value_ends:
                labels.append(self.end)
        return labels or None

    def read(self, labels: Sequence[int]) -> tuple[str, tuple[Slot, ...]]:
        """The words and slots that labels stand for.

        A value ends at the mark for its end, before the mark of the next concept, or with the utterance. A mark for an
        end without a value is ignored, and a slot without letters is left out.
        """
        text, values = "", list[tuple[str, str]]()
        is_open = False
        for label in labels:
            if label < self.end:
                letter = self.characters[label - 1]
                text += letter
                if is_open:
                    concept, value = values[-1]
                    values[-1] = concept, value + letter
            else:
                text += " "
                is_open = label > self.end
                if is_open:
                    values.append((self.concepts[label - self.end - 1], ""))
        slots = ((concept, " ".join(value.split())) for concept, value in values)
        return " ".join(text.split()), tuple(Slot(concept, value) for concept, value in slots if value)


@frozen
class TrainedCtc:
    """The result of training. Raises ValueError for names that do not fit the head.

    - may_be_empty: whether an utterance may have no intent.
    - encoder: name of the encoder that made its frames.
    - settings: (name, value) of all settings.
    """

    head: CtcHead
    alphabet: Alphabet
    intents: tuple[str, ...]
    may_be_empty: bool
    encoder: str
    settings: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        if (self.head.labels, self.head.intents) != (self.alphabet.labels, len(self.intents)):
            raise ValueError("its names do not match its arrays")

    def answer(self, frames: Array) -> tuple[str, tuple[Slot, ...], tuple[str, ...]]:
        """Words, slots and intents of an encoder's frames."""
        with _one_thread():
            labels, probabilities = self.head.predict(frames)
        selected = selected_labels(probabilities[None], may_be_empty=self.may_be_empty)
        return *self.alphabet.read(best_path(labels)), sets_of(selected, self.intents)[0]

    def names(self) -> str:
        """Everything except the arrays, as JSON."""
        content = {"characters": self.alphabet.characters, "concepts": self.alphabet.concepts, "intents": self.intents,
                   "may_be_empty": self.may_be_empty, "encoder": self.encoder,
                   "settings": dict(self.settings)}  # fmt: skip
        return json.dumps(content, indent=1) + "\n"

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads a model. Raises InputError, with the file, if one is missing or damaged."""
        path = folder / NAMES_FILE  # the file that is being read, for the error
        try:
            header: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            characters, concepts, intents = (_texts(header[key]) for key in ("characters", "concepts", "intents"))
            settings = tuple((str(name), str(value)) for name, value in header["settings"].items())
            weights = {}
            for name in WEIGHTS:
                path = folder / f"{name}.npy"
                weights[name] = _read_array(path)
            path = folder / NAMES_FILE
            alphabet, may_be_empty = Alphabet(characters, concepts), bool(header["may_be_empty"])
            return cls(CtcHead(weights), alphabet, intents, may_be_empty, str(header["encoder"]), settings)
        except (*DAMAGE, AttributeError, MemoryError) as error:
            raise damaged_model(path, error) from error


class CtcUnderstander:
    """The plug-in `ctc` of `harness.audio_understanders`.

    It ignores held-out utterances: its learning rate ends at 0, and the last epoch is kept.

    - model: folder of a trained model.
    - encoder: the encoder with which the head was trained; None for that of the packaged recogniser.
    """

    kind: ClassVar[EngineKind] = EngineKind.FRAME
    settings: ClassVar[tuple[Setting, ...]] = (EPOCHS, HIDDEN, CONTEXT, RATE)

    def __init__(self, model: str, settings: Mapping[str, str], *, encoder: SoundEncoder | None = None) -> None:
        if not model:
            raise InputError("ctc needs a trained model", remedy="Add the folder of the model, as in -t ctc:FOLDER")
        if settings:
            raise InputError(
                f"the setting {min(settings)!r} does not apply to a trained ctc model",
                remedy="Remove the setting, or use it in training",
            )
        name, _ = read_model(Path(model))
        if name != NAME:
            raise InputError(
                f"this is a {name} model, not a ctc model",
                place=Place(model),
                remedy="Choose the folder of a model trained as ctc",
            )
        trained, encoder = TrainedCtc.load(Path(model)), encoder or _whisper()
        if trained.encoder != encoder.name:
            raise InputError(
                f"the model was trained on {trained.encoder}, but {encoder.name} is installed",
                place=Place(model), remedy="Train again, or install that version",
            )  # fmt: skip
        self._set_model(trained, encoder)

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        """One entry, which shows how to name a model; PluginError without the recogniser."""
        packaged_model()
        return (
            OfflineModel("FOLDER", (), "the language of its training data", "a folder with a model trained as ctc"),
        )

    def understand(self, samples: Pcm) -> Said | None:
        """Intents, slots and words of a file; None without sound or without a word. The level does not matter.

        The start and end of the result leave out the quiet parts around the sound. Raises EngineError for more than 28
        s.
        """
        start, end = _loud_span(samples)
        if end - start > MAX_SAMPLES:
            problem = f"the sound lasts {fixed((end - start) / RATE_HZ, 1)} s, longer than ctc's limit of 28 s"
            raise EngineError(problem, remedy="Cut the file into utterances")
        if start == end:
            return None
        text, slots, intents = self._trained.answer(_frames(samples[start:end], self._encoder))
        return Said(text, start, end, intents=intents, slots=slots) if text else None

    def close(self) -> None:
        """Does nothing: no resources are kept between files."""

    @classmethod
    def fit(
        cls,
        train: Sequence[Utterance],
        held_out: Sequence[Utterance],
        sound_of: Callable[[str], Pcm],
        settings: Mapping[str, str],
        *,
        seed: int,
        tell: Callable[[str], None],
        encoder: SoundEncoder | None = None,
    ) -> Self:
        """Trains from scratch, as described in `LearnsFromSound`. Needs 20 kB of memory per second of sound.

        ValueError without utterances. Raises InputError if no utterance has words that fit into its sound, or training
        diverges.
        """
        if not train:
            raise ValueError("there are no training utterances")
        values = {setting.name: settings.get(setting.name, setting.default) for setting in cls.settings}
        context, epochs = int(values[CONTEXT.name]), int(values[EPOCHS.name])
        random = np.random.default_rng(seed)
        if context % 2 == 0:
            raise InputError(f"context cannot be {context}: it must be odd", remedy=f"Set context={context + 1}")
        encoder, alphabet = encoder or _whisper(), Alphabet.of(train)
        intents = tuple(sorted({label for utterance in train for label in utterance.intents or ()}))
        tell(f"encoding {len(train):,} sounds")
        with _one_thread():
            encoded = [_example(utterance, sound_of, encoder, alphabet, intents) for utterance in train]
        examples = [example for example in encoded if example is not None]
        if unusable_count := len(encoded) - len(examples):
            tell(f"left out {counted(unusable_count, 'sound')}: silent or longer than 28 s")
        without_target = sum(example.target is None for example in examples)
        if without_target == len(examples):
            raise InputError(
                "no training utterance has words that fit into its sound",
                remedy="Check that each sound belongs to its utterance",
            )
        tell(f"{len(alphabet.characters)} characters, {len(alphabet.concepts)} concepts, {len(intents)} intents; "
             f"{without_target:,} utterances without words, or with too many for their sound")  # fmt: skip
        for _ in range(math.ceil(len(train) / UTTERANCES_PER_NOISE)):
            noise = random.integers(-9999, 9999, 2 * RATE_HZ, dtype=np.int16)
            examples.append(CtcExample(_frames(noise, encoder), (), np.zeros(len(intents), np.float32)))
        head = CtcHead.random(
            [example.features for example in examples], context=context, hidden=int(values[HIDDEN.name]),
            labels=alphabet.labels, intents=len(intents), random=random,
        )  # fmt: skip
        may_be_empty = not all(utterance.intents for utterance in train if utterance.intents is not None)
        trained = TrainedCtc(head, alphabet, intents, may_be_empty, encoder.name, tuple(sorted(values.items())))

        def progress(epoch: int, loss: float) -> None:
            tell(f"epoch {epoch} of {epochs}: loss {fixed(loss, 3)}")

        with _one_thread():
            learn(head, examples, progress, epochs=epochs, rate=float(values[RATE.name]), random=random)
        understander = cls.__new__(cls)
        understander._set_model(trained, encoder)
        return understander

    def save(self, folder: Path) -> None:
        """Writes the names as JSON, and each array as .npy."""
        for name in WEIGHTS:
            np.save(folder / f"{name}.npy", self._trained.head.weights[name], allow_pickle=False)
        (folder / NAMES_FILE).write_text(self._trained.names(), encoding="utf-8")

    def _set_model(self, trained: TrainedCtc, encoder: SoundEncoder) -> None:
        self._trained, self._encoder = trained, encoder
        digest = hashlib.sha256(trained.names().encode())
        for name in WEIGHTS:
            digest.update(trained.head.weights[name].tobytes())
        version = f"ctc on {encoder.name}"
        self.facts = EngineFacts(
            EngineKind.FRAME, version, RATE_HZ, (), fingerprint(CtcUnderstander, version, digest.hexdigest(), {}),
            settings=trained.settings,
        )  # fmt: skip


def _example(
    utterance: Utterance, sound_of: Callable[[str], Pcm], encoder: SoundEncoder, alphabet: Alphabet,
    intents: tuple[str, ...],
) -> CtcExample | None:  # fmt: skip
    """An utterance as an example for training. Its words are left out if its sound is too short for them.

    None for a sound that is silent, or longer than the encoder takes.
    """
    samples = sound_of(utterance.id)
    start, end = _loud_span(samples)
    if not 0 < end - start <= MAX_SAMPLES:
        return None
    frames = _frames(samples[start:end], encoder)
    target = alphabet.write(utterance)
    if target is not None and fewest_frames(target) > len(frames):
        target = None
    if utterance.intents is None:
        return CtcExample(frames, target, None)
    return CtcExample(frames, target, np.array([label in utterance.intents for label in intents], np.float32))


def _chunks(utterance: Utterance) -> tuple[TagChunk, ...]:
    return chunks(tags_of(utterance) or (), Chunking.CONLLEVAL)


def _loud_span(samples: Pcm) -> tuple[int, int]:
    """The span of the sound that is not quiet, in samples. It reaches from 0.1 s before the first loud block of 20 ms
    to 0.1 s after the last. (0, 0) if no block is louder than QUIET_DBFS.

    A block is loud if it lies within RANGE_DB of the loudest. A speech detector would take longer than the encoder.
    """
    blocks = samples[: len(samples) // BLOCK * BLOCK].reshape(-1, BLOCK).astype(np.float64)
    power = blocks.var(axis=1) / 32768**2
    loud = np.flatnonzero(power > max(10 ** (QUIET_DBFS / 10), power.max(initial=0) * 10 ** (-RANGE_DB / 10)))
    if not len(loud):
        return 0, 0
    first, last = int(loud[0]) - MARGIN_BLOCKS, int(loud[-1]) + MARGIN_BLOCKS
    return max(0, first) * BLOCK, min(len(blocks), last + 1) * BLOCK


def _frames(samples: Pcm, encoder: SoundEncoder) -> Array:
    """The encoder's frames of a sound, scaled to PEAK. Two frames are joined, so that there is one for each 40 ms, in
    half precision."""
    sound = samples.astype(np.float32)
    frames = encoder.encode(sound * np.float32(PEAK / max(1.0, float(np.abs(sound).max(initial=0)))))
    pairs = frames[: len(frames) // 2 * 2].reshape(-1, 2, frames.shape[1]).mean(axis=1)
    return np.asarray(pairs, np.float16)


def _whisper() -> FasterWhisper:
    # Otherwise two libraries (for the vocabulary and for arithmetic) would each start a thread per core.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    return FasterWhisper()


def _one_thread() -> AbstractContextManager[Any]:
    """Limits arithmetic to one thread, so that sums have the same order in every run."""
    limits: AbstractContextManager[Any] = import_extra(
        "threadpoolctl", "the system ctc", "understanding"
    ).threadpool_limits(1)
    return limits


def _texts(texts: Any) -> tuple[str, ...]:
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError("a name is not a string")
    return tuple(texts)


def _read_array(path: Path) -> Array:
    with path.open("rb") as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
    if array.dtype != np.float32 or not np.isfinite(array).all():
        raise ValueError("a weight is not a 32-bit number")
    return array
