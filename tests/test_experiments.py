"""The paper's experiments in tiny versions, the published numbers, and the page they are shown on."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations

import matplotlib.figure as mpl_figure
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from numpy.testing import assert_allclose
from sklearn.impute import KNNImputer

import sbnet as sb
from sbnet.errors import ParameterError
from sbnet.model.mixtures import log_mean
from sbnet.paper import (
    EXPERIMENTS,
    Settings,
    baselines,
    beyond,
    choose,
    digits,
    drawing,
    figure5,
    figure6,
    figures,
    gibbs,
    missing,
    published,
    report,
    run,
    tables,
)
from sbnet.paper.baselines import BernoulliMixture
from sbnet.paper.record import Row, Table, compared, tolerance

QUICK = Settings(seeds=2, quick=True, jobs=1)


class Post:
    """In place of joblib's Parallel: tasks are sent as if to other processes, but are done here, which is quicker."""

    def __init__(self, **options):
        pass

    def __call__(self, tasks):
        sent = [pickle.loads(pickle.dumps(task)) for task in tasks]
        return [work.function(*given, **named) for work, given, named in sent]


@pytest.fixture(scope="module")
def done():
    said = []
    settings = replace(QUICK, say=lambda message: said.append(message))
    with pytest.MonkeyPatch.context() as patch:
        for module in (beyond, digits, figure5, figure6, missing, tables):
            patch.setattr(module, "Parallel", Post)
        results = {one.name: one for one in run(["all"], settings)}
    assert set(EXPERIMENTS) <= set(said)
    return results


@pytest.fixture(scope="module")
def folder(done, tmp_path_factory):
    place = tmp_path_factory.mktemp("report")
    report.write(place, list(done.values()), QUICK, started="2026-01-02 03:04 UTC", seconds=1.5)
    return place


# the published numbers


def test_published_numbers_fit_together():
    """As the text of the paper says they do, so that none is miscopied."""
    assert published.TABLE_1.shape == (10, 10)
    assert np.all(published.TABLE_1.sum(axis=1) == published.N_TEST)
    assert published.TABLE_1.sum() - np.trace(published.TABLE_1) == published.ERRORS == 184
    assert round(published.ERRORS / 40, 1) == published.TABLE_2["mean field"]
    assert len(published.TABLE_3) == 10
    assert round(float(np.mean(published.TABLE_3)), 3) == published.TABLE_3_ALL
    assert published.FIGURE_2["exact"] < published.FIGURE_2["xi"] < published.FIGURE_2["jensen"]


# records


def test_rows_agree_within_the_spread():
    assert Row("", 4.5, 0.2, 4.6).agree is True
    assert Row("", 4.5, 0.05, 4.6).agree is False
    assert Row("", 4.5, None, 4.6).agree is None
    assert Row("", 4.5, 0.2).agree is None
    assert Row("", 4.5, 0.2, 4.6, test=False).agree is None


def test_a_table_shows_only_columns_with_content():
    assert compared("", (Row("a", 1.0),)).header == ("", "ours")
    table = compared("", (Row("a", -1.0, 0.5, 2.0), Row("b", 1.0)), ".1f")
    assert table.header == ("", "ours", "±", "paper", "agree")
    assert table.cells == (("a", "−1.0", "0.5", "2.0", "no"), ("b", "1.0", "–", "–", "–"))


def test_tolerance_is_two_standard_errors_of_the_difference_of_one_run_and_a_mean():
    rng = np.random.default_rng(0)
    runs = rng.normal(size=(20_000, 6))
    apart = np.abs(runs[:, 0] - runs[:, 1:].mean(axis=1))
    known = 2 * np.sqrt(1 + 1 / 5)
    assert_allclose(np.mean(apart <= known), 0.954, atol=0.01)
    assert_allclose(tolerance(rng.normal(size=100_000)), 2.0, rtol=0.01)
    assert tolerance([1.0, 1.0], sampling=3.0, printed=0.5) == 6.5


def test_another_split_against_random_splits():
    rng = np.random.default_rng(0)
    values = rng.normal(size=1100)
    means = [rng.permutation(values)[:400].mean() for _ in range(4000)]
    apart = np.std(np.subtract(means[::2], means[1::2]))
    assert_allclose(digits.another_split(values.std(), 400), apart, rtol=0.06)


def test_quiet_settings_travel_to_other_processes():
    said = []
    loud = Settings(seeds=3, quick=True, say=lambda message: said.append(message))
    assert pickle.loads(pickle.dumps(loud.quiet)) == loud  # what is said is not compared
    loud.quiet.say("nothing")
    assert said == []


# experiments


def test_every_experiment_says_what_it_is(done):
    assert list(done) == list(EXPERIMENTS)
    for name, one in done.items():
        assert one.name == name
        assert one.title
        assert one.paper
        assert one.found
        assert one.tables or one.pictures
        assert one.seconds >= 0
        assert all(picture.alt for picture in one.pictures)


def test_choose_keeps_the_order_of_the_paper():
    assert choose(["table1", "figure2"]) == ["figure2", "table1"]
    assert choose([]) == choose(["all"]) == list(EXPERIMENTS)
    with pytest.raises(ParameterError, match="there is no experiment 'tabel1'; did you mean 'table1'?"):
        choose(["tabel1"])


def test_figure_2_agrees(done):
    assert done["figure2"].verdict == (3, 3)


def test_figure_3_finds_the_markov_blanket():
    rng = np.random.default_rng(3)
    for _ in range(10):
        J = np.tril(rng.normal(size=(7, 7)) * (rng.random((7, 7)) < 0.4), -1)
        network = sb.from_weight_matrix(J, bias=rng.normal(size=7))
        children = np.flatnonzero(J[:, 3])
        expected = set(np.flatnonzero(J[3])) | set(children) | set(np.flatnonzero(J[children].any(axis=0))) - {3}
        assert figures.markov_blanket(network, network.names[3]) == {network.names[k] for k in expected}


def test_figure_5_does_not_depend_on_the_number_of_processes():
    log_p, bounds = figure5.random_networks(60, 1.0)
    assert np.all(bounds["xi"] <= log_p)
    assert np.all(bounds["exact"] >= bounds["xi"] - 1e-6)
    again, _ = figure5.random_networks(30, 1.0)
    assert_allclose(again, log_p[:30])


def test_figure_6_shows_both_behaviours():
    together = figure6.learn(11, False, 50)
    assert np.all(np.diff(together.log_likelihood) > 0)
    assert np.all(np.diff(together.bound) > 0)
    apart = figure6.learn(11, True, 100)
    peak = apart.log_likelihood.argmax()
    assert 0 < peak < len(apart.bound) - 1
    assert apart.fall > 0.001
    assert apart.rise_since > 0.01
    assert np.all(np.diff(apart.bound) > 0)
    assert np.all(apart.bound <= apart.log_likelihood)


def test_digit_networks_are_learned_anew_by_each_run():
    a = digits.trained(QUICK)
    assert digits.trained(QUICK) is a  # within a run, networks are shared
    next(run(["figure1"], QUICK))
    b = digits.trained(QUICK)
    assert b is not a
    assert_allclose(a.bounds, b.bounds, rtol=1e-12)  # and come out the same


def test_table_1_counts_every_test_image(done):
    confusion = np.array(done["table1"].numbers["confusion by seed"])
    assert confusion.shape == (2, 10, 10)
    assert np.all(confusion.sum(axis=2) == 12)


def test_no_published_number_is_counted_twice_nor_where_it_is_no_test(done):
    (rows,) = (table.rows for table in done["table2"].tables if table.rows)
    assert {row.label for row in rows if row.agree is None} == {"nearest neighbour", "mean field"}
    assert done["table2"].verdict[1] == 2


def test_table_3_is_the_mean_bound_in_units_of_64_ln_2(done):
    result, X = digits.trained(QUICK), digits.data(QUICK)
    threes = X.test[X.test_target == 3]
    bound = sb.infer_many(result.networks[1][3], threes, solver=digits.SOLVER).bound
    assert_allclose(done["table3"].numbers["score by seed"][1][3], bound.mean() / (64 * np.log(2)), rtol=1e-12)


def test_missing_compares_with_every_imputer_and_classifier(done):
    errors = done["missing"].numbers["error, %"]
    assert len(errors) == 2 + 3 * 3 + 2  # imputers by classifiers, and trees that take missing values as they are
    assert all(0 <= value <= 100 for row in errors.values() for value in row)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_the_quick_nearest_neighbours_impute_as_scikit_learn_does(weights):
    rng = np.random.default_rng(0)
    train, table = rng.integers(0, 2, (12, 6)).astype(float), rng.integers(0, 2, (30, 6)).astype(float)
    table[:, 1:][rng.random((30, 5)) < 0.4] = np.nan
    # Of all rows, since which of several equally near ones count is a toss-up.
    expected = KNNImputer(n_neighbors=12, weights=weights).fit(train).transform(table)
    assert_allclose(baselines.nearest(train, table, n_neighbors=12, weights=weights), expected, atol=1e-12)


# beyond the paper


def test_scan_orders_are_eight_ways_through_the_same_pixels():
    assert all(sorted(order) == list(range(64)) for order in beyond.ORDERS)
    begins = {tuple(order[:2].tolist()) for order in beyond.ORDERS}  # from each corner, both ways
    assert begins == {(0, 1), (0, 8), (7, 6), (7, 15), (56, 57), (56, 48), (63, 62), (63, 55)}


def test_near_prior_falls_with_the_distance_of_pixels():
    network, prior = beyond.build(beyond.Kind(True, True), np.random.default_rng(0))
    scale = dict(zip([edge[:2] for edge in network.edges()], prior.scale, strict=True))
    assert_allclose(scale["x0", "x1"], 1.7 * np.exp(-1 / 3))
    assert_allclose(scale["x0", "x8"], 1.7 * np.exp(-1 / 3))  # one below the other
    assert_allclose(scale["x7", "x8"], 1.7 * np.exp(-np.sqrt(50) / 3))  # from one end of a row to the next row
    assert_allclose(scale["x0", "x9.switch1"], 5 * np.exp(-np.sqrt(2) / 2))
    assert scale["x9.switch1", "x9"] == 4
    assert len(scale) == 2 * 64 * 63 // 2 + 63
    network, prior = beyond.build(beyond.Kind(False, False), np.random.default_rng(0))
    assert set(prior.scale) == {0.6}
    assert network.n_units == 64


@pytest.mark.parametrize("order", range(8))
def test_with_pixel_mixtures_the_bound_is_the_log_likelihood(order):
    network, prior = beyond.build(beyond.Kind(True, True, order), np.random.default_rng(0))
    rng = np.random.default_rng(order)
    weight = rng.normal(size=network.n_edges) * prior.scale
    network = network.with_parameters(weight=weight, bias=rng.normal(size=network.n_units))
    X = digits.data(QUICK).test[::20]
    bound = sb.infer_many(network, beyond.table(network, X)).bound
    J = {edge[:2]: edge[2] for edge in network.edges()}
    h = dict(zip(network.names, network.bias, strict=True))
    for image, found in zip(X, bound, strict=True):
        x = {f"x{pixel}": int(value) for pixel, value in enumerate(image)}
        expected = 0.0
        for unit, value in x.items():
            sign, z = 2 * value - 1, h[unit] + sum(J.get((a, unit), 0.0) * x[a] for a in x)
            switch = f"{unit}.switch1"
            if switch not in h:  # the first pixel has no parents, and so no mixture
                p = 1 / (1 + np.exp(-sign * z))
            else:
                on = 1 / (1 + np.exp(-h[switch] - sum(J.get((a, switch), 0.0) * x[a] for a in x)))
                p = on / (1 + np.exp(-sign * (z + J[switch, unit]))) + (1 - on) / (1 + np.exp(-sign * z))
            expected += np.log(p)
        assert_allclose(found, expected, atol=1e-5)


def test_a_mixture_has_the_mean_of_the_likelihoods():
    p = np.random.default_rng(0).random((8, 5, 10))
    assert_allclose(np.exp(log_mean(np.log(p))), p.mean(axis=0))
    far = np.array([[-2000.0], [-1000.0]])
    assert_allclose(log_mean(far), -1000 - np.log(2))  # where the likelihoods themselves are too small for floats


def test_beyond_compares_single_networks_with_their_mixture(done):
    numbers = done["beyond"].numbers
    models, single = numbers["models"], np.array(numbers["single orders: error, %, and score"])
    assert len(models) == 8
    assert single.shape == (2, 2)
    assert models["pixel mixtures, near prior"]["score"] == single[0, 1]
    assert models["mixture of 2 scan orders"]["score"] >= single[:, 1].mean()  # the logarithm is concave
    own = [digits.trained(QUICK).bounds[:, digits.trained(QUICK).targets == d, d].mean() for d in range(10)]
    assert_allclose(models["the paper’s networks"]["score"], np.mean(own) / (64 * np.log(2)), rtol=1e-12)
    assert models["extra trees"]["score"] is None


# the mixture of Bernoullis


def test_mixture_recovers_its_components():
    rng = np.random.default_rng(0)
    truth = np.where(rng.random((2, 20)) < 0.5, 0.1, 0.9)
    which = rng.integers(0, 2, 2000)
    X = (rng.random((2000, 20)) < truth[which]).astype(np.uint8)
    model = BernoulliMixture(components=(2,)).fit(X, np.zeros(2000, np.uint8))
    log_share, pixels = model.parts_[0]
    order = np.argsort(np.abs(pixels[:, None] - truth).sum(axis=2).argmin(axis=1))
    assert_allclose(pixels[order], truth, atol=0.05)
    assert_allclose(np.exp(log_share).sum(), 1.0)


def test_mixture_is_normalised():
    X = np.random.default_rng(1).integers(0, 2, (60, 6)).astype(np.uint8)
    model = BernoulliMixture(components=(3,)).fit(X, np.zeros(60, np.uint8))
    every = ((np.arange(64)[:, None] >> np.arange(6)) & 1).astype(np.uint8)
    assert_allclose(np.exp(model.log_density(every)).sum(), 1.0, rtol=1e-12)


# the report


def test_results_hold_every_number(done, folder):
    results = json.loads((folder / "results.json").read_text())
    assert [one["name"] for one in results["experiments"]] == list(EXPERIMENTS)
    assert results["seeds"] == [0, 1]
    assert results["quick"] is True
    assert results["versions"]["sbnet"] == sb.__version__
    rows = next(one for one in results["experiments"] if one["name"] == "figure2")["tables"][0]["rows"]
    assert rows[2]["paper"] == 0.974
    assert rows[2]["agree"] is True
    assert all(one["seconds"] >= 0 for one in results["experiments"])


class Page(HTMLParser):
    """Collects what a browser would fetch, identifiers, and tags left open."""

    VOID = frozenset({"meta", "br", "link", "img", "hr"})

    def __init__(self, text):
        super().__init__()
        self.fetched, self.ids, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        self.handle_startendtag(tag, attributes)

    def handle_startendtag(self, tag, attributes):
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "srcset", "data"):
                self.fetched.append(value)
            if name == "id":
                self.ids.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_stands_alone(folder):
    text = (folder / "index.html").read_text()
    page = Page(text)
    assert page.open == []
    assert all(value.startswith(("#", "data:")) for value in page.fetched)
    assert {value[1:] for value in page.fetched if value.startswith("#")} <= set(page.ids)
    assert len(set(page.ids)) == len(page.ids)
    assert not re.search(r"@import|url\((?!#)|<script|<link", text)
    outside = set(re.findall(r"https?://[^\s\"'<)]+", text))
    assert outside <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names, which nobody fetches
    assert "prefers-color-scheme: dark" in text
    assert "its numbers mean nothing" in text


def test_figures_take_the_colour_of_the_page(folder):
    text = (folder / "index.html").read_text()
    assert "#7f0123" not in text
    assert "currentColor" in text


def test_no_figure_is_a_white_box_on_a_dark_page(folder):
    svgs = re.findall(r"<svg.*?</svg>", (folder / "index.html").read_text(), flags=re.DOTALL)
    assert len(svgs) > 10
    for svg in svgs:
        assert "#ffffff" not in svg
        assert "#222222" not in svg
    ink = mpl_figure.Figure()
    drawing.tile(ink, [[np.r_[np.nan, np.linspace(0.0, 1.0, 63)]]])
    sheet = ink.axes[0].images[0].get_array()
    np.testing.assert_allclose(sheet[:8, :8].reshape(-1, 4)[1:, 3], np.linspace(0.0, 1.0, 63))  # ink, no paper
    assert sheet[:8, :8].reshape(-1, 4)[1:, :3].max() == 0.0


def test_the_page_is_set_as_a_page(folder):
    text = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", (folder / "index.html").read_text(), flags=re.DOTALL)
    assert "e<sup>z</sup>" in text
    assert "e<sup>−z</sup>" in text
    assert "^" not in text
    paragraphs = [re.sub("<[^>]+>", "", part) for part in re.findall(r"<p[^>]*>(.*?)</p>", text, flags=re.DOTALL)]
    assert max(len(part) for part in paragraphs) < 640  # some seven lines on a desk


def labels(figure):
    """Where the texts stand that belong to points, not to axes."""
    FigureCanvasAgg(figure).draw()
    return [text.get_window_extent() for ax in figure.axes for text in (*ax.texts, *ax.get_xticklabels())]


def test_labels_of_digits_do_not_overprint():
    figure = mpl_figure.Figure((4.4, 3.0), layout="constrained")
    tables.draw_scores(figure, np.full(10, -0.5))  # as close as can be
    boxes = labels(figure)
    assert len(boxes) == 10
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_numbers_at_logarithmic_axes_do_not_overprint():
    figure = mpl_figure.Figure((4.6, 3.4), layout="constrained")
    points = {"Gibbs, 20 samples": (0.06, 4.9e-4), "Gibbs, 60 samples": (0.033, 5.2e-4)}
    gibbs._draw(figure, points | dict(zip(gibbs.FIELDS, [(0.087, 1.9e-4), (0.105, 2.5e-3)], strict=True)))
    FigureCanvasAgg(figure).draw()
    boxes = [text.get_window_extent() for text in figure.axes[0].get_xticklabels(which="both") if text.get_text()]
    assert len(boxes) > 2
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))


def test_equal_pipelines_are_told_apart():
    names = [missing.OURS, missing.CLASSIFIER, *(one.name for one in baselines.PIPELINES)]
    rng = np.random.default_rng(0)
    wrong = {name: rng.permuted(np.tile(np.arange(200) < 20, (4, 1)), axis=1) for name in names}
    figure = mpl_figure.Figure((4.6, 8.2), layout="constrained")
    missing.draw(figure, wrong)
    assert len(figure.axes) == len(missing.SHARES)
    for ax in figure.axes:
        rows = [tick.get_text() for tick in ax.get_yticklabels()]
        assert len(set(rows)) == len(rows) == 5
    assert not any(a.overlaps(b) for a, b in combinations([box for box in labels(figure) if box.width], 2))


@pytest.mark.parametrize(
    ("theirs", "ours", "verdict"),
    [(100, 40, "fewer errors"), (40, 100, "more errors"), (53, 49, "level"), (50, 50, "level")],
)
def test_a_difference_within_two_standard_errors_is_none(theirs, ours, verdict):
    """4.9 % against 5.3 % of 2,000 images is no victory."""
    flags = {missing.OURS: ours, missing.CLASSIFIER: ours, "theirs": theirs, "worse": 300}
    wrong = {name: np.tile(np.arange(2000) % 1000 < n / 2, (4, 1)) for name, n in flags.items()}
    rng = np.random.default_rng(0)
    wrong = {name: rng.permuted(table, axis=1) for name, table in wrong.items()}
    text = missing._verdict(wrong, ["theirs", "worse"])
    assert text.count(f"{verdict} with 0, 25, 50 and 75 % missing") == 2
    assert "less than every" not in text


def test_the_page_escapes_what_it_is_told(done):
    tricky = replace(done["figure1"], found="<b>1 < 2 & 3</b>", tables=(Table("<i>", ("", "x"), (("<", ">"),)),))
    facts = {"quick": False, "started": "", "seconds": 1.0, "seeds": [0], "processes": 1, "cores": 1, "system": "",
             "machine": "", "versions": {}}  # fmt: skip
    text = report.page([tricky], facts)
    assert "&lt;b&gt;1 &lt; 2 &amp; 3&lt;/b&gt;" in text
    assert "<caption>&lt;i&gt;</caption>" in text


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(BROWSER is None, reason="no browser to look at the page with")
@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_fits_its_window(folder, tmp_path, width):
    """A frame of the given width, as a browser window itself cannot be made as narrow as a phone."""
    inner = (folder / "index.html").read_text()
    probe = """<script>addEventListener("load", () => {
      const d = document.documentElement;
      const small = [...document.querySelectorAll("figure svg")].filter(s => s.getBoundingClientRect().height < 40);
      const cut = [...document.querySelectorAll(".table")].filter(t => t.scrollWidth > t.clientWidth);
      const sections = document.querySelectorAll("section").length;
      parent.document.title = [d.clientWidth, d.scrollWidth, sections, small.length, cut.length];
    })</script></body>"""
    escaped = inner.replace("</body>", probe).replace("&", "&amp;").replace('"', "&quot;")
    outer = f'<!doctype html><title>-</title><iframe srcdoc="{escaped}" style="width:{width}px;height:900px;border:0">'
    (tmp_path / "outer.html").write_text(outer + "</iframe>")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               f"--user-data-dir={tmp_path / 'profile'}",
               "--window-size=1400,1000", "--virtual-time-budget=5000", "--dump-dom"]  # fmt: skip
    shown = subprocess.run(
        [*command, f"file://{tmp_path / 'outer.html'}"], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    client, scroll, sections, small, cut = (int(n) for n in re.search(r"<title>([\d,]+)</title>", shown)[1].split(","))
    assert client == width
    assert scroll <= client  # nothing sticks out sideways
    assert sections == len(EXPERIMENTS)
    assert small == 0
    assert cut == 0  # all columns of all tables are seen, on a phone too
