"""Ray on this machine, and two simulated machines, for the rows of training_actors.py."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import ray
from ray.cluster_utils import Cluster
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy


@contextlib.contextmanager
def local_ray() -> Iterator[None]:
    """Start Ray for the block."""
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        yield
    finally:
        ray.shutdown()


@contextlib.contextmanager
def two_nodes() -> Iterator[tuple[Cluster, Any]]:
    """Start simulated machines of two CPUs and of one, and connect to the first."""
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 2, "include_dashboard": False},
    )
    node = cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    cluster.wait_for_nodes()
    try:
        yield cluster, node
    finally:
        ray.shutdown()
        cluster.shutdown()


def hold_room(cluster: Cluster, cpus: float) -> Any:
    """Return an actor on the first machine that keeps some of its CPUs from others."""
    place = NodeAffinitySchedulingStrategy(cluster.head_node.node_id, soft=False)
    held = ray.remote(_Room).options(num_cpus=cpus, scheduling_strategy=place).remote()
    ray.get(held.ready.remote())
    return held


class _Room:
    """Does nothing."""

    def ready(self) -> None:
        """Return once it is there."""
