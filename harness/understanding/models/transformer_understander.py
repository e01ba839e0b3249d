"""The seed's joint model of intents and slots over any local Transformer checkpoint; by default the carried MiniLM.

Sigmoid on the first piece for intents (threshold 0.5), softmax on the first piece of each word for slots, the sum of
both losses. Source: seed MEDIA, 4.1. `pip install 'voice-harness[transformer]'`
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Self

import numpy as np

from harness.base.plugins import checked_settings
from harness.model.errors import InputError, Place
from harness.model.offline import Setting, SettingKind
from harness.model.understanding import Prediction, Utterance
from harness.understanding.models.encoder import CHECKPOINT, THREADS, demand_torch, load_encoder
from harness.understanding.models.held_out import held_out_figures
from harness.understanding.models.joint_network import IGNORED, Encoded, JointNetwork, batches, torch_module
from harness.understanding.models.votes import given_by, sets_of

OUTSIDE = "O"
NAMES_FILE = "joint.json"
HEADS_FILE = "heads.safetensors"
ENCODER = "encoder"
WARM_UP = 0.1
"""Share of the steps in which the learning rate rises; then it falls to nothing."""
DECAY = 0.01
LONGEST_STEP = 1.0
"""Norm to which gradients are cut."""

EPOCHS = Setting("epochs", SettingKind.WHOLE, "8", "most passes over the training utterances", low=1, high=1000)
RATE = Setting("learning-rate", SettingKind.NUMBER, "3e-4", "of AdamW, at its highest", low=1e-8, high=1)
BATCH = Setting("batch", SettingKind.WHOLE, "16", "utterances of a step", low=1, high=4096)
LENGTH = Setting("max-length", SettingKind.WHOLE, "64", "pieces of an utterance; the rest is tagged O", low=4, high=512)
PATIENCE = Setting(
    "patience", SettingKind.WHOLE, "2", "epochs without a better held-out figure, then it ends", low=1, high=1000
)  # fmt: skip


class TransformerUnderstander:
    """Plug-in `transformer`. notes: of words that were cut off in training, for people."""

    settings: ClassVar[tuple[Setting, ...]] = (CHECKPOINT, EPOCHS, RATE, BATCH, LENGTH, PATIENCE, THREADS)

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None:
        demand_torch()
        self._settings = {one.name: one.default for one in self.settings}
        self._settings |= checked_settings(self.settings, settings.items(), "transformer")
        self._seed = seed
        self._network: JointNetwork | None = None
        self._may_be_empty = True
        self.notes: tuple[str, ...] = ()

    def fit(self, train: Sequence[Utterance], held_out: Sequence[Utterance], tell: Callable[[str], None]) -> None:
        """Learns anew from the checkpoint; keeps the epoch that is best on the held-out utterances, else the last."""
        if not train:
            raise ValueError("there is nothing to learn from")
        torch = torch_module()
        intents = sorted({label for one in train for label in one.intents or ()})
        tags = [OUTSIDE, *sorted({tag for one in train for tag in one.tags or ()} - {OUTSIDE})]
        with self._alone(torch):
            encoder = load_encoder(self._settings[CHECKPOINT.name])
            network = JointNetwork(encoder, intents, tags, int(self._settings[LENGTH.name]))
            self._network = network
            self._may_be_empty = not all(one.intents for one in train)
            encoded = network.encode([one.words for one in train])
            lost, cut = sum(one.lost for one in encoded), sum(bool(one.lost) for one in encoded)
            self.notes = (f"{lost} words of {cut} training utterances were cut off, or have no pieces",) if lost else ()
            tell(
                f"{len(intents)} intents, {len(tags)} tags, {len(train):,} utterances"
                + "".join(f"; {one}" for one in self.notes)
            )
            self._learn(torch, network, train, encoded, held_out, tell)

    def predict(self, words: Sequence[tuple[str, ...]]) -> list[Prediction]:
        network = self._network
        if network is None:
            raise ValueError("it has learned nothing yet")
        torch = torch_module()
        found: list[Prediction | None] = [None] * len(words)
        encoded = network.encode(words)
        order = sorted(range(len(words)), key=lambda row: len(encoded[row].pieces))
        for module in network.modules():
            module.eval()
        threads = torch.get_num_threads()
        torch.set_num_threads(int(self._settings[THREADS.name]))
        try:
            with torch.inference_mode():
                for start in range(0, len(order), 32):
                    rows = order[start : start + 32]
                    of_intents, of_tags = network.forward([encoded[row] for row in rows])
                    scores, best = torch.sigmoid(of_intents).tolist(), of_tags.argmax(-1).tolist()
                    for row, score, columns in zip(rows, scores, best, strict=True):
                        found[row] = _prediction(network, encoded[row], score, columns, self._may_be_empty)
        finally:
            torch.set_num_threads(threads)
        return [one for one in found if one is not None]

    def save(self, folder: Path) -> None:
        network = self._network
        if network is None:
            raise ValueError("it has learned nothing yet")
        torch_module()
        safetensors: Any = importlib.import_module("safetensors.torch")
        network.encoder.model.save_pretrained(folder / ENCODER, safe_serialization=True)
        network.encoder.tokenizer.save_pretrained(folder / ENCODER)
        safetensors.save_file(network.heads, str(folder / HEADS_FILE))
        written = {"settings": self._settings, "seed": self._seed, "intents": network.intents, "tags": network.tags,
                   "may_be_empty": self._may_be_empty}  # fmt: skip
        (folder / NAMES_FILE).write_text(json.dumps(written, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> Self:
        path = folder / NAMES_FILE
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            settings = {str(name): str(value) for name, value in found["settings"].items()}
            made = cls(settings, seed=int(found["seed"]))
            made._may_be_empty = bool(found.get("may_be_empty", True))
            intents, tags = _texts(found["intents"]), _texts(found["tags"])
            torch_module()
            encoder = load_encoder(str(folder / ENCODER))
            network = JointNetwork(encoder, intents, tags, int(made._settings[LENGTH.name]))
            path = folder / HEADS_FILE
            safetensors: Any = importlib.import_module("safetensors.torch")
            network.take_heads(safetensors.load(path.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise _damaged(path, error) from error
        except Exception as error:
            if type(error).__name__ == "SafetensorError":
                raise _damaged(path, error) from error
            raise
        made._network = network
        return made

    @contextmanager
    def _alone(self, torch: Any) -> Iterator[None]:
        """With its own threads and random numbers; those of the process are as before afterwards."""
        threads = torch.get_num_threads()
        torch.set_num_threads(int(self._settings[THREADS.name]))
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self._seed)
                yield
        finally:
            torch.set_num_threads(threads)

    def _learn(
        self, torch: Any, network: JointNetwork, train: Sequence[Utterance], encoded: Sequence[Encoded],
        held_out: Sequence[Utterance], tell: Callable[[str], None],
    ) -> None:  # fmt: skip
        size, epochs = int(self._settings[BATCH.name]), int(self._settings[EPOCHS.name])
        column = {tag: number for number, tag in enumerate(network.tags)}
        tags = [
            [column[tag] for tag in one.tags] if one.tags is not None else [IGNORED] * len(one.words) for one in train
        ]
        targets = torch.zeros((len(train), max(1, len(network.intents))))
        for row, one in enumerate(train):
            for label in one.intents or ():
                targets[row, network.intents.index(label)] = 1
        network.begin_with_shares(targets.mean(0))
        steps = epochs * math.ceil(len(train) / size)
        optimiser = torch.optim.AdamW(network.parameters(), lr=float(self._settings[RATE.name]), weight_decay=DECAY)
        rising = max(1, round(WARM_UP * steps))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: min((step + 1) / rising, max(0.0, (steps - step) / max(1, steps - rising)))
        )
        random, lengths = Random(self._seed), [len(one.pieces) for one in encoded]
        best, kept, waited = -1.0, None, 0
        for epoch in range(1, epochs + 1):
            for module in network.modules():
                module.train()
            summed = 0.0
            for rows in batches(lengths, size, random):
                optimiser.zero_grad()
                loss = network.loss([encoded[row] for row in rows], targets[rows], [tags[row] for row in rows])
                loss.backward()
                torch.nn.utils.clip_grad_norm_(network.parameters(), LONGEST_STEP)
                optimiser.step()
                schedule.step()
                summed += float(loss.detach()) * len(rows)
            if not math.isfinite(summed):
                raise InputError("training came to numbers without end", remedy=f"Set a smaller {RATE.name}")
            said = f"epoch {epoch} of {epochs}: loss {summed / len(train):.4f}"
            if not held_out:
                tell(said)
                continue
            figure = self._figure(held_out)
            tell(f"{said}, held-out EMR + slot F1 {figure:.4f}")
            if figure > best:
                best, kept, waited = figure, [_copied(one) for one in network.modules()], 0
            else:
                waited += 1
                if waited >= int(self._settings[PATIENCE.name]):
                    break
        if kept is not None:
            for module, state in zip(network.modules(), kept, strict=True):
                module.load_state_dict(state)

    def _figure(self, held_out: Sequence[Utterance]) -> float:
        found = held_out_figures(held_out, self.predict([one.words for one in held_out]))
        return (found.intents.exact.value or 0.0) + (found.slots.micro.f1 or 0.0)


def _prediction(
    network: JointNetwork, encoded: Encoded, scores: list[float], columns: list[int], may_be_empty: bool
) -> Prediction:
    pairs = tuple(zip(network.intents, scores, strict=False))  # a head has a column even where there is no intent
    tags = tuple(network.tags[columns[place]] if place >= 0 else OUTSIDE for place in encoded.firsts)
    given = given_by(np.array([[score for _, score in pairs]]), may_be_empty=may_be_empty)
    (intents,) = sets_of(given, network.intents)
    return Prediction(intents if encoded.firsts else (), tags, pairs)  # who said nothing has meant nothing


def _copied(module: Any) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def _texts(written: Any) -> list[str]:
    if not isinstance(written, list) or not all(isinstance(one, str) for one in written):
        raise ValueError("names are no texts")
    return written


def _damaged(path: Path, error: Exception) -> InputError:
    what = f"the model is damaged: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    return InputError(what, place=Place(str(path)), remedy="Take it from a copy, or train it anew")
