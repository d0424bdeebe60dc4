"""Configuration: typed schemas, the YAML files that compose them, and how a run reads them.

`@hydra.main(config_path="pkg://rllm_learn.config", config_name="grpo_trainer")` finds the files
of this directory; importing it registers the schemas that they start from.
"""

from hydra.core.config_store import ConfigStore

from rllm_learn.algorithms import ALGORITHMS
from rllm_learn.config.loading import load_config, to_settings
from rllm_learn.config.players import PlayerConfig
from rllm_learn.config.schema import (
    TRACKERS,
    DPOFileConfig,
    SFTConfig,
    TrackingConfig,
    TrainerConfig,
)

_store = ConfigStore.instance()
_store.store(name="trainer_schema", node=TrainerConfig)
_store.store(name="sft_schema", node=SFTConfig)
_store.store(name="dpo_schema", node=DPOFileConfig)
for _name, (_settings, _) in ALGORITHMS.items():
    _store.store(group="algorithm", name=_name, node=_settings)

__all__ = [
    "TRACKERS",
    "DPOFileConfig",
    "PlayerConfig",
    "SFTConfig",
    "TrackingConfig",
    "TrainerConfig",
    "load_config",
    "to_settings",
]
