"""A server that speaks the OpenAI protocol and records every token that it samples."""

from rllm_agents.gateway.access import Token
from rllm_agents.gateway.endings import Ending
from rllm_agents.gateway.programs import AgentProgram
from rllm_agents.gateway.server import Gateway
from rllm_agents.gateway.sessions import GatewaySession
from rllm_agents.gateway.settings import GatewaySettings

__all__ = ["AgentProgram", "Ending", "Gateway", "GatewaySession", "GatewaySettings", "Token"]
