"""The embedded digits: whole, of the paper's sizes, and as hard as the paper says."""

from __future__ import annotations

import numpy as np
import pytest

from sbnet.datasets import Digits, digits, load_digits
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
