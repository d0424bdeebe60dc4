"""The commands that this package adds to `rllm`: `train`, `sft` and `dpo`."""
