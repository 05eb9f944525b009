"""The embedded digits: whole, of the paper's sizes, and as hard as the paper says. Made clinics: as documented."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import sbnet as sb
from sbnet.datasets import Digits, clinic, digits, load_digits, make_clinic
from sbnet.errors import FileFormatError, ParameterError

N_TRAIN, N_TEST = 700, 400  # per digit, section 4 of the paper


@pytest.mark.parametrize("size", [8, 16])
def test_shapes_and_types(size):
    data = load_digits(size=size)
    assert isinstance(data, Digits)
    assert data.train.shape == (7000, size**2)
    assert data.test.shape == (4000, size**2)
    assert data.train_target.shape == (7000,)
    assert data.test_target.shape == (4000,)
    for array in data:
        assert array.dtype == np.uint8
    assert set(np.unique(data.train)) == set(np.unique(data.test)) == {0, 1}


def test_every_digit_has_700_training_and_400_test_images_in_order():
    _, train_target, _, test_target = load_digits()
    np.testing.assert_array_equal(train_target, np.repeat(np.arange(10), N_TRAIN))
    np.testing.assert_array_equal(test_target, np.repeat(np.arange(10), N_TEST))


def test_images_are_upright():
    train, target, _, _ = load_digits()
    seven = train[target == 7].mean(axis=0).reshape(8, 8)
    assert seven[:2].mean() > 2 * seven[-2:].mean()  # the bar is at the top
    assert seven[:2].mean() > 2 * seven[:, :2].mean()  # and not at the left


def test_the_8x8_image_is_about_the_16x16_image_at_half_size():
    small, large = load_digits().test, load_digits(size=16).test
    blocks = large.reshape(-1, 8, 2, 8, 2).mean(axis=(2, 4)).reshape(-1, 64)
    assert np.all(blocks[small == 0] < 1.0)  # four pixels over the threshold have a mean over it
    assert np.all(blocks[small == 1] > 0.0)  # four pixels under it, a mean under it


def test_nearest_neighbour_error_is_the_published_one():  # Table 2: 6.7 %
    train, train_target, test, test_target = load_digits()
    ink = train.sum(axis=1, dtype=np.float32)
    wrong = 0
    for rows in np.array_split(np.arange(len(test)), 8):
        distance = ink - 2.0 * test[rows].astype(np.float32) @ train.T.astype(np.float32)  # Hamming, less a constant
        wrong += np.count_nonzero(train_target[distance.argmin(axis=1)] != test_target[rows])
    assert 100 * wrong / len(test) == pytest.approx(6.7, abs=0.1)


def test_a_damaged_file_is_refused(monkeypatch):
    whole = digits._read("digits_8x8.npy")
    monkeypatch.setattr(digits, "_read", lambda name: whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(FileFormatError, match=r"digits_8x8\.npy is damaged: its sha256 begins with .*make_digits\.py"):
        load_digits()


def test_other_sizes_are_refused():
    with pytest.raises(ParameterError, match="size is 28; the digits come as 8 × 8 and 16 × 16 images"):
        load_digits(size=28)


def test_two_calls_do_not_share_memory():
    first, second = load_digits(), load_digits()
    first.train[:] = 1
    assert second.train.min() == 0


def test_repr_is_one_line():
    assert repr(load_digits()) == "<Digits: 8 × 8 binary images, 7,000 for training, 4,000 for test>"


def test_a_clinic_has_two_levels_with_the_names_it_should():
    net = make_clinic(30, 200, rng=0)
    assert net.names == tuple([f"disease {k}" for k in range(30)] + [f"finding {k}" for k in range(200)])
    assert np.all(net.graph.parent < 30)
    n_causes = np.diff(net.graph.indptr)
    assert np.all(n_causes[:30] == 0)
    assert np.all(n_causes[30:] >= 1)
    assert np.all((net.gate == 1) == (np.arange(230) >= 30))


def test_the_chances_of_a_clinic_are_those_its_docstring_tells():
    net = make_clinic(rng=1)
    n_causes = np.diff(net.graph.indptr)[600:]
    prior, leak, p = expit(net.bias[:600]), -np.expm1(-net.bias[600:]), -np.expm1(-net.weight)
    for drawn, (low, high) in ((prior, clinic.PRIORS), (leak, clinic.LEAKS)):
        assert np.all((drawn >= low * (1 - 1e-9)) & (drawn <= high * (1 + 1e-9)))
        assert np.median(drawn) == pytest.approx(np.sqrt(low * high), rel=0.25)  # uniform in the logarithm
    assert prior.sum() == pytest.approx(3, abs=0.7)
    assert leak.sum() == pytest.approx(9, abs=1)
    values, counts = np.unique(p.round(9), return_counts=True)
    np.testing.assert_allclose(values, clinic.FREQUENCIES)
    np.testing.assert_allclose(counts / len(p), clinic.SHARES, atol=0.01)
    assert n_causes.mean() == pytest.approx(10, abs=0.7)
    assert np.median(n_causes) == pytest.approx(7, abs=1)
    assert n_causes.max() >= 100


def test_a_clinic_follows_from_its_seed():
    assert make_clinic(20, 50, rng=3) == make_clinic(20, 50, rng=np.random.default_rng(3))
    assert make_clinic(20, 50, rng=3) != make_clinic(20, 50, rng=4)


def test_the_smallest_clinic_is_exact():
    net = make_clinic(1, 1, rng=0)
    prior, p, leak = expit(net.bias[0]), -np.expm1(-net.weight[0]), -np.expm1(-net.bias[1])
    on = 1.0 - (1.0 - leak) * (1.0 - prior * p)
    assert sb.log_likelihood(net, {"finding 0": 1}) == pytest.approx(np.log(on), rel=1e-12)


def test_a_clinic_without_diseases_or_findings_is_refused():
    with pytest.raises(ParameterError, match="diseases is 0; it must be a whole number, one or more"):
        make_clinic(0, 10)
    with pytest.raises(ParameterError, match="findings is 2.5; it must be a whole number, one or more"):
        make_clinic(10, 2.5)
