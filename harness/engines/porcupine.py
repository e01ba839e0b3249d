"""The wake engine Porcupine. https://picovoice.ai/docs/api/porcupine-python/

Version 1.9.5 carries its models and needs no key. Later ones need the user's key, in the environment variable
PV_ACCESS_KEY. It is never logged, and errors of the package are not quoted, since they might contain it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from harness.base.plugins import import_extra
from harness.engines.framed import FrameSpotStream, Pcm, sha256_of
from harness.engines.offline_loading import fingerprint
from harness.engines.settings import LEAD_IN, SPOT_DURATION, number
from harness.model.errors import EngineError, InputError, PluginError
from harness.model.offline import EngineFacts, EngineKind, OfflineModel, Setting, SettingKind

KEY = "PV_ACCESS_KEY"
SENSITIVITY = Setting(
    "sensitivity", SettingKind.NUMBER, "0.5", "0 (strictest) to 1 (most lenient), for every phrase", low=0, high=1,
    scores=True,
)  # fmt: skip
LICENCE = "Apache-2.0; models under Picovoice's terms"


class Porcupine:
    """Finds packaged phrases, or those of .ppn files. model: a phrase or file, or several separated by commas.

    Each file gets a new instance, since the package cannot reset one. PluginError without the package or its key,
    InputError for an unknown phrase.
    """

    kind: ClassVar[EngineKind] = EngineKind.WAKE
    settings: ClassVar[tuple[Setting, ...]] = (SENSITIVITY, LEAD_IN, SPOT_DURATION)

    def __init__(self, model: str, settings: Mapping[str, str]) -> None:
        package = _package()
        names = [name.strip() for name in model.split(",") if name.strip()]
        packaged: Mapping[str, str] = package.KEYWORD_PATHS
        paths = [packaged.get(name.replace("_", " "), name) for name in names]
        unknown = [name for name, path in zip(names, paths, strict=True) if not path.endswith(".ppn")]
        if unknown or not names:
            problem = "porcupine needs a phrase"
            if unknown:
                problem = f"porcupine has no phrase {', '.join(map(repr, unknown))}"
            raise InputError(problem, remedy=f"Use a .ppn file, or one of: {', '.join(sorted(packaged))}")
        model_sha256 = sha256_of(*map(Path, paths))
        self._phrases = [Path(name).stem if name.endswith(".ppn") else name.replace("_", " ") for name in names]
        self._sensitivities = [number(settings, SENSITIVITY)] * len(paths)
        self._package, self._paths = package, paths
        self._instance: Any = self._create()
        self._spot_samples = round(number(settings, SPOT_DURATION) / 1000 * self._instance.sample_rate)
        installed_version = version("pvporcupine")
        self.facts = EngineFacts(
            EngineKind.WAKE,
            f"pvporcupine {installed_version}",
            self._instance.sample_rate,
            tuple(self._phrases),
            fingerprint(Porcupine, installed_version, model_sha256, settings),
            licence=LICENCE,
            lead_in_ms=number(settings, LEAD_IN),
            settings=tuple(sorted(settings.items())),
        )

    @classmethod
    def models(cls) -> tuple[OfflineModel, ...]:
        return tuple(
            OfflineModel(phrase.replace(" ", "_"), (phrase,), LICENCE) for phrase in sorted(_package().KEYWORD_PATHS)
        )

    def listen(self) -> FrameSpotStream:
        """Begins a file with a new instance."""
        self.close()
        self._instance = self._create()
        return FrameSpotStream(self._instance.frame_length, self._spot_samples, self._phrases_in)

    def close(self) -> None:
        if self._instance is not None:
            self._instance.delete()
            self._instance = None

    def _phrases_in(self, frame: Pcm) -> Iterator[str]:
        index = self._instance.process(frame.tolist())
        if index >= 0:
            yield self._phrases[index]

    def _create(self) -> Any:
        options: dict[str, Any] = {"keyword_paths": self._paths, "sensitivities": self._sensitivities}
        if _needs_key(self._package):
            options["access_key"] = os.environ[KEY]
        try:
            return self._package.create(**options)
        except Exception as error:  # noqa: BLE001 – its class differs by version
            problem = f"porcupine cannot be started: {type(error).__name__}"
            raise EngineError(problem, remedy=f"Check the .ppn files, and {KEY} for versions that need it") from None


def _needs_key(package: Any) -> bool:
    return "access_key" in inspect.signature(package.create).parameters


def _package() -> Any:
    """The package, imported. Raises PluginError if it, or the key that it needs, is missing."""
    package = import_extra("pvporcupine", "the engine porcupine", "porcupine")
    if _needs_key(package) and not os.environ.get(KEY):
        raise PluginError(
            f"pvporcupine {version('pvporcupine')} needs an access key",
            remedy=f"Set the key in the environment: export {KEY}=…, or install pvporcupine==1.9.5, which needs none",
        )
    return package
