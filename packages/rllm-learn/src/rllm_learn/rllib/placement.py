"""How much of a cluster each actor takes."""

from __future__ import annotations

from typing import Any


def learner_options(config: Any) -> dict[str, Any]:
    """Return Ray's options of one learner actor of an `LLMAlgorithmConfig`."""
    cpus = config.num_cpus_per_learner
    return {
        "num_cpus": 1 if cpus == "auto" else cpus,
        "num_gpus": config.num_gpus_per_learner,
        "resources": dict(config.custom_resources_per_learner or {}),
    }


def engine_options(config: Any) -> dict[str, Any]:
    """Return Ray's options of one engine actor."""
    return {"num_cpus": config.num_cpus_per_engine, "num_gpus": config.num_gpus_per_engine}


def resources(config: Any) -> dict[str, float]:
    """Return what all actors need together; the algorithm's own process is not one of them."""
    total = {"CPU": 0.0, "GPU": 0.0}
    for bundle in bundles(config)[1:]:
        for kind, number in bundle.items():
            total[kind] = total.get(kind, 0.0) + number
    return total


def bundles(config: Any) -> list[dict[str, float]]:
    """Return what Tune reserves: the algorithm itself, runners, learners and engines, in order."""
    main = {"CPU": config.num_cpus_for_main_process, **config.custom_resources_for_main_process}
    if config.num_learners == 0:
        main["GPU"] = config.num_gpus_per_learner
    runner = {"CPU": config.num_cpus_per_env_runner, **config.custom_resources_per_env_runner}
    learner, engine = learner_options(config), engine_options(config)
    return [
        {kind: number for kind, number in bundle.items() if number}
        for bundle in (
            main,
            *[runner] * (config.num_env_runners + config.evaluation_num_env_runners),
            *[_bundle(learner)] * config.num_learners,
            *[_bundle(engine)] * config.num_engines,
        )
    ]


def _bundle(options: dict[str, Any]) -> dict[str, float]:
    return {
        "CPU": options["num_cpus"],
        "GPU": options["num_gpus"],
        **options.get("resources", {}),
    }
