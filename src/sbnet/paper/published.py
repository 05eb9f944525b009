"""The numbers of Saul, Jaakkola & Jordan (1996), in one place."""

from __future__ import annotations

import numpy as np

CITATION = (
    "L. K. Saul, T. Jaakkola and M. I. Jordan, “Mean Field Theory for Sigmoid Belief Networks”, Journal of "
    "Artificial Intelligence Research 4 (1996), 61–76"
)

SIZES = (8, 24, 64)
"""Units of the digit networks, top to bottom (section 4)."""

EPOCHS, RATE, N_TRAIN, N_TEST = 5, 0.05, 700, 400
"""Sweeps through the training set, learning rate, training and test images of each digit (section 4)."""

FIGURE_2 = {"exact": 0.806, "xi": 0.818, "jensen": 0.974}
"""The mean of ln(1 + e^z) for a Gaussian z, and the bounds with the best ξ and with ξ = 0."""

FIGURE_5 = {"mean field": 1.6, "uniform": 22.6}
"""Relative errors in per cent over random 2×4×6 networks: the mean one, and the root mean square one."""

TABLE_1 = np.array(
    [
        [388, 2, 2, 0, 1, 3, 0, 0, 4, 0],
        [0, 393, 0, 0, 0, 1, 0, 0, 6, 0],
        [1, 2, 376, 1, 3, 0, 4, 0, 13, 0],
        [0, 2, 4, 373, 0, 12, 0, 0, 6, 3],
        [0, 0, 2, 0, 383, 0, 1, 2, 2, 10],
        [0, 2, 1, 13, 0, 377, 2, 0, 4, 1],
        [1, 4, 2, 0, 1, 6, 386, 0, 0, 0],
        [0, 1, 0, 0, 0, 0, 0, 388, 3, 8],
        [1, 9, 1, 7, 0, 7, 1, 1, 369, 4],
        [0, 4, 0, 0, 0, 0, 0, 8, 5, 383],
    ]
)
"""Confusion matrix: how often digit i (row) was classified as digit j (column)."""
TABLE_1.setflags(write=False)

ERRORS = 184
"""Test images classified wrongly, of 4,000."""

TABLE_2 = {"nearest neighbour": 6.7, "back-propagation": 5.6, "wake-sleep": 4.8, "mean field": 4.6}
"""Classification errors in per cent; the first three are those of Hinton, Dayan, Frey & Neal (1995)."""

TABLE_3 = (-0.447, -0.296, -0.636, -0.583, -0.574, -0.565, -0.515, -0.434, -0.569, -0.495)
"""Normalised score of each digit; -1 is that of a network with zero weights and biases."""

TABLE_3_ALL = -0.511
