"""Workflows of several calls and roles, one file each."""

from rllm_agents.workflows.best_of_n import BestOfNWorkflow
from rllm_agents.workflows.chat import Chat
from rllm_agents.workflows.debate import DebateWorkflow
from rllm_agents.workflows.match import MatchWorkflow
from rllm_agents.workflows.multi_turn import MultiTurnWorkflow
from rllm_agents.workflows.plan_execute import PlanExecuteWorkflow
from rllm_agents.workflows.self_refine import SelfRefineWorkflow
from rllm_agents.workflows.single_turn import SingleTurnWorkflow
from rllm_agents.workflows.solver_judge import SolverJudgeWorkflow

__all__ = [
    "BestOfNWorkflow",
    "Chat",
    "DebateWorkflow",
    "MatchWorkflow",
    "MultiTurnWorkflow",
    "PlanExecuteWorkflow",
    "SelfRefineWorkflow",
    "SingleTurnWorkflow",
    "SolverJudgeWorkflow",
]
