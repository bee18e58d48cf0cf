"""Ctrl-C and SIGTERM: raised, remembered where the exception is lost, and told as the shell expects."""

from __future__ import annotations

import os
import signal
import sys
import threading

import pytest

from jobs.runtime import interrupts


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_raised_and_remembered(number: int, code: int) -> None:
    before = signal.getsignal(number)
    with interrupts.heard():
        assert not interrupts.came()
        interrupts.check()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        assert interrupts.came()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        assert interrupts.exit_code() == code
    assert signal.getsignal(number) is before


def test_each_time_begins_without_the_signals_of_before() -> None:
    with interrupts.heard(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
    with interrupts.heard():
        interrupts.check()
        assert interrupts.exit_code() == 130


def test_a_signal_within_a_finalizer_prints_no_traceback_and_other_faults_do() -> None:
    class Dropped:
        def __init__(self, fault: BaseException | None) -> None:
            self.fault = fault

        def __del__(self) -> None:
            if self.fault is None:
                os.kill(os.getpid(), signal.SIGINT)
            else:
                raise self.fault

    script = [Dropped(None), Dropped(ValueError("a fault of the program"))]
    shown: list[object] = []
    before, sys.unraisablehook = sys.unraisablehook, shown.append
    try:
        with interrupts.heard():
            script.pop(0)
            assert interrupts.came()
            script.pop()
    finally:
        sys.unraisablehook = before
    assert [type(met.exc_value) for met in shown] == [ValueError]  # type: ignore[attr-defined]


def test_another_thread_changes_no_handler() -> None:
    met: list[object] = []

    def other() -> None:
        with interrupts.heard():
            met.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert met == [signal.getsignal(signal.SIGTERM)]


def test_cleaning_up_is_not_stopped_by_a_second_signal_and_a_forked_process_ends() -> None:
    with interrupts.heard(), interrupts.first_only():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupts.exit_code() == 130
        if (child := os.fork()) == 0:
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 143
    with interrupts.heard(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
