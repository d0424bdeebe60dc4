"""Language agents as policies, and the engines that run many agent-environment pairs at once."""

from rllm_agents.agent import BaseAgent
from rllm_agents.agents.chat import ChatAgent
from rllm_agents.agents.code import CodeAgent
from rllm_agents.agents.game import GameAgent
from rllm_agents.agents.math import MathAgent
from rllm_agents.agents.react import ReActAgent
from rllm_agents.agents.tool import ToolAgent
from rllm_agents.errors import (
    AgentsError,
    EngineError,
    RendererError,
    TerminationEvent,
    TransientError,
    UserError,
    WorkflowError,
)
from rllm_agents.evaluation import evaluate, evaluate_match
from rllm_agents.execution_engine import AgentExecutionEngine
from rllm_agents.limits import RolloutLimits
from rllm_agents.match import MatchSetting, run_match
from rllm_agents.match_players import Player
from rllm_agents.metrics import PassAtK, compute_pass_at_k
from rllm_agents.policy import LLMPolicy
from rllm_agents.renderer import Renderer
from rllm_agents.rollout import RolloutSetting, run_episode
from rllm_agents.rollout_engines import RolloutEngine, ScriptedEngine
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.run_progress import RunProgress
from rllm_agents.types import (
    Action,
    Completion,
    Episode,
    GenerationRequest,
    ModelOutput,
    SamplingParams,
    Step,
    TerminationReason,
    TokenRecord,
    Trajectory,
    TurnSpan,
)
from rllm_agents.workflow import Workflow
from rllm_agents.workflow_engine import AgentWorkflowEngine

__all__ = [
    "Action",
    "AgentExecutionEngine",
    "AgentWorkflowEngine",
    "AgentsError",
    "BaseAgent",
    "ChatAgent",
    "CodeAgent",
    "Completion",
    "EngineError",
    "Episode",
    "GameAgent",
    "GenerationRequest",
    "LLMPolicy",
    "MatchSetting",
    "MathAgent",
    "ModelOutput",
    "PassAtK",
    "Player",
    "ReActAgent",
    "Renderer",
    "RendererError",
    "RolloutEngine",
    "RolloutLimits",
    "RolloutRequest",
    "RolloutSetting",
    "RunProgress",
    "SamplingParams",
    "ScriptedEngine",
    "Step",
    "TerminationEvent",
    "TerminationReason",
    "TokenRecord",
    "ToolAgent",
    "Trajectory",
    "TransientError",
    "TurnSpan",
    "UserError",
    "Workflow",
    "WorkflowError",
    "compute_pass_at_k",
    "evaluate",
    "evaluate_match",
    "run_episode",
    "run_match",
]
