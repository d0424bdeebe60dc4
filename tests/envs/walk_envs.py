"""Environments for the tests of pools: random walks, faults on demand, and gates."""

import ctypes
import os
import signal
import threading

import gymnasium

from rllm_envs import Response, TextEnv

GATES = [threading.Semaphore(0) for _ in range(16)]
"""What ``GateEnv`` number i waits for at each step."""

RELEASE = threading.Event()
"""Ends all hanging steps, so that no thread outlives the tests."""


class WalkEnv(TextEnv):
    """Random observations, rewards and lengths: any disturbance of its generator shows."""

    def __init__(self, *, max_turns=4, split="all", render_mode=None):
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self._left = 0

    def generate_task(self):
        return {
            "length": int(self.np_random.integers(1, 7)),
            "salt": int(self.np_random.integers(1 << 30)),
        }

    def begin(self, task):
        self._left = task["length"]
        return f"start {task['length']} {task['salt']}"

    def respond(self, action):
        self._left -= 1
        draw = int(self.np_random.integers(1 << 30))
        reward = float(self.np_random.random())
        info = {"draw": draw, "half": draw / 2, "parts": {"action": action, "left": self._left}}
        return Response(f"{action} {draw}", reward, terminated=self._left <= 0, info=info)

    def oracle_action(self):
        return "go"


class FaultyEnv(WalkEnv):
    """A walk on which the agent can break things."""

    def respond(self, action):
        if action == "raise":
            raise ValueError("out of bread")
        if action == "exit":
            raise SystemExit(4)
        if action == "hang":
            RELEASE.wait()
        if action == "die":
            os.kill(os.getpid(), signal.SIGSEGV)
        if action == "hold":
            # Waits in C without giving the interpreter's lock back.
            ctypes.PyDLL(None).pause()
        if action == "shout":
            os.write(1, b"not an answer\n")
        return super().respond(action)


class UnluckyEnv(WalkEnv):
    """Cannot be reset with an odd seed."""

    def reset(self, *, seed=None, options=None):
        if seed is not None and seed % 2:
            raise OSError("odd")
        return super().reset(seed=seed, options=options)


class GateEnv(WalkEnv):
    """Each step waits for a gate, and counts."""

    blocking = True

    def __init__(self, *, gate=0, max_turns=1000, render_mode=None):
        super().__init__(max_turns=max_turns, render_mode=render_mode)
        self.gate = gate
        self._count = 0

    def begin(self, task):
        self._count = 0
        return f"{self.gate}: begin"

    def respond(self, action):
        GATES[self.gate].acquire()
        self._count += 1
        is_over = action.endswith("last")
        return Response(f"{self.gate}: {self._count} {action}", terminated=is_over)


for _name in ("Walk", "Faulty", "Unlucky", "Gate"):
    if f"test/{_name}-v0" not in gymnasium.registry:
        gymnasium.register(f"test/{_name}-v0", entry_point=f"walk_envs:{_name}Env")
