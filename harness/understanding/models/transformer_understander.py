"""A joint model of intents and slots on any local Transformer checkpoint, by default the included MiniLM.

It uses sigmoid on the first piece for intents (threshold 0.5), and softmax on the first piece of each word for slots.
Training minimises the sum of both losses. Source: the MEDIA paper, 4.1. Needs the extra `transformer`.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from harness.base.plugins import checked_settings
from harness.model.frozen import frozen
from harness.model.numbers import fixed
from harness.model.offline import Setting, SettingKind
from harness.model.understanding import Prediction, Utterance
from harness.understanding.models.encoder import CHECKPOINT, THREADS, Encoder, learn, load_encoder, torch_module
from harness.understanding.models.model_folder import damaged_model
from harness.understanding.models.training import held_out_figures
from harness.understanding.models.votes import selected_labels, sets_of
from harness.understanding.tag_chunks import OUTSIDE

T = TypeVar("T")
ENCODER = "encoder"
SORTED_BATCHES = 32
"""Number of batches whose utterances are sorted by length together."""
IGNORED = -100
"""The target of pieces that do not begin a word. torch's cross-entropy ignores it by default."""


@frozen
class EncodedText:
    """A text as pieces. first_pieces: index of each word's first piece; −1 if the word was cut off or has no piece."""

    pieces: tuple[int, ...]
    first_pieces: tuple[int, ...]

    @property
    def lost_words(self) -> int:
        """Number of words without a first piece."""
        return sum(index < 0 for index in self.first_pieces)


class JointNetwork:
    """Encoder and heads.

    - intents, tags: names of the columns of the two heads.
    - longest: most pieces of a text.
    """

    def __init__(self, encoder: Encoder, intents: Sequence[str], tags: Sequence[str], longest: int) -> None:
        torch = torch_module()
        self.encoder = encoder
        self.intents = tuple(intents)
        self.tags = tuple(tags)
        self.longest = min(longest, encoder.pieces)
        # A head needs at least one column, even if it is never used.
        self.intent_head = torch.nn.Linear(encoder.width, max(1, len(intents)))
        self.slot_head = torch.nn.Linear(encoder.width, max(1, len(tags)))
        self.all = torch.nn.ModuleDict({ENCODER: encoder.model, "intents": self.intent_head, "slots": self.slot_head})

    @property
    def heads(self) -> dict[str, Any]:
        """The weights of the heads, by name."""
        return {key: value for key, value in self.all.state_dict().items() if not key.startswith(f"{ENCODER}.")}

    def set_heads(self, weights: dict[str, Any]) -> None:
        """Sets the weights of the heads. Raises ValueError if they do not fit."""
        torch = torch_module()
        for key, head in self.heads.items():
            value = weights.get(key)
            if value is None or value.shape != head.shape or not bool(torch.isfinite(value).all()):
                raise ValueError(f"the weights {key} are missing, do not fit, or are not finite")
            head.copy_(value)

    def init_intent_bias(self, shares: Any) -> None:
        """Initialises the biases of intents.

        shares: share of the training utterances with each intent, shape (intents,).
        """
        torch = torch_module()
        with torch.no_grad():
            self.intent_head.bias.copy_(torch.logit(shares, eps=1e-4))

    def encode(self, texts: Sequence[tuple[str, ...]]) -> list[EncodedText]:
        """The texts as pieces. Words without pieces, or beyond the longest text, have no first piece."""
        if not texts:
            return []
        words = [[word.encode("utf-8", "replace").decode("utf-8") for word in text] or [""] for text in texts]
        encoded = self.encoder.tokenizer(
            words, is_split_into_words=True, truncation=True, max_length=self.longest, return_attention_mask=False
        )
        encodings = []
        for row, text in enumerate(texts):
            first_pieces = [-1] * len(text)
            for index, word in reversed(list(enumerate(encoded.word_ids(row)))):
                if word is not None and word < len(first_pieces):
                    first_pieces[word] = index
            encodings.append(EncodedText(tuple(encoded["input_ids"][row]), tuple(first_pieces)))
        return encodings

    def forward(self, batch: Sequence[EncodedText]) -> tuple[Any, Any]:
        """The logits of intents, shape (texts, intents), and those of tags, shape (texts, pieces, tags)."""
        torch = torch_module()
        width = max(1, *(len(encoding.pieces) for encoding in batch))
        padding = self.encoder.tokenizer.pad_token_id or 0
        pieces = torch.full((len(batch), width), padding, dtype=torch.long)
        mask = torch.zeros((len(batch), width), dtype=torch.long)
        for row, encoding in enumerate(batch):
            pieces[row, : len(encoding.pieces)] = torch.tensor(encoding.pieces, dtype=torch.long)
            mask[row, : max(1, len(encoding.pieces))] = 1
        states = self.encoder.model(input_ids=pieces, attention_mask=mask).last_hidden_state
        return self.intent_head(states[:, 0]), self.slot_head(states)

    def loss(self, batch: Sequence[EncodedText], intents: Any, tags: Sequence[Sequence[int]]) -> Any:
        """The sum of the binary cross-entropy of intents and the cross-entropy of tags.

        - intents: 0 or 1, shape (texts, intents).
        - tags: for each text, the column of each word's tag, or IGNORED.
        """
        torch = torch_module()
        intent_logits, tag_logits = self.forward(batch)
        targets = torch.full(tag_logits.shape[:2], IGNORED, dtype=torch.long)
        for row, (encoding, columns) in enumerate(zip(batch, tags, strict=True)):
            for index, column in zip(encoding.first_pieces, columns, strict=True):
                if index >= 0:
                    targets[row, index] = column
        total = tag_logits.sum() * 0  # a zero with a gradient, if neither intents nor tags can be learnt
        if self.intents:
            # Summed over labels. With a mean, the weight of intents against slots would fall with more labels.
            intent_loss = torch.nn.functional.binary_cross_entropy_with_logits(intent_logits, intents, reduction="sum")
            total = total + intent_loss / len(batch)
        if self.tags and bool((targets != IGNORED).any()):
            total = total + torch.nn.functional.cross_entropy(
                tag_logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED
            )
        return total


def batches(lengths: Sequence[int], size: int, random: Random) -> Iterator[list[int]]:
    """All rows once, in random batches of similar length."""
    order = shuffled(range(len(lengths)), random)
    for start in range(0, len(order), size * SORTED_BATCHES):
        rows = sorted(order[start : start + size * SORTED_BATCHES], key=lambda row: lengths[row])
        yield from shuffled([rows[first : first + size] for first in range(0, len(rows), size)], random)


def shuffled(items: Iterable[T], random: Random) -> list[T]:
    """A random order that is the same in every version of Python."""
    return sorted(items, key=lambda _: random.random())


NAMES_FILE = "joint.json"
HEADS_FILE = "heads.safetensors"
WARM_UP = 0.1
"""Share of the steps in which the learning rate rises. Then it falls to zero."""
DECAY = 0.01
"""The weight decay, which is PyTorch's default for AdamW."""

EPOCHS = Setting(
    "epochs", SettingKind.WHOLE, "8", "maximum number of passes over the training utterances", low=1, high=1000
)
RATE = Setting("learning-rate", SettingKind.NUMBER, "3e-4", "peak learning rate of AdamW", low=1e-8, high=1)
BATCH = Setting("batch", SettingKind.WHOLE, "16", "utterances per step", low=1, high=4096)
LENGTH = Setting(
    "max-length",
    SettingKind.WHOLE,
    "64",
    "maximum number of word pieces per utterance; words beyond this limit are tagged O",
    low=4,
    high=512,
)
PATIENCE = Setting(
    "patience", SettingKind.WHOLE, "2", "epochs without better held-out results before training stops", low=1, high=1000
)  # fmt: skip


class TransformerUnderstander:
    """The plug-in `transformer`. notes: lines for users on words that were cut off in training."""

    settings: ClassVar[tuple[Setting, ...]] = (CHECKPOINT, EPOCHS, RATE, BATCH, LENGTH, PATIENCE, THREADS)

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None:
        torch_module()
        self._settings = {setting.name: setting.default for setting in self.settings}
        self._settings |= checked_settings(self.settings, settings.items(), "transformer")
        self._seed = seed
        self._network: JointNetwork | None = None
        self._may_be_empty = True
        self.notes: tuple[str, ...] = ()

    def fit(self, train: Sequence[Utterance], held_out: Sequence[Utterance], tell: Callable[[str], None]) -> None:
        """Trains from the checkpoint. Keeps the epoch that is best on the held-out utterances, else the last one."""
        if not train:
            raise ValueError("there are no training utterances")
        torch = torch_module()
        intents = sorted({label for utterance in train for label in utterance.intents or ()})
        tags = [OUTSIDE, *sorted({tag for utterance in train for tag in utterance.tags or ()} - {OUTSIDE})]
        with self._isolated_torch(torch):
            encoder = load_encoder(self._settings[CHECKPOINT.name])
            network = JointNetwork(encoder, intents, tags, int(self._settings[LENGTH.name]))
            self._network = network
            self._may_be_empty = not all(utterance.intents for utterance in train)
            encoded = network.encode([utterance.words for utterance in train])
            lost_words = sum(encoding.lost_words for encoding in encoded)
            cut_utterances = sum(encoding.lost_words > 0 for encoding in encoded)
            problem = f"{lost_words} words of {cut_utterances} training utterances were cut off, or have no word pieces"
            self.notes = (problem,) if lost_words else ()
            tell(
                f"{len(intents)} intents, {len(tags)} tags, {len(train):,} utterances"
                + "".join(f"; {note}" for note in self.notes)
            )
            self._learn(torch, network, train, encoded, held_out, tell)

    def predict(self, words: Sequence[tuple[str, ...]]) -> list[Prediction]:
        network = self._network
        if network is None:
            raise ValueError("the understander has not been trained")
        torch = torch_module()
        predictions: list[Prediction | None] = [None] * len(words)
        encoded = network.encode(words)
        order = sorted(range(len(words)), key=lambda row: len(encoded[row].pieces))
        network.all.eval()
        with self._torch_threads(torch), torch.inference_mode():
            for start in range(0, len(order), 32):
                rows = order[start : start + 32]
                intent_logits, tag_logits = network.forward([encoded[row] for row in rows])
                scores, best = torch.sigmoid(intent_logits).tolist(), tag_logits.argmax(-1).tolist()
                for row, score, columns in zip(rows, scores, best, strict=True):
                    predictions[row] = _prediction(network, encoded[row], score, columns, self._may_be_empty)
        return [prediction for prediction in predictions if prediction is not None]

    def save(self, folder: Path) -> None:
        network = self._network
        if network is None:
            raise ValueError("the understander has not been trained")
        safetensors: Any = importlib.import_module("safetensors.torch")
        network.encoder.model.save_pretrained(folder / ENCODER, safe_serialization=True)
        network.encoder.tokenizer.save_pretrained(folder / ENCODER)
        safetensors.save_file(network.heads, str(folder / HEADS_FILE))
        content = {"settings": self._settings, "seed": self._seed, "intents": network.intents, "tags": network.tags,
                   "may_be_empty": self._may_be_empty}  # fmt: skip
        (folder / NAMES_FILE).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        path = folder / NAMES_FILE
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            settings = {str(name): str(value) for name, value in content["settings"].items()}
            understander = cls(settings, seed=int(content["seed"]))
            understander._may_be_empty = bool(content.get("may_be_empty", True))
            intents, tags = _texts(content["intents"]), _texts(content["tags"])
            encoder = load_encoder(str(folder / ENCODER))
            network = JointNetwork(encoder, intents, tags, int(understander._settings[LENGTH.name]))
            path = folder / HEADS_FILE
            safetensors: Any = importlib.import_module("safetensors.torch")
            network.set_heads(safetensors.load(path.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise damaged_model(path, error) from error
        except Exception as error:
            if type(error).__name__ == "SafetensorError":
                raise damaged_model(path, error) from error
            raise
        understander._network = network
        return understander

    @contextmanager
    def _isolated_torch(self, torch: Any) -> Iterator[None]:
        """Uses its own threads and random numbers, and restores those of the process."""
        with self._torch_threads(torch), torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            yield

    @contextmanager
    def _torch_threads(self, torch: Any) -> Iterator[None]:
        """Sets the number of threads, which PyTorch keeps for the process, and restores it."""
        threads = torch.get_num_threads()
        torch.set_num_threads(int(self._settings[THREADS.name]))
        try:
            yield
        finally:
            torch.set_num_threads(threads)

    def _learn(
        self, torch: Any, network: JointNetwork, train: Sequence[Utterance], encoded: Sequence[EncodedText],
        held_out: Sequence[Utterance], tell: Callable[[str], None],
    ) -> None:  # fmt: skip
        """Trains the network, and reports each epoch. encoded: the pieces of the training utterances."""
        size, epochs = int(self._settings[BATCH.name]), int(self._settings[EPOCHS.name])
        column = {tag: number for number, tag in enumerate(network.tags)}
        tags = [
            [column[tag] for tag in utterance.tags] if utterance.tags is not None else [IGNORED] * len(utterance.words)
            for utterance in train
        ]
        targets = torch.zeros((len(train), max(1, len(network.intents))))
        for row, utterance in enumerate(train):
            for label in utterance.intents or ():
                targets[row, network.intents.index(label)] = 1
        network.init_intent_bias(targets.mean(0))
        steps = epochs * math.ceil(len(train) / size)
        optimiser = torch.optim.AdamW(network.all.parameters(), lr=float(self._settings[RATE.name]), weight_decay=DECAY)
        warm_up_steps = max(1, round(WARM_UP * steps))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser,
            lambda step: min((step + 1) / warm_up_steps, max(0.0, (steps - step) / max(1, steps - warm_up_steps))),
        )
        random, lengths = Random(self._seed), [len(encoding.pieces) for encoding in encoded]

        def loss(rows: Sequence[int]) -> Any:
            return network.loss([encoded[row] for row in rows], targets[rows], [tags[row] for row in rows])

        def measure(epoch: int, total: float) -> float | None:
            progress = f"epoch {epoch} of {epochs}: loss {fixed(total / len(train), 4)}"
            if not held_out:
                tell(progress)
                return None
            scores = held_out_figures(held_out, self.predict([utterance.words for utterance in held_out]))
            result = (scores.intents.exact.value or 0.0) + (scores.slots.micro.f1 or 0.0)
            tell(f"{progress}, held-out EMR + slot F1 {fixed(result, 4)}")
            return result

        learn(
            network.all, optimiser, loss, lambda: batches(lengths, size, random), measure,
            epochs=epochs, patience=int(self._settings[PATIENCE.name]), schedule=schedule,
        )  # fmt: skip


def _prediction(
    network: JointNetwork, encoded: EncodedText, scores: list[float], columns: list[int], may_be_empty: bool
) -> Prediction:
    pairs = tuple(zip(network.intents, scores, strict=False))  # a head has a column even without intents
    tags = tuple(network.tags[columns[index]] if index >= 0 else OUTSIDE for index in encoded.first_pieces)
    selected = selected_labels(np.array([[score for _, score in pairs]]), may_be_empty=may_be_empty)
    (intents,) = sets_of(selected, network.intents)
    return Prediction(intents if encoded.first_pieces else (), tags, pairs)  # a text without words has no intent


def _texts(names: Any) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("a name is not a string")
    return names
