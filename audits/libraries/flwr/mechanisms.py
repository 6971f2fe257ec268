"""One round of Flower's central differential privacy: clients train, the server clips, averages and adds noise.

A dataset is the list of the clients' updates, one number each; the model is 0 before the round. What is released is the
new model. Flower draws its noise from numpy's global state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import (
    DifferentialPrivacyServerSideAdaptiveClipping,
    DifferentialPrivacyServerSideFixedClipping,
    FedAvg,
)
from flwr.serverapp.strategy.strategy import Strategy
from flwr.supercore.task_identity import TaskIdentity

logging.getLogger("flwr").setLevel(logging.CRITICAL)  # it logs a line a client
TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # as in the process of a server app
Client = Callable[[Message, Context | None], Message]


class _Grid:
    """As much of a grid as a strategy asks for its round: the nodes there are."""

    def __init__(self, nodes: int) -> None:
        self.nodes = list(range(1, nodes + 1))

    def get_node_ids(self) -> list[int]:
        return self.nodes


def _client(update: float, examples: int) -> Client:
    """A client that moves the one weight of the model by its update."""

    def train(message: Message, context: Context | None) -> Message:
        weight = message.content["arrays"]["weight"].numpy() + update
        metrics = MetricRecord({"num-examples": examples})
        content = RecordDict({"arrays": ArrayRecord({"weight": Array(weight)}), "metrics": metrics})
        return Message(content, reply_to=message)

    return train


def _round(strategy: Strategy, updates: list[float], examples: list[int], rng: np.random.Generator) -> float:
    np.random.seed(rng.integers(2**32))
    model = ArrayRecord({"weight": Array(np.zeros(1))})
    replies = []
    messages = strategy.configure_train(1, model, ConfigRecord(), _Grid(len(updates)))
    for message, update, number in zip(messages, updates, examples, strict=True):
        replies.append(_client(update, number)(message, None))
    arrays, _ = strategy.aggregate_train(1, replies)
    return float(arrays["weight"].numpy()[0])


def fixed(updates: list[float], rng: np.random.Generator, *, noise_multiplier: float) -> float:
    """Server-side fixed clipping to norm 1."""
    clients = len(updates)
    plain = FedAvg(min_train_nodes=clients, min_available_nodes=clients)
    strategy = DifferentialPrivacyServerSideFixedClipping(plain, noise_multiplier, 1.0, clients)
    return _round(strategy, updates, [1] * clients, rng)


def weighted(clients: list[list[float]], rng: np.random.Generator, *, noise_multiplier: float) -> float:
    """The same; a client is its update and its number of examples."""
    plain = FedAvg(min_train_nodes=len(clients), min_available_nodes=len(clients))
    strategy = DifferentialPrivacyServerSideFixedClipping(plain, noise_multiplier, 1.0, len(clients))
    updates, examples = [each[0] for each in clients], [int(each[1]) for each in clients]
    return _round(strategy, updates, examples, rng)


def adaptive(updates: list[float], rng: np.random.Generator, *, noise_multiplier: float, clip_norm_lr: float) -> float:
    """Server-side adaptive clipping from norm 1, noise of standard deviation 2 on the number of clipped updates."""
    clients = len(updates)
    plain = FedAvg(min_train_nodes=clients, min_available_nodes=clients)
    strategy = DifferentialPrivacyServerSideAdaptiveClipping(
        plain, noise_multiplier, clients, 1.0, clip_norm_lr=clip_norm_lr, clipped_count_stddev=2.0
    )
    return _round(strategy, updates, [1] * clients, rng)


def divided_by_zero(output: object) -> bool:
    """The round ended in ZeroDivisionError."""
    return isinstance(output, ZeroDivisionError)


def positive(output: float) -> bool:
    """The new weight is above 0.1, in the middle of the two averages."""
    return output > 0.1


def above_three_quarters(output: float) -> bool:
    """The new weight is above 0.75, in the middle of the two averages of clipped updates."""
    return output > 0.75
