from __future__ import annotations

import os
import signal
import threading

import pytest

from rllm_learn.interrupts import interrupt_deferred


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_inside_arrives_at_the_end(number):
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    reached = []
    with pytest.raises(KeyboardInterrupt), interrupt_deferred():
        os.kill(os.getpid(), number)
        reached.append("end of the block")
    assert reached == ["end of the block"]
    assert signal.getsignal(number) is signal.default_int_handler
    signal.signal(signal.SIGTERM, before)


def test_without_an_interrupt_nothing_is_raised():
    with interrupt_deferred():
        pass


def test_in_another_thread_it_does_nothing():
    result = []

    def work():
        with interrupt_deferred():
            result.append("ran")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert result == ["ran"]
