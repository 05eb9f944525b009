"""Make the embedded binary digits from the grey levels of the US Postal Service collection.

    python scripts/make_digits.py usps_all.mat

prints the nearest-neighbour error of every threshold from 0.150 to 0.200, chooses one by that table alone, and writes
the bit-packed images into the package. Needs scipy, to read the file; the package itself needs only numpy.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import numpy as np
import scipy.io
from numpy.typing import NDArray

PUBLISHED = 0.067  # nearest neighbour in the paper's Table 2
THRESHOLDS = range(150, 201)  # in thousandths, so that every comparison is between whole numbers
N_TRAIN = 700
FOLDER = Path(__file__).resolve().parents[1] / "src" / "sbnet" / "datasets"


def read_grey(path: Path) -> NDArray[np.int64]:
    """Grey levels 0..255 as (digit, image, row, column), digits 0 to 9 in order, images in the order of the file."""
    data = scipy.io.loadmat(path)["data"]
    if data.shape != (256, 1100, 10):
        raise SystemExit(f"{path} holds data of shape {data.shape}; expected (256, 1100, 10)")
    grey = data.transpose(2, 1, 0).reshape(10, 1100, 16, 16).swapaxes(2, 3)  # pixels are stored column by column
    return np.roll(grey, 1, axis=0).astype(np.int64)  # the class axis is 1, 2, ..., 9, 0


def binary(grey: NDArray[np.int64], size: int, threshold: int) -> NDArray[np.uint8]:
    """1 where the mean of grey/255 over a block of pixels is over the threshold (in thousandths)."""
    block = 16 // size
    total = grey.reshape(10, 1100, size, block, size, block).sum(axis=(3, 5))
    return (1000 * total > threshold * 255 * block**2).reshape(10, 1100, size**2).astype(np.uint8)


def nearest_neighbour_error(images: NDArray[np.uint8]) -> float:
    """Test error of the nearest training image in Hamming distance; of equally near images, the first one decides."""
    train = images[:, :N_TRAIN].reshape(-1, images.shape[2]).astype(np.float32)
    wrong = 0
    for digit in range(10):
        test = images[digit, N_TRAIN:].astype(np.float32)
        distance = test.sum(axis=1)[:, None] + train.sum(axis=1) - 2.0 * test @ train.T  # small integers: exact
        wrong += int(np.count_nonzero(distance.argmin(axis=1) // N_TRAIN != digit))
    return wrong / (10 * (images.shape[1] - N_TRAIN))


def choose_threshold(grey: NDArray[np.int64]) -> int:
    """The threshold whose error is nearest to the published one; of equally near thresholds, the lowest."""
    print("threshold   nearest-neighbour error, 8x8")
    errors = {}
    for threshold in THRESHOLDS:
        errors[threshold] = nearest_neighbour_error(binary(grey, 8, threshold))
        print(f"   {threshold / 1000:.3f}   {100 * errors[threshold]:.3f} %")
    chosen = min(errors, key=lambda threshold: (round(abs(errors[threshold] - PUBLISHED), 9), threshold))
    print(f"chosen: {chosen / 1000:.3f}, error {100 * errors[chosen]:.3f} % (published: {100 * PUBLISHED:.1f} %)")
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="usps_all.mat")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write (default: inside the package)")
    arguments = parser.parse_args()
    grey = read_grey(arguments.file)
    threshold = choose_threshold(grey)
    for size in (8, 16):
        images = binary(grey, size, threshold)
        path = arguments.folder / f"digits_{size}x{size}.npy"
        np.save(path, np.packbits(images, axis=2), allow_pickle=False)
        error = nearest_neighbour_error(images)
        checksum = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{path.name}: {path.stat().st_size:,} bytes, nearest neighbour {100 * error:.3f} %, sha256 {checksum}")


if __name__ == "__main__":
    main()
