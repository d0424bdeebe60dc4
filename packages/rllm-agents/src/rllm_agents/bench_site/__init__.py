"""`rllm bench site`: leaderboards, learning curves and transcripts as pages that need no server.

`read_boards` gathers the rows of suites, `read_curves` the learning curves, `entry_transcripts`
plays recorded actions again for people to read, and `write_site` puts all of it beside the page.
"""

from rllm_agents.bench_site.boards import Board, read_boards
from rllm_agents.bench_site.curves import read_curves
from rllm_agents.bench_site.pages import SiteWritten, write_site
from rllm_agents.bench_site.transcripts import entry_transcripts

__all__ = [
    "Board",
    "SiteWritten",
    "entry_transcripts",
    "read_boards",
    "read_curves",
    "write_site",
]
