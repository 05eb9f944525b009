"""The paper's handwritten digits as binary images; where they come from is told in PROVENANCE.md, beside this file."""

from __future__ import annotations

import hashlib
import io
from importlib import resources
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sbnet.errors import FileFormatError, ParameterError

N_TRAIN = 700
"""Training images per digit; the others, 400, are for test."""

_SHA256 = {
    "digits_8x8.npy": "c594c190640fe3f7d3448ec30785eabaef7caf64a3655205c122198bf047862a",
    "digits_16x16.npy": "44d3b0a486ef93b1a478fb968cbce1bf1a62a5dad6d292a5b16c1a9dccf3de6f",
}


class Digits(NamedTuple):
    """Binary images of handwritten digits, one image per row, sorted by digit.

    Attributes
    ----------
    train, test : arrays of uint8, shapes (7000, size²) and (4000, size²)
        Pixels, 0 or 1, row by row from the top left: ``train[0].reshape(8, 8)`` is an image.
    train_target, test_target : arrays of uint8, shapes (7000,) and (4000,)
        The digit, 0 to 9, of each image.

    Examples
    --------
    >>> from sbnet.datasets import load_digits
    >>> digits = load_digits()
    >>> digits.train.shape, digits.test.shape
    ((7000, 64), (4000, 64))
    """

    train: NDArray[np.uint8]
    train_target: NDArray[np.uint8]
    test: NDArray[np.uint8]
    test_target: NDArray[np.uint8]

    def __repr__(self) -> str:
        size = round(self.train.shape[1] ** 0.5)
        return f"<Digits: {size} × {size} binary images, {len(self.train):,} for training, {len(self.test):,} for test>"


def load_digits(*, size: Literal[8, 16] = 8) -> Digits:
    """The digits of the paper's section 4: 700 training and 400 test images of each digit.

    The images are those of the US Postal Service collection (J. J. Hull, IEEE PAMI 16(5), 1994), made binary with a
    threshold of 0.181, for which the nearest-neighbour error is the published 6.7 %. They are part of the package:
    nothing is downloaded.

    Parameters
    ----------
    size : {8, 16}
        Width and height of the images. The paper used 8; 16 is the resolution of the collection.

    Returns
    -------
    Digits
        A named tuple ``(train, train_target, test, test_target)``.

    Raises
    ------
    sbnet.errors.FileFormatError
        The installed file was changed: its checksum is not the one of the release.

    Examples
    --------
    >>> from sbnet.datasets import load_digits
    >>> digits = load_digits()
    >>> digits
    <Digits: 8 × 8 binary images, 7,000 for training, 4,000 for test>
    >>> twos = digits.train[digits.train_target == 2]
    >>> twos.shape
    (700, 64)
    """
    name = f"digits_{size}x{size}.npy"
    if name not in _SHA256:
        raise ParameterError(f"size is {size!r}; the digits come as 8 × 8 and 16 × 16 images: give 8 or 16")
    content = _read(name)
    found = hashlib.sha256(content).hexdigest()
    if found != _SHA256[name]:
        raise FileFormatError(
            f"the data file {name} is damaged: its sha256 begins with {found[:12]}, expected {_SHA256[name][:12]}. "
            "Install sbnet again, or make the file anew with scripts/make_digits.py"
        )
    packed = np.load(io.BytesIO(content), allow_pickle=False)  # (digit, image, bytes)
    images = np.unpackbits(packed, axis=2)
    n_digits, n_images, n_pixels = images.shape
    digit = np.arange(n_digits, dtype=np.uint8)
    return Digits(
        train=images[:, :N_TRAIN].reshape(-1, n_pixels),
        train_target=np.repeat(digit, N_TRAIN),
        test=images[:, N_TRAIN:].reshape(-1, n_pixels),
        test_target=np.repeat(digit, n_images - N_TRAIN),
    )


def _read(name: str) -> bytes:
    return resources.files("sbnet.datasets").joinpath(name).read_bytes()
