"""The commands that this package adds to `rllm`: `train` and `sft`."""
