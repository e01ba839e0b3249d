"""Pauses that a run begins by itself, and how it continues.

It pauses when a device gives no sign of life, after a fault, and when a check of the bench refuses. It also pauses
while the disk is full or the room is loud.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from harness.base.host_check import Check, Level
from harness.model.bench import AfterRetries, OnFault
from harness.model.feed import StateWord
from harness.model.numbers import counted, exact, fixed
from harness.model.record import BenchChecked, EndReason, FaultMet, NoteWritten, RerunAsked, TrialFinished
from harness.model.trial import LIFE_CHECK_BY, NOT_PROVEN, Outcome, Trial
from harness.session.liveness import TRIES, Liveness
from harness.session.resumption import TakeKey
from harness.session.run import Run
from harness.session.take import LINK_WAIT_S
from harness.session.wording import cause_in_words

if TYPE_CHECKING:
    from harness.session.bench_checks import BenchCheck


class LifeCheck:
    """Checks that silent devices are alive, before each take and before the run ends.

    Takes without a sign of life count only once the device has shown that it listens. Any report proves it, and so does
    waking to a stimulus that woke it earlier. Otherwise the takes are not proven, and are played again.
    """

    def __init__(
        self, run: Run, liveness: Liveness, play: Callable[[Trial], None], revive: Callable[[Trial, str], bool]
    ) -> None:
        """play(trial): plays a life check. revive(trial, device): power cycles it; returns whether it answers again."""
        self._run = run
        self._liveness = liveness
        self._play_trial = play
        self._revive = revive

    def check_silent_devices(self, *, at_end: bool = False) -> bool:
        """Checks silent devices. Returns whether anything was played. at_end: no further trial can prove listening."""
        run, check_after = self._run, self._run.context.life_check_after
        min_takes = 1 if at_end else check_after
        has_played = False
        # A person who has paused the run may be at the device: only they resume it.
        while check_after and run.ending is None and self._liveness.doubtful(min_takes) and run.await_resume():
            for device in self._liveness.doubtful(min_takes):
                if unproven := self._liveness.unproven(device):
                    self._replay_unproven(device, unproven, "and then it restarted")
                    if self._liveness.restarts(device) >= TRIES:
                        self._pause(device, at_end=at_end)
                    continue
                missed_count = len(self._liveness.silent(device))
                is_repeated = self._repeat_known_good(device)
                has_played = has_played or is_repeated
                if self._run.ending is not None:
                    break
                if self._liveness.silent(device):
                    self._handle_silence(device, is_repeated=is_repeated, at_end=at_end)
                else:
                    self._note(f"{device} responds, so the {counted(missed_count, 'trial')} that it missed count")
        return has_played

    def _handle_silence(self, device: str, *, is_repeated: bool, at_end: bool) -> None:
        """Has the silent takes played again, and pauses the run unless a power cycle brings the device back.

        is_repeated: whether a sound to which the device has reacted before was repeated.
        """
        run, silent = self._run, self._liveness.silent(device)
        reaction = "and it has reacted to no sound that could be repeated"
        if is_repeated:
            reaction = "and no reaction to the repeated sound"
        self._replay_unproven(device, silent, reaction)
        last_trial_id, _ = silent[-1]
        if run.ending is None and not self._revive(run.trials[last_trial_id], device):
            self._pause(device, at_end=at_end)

    def _repeat_known_good(self, device: str) -> bool:
        """Repeats the last stimulus that the device reacted to; False if there is none."""
        trial = self._liveness.life_check(device, self._run.resumption.rows)
        if trial is None:
            return False
        if silent := self._liveness.silent(device):
            self._note(
                f"no sign of life from {device} in {counted(len(silent), 'trial')}: repeating what it reacted to before"
            )
        self._liveness.device_under_check = device
        try:
            self._play_trial(trial)
        finally:
            self._liveness.device_under_check = ""
        return True

    def _replay_unproven(self, device: str, takes: Sequence[TakeKey], why: str) -> None:
        """Removes takes from the results, and plans them again."""
        run = self._run
        problem = f"no sign of life in {counted(len(takes), 'trial')}, {why}: not proven, will be played again"
        run.append(FaultMet(device, problem))
        for trial_id, _ in takes:
            # The latest finished take counts. An empty one takes the place of the silent take, even if the run ends
            # before the next take is played.
            number = run.resumption.next_take(trial_id)
            cause = f"{NOT_PROVEN}: nothing shows that {device} was listening"
            run.append(RerunAsked(trial_id, number, LIFE_CHECK_BY))
            run.append(TrialFinished(trial_id, number, Outcome.INTERRUPTED, 0, None, cause))
            run.append(RerunAsked(trial_id, number + 1, LIFE_CHECK_BY))

    def _pause(self, device: str, *, at_end: bool) -> None:
        """Pauses until a sign of life or a resume. Without an operator, repeats a known stimulus, then ends the run."""
        run, clock = self._run, self._run.context.clock
        policy = run.context.on_fault or OnFault()
        limit_s = 0.0 if at_end else policy.longest_s
        remedy = "Check that it is running, can hear the loudspeaker and knows the wake phrase, then resume"
        reason = f"{device} gives no sign of life. {remedy}"
        run.pause(reason, LIFE_CHECK_BY)
        since_s, signs = clock.now_s(), self._liveness.signs(device)
        next_try_s = since_s + policy.retry_after_s
        for _ in run.while_paused(reason):
            waited_s = clock.now_s() - since_s
            if self._liveness.signs(device) > signs:
                run.resume(f"{LIFE_CHECK_BY}: {device} is back")
            elif not run.context.attended() and waited_s < limit_s and clock.now_s() >= next_try_s:
                next_try_s = clock.now_s() + policy.retry_after_s  # not every device has a heartbeat
                run.paused = False  # for this sound only, which the pause would hold back
                self._repeat_known_good(device)
                run.paused = True
            elif not run.context.attended() and waited_s >= limit_s:
                run.append(FaultMet(device, "no sign of life, and no operator is present: resume when it is back"))
                run.ending = EndReason.STOPPED

    def _note(self, text: str) -> None:
        self._run.append(NoteWritten(text, LIFE_CHECK_BY))


ON_FAULT_BY = "on_fault"
"""The name in the rows for whom `on_fault` pauses, resumes and repeats."""
CHECKS_BY = "checks"
DISK_BY, NOISE_BY = "min_free_gb", "max_noise_floor_dbfs"
"""The same for the checks of the bench, and for its limits on disk space and noise."""
NOT_SET_UP = "not_set_up"
"""Cause code of a trial for which stands, settings or power could not be set."""


class UnfitPause:
    """Pauses before a take while the disk has less space, or the room is louder, than the bench allows."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def pause_while_unfit(self) -> bool:
        """Pauses while something is unfit. Returns whether it paused.

        If the operator resumes during the pause, one more take is played.
        """
        run = self._run
        for source, find_problem, all_clear in (
            (DISK_BY, run.context.disk_space_problem, "there is enough disk space again"),
            (NOISE_BY, self._noise_reason, "it is quiet again"),
        ):
            if not run.paused and (reason := find_problem()):  # else the operator has paused it, and resumes it
                run.pause(reason, source)
                for _ in run.while_paused(reason):
                    if not find_problem():
                        run.resume(f"{source}: {all_clear}")
                return True
        return False

    def _noise_reason(self) -> str:
        """Why the room is too loud; "" if it is not, or if there is no limit."""
        microphone, limit_dbfs = self._run.context.microphone, self._run.context.max_noise_floor_dbfs
        if microphone is None or limit_dbfs is None:
            return ""
        floor_dbfs = microphone.noise_floor_dbfs()
        if floor_dbfs is None or floor_dbfs <= limit_dbfs:
            return ""
        floor_text, limit_text = fixed(floor_dbfs, 0), exact(limit_dbfs)
        return f"noise: the noise floor is {floor_text} dBFS, and the bench allows at most {limit_text} dBFS"


class CheckPause:
    """Checks the bench before a take, at the interval that the bench sets. A refusal pauses the run until they pass.

    The checks are repeated after `retry_after_s`. With `on_fault`, `retries` and `then` apply as for a fault.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._next_check_s = -math.inf

    def check_if_due(self) -> bool:
        """Checks the bench if that is due. Returns whether it did, with test sounds and perhaps a pause."""
        run, checks = self._run, self._run.context.checks
        if checks is None or math.isinf(checks.every_s) or run.now_s() < self._next_check_s:
            return False
        if run.paused or run.ending is not None:
            return False
        refused = self._check(checks)
        if refused and not run.paused and run.ending is None:
            run.pause(_summary(refused), CHECKS_BY)
            self._wait(checks, refused)
        self._next_check_s = run.now_s() + checks.every_s
        return True

    def _check(self, checks: BenchCheck) -> list[Check]:
        """Checks the bench while nothing plays, and logs the results. Returns those that refuse."""
        run, results = self._run, list[Check]()
        quiet_s = 0.0 if run.last_sound_s is None else run.last_sound_s + run.context.between_trials_s - run.now_s()
        if quiet_s > 0 and not run.wait(quiet_s):
            return []
        if not run.paused:
            run.show(StateWord.PREPARING, "checking the bench")
        trials = [run.trials[trial_id] for trial_id, _ in run.resumption.pending()]
        if not run.run_in_background(lambda given_up: results.extend(checks.run(trials, given_up))):
            return []
        run.last_sound_s = run.now_s()
        for check in results:
            run.append(
                BenchChecked(check.name, check.level.value, check.says, "" if check.level is Level.OK else check.remedy)
            )
        return [check for check in results if check.level is Level.FAIL]

    def _wait(self, checks: BenchCheck, refused: list[Check]) -> None:
        """Repeats the checks until they pass, or until the pause or the run ends."""
        run, policy, retries = self._run, self._run.context.on_fault, 0
        retry_after_s = (policy or OnFault()).retry_after_s
        next_s = run.now_s() + retry_after_s
        for _ in run.while_paused(run.pause_reason):
            if run.now_s() < next_s:
                continue
            if policy is not None and retries >= policy.retries:
                self._no_retry_left(policy, _summary(refused))
                continue
            retries += 1
            refused = self._check(checks)
            if run.paused and run.ending is None and not refused:
                run.resume(f"{CHECKS_BY}: the bench passes its checks again")
            next_s = run.now_s() + retry_after_s

    def _no_retry_left(self, policy: OnFault, reason: str) -> None:
        run = self._run
        if policy.then is AfterRetries.SKIP:
            run.resume(f"{CHECKS_BY}: no retry is left; continuing although {reason}")
            return
        run.append(FaultMet(CHECKS_BY, f"{reason}; no retry is left. Repair it, then resume the run"))
        run.ending = EndReason.STOPPED


def _summary(refused: list[Check]) -> str:
    return "; ".join(f"{check.name}: {check.says}" for check in refused)


class FaultPause:
    """Pauses after a take that a fault has ended. The trial does not count, and is played again.

    The pause ends when the lost connection is back, when the operator resumes, or after `retry_after_s`, to try again.
    After `retries` without a trial that succeeds, the run ends, or it leaves the trial interrupted and continues.
    """

    def __init__(self, run: Run, revive: Callable[[Trial, str], tuple[str, ...]]) -> None:
        """revive(trial, reason): power cycles what has failed; returns the devices that answer again."""
        self._run = run
        self._revive = revive
        self._retries = 0
        policy = run.context.on_fault
        self.link_wait_s = LINK_WAIT_S if policy is None else policy.retry_after_s

    def pause_after(self, trial: Trial, row: TrialFinished) -> bool:
        """Pauses after an interrupted take, if the bench says so. Returns whether it paused and the run continues."""
        run, policy = self._run, self._run.context.on_fault
        if policy is None or run.ending is not None:
            return False
        if row.outcome is not Outcome.INTERRUPTED:
            if row.outcome not in (Outcome.SKIPPED, Outcome.ABORTED):
                self._retries = 0
            return False
        reason = f"{trial.id}: {cause_in_words(row.cause)}"
        if self._retries >= policy.retries and policy.then is AfterRetries.SKIP:
            run.append(NoteWritten(f"{reason}; no retry is left, so it stays interrupted", ON_FAULT_BY, trial.id))
            return False
        if not trial.is_prime:  # its follow-up asks for a prime
            run.append(RerunAsked(trial.id, run.resumption.next_take(trial.id), ON_FAULT_BY))
        if self._retries >= policy.retries:
            self._give_up(reason)
            return False
        if not run.paused:  # else the operator has paused it, and resumes it
            run.pause(f"{reason}; the harness tries again every {exact(policy.retry_after_s)} s", ON_FAULT_BY)
            if row.cause.startswith(NOT_SET_UP) or not self._try_revive(trial, reason):
                self._wait(trial, policy, reason)
        return run.ending is None

    def _wait(self, trial: Trial, policy: OnFault, reason: str) -> None:
        """Waits for lost connections, and tries again at intervals, until the pause or the run ends."""
        run, lost = self._run, self._list_lost(trial)
        next_s = run.now_s() + policy.retry_after_s
        for _ in run.while_paused(run.pause_reason):
            still_lost = self._list_lost(trial)
            if lost and not still_lost:
                self._retries += 1  # a trial may be what makes it fail
                run.resume(f"{ON_FAULT_BY}: {', '.join(lost)} {'is' if len(lost) == 1 else 'are'} back")
            elif run.now_s() >= next_s:
                self._retries += 1
                if not still_lost or not self._try_revive(trial, reason):
                    self._try_again(policy, still_lost)
                next_s = run.now_s() + policy.retry_after_s

    def _try_revive(self, trial: Trial, reason: str) -> bool:
        """Power cycles what failed. If that restores it, the run continues (True)."""
        run = self._run
        revived_devices = self._revive(trial, reason)
        if revived_devices and run.paused and run.ending is None:
            self._retries += 1
            run.resume(f"{ON_FAULT_BY}: {', '.join(revived_devices)} power cycled")
        return bool(revived_devices)

    def _try_again(self, policy: OnFault, lost: list[str]) -> None:
        """Continues for a retry if nothing is lost any more. Otherwise it waits on, or acts as after the last retry."""
        run, retry = self._run, f"retry {self._retries} of {policy.retries}"
        reasons = run.bench_state.loss_reasons
        why = "; ".join(f"{name} is still lost ({reasons.get(name) or 'reason unknown'})" for name in lost)
        if not lost:
            run.resume(f"{ON_FAULT_BY}: {retry}")
        elif self._retries < policy.retries:
            run.append(NoteWritten(f"{retry}: {why}", ON_FAULT_BY))
        elif policy.then is AfterRetries.END:
            self._give_up(f"{retry}: {why}")
        else:
            run.resume(f"{ON_FAULT_BY}: {retry}, with other trials: {why}")

    def _give_up(self, reason: str) -> None:
        self._run.append(FaultMet(ON_FAULT_BY, f"{reason}; no retry is left. Repair it, then resume the run"))
        self._run.ending = EndReason.STOPPED

    def _list_lost(self, trial: Trial) -> list[str]:
        """Ids of the connections that the trial needs and that are lost now."""
        sources = (source for target in trial.targets for source in target.sources)
        required = {*sources, *trial.players, *trial.noise_players, trial.microphone}
        return sorted(self._run.bench_state.unreachable & required)
