"""Which cells of a table are missing."""

from __future__ import annotations

import warnings
from typing import Any

from matplotlib.axes import Axes

from sbnet.errors import CodingWarning, cut
from sbnet.plots.style import axes_of, bars
from sbnet.tables.schema import Schema


def missing(table: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the share of missing cells of each column of a table as bars, in the order of the table.

    Parameters
    ----------
    table : table or Schema
        Any table that :class:`~sbnet.estimators.SBNDensity` takes; or the ``schema_`` that it has learned. Blanks
        of tick boxes are answers, and not missing.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default in a new figure of a fitting size.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import sbnet.plots
    >>> ax = sbnet.plots.missing({"age": [31, None, 47, None], "ill": ["no", "yes", None, "no"]})
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CodingWarning)
        schema = table if isinstance(table, Schema) else Schema.learn(table)
    columns, n = schema.columns, max(schema.n_rows, 1)
    ax = axes_of(ax, 7.0, 1.0 + 0.22 * max(len(columns), 3))
    rows = [(cut(one.name, 40), one.missing / n, f"{one.missing:,}" if one.missing else "") for one in columns]
    whole = sum(not column.missing for column in columns)
    title = f"missing cells of {schema.n_rows:,} rows; {whole} of {len(columns)} columns have none"
    bars(ax, rows, title, "share of rows").set_xlim(0.0, 1.0)
    return ax
