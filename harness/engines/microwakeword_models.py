"""Models of microWakeWord: those of its package, and any .tflite file with or without its manifest."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.model.errors import InputError, PluginError, did_you_mean

_MANIFEST = "https://esphome.io/components/micro_wake_word"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What stands beside a model. None: it does not say."""

    phrase: str
    cutoff: float | None
    window: int | None


@dataclass(frozen=True, slots=True)
class ModelFile:
    path: Path
    manifest: Manifest


def package() -> Any:
    """pymicro_wakeword; PluginError when it is not installed."""
    try:
        import pymicro_wakeword
    except ImportError as error:
        raise PluginError(
            "the wake engine microwakeword is not installed",
            remedy="Install the extra that carries it: pip install 'voice-harness[offline]'",
        ) from error
    return pymicro_wakeword


def library_path() -> Path:
    """The TensorFlow Lite library that the package carries."""
    found = sorted((Path(package().__file__).parent / "lib").glob("*tensorflowlite_c.*"))
    if not found:
        raise PluginError(
            "pymicro-wakeword carries no TensorFlow Lite library for this machine",
            remedy="Install a wheel of it that was built for this platform",
        )
    return found[0]


def packaged() -> dict[str, ModelFile]:
    """The models that the package carries, by name."""
    folder = Path(package().__file__).parent / "models"
    return {path.stem: _with_manifest(path) for path in sorted(folder.glob("*.tflite"))}


def find_model(text: str) -> ModelFile:
    """The model of that name or path (.tflite, or the .json beside one). InputError when there is none."""
    path = Path(text).expanduser()
    match path.suffix.lower():
        case ".tflite":
            if not path.is_file():
                raise InputError(f"there is no model {text}", remedy="Name a model file that is there")
            return _with_manifest(path)
        case ".json":
            manifest, model = _manifest(path)
            if not model.is_file():
                raise InputError(f"{text} names the model {model}, which is not there", remedy="Put it beside it")
            return ModelFile(model, manifest)
    known = packaged()
    key = text.strip().lower().replace(" ", "_").replace("-", "_")
    if key not in known:
        raise InputError(
            f"microWakeWord has no model {text!r}",
            remedy=f"{did_you_mean(text, known)}It has: {', '.join(known)}, or name a .tflite file",
        )
    return known[key]


def _with_manifest(path: Path) -> ModelFile:
    beside = path.with_suffix(".json")
    if beside.is_file():
        return ModelFile(path, _manifest(beside)[0])
    return ModelFile(path, Manifest(path.stem.replace("_", " "), None, None))


def _manifest(path: Path) -> tuple[Manifest, Path]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        micro = content["micro"]
        cutoff, window = float(micro["probability_cutoff"]), int(micro["sliding_window_size"])
        manifest = Manifest(str(content["wake_word"]).lower(), cutoff, window)
        model = path.parent / str(content["model"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is no manifest of a microWakeWord model: {type(error).__name__}: {error}",
            remedy=f"It needs wake_word, model, micro.probability_cutoff, micro.sliding_window_size; see {_MANIFEST}",
        ) from None
    if not 0 < cutoff < 1 or window < 1:
        raise InputError(
            f"{path}: a cutoff of {cutoff} over {window} probabilities finds nothing, or everything",
            remedy="probability_cutoff lies between 0 and 1, sliding_window_size is at least 1",
        )
    return manifest, model
