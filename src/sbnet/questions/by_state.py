"""Means by variable and state: what columns of probabilities of states from the second one on say of each variable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sbnet._types import HIDDEN, FloatArray, IndexArray, States
from sbnet.model.network import Network
from sbnet.model.states import takes_bits


def columns_at(network: Network, variables: Iterable[int]) -> IndexArray:
    """The columns of some variables, one after the other."""
    if network.is_binary:
        return np.fromiter(variables, np.int64)
    return np.concatenate([np.arange(0), *(np.r_[network.columns_of(int(i))] for i in variables)])


def probabilities(own: FloatArray) -> FloatArray:
    """The probabilities of all states of a variable, from its columns: what is left belongs to the first state."""
    own = np.asarray(own)
    first = np.maximum(1.0 - own.sum(axis=-1, keepdims=True), 0.0)
    whole: FloatArray = np.concatenate([first, own], axis=-1)
    return whole


def by_state(states: tuple[str, ...], own: FloatArray) -> Any:
    """A number for two states, else a mapping from states to probabilities, in their order; arrays for rows."""
    if len(states) == 2:
        return float(own[0]) if own.ndim == 1 else own[..., 0]
    whole = probabilities(own)
    return {name: float(whole[k]) if own.ndim == 1 else whole[..., k] for k, name in enumerate(states)}


def by_number(states: tuple[str, ...]) -> bool:
    """Are these two states whose numbers say in evidence what they say in answers?"""
    return states == ("0", "1") or takes_bits(states)


def all_by_number(network: Network) -> bool:
    """Do all variables have such states?"""
    return network.is_binary and all(map(by_number, network.named_states.values()))


def state_value(network: Network, i: int, state: int) -> Any:
    """A state as answers tell it: by number, else its name; None if it is not known."""
    states = network.states[network.names[i]]
    return None if state == HIDDEN else int(state) if by_number(states) else states[state]


def state_values(network: Network, states: States) -> list[Any]:
    """The states of all variables, as answers tell them."""
    return [state_value(network, i, state) for i, state in enumerate(states.tolist())]


def observed_column(network: Network, states: States) -> Any:
    """What was observed, for a table with a row for each variable: numbers and NaN, or names and None."""
    if all_by_number(network):
        return np.where(states == HIDDEN, np.nan, states)
    return state_values(network, states)


def by_variable(network: Network, variables: Iterable[int], means: FloatArray) -> dict[str, list[Any]]:
    """Columns of a table with a row for each variable: its likeliest state, the probability of it, and those of all.

    `means` are the columns of these variables, one after the other.
    """
    table: dict[str, list[Any]] = {"state": [], "probability": [], "distribution": []}
    end = 0
    for i in variables:
        states = network.states[network.names[i]]
        begin, end = end, end + len(states) - 1
        p = probabilities(means[begin:end])
        best = 0 if np.isnan(p).any() else int(np.argmax(p))
        table["state"].append(None if np.isnan(p).any() else states[best])
        table["probability"].append(float(p[best]))
        table["distribution"].append(dict(zip(states, p.tolist(), strict=True)))
    return table


def frame_columns(network: Network, variables: Iterable[int], means: FloatArray) -> tuple[FloatArray, list[str]]:
    """A table of rows, and titles for its columns: a variable with two states has one, one with more has one for each
    state, ``fever = high``."""
    if network.is_binary:
        return means, [network.names[i] for i in variables]
    parts, titles, end = [means[:, :0]], list[str](), 0
    for i in variables:
        name, states = network.names[i], network.states[network.names[i]]
        begin, end = end, end + len(states) - 1
        own = means[:, begin:end]
        parts.append(own if len(states) == 2 else probabilities(own))
        titles += [name] if len(states) == 2 else [f"{name} = {state}" for state in states]
    return np.concatenate(parts, axis=1), titles
