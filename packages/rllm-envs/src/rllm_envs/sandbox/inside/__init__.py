"""What runs inside the sandbox: standard library only, imports nothing of ``rllm_envs``."""
