"""An intent classifier on a Transformer encoder: sigmoid on the first piece's last hidden state.

The encoder is a checkpoint in a local folder, or the one in a package. Uses the CPU only, and no network.
Needs the extra `transformer`. Source: the MEDIA paper, section 3.1.2.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from harness.model.offline import Setting, SettingKind
from harness.understanding.models.encoder import CHECKPOINT, THREADS, Encoder, learn, load_encoder, torch_module

RATE = Setting(
    "learning-rate",
    SettingKind.NUMBER,
    "0.0001",
    "learning rate of AdamW; the original study used 1e-5",
    low=1e-7,
    high=1,
)
BATCH = Setting("batch", SettingKind.WHOLE, "16", "utterances per step", low=1, high=1024)
DROPOUT = Setting(
    "dropout",
    SettingKind.NUMBER,
    "0.1",
    "dropout rate of the encoder and of the classifier on top of it",
    low=0,
    high=0.9,
)
EPOCHS = Setting("epochs", SettingKind.WHOLE, "20", "maximum number of epochs per training", low=1, high=10_000)
PATIENCE = Setting(
    "patience", SettingKind.WHOLE, "3", "epochs without better results before training stops",
    low=1, high=10_000,
)  # fmt: skip
OWN_SHARE = Setting(
    "own-held-out", SettingKind.NUMBER, "0.1", "share of each sample kept for validation; 0: use the training loss",
    low=0, high=0.5,
)  # fmt: skip
PREDICT_BATCH = 64


class TransformerClassifier:
    """An `IntentClassifier`: binary cross-entropy on every label, AdamW, early stopping.

    Another call of `fit` continues training, unless the labels differ. The first call reads the checkpoint. It raises
    InputError, with the folder, if that is not a checkpoint.
    """

    settings: ClassVar[tuple[Setting, ...]] = (CHECKPOINT, RATE, BATCH, DROPOUT, EPOCHS, PATIENCE, OWN_SHARE, THREADS)

    def __init__(self, settings: Mapping[str, str], *, seed: int) -> None:
        torch_module()
        values = {setting.name: settings.get(setting.name, setting.default) for setting in self.settings}
        self._checkpoint = values[CHECKPOINT.name]
        self._rate = float(values[RATE.name])
        self._dropout = float(values[DROPOUT.name])
        self._share = float(values[OWN_SHARE.name])
        self._batch = int(values[BATCH.name])
        self._epochs = int(values[EPOCHS.name])
        self._patience = int(values[PATIENCE.name])
        self._threads = int(values[THREADS.name])
        self._random = random.Random(seed)
        self._labels: tuple[str, ...] = ()
        self._encoder: Encoder | None = None
        self._network: Any = None
        self._label_means: npt.NDArray[np.float64] = np.zeros(0)

    def fit(self, texts: Sequence[str], intents: Sequence[tuple[str, ...]], labels: Sequence[str]) -> None:
        """Trains until the result on its own held-out share stops rising. ValueError without texts."""
        if not texts or len(texts) != len(intents):
            raise ValueError(f"{len(texts)} texts and {len(intents)} sets of labels")
        torch = self._torch()
        targets = np.array([[label in intent_set for label in labels] for intent_set in intents], dtype=np.float32)
        # torch has one generator per process. Seed it here, so that earlier draws make no difference.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._random.getrandbits(31))
            if self._network is None or tuple(labels) != self._labels:
                self._make_network(tuple(labels))
            self._label_means = targets.mean(axis=0).astype(np.float64)
            train, held_out = self._split_indices(len(texts))
            self._learn(torch, list(texts), torch.from_numpy(targets), train, held_out)

    def probabilities(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """The probability of each label for each text, shape (texts, labels). Raises ValueError before `fit`.

        It is 0 for a label of no training text, and 1 for a label of all.
        """
        if self._network is None:
            raise ValueError("the classifier has not been trained")
        torch = self._torch()
        probabilities = np.zeros((len(texts), len(self._labels)))
        # Texts of similar length share a batch, to reduce padding.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        self._network.eval()
        with torch.inference_mode():
            for start in range(0, len(order), PREDICT_BATCH):
                indices = order[start : start + PREDICT_BATCH]
                probabilities[indices] = (
                    torch.sigmoid(self._log_odds([texts[index] for index in indices])).double().numpy()
                )
        probabilities[:, self._label_means == 0] = 0
        probabilities[:, self._label_means == 1] = 1
        return probabilities

    def _make_network(self, labels: tuple[str, ...]) -> None:
        torch = self._torch()
        self._encoder = load_encoder(self._checkpoint, dropout=self._dropout)
        head = torch.nn.Sequential(torch.nn.Dropout(self._dropout), torch.nn.Linear(self._encoder.width, len(labels)))
        self._network = torch.nn.ModuleDict({"encoder": self._encoder.model, "head": head})
        self._labels = labels

    def _torch(self) -> Any:
        torch = torch_module()
        torch.set_num_threads(self._threads)
        return torch

    def _split_indices(self, number: int) -> tuple[list[int], list[int]]:
        """Indices of the texts for training, and of those for validation. number: number of texts."""
        indices = list(range(number))
        self._random.shuffle(indices)
        count = round(self._share * number)
        return indices[count:], indices[:count]

    def _learn(self, torch: Any, texts: Sequence[str], targets: Any, train: list[int], held_out: list[int]) -> None:
        loss_of = torch.nn.BCEWithLogitsLoss()

        def loss(indices: Sequence[int]) -> Any:
            return loss_of(self._log_odds([texts[index] for index in indices]), targets[indices])

        def batches() -> Iterator[list[int]]:
            self._random.shuffle(train)
            return (train[start : start + self._batch] for start in range(0, len(train), self._batch))

        def measure(epoch: int, total: float) -> tuple[float, float]:
            return self._measure(torch, texts, targets, held_out) if held_out else (0.0, -total)

        optimiser = torch.optim.AdamW(self._network.parameters(), lr=self._rate)
        learn(self._network, optimiser, loss, batches, measure, epochs=self._epochs, patience=self._patience)

    def _measure(self, torch: Any, texts: Sequence[str], targets: Any, held_out: Sequence[int]) -> tuple[float, float]:
        """The result of an epoch: the number of texts whose set of labels is exact, then the negative loss."""
        self._network.eval()
        exact, loss = 0, 0.0
        with torch.inference_mode():
            for start in range(0, len(held_out), PREDICT_BATCH):
                indices = list(held_out[start : start + PREDICT_BATCH])
                log_odds = self._log_odds([texts[index] for index in indices])
                exact += int(((log_odds > 0) == (targets[indices] > 0)).all(dim=1).sum())
                loss += float(
                    torch.nn.functional.binary_cross_entropy_with_logits(log_odds, targets[indices], reduction="sum")
                )
        return float(exact), -loss

    def _log_odds(self, texts: Sequence[str]) -> Any:
        """The log odds of each label for each text, shape (texts, labels)."""
        assert self._encoder is not None
        batch = self._encoder.tokenizer(
            list(texts), padding=True, truncation=True, max_length=self._encoder.pieces, return_tensors="pt"
        )
        return self._network["head"](self._network["encoder"](**batch).last_hidden_state[:, 0])
