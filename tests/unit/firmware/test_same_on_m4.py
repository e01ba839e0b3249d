"""The Cortex-M4 hears what this machine hears, bit for bit: decoded samples, wake events, the spotter's whole state."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest
import soxr

from harness.devices.wire import adpcm
from harness.model.stimulus import VoiceSpec
from harness.sound.stimuli.voices.espeak import EspeakVoice
from tests.conformance.boards import built, qemu_installed
from tests.unit.firmware.c_programs import CORE, build

HERE = Path(__file__).parent
RATE_HZ = 16_000
M4 = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=soft", "-O2", "-ffreestanding")
PHRASES = (
    ("en-us", 150, "Alexa"),
    ("en-gb+m4", 120, "Alexa. Turn on the light."),
    ("en-us+f2", 180, "The election is on Sunday. Alexa!"),
    ("en-gb", 170, "Seven letters on the kitchen table, and a lesson in the morning."),
    ("en-029+klatt4", 200, "Alexa, what is the weather like?"),
    ("fr-fr", 160, "Bonjour. Un texte qui ne dit rien."),
)
needs_m4 = pytest.mark.skipif(not qemu_installed(), reason="apt-get install qemu-system-arm gcc-arm-none-eabi")


@pytest.fixture(scope="module")
def pieces() -> list[adpcm.Pcm]:
    """Over three minutes: speech in silence, hum, noise and tones, from hardly audible to clipped."""
    rng, voice, pieces = np.random.default_rng(6), EspeakVoice(), []
    spoken = []
    for name, rate, text in PHRASES:
        speech = voice.speak(text, VoiceSpec("espeak", name, rate, 50, "fr" if name == "fr-fr" else "en"))
        spoken.append(soxr.resample(speech.samples.astype(np.float64), speech.rate_hz, RATE_HZ))
    for gain_db in (-3, -20, -35, 0, -50, -10, 12):
        for index, samples in enumerate(spoken):
            sound = np.concatenate([np.zeros(RATE_HZ), samples / np.abs(samples).max(), np.zeros(2 * RATE_HZ)])
            t = np.arange(len(sound)) / RATE_HZ
            noise = (
                np.zeros(len(t)),
                rng.normal(size=len(t)) * 0.02,
                np.sin(2 * np.pi * 50 * t) * 0.05,
                np.sign(np.sin(2 * np.pi * (200 + 900 * t) * t)) * 0.03,
            )[index % 4]
            loud = (sound + noise) * 10 ** (gain_db / 20)
            pieces.append(np.clip(np.round(loud * 32768), -32768, 32767).astype(np.int16))
    return pieces


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = [HERE / "hearing.c", HERE / "hearing_host.c", *sorted((CORE / "spotter").glob("*.c"))]
    sources += [CORE / name for name in ("vh_codecs.c", "vh_crc32.c", "vh_messages.c", "vh_text.c")]
    return build(sources, tmp_path_factory.mktemp("hearing") / "host")


@pytest.fixture(scope="module")
def m4(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made of the very objects that the board's image is made of."""
    build_folder = built("qemu_ast1030")
    names = ("spotter/vh_spotter", "spotter/vh_spotter_front", "vh_codecs", "vh_crc32", "vh_messages", "vh_text")
    objects = [build_folder / "core" / f"{name}.o" for name in names]
    objects.append(build_folder / "ports" / "qemu_ast1030" / "memory.o")
    flags = (*M4, "-nostdlib", "-nostartfiles", "-T", str(HERE / "hearing_m4.ld"))
    sources = [HERE / "hearing.c", HERE / "hearing_m4.c", *objects]
    program = tmp_path_factory.mktemp("hearing") / "m4.elf"
    return build(sources, program, flags, "arm-none-eabi-gcc", ("-lgcc",))


def run_on_m4(program: Path, sound: Path) -> list[str]:
    qemu = shutil.which("qemu-system-arm")
    assert qemu is not None
    command = [qemu, "-M", "mps2-an386", "-kernel", str(program), "-display", "none", "-monitor", "none", "-nodefaults"]
    command += ["-semihosting-config", "enable=on,target=native"]
    command += ["-device", f"loader,file={sound},addr=0x21000000,force-raw=on"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150, stdin=subprocess.DEVNULL)
    # What semihosting prints comes on either stream, as QEMU's version has it.
    lines = (result.stdout + result.stderr).splitlines()
    return [line for line in lines if line.startswith(("event ", "state ", "no frame", "a fault"))]


@needs_m4
@pytest.mark.parametrize("encoding", list(adpcm.Encoding))
def test_the_m4_decodes_and_spots_minutes_of_sound_like_the_host(
    encoding: adpcm.Encoding, pieces: list[adpcm.Pcm], host: Path, m4: Path, tmp_path: Path
) -> None:
    # Decoded, the sound goes the same way in every encoding: each has every level, and another third of the phrases.
    encodings = list(adpcm.Encoding)
    sound = adpcm.EncodedSound(np.concatenate(pieces[encodings.index(encoding) :: len(encodings)]), encoding)
    frames, decoded = bytearray(), []
    for start in range(0, len(sound), sound.max_chunk):
        data = sound.data(start, min(start + sound.max_chunk, len(sound)))
        frames += bytes([int(encoding)]) + len(data).to_bytes(4, "little") + data
        decoded.append(adpcm.decode(encoding, data))
    path = tmp_path / "sound"
    path.write_bytes(len(frames).to_bytes(4, "little") + frames)
    host_lines = subprocess.run(
        [host, path], capture_output=True, text=True, check=True, timeout=150
    ).stdout.splitlines()
    assert run_on_m4(m4, path) == host_lines
    events = [line for line in host_lines if line.startswith("event")]
    states = [line.split() for line in host_lines if line.startswith("state")]
    assert len(events) >= 5
    assert len(states) > 60  # so many seconds, and each state is another one
    assert len({state for *_, state in states}) == len(states)
    heard = np.concatenate(decoded).astype("<i2")
    assert states[-1][1:3] == [str(len(heard)), f"{zlib.crc32(heard.tobytes()):08x}"]
