"""The page to click: what is inside the file, and whom the server answers."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sbnet as sb
from sbnet import explore
from sbnet.datasets import make_clinic
from sbnet.explore import answers
from sbnet.explore.page import document
from sbnet.model import roles

small = pytest.mark.small
EVIL = "</script><img src=x onerror=alert(1)><!--<script>&amp;{{script}}\u2028'\""


@pytest.fixture(scope="module")
def clinic() -> sb.Network:
    effects = {("flu", "fever"): 0.9, ("cold", "fever"): 0.2, ("cold", "sneezing"): 0.8, ("flu", "aches"): 0.5}
    net = sb.noisy_or(effects, leak=0.01, prior={"flu": 0.05, "cold": 0.1})
    notes = {
        "flu": sb.Note(about="influenza", group="causes", source="made up"),
        "cold": sb.Note(group="causes"),
        "fever": sb.Note(group="findings", states=("below 38", "38 or more")),
        "sneezing": sb.Note(group="findings"),
        "aches": sb.Note(group="findings"),
    }
    return replace(net, notes=notes)


class Reader(HTMLParser):
    """What a browser makes of the file: its elements with their attributes, and the texts of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags and data.strip():
            self.texts.append((self.tags[-1][0], data))

    def inside(self) -> dict:
        """The network in the file."""
        (text,) = [text for tag, text in self.texts if tag == "script" and text.startswith("{")]
        return json.loads(text)


# --- the file -------------------------------------------------------------------------------------------------------


@small
def test_the_file_holds_the_network_and_what_people_wrote_beside_it(clinic):
    inside = Reader(explore.html(clinic, title="Fever", evidence={"fever": 1, "aches": 0})).inside()
    names = inside["names"]
    assert names == list(clinic.names)
    assert inside["about"][names.index("flu")] == "influenza"
    assert inside["group"][names.index("cold")] == "causes"
    assert inside["source"][names.index("flu")] == "made up"
    assert inside["states"][names.index("fever")] == ["below 38", "38 or more"]
    assert inside["evidence"] == {str(names.index("fever")): 1, str(names.index("aches")): 0}
    assert inside["server"] is False
    for i, name in enumerate(names):
        assert [names[j] for j in inside["parents"][i]] == list(clinic.parents(name))
    weights = [w for blocks in inside["weights"] for block in blocks for w in block]
    assert weights == clinic.weight.tolist()  # to the bit
    assert [x for own in inside["bias"] for x in own] == clinic.bias.tolist()


def weather() -> sb.Network:
    """States with odd names, a table, soft evidence."""
    states = {"sky": ["clear", "<b>rain</b>", "\"snow\" & 'hail'"], "road": ["dry", "wet", "ice \u2603"]}
    tables = {"sky": [0.6, 0.3, 0.1], "road": [[0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.1, 0.2, 0.7]]}
    return sb.from_edges({("sky", "road"): None, ("road", "slip"): [[1.0, 3.0]]}, states=states, tables=tables)


@small
def test_the_file_holds_states_tables_and_reports():
    net = weather()
    evidence = {"slip": True, "sky": {"clear": 0.1, "<b>rain</b>": 1.0, "\"snow\" & 'hail'": 0.5}}
    inside = Reader(explore.html(net, evidence=evidence)).inside()
    assert inside["states"] == [list(net.states[name]) for name in net.names]
    assert inside["tables"]["1"] == np.ravel(net.tables["road"]).tolist()
    assert inside["evidence"] == {"0": [0.1, 1.0, 0.5], "2": 1}
    assert inside["weights"][2] == [[1.0, 3.0]]


@small
def test_a_page_with_a_server_holds_no_numbers_of_the_model(clinic):
    inside = Reader(document(clinic, "Fever", {}, server=True)).inside()
    assert not {"weights", "bias", "tables", "gate"} & set(inside)


@small
def test_the_file_asks_nobody_for_anything(clinic):
    text = explore.html(clinic)
    page = Reader(text)
    loading = [(tag, key) for tag, attrs in page.tags for key in attrs if key in ("src", "srcset", "action", "data")]
    assert loading == []
    assert [attrs["href"] for tag, attrs in page.tags if tag == "link"] == ["data:,"]
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(", text)
    (policy,) = [attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    assert "'sha256-" in policy


@small
@settings(max_examples=25)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30))
def test_no_name_and_no_note_becomes_markup(text):
    text += EVIL
    net = sb.from_edges({(text, "b"): 1.0})
    net = replace(net, notes={text: sb.Note(about=text, group=text, source=text, note=text)})
    page, plain = Reader(explore.html(net, title=text)), Reader(explore.html(net, title="x"))
    assert page.inside()["names"][0] == text
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    (raw,) = [data for tag, data in page.texts if tag == "script" and data.startswith("{")]
    assert not set(raw) & set("<>&\u2028")


@small
def test_a_name_that_is_half_a_character_is_kept():
    net = sb.from_edges({("\ud83d", "b"): 1.0})
    assert Reader(explore.html(net)).inside()["names"][0] == "\ud83d"
    assert explore.html(net, title="\ud83d").encode("utf-8")


@small
def test_a_notebook_shows_the_page_in_a_frame_that_cannot_reach_it(clinic):
    frame = Reader(explore.widget(clinic, height=500)._repr_html_())
    ((tag, attributes),) = frame.tags
    assert tag == "iframe"
    assert attributes["sandbox"] == "allow-scripts"
    assert "height:500px" in attributes["style"]
    assert Reader(attributes["srcdoc"]).inside()["names"] == list(clinic.names)


@small
def test_explore_is_imported_when_it_is_asked_for():
    assert sb.explore is explore
    assert "explore" in dir(sb)


# --- answers --------------------------------------------------------------------------------------------------------


def numbered(net: sb.Network, evidence: dict[str, int]) -> dict[str, int]:
    return {str(net.index(name)): state for name, state in evidence.items()}


def test_answers_are_those_of_the_library(clinic):
    evidence, every = {"fever": 1, "sneezing": 0}, list(range(clinic.n_units))
    asked = {"evidence": numbered(clinic, evidence), "units": every}
    answer, exact = answers.answer(clinic, asked), sb.exact_posterior(clinic, evidence)
    assert answer["kind"] == "exact"
    np.testing.assert_allclose([answer["beliefs"][str(i)][1] for i in every], exact.means, atol=1e-12)
    assert answer["logP"] == pytest.approx(sb.log_likelihood(clinic, evidence), abs=1e-12)
    whole = answers.certificate(clinic, asked)
    assert whole["lower"] <= answer["logP"] <= whole["upper"]
    flu = clinic.index("flu")
    not_flu, (low, high) = answers.intervals(clinic, asked | {"units": [flu]})[str(flu)]
    assert low <= exact["flu"] <= high
    assert not_flu == pytest.approx([1 - high, 1 - low])
    (first, *_) = answers.questions(clinic, asked)
    expected = sb.next_question(clinic, evidence)[0]
    assert clinic.names[first["unit"]] == expected.name == "aches"
    assert first["information"] == pytest.approx(expected.information)
    assert first["chances"] == pytest.approx([1 - expected.probability, expected.probability])
    nats = answers.reasons(clinic, asked | {"units": [flu]})[str(flu)]
    for name, value in sb.contributions(clinic, evidence)["flu"].items():
        assert nats[str(clinic.index(name))] == pytest.approx([-value, value])


def test_states_tables_and_reports_are_answered_exactly():
    net = weather()
    asked = {"evidence": {"2": 1, "1": [0.2, 1.0, 0.0]}, "units": [0, 1]}
    exact = sb.exact_posterior(net, {"slip": True, "road": [0.2, 1.0, 0.0]})
    answer = answers.answer(net, asked)
    assert answer["beliefs"]["0"] == pytest.approx(list(exact["sky"].values()))
    assert answer["beliefs"]["1"][2] == 0.0
    nats = answers.reasons(net, asked | {"units": [0]})["0"]
    before = sb.exact_posterior(net, {"road": [0.2, 1.0, 0.0]})["sky"]
    for s, state in enumerate(net.states["sky"]):
        p, q = exact["sky"][state], before[state]
        assert nats["2"][s] == pytest.approx(np.log(p / (1 - p)) - np.log(q / (1 - q)))


def test_information_of_states_is_mutual_information():
    net = weather()
    found = {one["unit"]: one for one in answers.questions(net, {"evidence": {}})}
    prior, table = np.array(net.tables["sky"]), np.array(net.tables["road"])
    joint = prior[:, None] * table
    apart = np.outer(prior, joint.sum(axis=0))
    expected = np.sum(np.where(joint > 0, joint * np.log(np.where(joint > 0, joint, 1) / apart), 0.0))
    assert found[1]["information"] == pytest.approx(expected)
    assert found[1]["chances"] == pytest.approx(joint.sum(axis=0).tolist())


def test_large_networks_are_answered_by_mean_field_theory_and_say_so():
    net = make_clinic(60, 200, rng=0)
    evidence = dict.fromkeys(range(60, 100), 1)
    asked = {"evidence": {str(i): s for i, s in evidence.items()}, "units": [0, 1, 150]}
    answer, posterior = answers.answer(net, asked), sb.infer(net, evidence)
    assert (answer["kind"], answer["method"], answer["converged"]) == ("estimate", "mean field", True)
    assert answer["logP"] == posterior.bound
    assert [answer["beliefs"][str(i)][1] for i in (0, 1, 150)] == [posterior.means[i] for i in (0, 1, 150)]
    assert set(answers.reasons(net, asked | {"units": [0]})["0"]) == set(map(str, evidence))
    assert len(answers.questions(net, asked)) == answers.TRIES


def test_states_of_large_families_are_estimated_and_say_so():
    causes, findings = [f"c{j}" for j in range(30)], [f"f{i}" for i in range(3)]
    states = dict.fromkeys([*causes, *findings], ("none", "mild", "high"))
    rng = np.random.default_rng(0)
    edges = {(c, f): rng.normal(0.0, 0.3, (2, 2)) for c in causes for f in findings}
    net = sb.from_edges(edges, states=states)
    asked = {"evidence": {"30": 2, "31": 0}, "units": [0, 1, 32]}
    answer, posterior = answers.answer(net, asked), sb.infer(net, {"f0": "high", "f1": "none"})
    assert (answer["kind"], answer["logP"]) == ("estimate", posterior.bound)
    for i in (0, 1, 32):
        assert answer["beliefs"][str(i)] == pytest.approx(list(posterior[net.names[i]].values()))
    nats = answers.reasons(net, asked | {"units": [0]})["0"]
    assert {finding: len(own) for finding, own in nats.items()} == {"30": 3, "31": 3}
    (question,) = answers.questions(net, asked)
    assert question["unit"] == 32
    assert sum(question["chances"]) == pytest.approx(1.0)


def test_what_is_too_large_beside_an_exact_answer_has_no_number():
    net = sb.layered((30, 2), rng=0)
    answer = answers.answer(net, {"evidence": {}, "units": [0, 1, 30]})
    assert answer["kind"] == "exact"
    assert answer["beliefs"]["30"] is None
    prior = sb.exact_posterior(net, {}, units=[0, 1])
    assert [answer["beliefs"][i][1] for i in "01"] == pytest.approx(prior.means.tolist())


@small
def test_one_cause_is_that_of_the_library(clinic):
    evidence = {"fever": 1, "sneezing": 0}
    answer, found = answers.single(clinic, {"evidence": numbered(clinic, evidence)}), sb.single_cause(clinic, evidence)
    for name in ("flu", "cold"):
        p = found[name]
        assert answer["beliefs"][str(clinic.index(name))] == pytest.approx([1 - p, p])
    net = weather()
    found, answer = sb.single_cause(net, {"slip": True}), answers.single(net, {"evidence": {"2": 1}})
    assert answer["beliefs"]["0"] == pytest.approx([0.0, *found.probability])


@small
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "evidence is None; give an object such as {'3': 1}"),
        ({"evidence": [1]}, "evidence is \\[1\\]"),
        ({"evidence": {"0": 2}}, "variable '0' is 2; a state is a number from 0 to 1"),
        ({"evidence": {"0": True}}, "variable '0' is True"),
        ({"evidence": {"0": 1.0}}, "variable '0' is 1.0"),
        ({"evidence": {"0": []}}, "variable '0' is \\[\\]; give 2 likelihoods, one for each state"),
        ({"evidence": {"0": [1, "x"]}}, "give 2 likelihoods"),
        ({"evidence": {"0": [0, 0]}}, "0"),
        ({"evidence": {"0": [-1, 2]}}, "-1"),
        ({"evidence": {"../../etc/passwd": 1}}, "'../../etc/passwd' is not the number of a variable"),
        ({"evidence": {"99": 1}}, "there is no variable number 99"),
        ({"evidence": {"-1": 1}}, "'-1' is not the number of a variable"),
    ],
)
def test_what_cannot_be_asked_is_said(clinic, asked, message):
    with pytest.raises(sb.errors.SBNetError, match=message):
        answers.answer(clinic, asked | {"units": []})


@small
def test_causes_and_findings_are_the_groups_that_people_named_or_follow_from_the_edges(clinic):
    net = sb.from_edges({("a", "b"): 1.0, ("b", "c"): 1.0, ("c", "d"): 1.0})
    assert (roles.causes(net), roles.findings(net, [0])) == ([0], [1, 2, 3])
    named = replace(net, notes={"b": sb.Note(group="causes"), "c": sb.Note(group="hidden")})
    assert (roles.causes(named), roles.findings(named, [1])) == ([1], [0, 3])
    assert [clinic.names[i] for i in roles.causes(clinic)] == ["flu", "cold"]


def test_where_nothing_is_left_to_ask_there_is_no_question(clinic):
    everything = {str(i): 1 for i in range(clinic.n_units)}
    assert answers.questions(clinic, {"evidence": everything}) == []
    assert answers.questions(clinic, {"evidence": {"0": 1, "1": 0}}) == []  # all causes are known


# --- the server -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(clinic):
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    from sbnet.explore.server import Served, running

    one = Served(clinic, document(clinic, "Fever", {}, server=True), 0)
    with running(one):
        yield one


def request(served, method="GET", path=None, body=None, **headers):
    """A request as anyone on this machine could write it."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    try:
        path = f"/{served.token}/" if path is None else path.format(token=served.token)
        connection.request(method, path, body, {"Host": f"127.0.0.1:{served.port}"} | headers)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        connection.close()


JSON = {"Content-Type": "application/json"}


def test_the_page_is_served_to_whoever_has_its_address(served):
    status, headers, body = request(served)
    assert status == 200
    assert b"influenza" in body
    assert Reader(body.decode()).inside()["server"] is True
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert "Server" not in headers
    assert "Access-Control-Allow-Origin" not in headers


def test_a_question_is_answered(served, clinic):
    body = json.dumps({"evidence": numbered(clinic, {"fever": 1}), "units": [0]})
    status, _, reply = request(served, "POST", "/{token}/answer", body, **JSON)
    assert status == 200
    assert json.loads(reply)["beliefs"]["0"][1] == pytest.approx(sb.exact_posterior(clinic, {"fever": 1}).means[0])


def test_numbers_that_json_has_not_are_null(served, monkeypatch):
    from sbnet.explore import server

    reply = {"bound": -np.inf, "means": [np.nan, 0.5, 1], "exact": True}
    monkeypatch.setitem(server.VERBS, "answer", lambda network, asked: reply)
    status, _, body = request(served, "POST", "/{token}/answer", "{}", **JSON)
    assert (status, json.loads(body)) == (200, {"bound": None, "means": [None, 0.5, 1], "exact": True})


def test_a_slip_is_answered_by_its_reason(served):
    body = '{"evidence": {"77": 1}, "units": []}'
    status, _, reply = request(served, "POST", "/{token}/answer", body, **JSON)
    assert (status, json.loads(reply)["error"][:31]) == (400, "there is no variable number 77;")


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/answer", {}),
        ("//answer", {}),
        ("/wrong-token/", {}),
        ("/{token}x/", {}),
        ("/%2e%2e/etc/passwd", {}),
        ("/{token}/", {"Host": "evil.example"}),  # a name that was rebound to this machine
        ("/{token}/", {"Host": "127.0.0.1"}),
        ("/{token}/", {"Host": "127.0.0.1.evil.example:1"}),
        ("/{token}/", {"Host": ""}),
        ("/{token}/", {"Origin": "https://evil.example"}),  # another page, in the same browser
        ("/{token}/", {"Origin": "null"}),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_everyone_else_is_refused(served, method, path, headers):
    status, found, body = request(served, method, path, **headers)
    assert status == 403
    assert b"influenza" not in body
    assert served.token.encode() not in body
    assert "frame-ancestors 'none'" in found["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("GET", "/{token}/answer", None, {}, 405),
        ("POST", "/{token}/", "{}", JSON, 405),
        ("POST", "/{token}/open", "{}", JSON, 404),
        ("POST", "/{token}/__class__", "{}", JSON, 404),
        ("GET", "/{token}/../../etc/passwd", None, {}, 404),
        ("GET", "/{token}/page.js", None, {}, 405),
        ("POST", "/{token}/answer", '{"evidence": {}}', {"Content-Type": "text/plain"}, 415),  # a form of another site
        ("POST", "/{token}/answer", "evidence", JSON, 400),
        ("POST", "/{token}/answer", "[]", JSON, 400),
        ("POST", "/{token}/answer", "[" * 100_000, JSON, 400),
        ("POST", "/{token}/answer", '{"evidence": {}}' + " " * 1_000_000, JSON, 400),
        ("POST", "/{token}/intervals", '{"evidence": {}, "units": [0,0,0,0,0,0,0,0,0]}', JSON, 400),
    ],
)
def test_what_the_page_does_not_ask_is_not_answered(served, method, path, body, headers, status):
    assert request(served, method, path, body, **headers)[0] == status


def raw(served, text, more=b""):
    """What comes back for bytes that are sent as they are, until the server hangs up."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=30) as connection:
        connection.sendall(text.format(port=served.port, token=served.token).encode("latin-1") + more)
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(65536):
                found += part
        return found


HOST = "Host: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (f"OPTIONS * HTTP/1.1\r\n{HOST}", 403),
        (f"GET foo HTTP/1.1\r\n{HOST}", 403),
        (f"GET foo/{{token}}/ HTTP/1.1\r\n{HOST}", 403),
        (f"GET ? HTTP/1.1\r\n{HOST}", 403),
        (f"GET http://127.0.0.1:{{port}}/{{token}}/ HTTP/1.1\r\n{HOST}", 403),
        (f"CONNECT 127.0.0.1:{{port}} HTTP/1.1\r\n{HOST}", 403),
        (f"GET /%ff%00 HTTP/1.1\r\n{HOST}", 403),
        (f"GET /x HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n{HOST}", 403),
        ("GET foo HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        ("GET foo\r\n\r\n", 400),
        ("hello\r\n\r\n", 400),
        ("\x16\x03\x01\r\n\r\n", 400),  # the beginning of https
    ],
)
def test_a_target_without_a_slash_is_refused_without_a_word(served, capfd, caplog, text, status):
    assert raw(served, text).split()[1] == str(status).encode()
    assert capfd.readouterr() == ("", "")
    assert [record for record in caplog.records if record.exc_info] == []


@pytest.fixture
def hasty(clinic, monkeypatch):
    """A server that waits a tenth of a second for a request, and for three of them at once."""
    pytest.importorskip("uvicorn")
    from sbnet.explore import server

    monkeypatch.setattr(server, "PATIENCE", 0.1)
    monkeypatch.setattr(server, "MOST_WAITING", 3)
    one = server.Served(clinic, document(clinic, "Fever", {}, server=True), 0)
    with server.running(one):
        yield one


HALVES = {
    "nothing": "",
    "half a line": "GET /",
    "no end of headers": "GET /{token}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n",
    "half a body": "POST /{token}/answer HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    "Content-Length: 90\r\n\r\n{{",
}


@pytest.mark.parametrize("text", HALVES.values(), ids=HALVES)
def test_who_does_not_send_a_request_is_disconnected(hasty, text):
    assert raw(hasty, text) == b""  # else it waits, and the test fails after half a minute


def test_who_sends_a_byte_now_and_then_is_disconnected_too(hasty):
    def trickle(connection):
        for _ in range(1000):
            connection.sendall(b"x")
            threading.Event().wait(0.03)

    address = "127.0.0.1", hasty.port
    with (
        socket.create_connection(address, timeout=30) as connection,
        pytest.raises(OSError, match=r"reset|[Bb]roken pipe"),
    ):
        trickle(connection)


def test_a_second_request_is_waited_for_no_longer(hasty):
    first = f"GET /{hasty.token}/ HTTP/1.1\r\nHost: 127.0.0.1:{hasty.port}\r\n\r\n"
    reply = raw(hasty, first, b"GET /")
    assert reply.startswith(b"HTTP/1.1 200")
    assert reply.count(b"HTTP/1.1") == 1


def test_an_answer_may_take_longer(hasty, monkeypatch):
    from sbnet.explore import server

    monkeypatch.setitem(server.VERBS, "slow", lambda network, asked: threading.Event().wait(0.5))
    assert request(hasty, "POST", "/{token}/slow", "{}", **JSON)[0] == 200


def test_of_many_connections_that_wait_the_oldest_is_closed(hasty, monkeypatch):
    from sbnet.explore import server

    monkeypatch.setattr(server, "PATIENCE", 3600.0)
    connections = [socket.create_connection(("127.0.0.1", hasty.port), timeout=30) for _ in range(4)]
    try:
        with contextlib.suppress(ConnectionResetError):
            assert connections[0].recv(1) == b""
        for one in connections[1:]:
            one.setblocking(False)
            with pytest.raises(BlockingIOError):
                one.recv(1)
    finally:
        for one in connections:
            one.close()


def test_only_this_machine_can_reach_it(served):
    assert served.socket.getsockname()[0] == "127.0.0.1"
    assert len(served.token) >= 32


def test_two_servers_have_two_tokens(clinic, served):
    from sbnet.explore.server import Served

    other = Served(clinic, "", 0)
    other.socket.close()
    assert other.token != served.token


def test_a_port_that_is_taken_is_an_error_with_a_way_out(clinic, served):
    with pytest.raises(sb.errors.ParameterError, match=f"nothing can listen at port {served.port} .*; port=0 takes"):
        explore.serve(clinic, port=served.port, open_browser=False)


def test_serve_announces_opens_and_answers(clinic, monkeypatch):
    pytest.importorskip("uvicorn")
    from sbnet.explore import server

    opened, said, answered, made = [], [], threading.Event(), []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run = server.Served.run

    def run_once(self):
        made.append(self)

        def ask():
            status, _, body = request(self)
            if (status, b"Which causes" in body) == (200, True):
                answered.set()
            self.server.should_exit = True

        threading.Timer(0.5, ask).start()
        run(self)

    monkeypatch.setattr(server.Served, "run", run_once)
    explore.serve(clinic, announce=said.append)
    assert answered.is_set()
    assert opened == [made[0].address]
    assert said == [f"exploring at {made[0].address} (Ctrl+C ends it)"]


def test_without_the_extra_the_way_to_it_is_said(clinic, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "starlette", None)
    with pytest.raises(sb.errors.MissingExtraError, match=r'needs starlette; .*pip install "sbnet\[explore\]"'):
        explore.serve(clinic)
