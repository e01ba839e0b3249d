"""Small data to learn from, and a tiny Transformer checkpoint with random weights."""

from __future__ import annotations

from pathlib import Path

from harness.model.understanding import Utterance
from harness.understanding.files.grammar_file import load_grammar
from harness.understanding.grammar import generate

TEA = """\
grammar: tea
habits: {two_intents: 0.15, connectives: [and then]}
values:
  kind: [green, black, white, mint, lemon]
  cups: {spoken: number, from: 1, to: 12}
  clock: {spoken: time, from: "06:00", to: "20:00", step: 30}
intents:
  - {intent: brew, weight: 3, say: ["make {cups} cups of {kind} tea", "brew some {kind} tea [at {time-start=clock}]"]}
  - {intent: stop, say: ["stop the kettle (at|by|before) {time-end=clock}", "no more {kind} tea"]}
  - {intent: ask, say: ["(is|are) there {cups} bags of {kind} left", "how much {kind} tea is left"]}
"""

Learned = tuple[list[Utterance], list[Utterance]]
"""What is learned, and what it is tested with."""


def silent(line: str) -> None:
    """Takes a line of progress, which a test does not look at."""


def tea(folder: Path, train: int = 120, test: int = 40, seed: int = 1) -> Learned:
    """Utterances to learn from, and others."""
    path = folder / "tea.yaml"
    path.write_text(TEA, encoding="utf-8")
    corpus = generate((load_grammar(path),), seed, {"train": train, "test": test})
    return list(corpus.utterances[:train]), list(corpus.utterances[train:])


def tiny_checkpoint(folder: Path, words: list[str]) -> Path:
    """A BERT of 2 layers and 32 wide, with random weights, and a tokenizer that knows these words."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    signs = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: number for number, word in enumerate([*signs, *sorted(set(words)), "##s", "##y"])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_max_length=64,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = BertModel(
            BertConfig(
                vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                intermediate_size=64, max_position_embeddings=64,
            ),
            add_pooling_layer=False,
        )  # fmt: skip
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder
