"""A page in the browser that shows a run directory: curves, episodes, tokens, where time went.

`RunFiles` finds and reads what a run has left so far, `EpisodeIndex` knows where each episode
stands, `select` filters and sorts, `Viewer` serves it all to this machine alone. Nothing is
written, and nothing that a model said is ever markup.
"""

from rllm_agents.viewer.server import Viewer

__all__ = ["Viewer"]
