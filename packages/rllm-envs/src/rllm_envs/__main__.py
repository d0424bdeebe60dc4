"""``python -m rllm_envs``: the commands of ``rllm_envs.cli``."""

import os
import sys

from rllm_envs.cli import main

if __name__ == "__main__":
    try:
        code = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # Who reads has had enough, as in `list | head`; nothing more is written at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)
