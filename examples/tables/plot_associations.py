"""
What belongs together in a table
================================

Thirty measurements of 569 breast tumours (the Wisconsin table that comes with scikit-learn), each above or below its
median, and the diagnosis. Nearly everything is correlated with everything: a large tumour is large in every respect.
A sparse network says with far fewer numbers what goes with what *when the rest is known*.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import sbnet.plots
from sbnet.estimators import SBNDensity

data = load_breast_cancer(as_frame=True)
table = (data.data > data.data.median()).astype(int).assign(benign=data.target)

# %%
# Scales of the prior are chosen on validation rows, and the prior is a Laplace one: a weight that rows do not ask
# for is small or exactly zero. With ``hidden=0, column_mixtures=0`` all that was found is in the edges between columns.

density = SBNDensity(hidden=0, column_mixtures=0, random_state=0).fit(table)
pairs = table.shape[1] * (table.shape[1] - 1) // 2
correlated = (np.abs(np.triu(table.corr(), 1)) > 0.2).sum()
strong = (np.abs(density.network_.weight) > 1.0).sum()
print(f"{pairs} pairs of columns: {correlated} correlations beyond 0.2, {strong} edges with weights beyond 1")

# %%
# The matrix of correlations is blue nearly everywhere. The bars are the strongest edges: areas and perimeters are told
# by radii, concavity by compactness, and of all measurements it is the worst radius that tells benign tumours from
# others first. The percentages say how often an edge was found again in twenty tables of rows drawn from this one.

fig, (above, below) = plt.subplots(2, 1, figsize=(7, 11), layout="constrained")
image = above.imshow(table.corr(), cmap=sbnet.plots.WEIGHTS, vmin=-1, vmax=1, aspect="auto")
above.set_xticks([])
above.set_yticks(range(table.shape[1]), table.columns, size=8)
above.set_title("correlations", size=10, loc="left")
fig.colorbar(image, ax=above, shrink=0.6)
sbnet.plots.associations(density, bootstrap=20, X=table, ax=below)
plt.show()

# %%
# An edge is a log odds ratio, all columns before it given, so what stands beside it in the table matters: in another
# order of the columns a pair may need no edge, because a column between them tells the same. ``orders=4`` learns four
# orders, and the bars are then the means of their weights.
