"""What a unit does in given states of its parents, as a table: certain chances are shown as such."""

from __future__ import annotations

import pytest

import sbnet as sb
from sbnet.errors import ParameterError

pytestmark = pytest.mark.small


def test_chances_of_zero_and_one_are_taken_and_shown():
    net = sb.noisy_or({("spare", "lamp"): 0.0, ("mains", "lamp"): 1.0}, prior=0.5)  # and no leak
    table = net.conditional("lamp")
    assert dict(zip(map(tuple, table.states), table.p, strict=True)) == {(0, 0): 0, (0, 1): 1, (1, 0): 0, (1, 1): 1}
    assert "none of its parents  0.0000" in repr(table)


@pytest.mark.parametrize("wrong", [-0.1, 1.5, float("nan"), "0.5", None])
def test_what_is_no_chance_is_refused_by_name(wrong):
    with pytest.raises(ParameterError, match=r"causes\['a', 'b'\] is .*; it must be a probability, from 0 to 1"):
        sb.noisy_or({("a", "b"): wrong}, prior=0.5)
    with pytest.raises(ParameterError, match=r"leak\['b'\] is "):
        sb.noisy_or({("a", "b"): 0.5}, leak={"b": wrong}, prior=0.5)


def test_many_parents_are_shown_alone_and_all_together():
    net = sb.noisy_or({(f"cause {k}", "effect"): 0.5 for k in range(40)}, leak=0.01, prior=0.1)
    lines = repr(net.conditional("effect")).splitlines()
    assert len(lines) == 1 + 1 + 40 + 1
    assert lines[-1].startswith("  all 40 parents")
    assert max(map(len, lines)) < 60


def test_what_cannot_be_is_told_without_a_warning():  # its chance counts as 1e-300; warnings are errors here
    net = sb.noisy_or({("mains", "lamp"): 1.0}, prior=0.5)
    assert sb.log_joint(net, [[0, 1]])[0] < -600
    assert sb.log_likelihood(net, {"mains": 0, "lamp": 1}) < -600
