"""The scenario of a night, drawn from its seed."""

from __future__ import annotations

from collections.abc import Collection

from harness.model.scenario import (
    AmbientSource,
    AmbientSpec,
    CloseDialogue,
    Defaults,
    Limits,
    MemorySpec,
    ProbeSpec,
    Query,
    RepromptRule,
    Scenario,
    SequentialTest,
    Stopping,
    TrialKind,
    TrialTemplate,
)
from harness.model.stimulus import TALKER, NoiseKind, SpokenText, VoiceSpec
from harness.model.understanding import ExpectedFrame, Slot
from harness.session.simulated.bench import SimulatedRoom

TEXTS = ("what time is it", "set an alarm for one", "add milk to my list", "what is seven times eight")
OFTEN = 0.08
"""How often a night has each of the further kinds."""


def drawn_scenario(room: SimulatedRoom, intents: bool, wired: bool, played: Collection[int] | None) -> Scenario:
    """intents: whether the first device reports them. wired: all devices take their sound over a wire, so nothing is
    said into the air. played: numbers of the templates; None: all."""
    chance = room.chance("scenario")
    rule = RepromptRule(
        max_attempts=chance.choice((1, 2, 3)),
        context_wait_s=chance.choice((3.0, 5.0)),
        response_timeout_s=chance.choice((5.0, 8.0)),
    )
    voices = room.chance("voices")
    queries = tuple(Query(f"q{number}", SpokenText(text), text) for number, text in enumerate(TEXTS))
    templates: list[TrialTemplate] = []
    for number in range(chance.randint(3, 6)):
        kind = chance.choice(("query", "query", "wake", "wake", "command", "ambient"))
        name = f"{kind}{number}"
        match kind:
            case "query":
                close = chance.choice((None, None, CloseDialogue("stop"), CloseDialogue(None, 4.0)))
                templates.append(
                    TrialTemplate(
                        name, f"q{chance.randrange(4)}", chance.randint(2, 6), device="box1", close_dialogue=close
                    )
                )
            case "wake":
                repeat, tail_s = chance.randint(5, 14), chance.choice((0.3, 1.5, 3.0))
                voice = VoiceSpec(name=voices.choice(("en-us", "en-gb")))
                templates.append(TrialTemplate(name, "", repeat, kind=TrialKind.WAKE, tail_s=tail_s, voice=voice))
            case "command":
                templates.append(
                    TrialTemplate(name, f"q{chance.randrange(4)}", chance.randint(3, 8), kind=TrialKind.COMMAND)
                )
            case _:
                sources = (AmbientSource("hum", noise=NoiseKind.PINK),)
                probe = ProbeSpec(60.0) if chance.random() < 0.5 else None
                spec = AmbientSpec(chance.uniform(60, 300) / 3600, sources, chance.choice((20.0, 60.0)), probe)
                templates.append(TrialTemplate(name, "", kind=TrialKind.AMBIENT, ambient=spec))
    templates += _further_templates(room, intents)
    if wired:
        listening = (TrialKind.WAKE, TrialKind.COMMAND, TrialKind.AMBIENT)
        templates = [
            template
            for template in templates
            if template.kind in listening and not (template.voice and template.voice.is_person)
        ]
        templates.append(TrialTemplate("wake_wired", "", 6, kind=TrialKind.WAKE, tail_s=1.5))
    if played is not None:
        templates = [template for number, template in enumerate(templates) if number in played]
    tests = Stopping()
    if chance.random() < 0.4:
        tests = Stopping(
            SequentialTest(2.0, 200.0, 0.1, 0.1) if chance.random() < 0.5 else None, SequentialTest(0.05, 0.4, 0.1, 0.1)
        )
    limits = Limits(
        min_recognised_share=0.5,
        min_first_attempt_share=0.5,
        max_latency_p95_ms=2500.0,
        max_inconclusive=2,
        max_interrupted=2,
        max_false_reject_share=0.2,
        max_false_reject_upper=0.4,
        max_false_accepts_per_hour=20.0,
        max_false_accepts_upper_per_hour=80.0,
        min_exposure_hours=0.05,
        min_command_share=0.5,
        max_wake_delay_p95_ms=400.0,
    )
    defaults = Defaults(reprompt=rule, between_trials_s=chance.choice((0.5, 1.0)),
                        life_check_after=chance.choice((0, 2, 3)))  # fmt: skip
    return Scenario("night", "A night", "/night.yaml", "a" * 64, queries, tuple(templates), defaults=defaults,
                    limits=limits, stopping=tests, seed=room.seed)  # fmt: skip


def _further_templates(room: SimulatedRoom, intents: bool) -> list[TrialTemplate]:
    """Of kinds that not every night has."""
    chance = room.chance("further kinds")
    further: list[TrialTemplate] = []
    if chance.random() < OFTEN:
        spec = MemorySpec("q1", chance.choice(((2.0, 8.0), (4.0,))), ("done",))
        further.append(TrialTemplate("memory", "q0", 2, device="box1", kind=TrialKind.MEMORY, memory=spec))
    if chance.random() < OFTEN and intents:
        frame = ExpectedFrame(("set_alarm",), (Slot("time", "one"),))
        further.append(TrialTemplate("understand", "q1", 4, device="box1", kind=TrialKind.UNDERSTAND, expects=frame))
    if chance.random() < OFTEN:
        ann = VoiceSpec(engine=TALKER, name="ann")
        further += [
            TrialTemplate("spoken_query", "q2", 2, device="box1", voice=ann, close_dialogue=CloseDialogue("stop")),
            TrialTemplate("spoken_wake", "", 4, kind=TrialKind.WAKE, tail_s=1.5, voice=ann),
        ]
    return further
