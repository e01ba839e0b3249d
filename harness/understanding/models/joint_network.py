"""The joint network: an encoder, a sigmoid head on its first piece, and a softmax head on the first piece of each word.

Source: seed MEDIA, 4.1, after Chen et al. 2019 (JointBERT). torch is imported when it is used.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeVar

from harness.understanding.models.encoder import Encoder, demand_torch

T = TypeVar("T")
RUN = 32
"""Batches whose utterances are put in order of their lengths together."""
IGNORED = -100
"""The target of pieces that no word begins with, as torch's cross-entropy has it."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as its pieces. firsts: place of the first piece of each word, -1 for one that was cut off or has none."""

    pieces: tuple[int, ...]
    firsts: tuple[int, ...]

    @property
    def lost(self) -> int:
        return sum(place < 0 for place in self.firsts)


class JointNetwork:
    """Encoder and heads. intents, tags: what the columns of the heads stand for."""

    def __init__(self, encoder: Encoder, intents: Sequence[str], tags: Sequence[str], longest: int) -> None:
        torch = torch_module()
        self.encoder = encoder
        self.intents = tuple(intents)
        self.tags = tuple(tags)
        self.longest = min(longest, encoder.pieces)
        # A head without columns cannot be made, and is never asked.
        self.intent_head = torch.nn.Linear(encoder.width, max(1, len(intents)))
        self.slot_head = torch.nn.Linear(encoder.width, max(1, len(tags)))

    @property
    def heads(self) -> dict[str, Any]:
        """Weights of the heads by name."""
        return {
            f"{name}.{key}": value
            for name, head in (("intents", self.intent_head), ("slots", self.slot_head))
            for key, value in head.state_dict().items()
        }

    def take_heads(self, weights: dict[str, Any]) -> None:
        """ValueError where they do not fit."""
        torch = torch_module()
        for name, head in (("intents", self.intent_head), ("slots", self.slot_head)):
            wanted = head.state_dict()
            found = {key: weights.get(f"{name}.{key}") for key in wanted}
            for key, value in found.items():
                if value is None or value.shape != wanted[key].shape or not bool(torch.isfinite(value).all()):
                    raise ValueError(f"the weights {name}.{key} are not there, do not fit, or are no numbers")
            head.load_state_dict(found)

    def modules(self) -> list[Any]:
        return [self.encoder.model, self.intent_head, self.slot_head]

    def parameters(self) -> list[Any]:
        return [one for module in self.modules() for one in module.parameters()]

    def begin_with_shares(self, shares: Any) -> None:
        """Lets the intents begin with their shares in the training utterances, shape (intents,)."""
        torch = torch_module()
        with torch.no_grad():
            self.intent_head.bias.copy_(torch.logit(shares, eps=1e-4))

    def encode(self, texts: Sequence[tuple[str, ...]]) -> list[Encoded]:
        """Words that no piece stands for, or that lie beyond the longest text, have no first piece."""
        if not texts:
            return []
        written = [[word.encode("utf-8", "replace").decode("utf-8") for word in text] or [""] for text in texts]
        made = self.encoder.tokenizer(
            written, is_split_into_words=True, truncation=True, max_length=self.longest, return_attention_mask=False
        )
        found = []
        for row, text in enumerate(texts):
            firsts = [-1] * len(text)
            for place, word in reversed(list(enumerate(made.word_ids(row)))):
                if word is not None and word < len(firsts):
                    firsts[word] = place
            found.append(Encoded(tuple(made["input_ids"][row]), tuple(firsts)))
        return found

    def forward(self, batch: Sequence[Encoded]) -> tuple[Any, Any]:
        """Logits of intents, shape (texts, intents), and of the tags of pieces, (texts, pieces, tags)."""
        torch = torch_module()
        width = max(1, *(len(one.pieces) for one in batch))
        padding = self.encoder.tokenizer.pad_token_id or 0
        pieces = torch.full((len(batch), width), padding, dtype=torch.long)
        mask = torch.zeros((len(batch), width), dtype=torch.long)
        for row, one in enumerate(batch):
            pieces[row, : len(one.pieces)] = torch.tensor(one.pieces, dtype=torch.long)
            mask[row, : max(1, len(one.pieces))] = 1
        states = self.encoder.model(input_ids=pieces, attention_mask=mask).last_hidden_state
        return self.intent_head(states[:, 0]), self.slot_head(states)

    def loss(self, batch: Sequence[Encoded], intents: Any, tags: Sequence[Sequence[int]]) -> Any:
        """Binary cross-entropy of intents and cross-entropy of tags, summed. intents: shape (texts, intents), 0 or 1.

        tags: columns of the words' tags, or IGNORED.
        """
        torch = torch_module()
        of_intents, of_tags = self.forward(batch)
        targets = torch.full(of_tags.shape[:2], IGNORED, dtype=torch.long)
        for row, (one, columns) in enumerate(zip(batch, tags, strict=True)):
            for place, column in zip(one.firsts, columns, strict=True):
                if place >= 0:
                    targets[row, place] = column
        total = of_tags.sum() * 0
        if self.intents:
            # Summed over labels: their mean would weigh less the more labels there are, and slots would drown it.
            of_labels = torch.nn.functional.binary_cross_entropy_with_logits(of_intents, intents, reduction="sum")
            total = total + of_labels / len(batch)
        if self.tags and bool((targets != IGNORED).any()):
            total = total + torch.nn.functional.cross_entropy(
                of_tags.flatten(0, 1), targets.flatten(), ignore_index=IGNORED
            )
        return total


def batches(lengths: Sequence[int], size: int, random: Random) -> Iterator[list[int]]:
    """All rows once, in random batches of about the same length."""
    order = shuffled(range(len(lengths)), random)
    for start in range(0, len(order), size * RUN):
        rows = sorted(order[start : start + size * RUN], key=lambda row: lengths[row])
        yield from shuffled([rows[at : at + size] for at in range(0, len(rows), size)], random)


def shuffled(items: Iterable[T], random: Random) -> list[T]:
    """In an order that Python promises to keep from version to version."""
    return sorted(items, key=lambda _: random.random())


def torch_module() -> Any:
    """torch; PluginError where it is not installed."""
    demand_torch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("torch")
