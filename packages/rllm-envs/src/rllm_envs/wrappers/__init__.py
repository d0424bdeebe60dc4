"""Wrappers of text environments: other views of observations, actions, tools, limits, records.

Each keeps its arguments, which are JSON data, in the spec, so ``gymnasium.make(env.spec)`` and an
environment's process rebuild the whole stack. Attributes of the environment inside, such as
``oracle_action``, are reached by ``env.get_wrapper_attr``.
"""

from rllm_envs.wrappers.actions import InvalidAction, JsonAction
from rllm_envs.wrappers.observations import ChatObservation, DictObservation, History
from rllm_envs.wrappers.record import RecordEpisodes, replay_episode
from rllm_envs.wrappers.tools import ToolWrapper
from rllm_envs.wrappers.turn_limit import TurnLimit

__all__ = [
    "ChatObservation",
    "DictObservation",
    "History",
    "InvalidAction",
    "JsonAction",
    "RecordEpisodes",
    "ToolWrapper",
    "TurnLimit",
    "replay_episode",
]
