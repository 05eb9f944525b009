"""
A survey with missing values
============================

Five hundred people were asked twelve things: their region, their trade, how they like three statements, what they earn.
A seventh of the answers is missing, and three rows are not what they seem. This is the whole way of such a table:
read it, fill it, find the odd rows, and say what is odd about one. Nothing is recoded by hand.
"""

# %%
# The table
# ---------
# Synthetic, so that the truth is known: four kinds of people, an interest that shows in three statements, and incomes
# that follow education. There are words, ordered categories, numbers and truth values in it, and missing values.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sbnet.estimators import SBNImputer, SBNOutlier

rng = np.random.default_rng(3)
n = 500
LEVELS = ["none", "school", "college", "degree"]


def choose(words, logits):
    """One word for each row, with probabilities from logits."""
    noise = rng.gumbel(size=logits.shape)
    return np.array(words, dtype=object)[(logits + noise).argmax(axis=1)]


kind, interest, skill = rng.integers(0, 4, n), rng.normal(size=n), rng.normal(size=n)
education = np.digitize(skill + 0.4 * rng.normal(size=n), [-0.8, 0.2, 1.0])
age = np.clip(44 + 16 * rng.normal(size=n), 18, 90).round()
income = np.exp(9.6 + 0.45 * education + 0.01 * (age - 44) + 0.25 * rng.normal(size=n)).round(-2)
answers = {f"likes {what}": sign * interest for what, sign in [("plan", 1.2), ("plan B", -1.2), ("debate", 0.8)]}
truth = pd.DataFrame(
    {
        "age": age,
        "education": pd.Categorical(np.array(LEVELS)[education], categories=LEVELS, ordered=True),
        "income": income,
        "owns car": rng.random(n) < 1 / (1 + np.exp(-3 * (np.log(income) - 10.2))),
        "region": choose(["north", "south", "east", "west"], 2.2 * np.eye(4)[kind]),
        "trade": choose(["farm", "office", "health", "school", "other"], 2.5 * np.eye(5)[(kind + 1) % 5]),
        **{name: np.clip(np.round(3 + push + 0.6 * rng.normal(size=n)), 1, 5) for name, push in answers.items()},
        "children": np.clip(np.round((age - 25) / 14 + 0.5 * rng.normal(size=n)), 0, 3) + 0.0,
        "smokes": np.where(rng.random(n) < 0.15 + 0.3 * (kind == 2), "yes", "no"),
        "party": choose(["A", "B", "C"], 2.0 * np.eye(4)[kind][:, :3]),
    }
)
survey = truth.astype({"owns car": "boolean"})
gone = rng.random(survey.shape) < 1 / 7
survey = survey.mask(gone)
print(survey.head().to_string())

# %%
# Read, and filled
# ----------------
# Each column becomes a variable with states, by rules that can be read in the schema. What comes back is a table of the
# same kind: the same columns, the same types, observed cells untouched.

imputer = SBNImputer(random_state=0).fit(survey)
print(imputer.schema_)
filled = imputer.transform(survey)
assert filled.dtypes.equals(survey.dtypes)
print(filled.head().to_string())

# %%
# How good is it? The missing answers are known here. Numbers count as right if they are in the right interval.

names = list(survey.columns)
read = imputer.schema_.encode
true, seen = read(truth.astype({"owns car": "boolean"})), read(survey)
right = read(filled) == true
usual = true == [np.bincount(column[column >= 0]).argmax() for column in seen.T]
ours, frequent = (np.array([hits[gone[:, k], k].mean() for k in range(len(names))]) for hits in (right, usual))
order = np.argsort(ours)

fig, ax = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
ax.hlines(np.arange(len(names)), 100 * frequent[order], 100 * ours[order], color="#bbbbbb", lw=2)
ax.plot(100 * frequent[order], np.arange(len(names)), "s", color="#999999", label="the most frequent value")
ax.plot(100 * ours[order], np.arange(len(names)), "o", color="#0072B2", label="SBNImputer")
ax.set_yticks(np.arange(len(names)), [names[k] for k in order])
ax.set(xlabel="missing answers filled in right, %", xlim=(0, 100))
ax.legend(frameon=False, loc="lower right")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Odd rows
# --------
# Three rows are changed: in each, answers that do not go together. The detector learns from the whole table with its
# missing values, the changed rows among them.

changed = [40, 222, 409]
survey.loc[40, ["education", "income", "owns car"]] = ["none", 64000.0, False]
survey.loc[222, ["likes plan", "likes plan B", "likes debate"]] = [5.0, 5.0, 1.0]
survey.loc[409, ["age", "children", "education"]] = [19.0, 3.0, "degree"]
outlier = SBNOutlier(random_state=0).fit(survey)
scores = pd.Series(outlier.score_samples(survey), index=survey.index)
print(scores.rank()[changed].astype(int).rename("rank of the changed rows, from the least likely of 500"))

# %%
# What is odd about a row? Each cell costs as many nats as the score rises without it: -ln P(cell | the others).

why = outlier.explain(survey.loc[changed])
print(why[1])
fig, axes = plt.subplots(3, 1, figsize=(7.0, 8.6), layout="constrained")
for one, ax in zip(why, axes, strict=True):
    one.plot(ax)
plt.show()
