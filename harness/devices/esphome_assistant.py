"""The harness as the voice assistant of an ESPHome device: it receives the sound of commands, and can answer.

Source: ESPHome's voice_assistant.cpp (its states and events) and client.py of aioesphomeapi 46. A device takes one
client as its assistant. It refuses others, and reports that in its log only.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.devices.spoken_commands import NOTHING_HEARD, SOUND_GRACE_S, CommandSound, ServerUse
from harness.model.errors import DeviceError, HarnessError
from harness.model.numbers import exact
from harness.model.observation import LogLine, Unread
from harness.model.stimulus import Waveform
from harness.model.time import Stamp
from harness.sound.recogniser_process import RecogniserProcess

if TYPE_CHECKING:
    from aioesphomeapi.client import APIClient
    from aioesphomeapi.model import DeviceInfo, VoiceAssistantAudioSettings

RATE_HZ = 16_000  # What ESPHome's voice assistant sends.
END_GAP_S = 1.0
"""Wait before RUN_END and before an announcement, in s. A device that is still stopping its microphone ignores the
first, and the second would cut it off."""
PLAY_LIMIT_S = 60.0  # Longest wait for the end of an answer.
_REFUSAL_LOG = b"Multiple API Clients attempting to connect to Voice Assistant"


class AssistantTaken(DeviceError):
    """Another client is the voice assistant of the device."""


class EsphomeAssistant:
    """The assistant's side of a connection. All its methods run on the event loop of the link.

    - use: the surroundings of the connection.
    - media: URL of the sound of every answer; "" for no answer.
    - report: called with lines, such as `assistant.wake=Okay Nabu`.
    - end_link: ends the link; called with the reason.
    """

    def __init__(
        self,
        client: APIClient,
        use: ServerUse,
        media: str,
        report: Callable[[str], None],
        end_link: Callable[[str], None],
    ) -> None:
        self._client, self._use, self._media = client, use, media
        self._report, self._end_link = report, end_link
        self._loop = asyncio.get_running_loop()
        self._subscribed = self._device_refused_client = False
        self._port = 0
        self._datagrams: asyncio.DatagramTransport | None = None
        self._command: CommandSound | None = None
        self._limit_timer: asyncio.TimerHandle | None = None
        self._answer_task: asyncio.Task[None] | None = None

    async def begin(self, device: DeviceInfo) -> None:
        """Raises DeviceError if the device has no voice assistant, or has another client as its assistant."""
        from aioesphomeapi.model import APIVersion, VoiceAssistantFeature

        client, name = self._client, device.name
        flags = device.voice_assistant_feature_flags_compat(client.api_version or APIVersion())
        if not flags & VoiceAssistantFeature.VOICE_ASSISTANT:
            raise DeviceError(f"{name} has no voice assistant", remedy="Set `role: observer`")
        if self._media and not flags & VoiceAssistantFeature.ANNOUNCE:
            raise DeviceError(f"{name} cannot play announcements", remedy="Remove `media` and `answer`")
        by_api = bool(flags & VoiceAssistantFeature.API_AUDIO)
        if not by_api:
            await self._listen_to_datagrams()
        client.subscribe_voice_assistant(
            handle_start=self._on_start,
            handle_stop=self._on_stop,
            handle_audio=self._receive_channels if by_api else None,
        )
        await client.device_info()  # a line about a refusal comes before the answer
        self._subscribed = True
        if self._device_refused_client:
            raise AssistantTaken(
                f"another client is the voice assistant of {name}",
                remedy="Disable the device in Home Assistant, or disconnect the other client, then try again",
            )

    def receive_log_line(self, line: bytes) -> None:
        """Handles a line of the device's log, where alone a device reports that it refuses a client."""
        if _REFUSAL_LOG not in line:
            return
        self._device_refused_client = True
        if self._subscribed:
            self._remark("the device refused another client, such as Home Assistant: the harness is its assistant")

    def close(self) -> None:
        """Ends what is in progress. A worker thread of the loop stores the sound of a command up to then."""
        self._cut_off_command()
        if self._datagrams is not None:
            self._datagrams.close()

    async def _listen_to_datagrams(self) -> None:
        """Listens for sound in UDP packets, for firmware without sound over the API."""
        transport, _ = await self._loop.create_datagram_endpoint(
            lambda: _Datagrams(self._client.connected_address, self._receive_sound), local_addr=("0.0.0.0", 0)
        )
        self._datagrams = transport
        self._port = transport.get_extra_info("sockname")[1]

    # What the device sends

    async def _on_start(
        self, conversation: str, flags: int, settings: VoiceAssistantAudioSettings, phrase: str | None
    ) -> int | None:
        """The device starts a command. Returns the port for its sound, 0 for the API, or None to refuse."""
        from aioesphomeapi.model import VoiceAssistantCommandFlag

        self._cut_off_command()
        if flags & VoiceAssistantCommandFlag.USE_WAKE_WORD:
            self._end_link("it leaves wake word detection to its assistant. Switch wake word detection to the device")
            return None
        self._report(f"assistant.wake={phrase}" if phrase else "assistant.start=without a wake phrase")
        levels = f"noise suppression {settings.noise_suppression_level}, auto gain {settings.auto_gain}"
        self._report(f"assistant.run={conversation}; {levels}, volume {exact(settings.volume_multiplier)}")
        self._report("assistant.state=listening")
        self._command = CommandSound(RATE_HZ, 1, self._use.limit_s)
        self._limit_timer = self._loop.call_later(self._use.limit_s + SOUND_GRACE_S, self._end_command)
        self._send_event("RUN_START")
        self._send_event("STT_START")
        return self._port

    async def _on_stop(self, aborted: bool) -> None:
        """The device has stopped sending sound. aborted: whether it wants no answer."""
        if not aborted:
            self._end_command()
        elif self._command is not None or (self._answer_task is not None and not self._answer_task.done()):
            self._cut_off_command()
            self._report("assistant.stop=the device ended the run")
            self._end_run()

    async def _receive_channels(self, data: bytes, _: bytes | None) -> None:
        """Receives sound. Only the first channel is used, which is the one for recognition."""
        self._receive_sound(data)

    def _receive_sound(self, data: bytes) -> None:
        """Adds sound to the command in progress, which may end it."""
        if self._command is not None and data and self._command.feed(data, self._use.now_s()):
            self._end_command()

    # What becomes of a command

    def _cut_off_command(self) -> None:
        """Ends an answer and a command that are in progress. The sound of the command is stored."""
        if self._answer_task is not None:
            self._answer_task.cancel()
        if (command := self._pop_command()) is not None:
            self._loop.run_in_executor(None, self._use.keep_command, command)

    def _pop_command(self) -> CommandSound | None:
        """The command in progress, which then counts as ended; None if there is none."""
        command, self._command = self._command, None
        if self._limit_timer is not None:
            self._limit_timer.cancel()
        return command

    def _end_command(self) -> None:
        """Stores and answers the command, whose speech has ended, or the time for it."""
        if (command := self._pop_command()) is not None:
            self._report("assistant.state=thinking")
            storing = self._loop.run_in_executor(None, self._use.keep_command, command)
            self._answer_task = self._loop.create_task(self._answer(storing))
            self._answer_task.add_done_callback(self._report_answer_error)

    def _report_answer_error(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "an answer failed", "exception": error})

    async def _answer(self, storing: asyncio.Future[Waveform | None]) -> None:
        """Recognises a command, reports its words, and plays the answer. storing: gives its sound, once stored."""
        answerer, words = self._use.answerer, ""
        recogniser = None if answerer is None else answerer.recogniser
        if recogniser is not None:
            self._send_event("STT_VAD_END")
            ended_s = self._loop.time()
            waveform = await asyncio.shield(storing)
            result = "" if waveform is None else await self._recognise(recogniser, waveform)
            if isinstance(result, HarnessError):
                self._use.report(Unread(self._use.id, Stamp(self._use.now_s()), f"the recogniser failed: {result}"))
                self._send_event("ERROR", {"code": "stt-stream-failed", "message": "the recogniser failed"})
            elif not (words := result.strip()):
                self._report(f"assistant.error={NOTHING_HEARD}")
                self._send_event("ERROR", {"code": NOTHING_HEARD, "message": "no text recognized"})
            if not words:
                self._end_run()
                return
            self._report(f"assistant.transcript={words}")
            self._send_event("STT_END", {"text": words})
            self._send_event("INTENT_START")
            self._send_event("INTENT_END", {"conversation_id": "", "continue_conversation": "0"})
            await asyncio.sleep(ended_s + END_GAP_S - self._loop.time())
        await asyncio.shield(storing)
        self._send_event("RUN_END")
        if self._media:
            await self._announce("" if answerer is None else answerer.answer(words).strip())
        self._report("assistant.state=idle")

    async def _recognise(self, recogniser: RecogniserProcess, waveform: Waveform) -> str | HarnessError:
        """The words of a sound, or why they were not recognised."""
        words: asyncio.Future[str | HarnessError] = self._loop.create_future()

        def set_result(result: str | HarnessError) -> None:
            if not words.done():
                words.set_result(result)

        def report(result: str | HarnessError) -> None:
            with contextlib.suppress(RuntimeError):  # the link has ended, and its loop
                self._loop.call_soon_threadsafe(set_result, result)

        recogniser.transcribe_later(waveform, report)
        return await words

    async def _announce(self, text: str) -> None:
        """Has the device play `media`, and waits for its end. text: the words of the answer; "" if not known."""
        from aioesphomeapi.core import APIConnectionError

        await asyncio.sleep(END_GAP_S)
        if text:
            self._report(f"assistant.response={text}")
        self._report("assistant.state=speaking")
        try:
            announce = self._client.send_voice_assistant_announcement_await_response
            outcome = await announce(self._media, PLAY_LIMIT_S, text)
        except APIConnectionError as error:
            self._remark(f"the device did not report the end of the answer: {error}")
        else:
            if not outcome.success:
                self._remark(f"the device could not play {self._media}")

    def _end_run(self) -> None:
        self._send_event("RUN_END")
        self._report("assistant.state=idle")

    def _send_event(self, kind: str, data: dict[str, str] | None = None) -> None:
        from aioesphomeapi.core import APIConnectionError
        from aioesphomeapi.model import VoiceAssistantEventType

        with contextlib.suppress(APIConnectionError):  # the link reports why the connection has ended
            self._client.send_voice_assistant_event(VoiceAssistantEventType[f"VOICE_ASSISTANT_{kind}"], data)

    def _remark(self, text: str) -> None:
        self._use.report(LogLine(self._use.id, Stamp(self._use.now_s()), text))


class _Datagrams(asyncio.DatagramProtocol):
    """Sound over UDP. host: address of the device; sound from elsewhere is ignored."""

    def __init__(self, host: str | None, on_sound: Callable[[bytes], None]) -> None:
        self._host, self._on_sound = host, on_sound

    def datagram_received(self, data: bytes, sender: tuple[str, int]) -> None:
        if sender[0] == self._host:
            self._on_sound(data)
