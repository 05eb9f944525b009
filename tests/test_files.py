"""Files: what is saved comes back; what is damaged, cut short, foreign or too new is refused, never misread."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import stat
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

import hostile_files
import sbnet as sb
from sbnet.errors import FileFormatError, ParameterError
from sbnet.files.tensors import checksum
from strategies import networks

names = st.text(st.characters(), min_size=1)  # any character at all, also what UTF-8 cannot hold


@pytest.fixture
def network():
    return sb.from_edges({("α", "b"): 1.5, ("b", "c"): -2.5, ("α", "c"): 1e-5}, bias={"α": -0.25})


@pytest.fixture
def path(tmp_path, network):
    sb.save(network, tmp_path / "net.sbn")
    return tmp_path / "net.sbn"


def refused(path):
    with pytest.raises(FileFormatError) as caught:
        sb.load(path)
    return str(caught.value).replace(str(path), "FILE")


# --- round trips ----------------------------------------------------------------------------------------------------


@given(networks(), st.data())
def test_what_is_saved_comes_back_the_same(tmp_path_factory, network, data):
    chosen = data.draw(st.lists(names, min_size=network.n_units, max_size=network.n_units, unique=True))
    network = sb.Network(tuple(chosen), network.graph, network.weight, network.bias)
    path = tmp_path_factory.getbasetemp() / "round-trip.sbn"
    sb.save(network, path)
    assert sb.load(path) == network


def test_layers_come_back(tmp_path):
    network = sb.layered((2, 3, 4), rng=0, autoregressive=True)
    sb.save(network, os.fspath(tmp_path / "net.sbn"))
    assert sb.load(os.fspath(tmp_path / "net.sbn")).layers == (2, 3, 4)


def test_every_number_comes_back_to_the_last_bit(tmp_path):
    bias = [5e-324, 1e8, -1e8, 0.1, np.nextafter(1, 2), 1 / 3]
    network = sb.from_weight_matrix(np.zeros((6, 6)), bias=bias)
    sb.save(network, tmp_path / "net.sbn")
    assert sb.load(tmp_path / "net.sbn").bias.tolist() == bias


def test_other_programs_can_read_the_file(path, network):
    arrays = safetensors.numpy.load_file(path)
    assert set(arrays) == {"indptr", "parent", "weight", "bias"}
    assert np.array_equal(arrays["weight"], network.weight)
    with safetensors.safe_open(path, "numpy") as file:
        metadata = file.metadata()
    assert metadata["format"] == "sbnet-network"
    assert metadata["made_by"] == f"sbnet {sb.__version__}"
    assert json.loads(metadata["names"]) == ["α", "b", "c"]


def test_only_networks_are_saved(tmp_path):
    for call in (sb.save, sb.write):
        for name in ("net.sbn", "net.toml"):
            with pytest.raises(ParameterError, match=r"^network is {}, which is no Network; sbnet.from_edges\(\)"):
                call({}, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


# --- the suffix of a name -------------------------------------------------------------------------------------------


def test_save_and_load_are_other_names_of_write_and_read():
    assert sb.save is sb.write
    assert sb.load is sb.read


@pytest.mark.parametrize(
    "name", ["net.sbn", "net.SBN", "net", "net.model", "net-0.05", "net.sbnet", "net.bin", "net.gz"]
)
def test_own_files_may_have_any_name_that_means_nothing_else(tmp_path, network, path, name):
    mixture = sb.NetworkMixture((network,), network.names)
    for thing in (mixture, network):
        sb.write(thing, tmp_path / name)
        assert sb.read(tmp_path / name) == thing
    assert (tmp_path / name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("name", "near"), [("net.tml", ".toml"), ("net.biff", ".bif"), ("net.xsdl", ".xdsl")])
def test_a_typo_in_a_suffix_is_not_written_as_another_format(tmp_path, network, name, near):
    known = rf"did you mean {near}\? Known are \.toml, \.sbn, \.bif, \.uai, \.xmlbif, \.bifxml, \.xml, \.xdsl$"
    with pytest.raises(FileFormatError, match=rf"cannot be written: its suffix is '{name[3:]}'; {known}"):
        sb.write(network, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["dsc", "net", "toml.gz", "xdsl.gz"])
def test_what_write_refuses_save_refuses(tmp_path, network, ending):
    for call in (sb.save, sb.write):
        with pytest.raises(
            FileFormatError, match=rf"but not written: its suffix is '\.{ending}'; end its name in \.toml, \.sbn"
        ):
            call(network, tmp_path / f"x.{ending}")
    assert list(tmp_path.iterdir()) == []


def test_a_mixture_is_not_written_as_text(tmp_path, network):
    with pytest.raises(FileFormatError, match=r"x\.toml cannot hold a mixture of networks; end its name in \.sbn"):
        sb.save(sb.NetworkMixture((network,), network.names), tmp_path / "x.toml")
    assert list(tmp_path.iterdir()) == []


def test_binary_files_with_the_ending_of_a_text_are_still_loaded(path, network):
    old = path.rename(path.with_suffix(".toml"))
    assert sb.load(old) == network


@pytest.mark.parametrize(("name", "called"), [("x.txt", "its suffix is '.txt'"), ("x", "its name has no suffix")])
def test_a_text_of_unknown_suffix_is_told_the_known_ones(tmp_path, name, called):
    (tmp_path / name).write_text("[units.flu]\nprior = 0.05\n")
    with pytest.raises(FileFormatError, match=rf"{name} cannot be read: {called}, none of \.toml, \.sbn, \.bif, \.uai"):
        sb.load(tmp_path / name)


def test_a_pipe_without_a_suffix_is_read_once(tmp_path, path, network):
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit((tmp_path / "pipe").write_bytes, path.read_bytes())
        assert sb.read(tmp_path / "pipe") == network
        done.result()


def test_a_mixture_is_no_checkpoint(tmp_path, network):
    sb.write(sb.NetworkMixture((network,), network.names), tmp_path / "x.sbn")
    with pytest.raises(FileFormatError, match=r"x.sbn is a safetensors file, but not a checkpoint"):
        sb.fit(network, [[0, 1, 1]], resume=tmp_path / "x.sbn")


# --- all or nothing -------------------------------------------------------------------------------------------------


class Torn(io.FileIO):
    """A file on a disk that fills up half-way."""

    def write(self, data):
        super().write(data[: len(data) // 2])
        raise OSError(28, "No space left on device")


FAILURES = {"write": OSError, "flush to disk": OSError, "rename": OSError, "interrupt": KeyboardInterrupt}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("existing", [True, False])
def test_an_interrupted_save_leaves_the_old_file_whole_and_nothing_else(
    tmp_path, network, monkeypatch, failure, existing
):
    path = tmp_path / "net.sbn"
    if existing:
        sb.save(network, path)

    def fail(*_):
        raise FAILURES[failure]

    with monkeypatch.context() as patch:
        if failure == "write":
            patch.setattr(os, "fdopen", Torn)
        else:
            patch.setattr(os, "fsync" if failure == "flush to disk" else "replace", fail)
        with pytest.raises(FAILURES[failure]):
            sb.save(network.with_parameters(bias=[7.0, 8.0, 9.0]), path)
    assert list(tmp_path.iterdir()) == ([path] if existing else [])
    if existing:
        assert sb.load(path) == network


def test_the_new_file_is_on_disk_before_it_takes_the_place_of_the_old(path, network, monkeypatch):
    order = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, real=real, name=name: (order.append(name), real(*a))[1])
    sb.save(network, path)
    assert order[:2] == ["fsync", "replace"]


def test_permissions_of_an_existing_file_are_kept(path, network):
    for mode in (0o640, 0o600, 0o664):
        path.chmod(mode)
        sb.save(network, path)
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path, network):
    before = os.umask(0o027)
    try:
        sb.save(network, tmp_path / "net.sbn")
        assert os.umask(0o027) == 0o027  # as it was
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "net.sbn").stat().st_mode) == 0o640


@pytest.mark.parametrize("dangling", [False, True])
def test_symbolic_links_are_followed(tmp_path, network, dangling):
    (tmp_path / "data").mkdir()
    link, target = tmp_path / "link.sbn", tmp_path / "data" / "net.sbn"
    if not dangling:
        target.write_bytes(b"old")
    link.symlink_to(target)
    sb.save(network, link)
    assert link.is_symlink()
    assert not target.is_symlink()
    assert sb.load(target) == sb.load(link) == network


def test_a_file_name_may_be_as_long_as_the_system_allows(tmp_path, network):
    path = tmp_path / ("n" * 251 + ".sbn")
    sb.save(network, path)
    assert sb.load(path) == network


def test_a_missing_file_or_folder_is_an_ordinary_error(tmp_path, network):
    with pytest.raises(FileNotFoundError):
        sb.load(tmp_path / "none.sbn")
    with pytest.raises(FileNotFoundError):
        sb.save(network, tmp_path / "none" / "net.sbn")


# --- damage ---------------------------------------------------------------------------------------------------------


def test_a_file_cut_short_anywhere_is_refused(path):
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert refused(path).startswith("FILE is ")


def test_bytes_too_many_are_refused(path):
    path.write_bytes(path.read_bytes() + b"\0")
    assert refused(path).startswith("FILE is damaged")


@pytest.mark.parametrize("flip", [0x01, 0x08, 0x20, 0x80, 0xFF])
def test_a_byte_changed_anywhere_never_gives_another_network(path, network, flip):
    whole = path.read_bytes()
    unnoticed = 0
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= flip
        path.write_bytes(damaged)
        with contextlib.suppress(FileFormatError):
            assert sb.load(path) == network
            unnoticed += 1
    assert unnoticed < 8  # blanks that fill up the header


@given(st.data())
def test_bytes_written_over_never_give_another_network(tmp_path_factory, data):
    network = sb.layered((2, 2), rng=0)
    path = tmp_path_factory.getbasetemp() / "overwritten.sbn"
    sb.save(network, path)
    whole = path.read_bytes()
    start = data.draw(st.integers(0, len(whole) - 1))
    piece = data.draw(st.binary(min_size=1, max_size=40))
    path.write_bytes((whole[:start] + piece + whole[start + len(piece) :])[: len(whole)])
    with contextlib.suppress(FileFormatError):
        assert sb.load(path) == network


# --- not our files --------------------------------------------------------------------------------------------------


def zipped():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("weight.npy", b"0" * 100)
    return buffer.getvalue()


def header(text, length=None):
    data = text.encode()
    return (len(data) if length is None else length).to_bytes(8, "little") + data


FOREIGN = {
    "empty": (b"", "FILE is cut short: it has only 0 bytes"),
    "short": (b"sbnet", "FILE is cut short: it has only 5 bytes"),
    "zip": (zipped(), "FILE is not a network file: it is not in the safetensors format"),
    "pickle": (pickle.dumps(list(range(100))), "FILE is not a network file: it is not in the safetensors format"),
    "text": (
        b'{"a": 1, "b": 2}',
        "FILE is not a network file: it is not in the safetensors format; the name of a text ends in .toml, .bif, "
        ".uai, …, which says how it is read",
    ),
    "header too long": (header("{}", 10**18), f"FILE is damaged or cut short: its header should have {10**18} bytes"),
    "header not JSON": (header("{nonsense"), "FILE is damaged: its header cannot be read"),
    "header with an absurd number": (header('{"a": ' + "9" * 5000 + "}"), "FILE is damaged: its header cannot be read"),
    "header too deep": (header('{"a":' * 100_000), "FILE is damaged: its header cannot be read"),
    "metadata not text": (header('{"__metadata__": 3}'), "FILE is damaged: its header cannot be read"),
    "foreign safetensors": (
        safetensors.numpy.save({"weight": np.zeros(3)}, metadata={"format": "pt"}),
        "FILE is a safetensors file, but not one that sbnet.write() wrote",
    ),
    "safetensors without metadata": (
        safetensors.numpy.save({"weight": np.zeros(3)}),
        "FILE is a safetensors file, but not one that sbnet.write() wrote",
    ),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_files_of_other_kinds_are_refused(tmp_path, kind):
    data, text = FOREIGN[kind]
    (tmp_path / "net.sbn").write_bytes(data)
    assert refused(tmp_path / "net.sbn") == text


ARRAYS = {
    "indptr": np.array([0, 0, 1]),
    "parent": np.array([0]),
    "weight": np.array([1.0]),
    "bias": np.array([0.0, 0.0]),
}
METADATA = {
    "format": "sbnet-network",
    "format_version": "1",
    "made_by": "sbnet 9.9",
    "names": '["a", "b"]',
    "layers": "null",
}


def write_by_hand(path, arrays, metadata):
    """A file with a right checksum, whatever it holds."""
    path.write_bytes(safetensors.numpy.save(arrays, metadata={**metadata, "sha256": checksum(arrays, metadata)}))


def test_files_made_by_hand_are_read_if_they_are_whole(tmp_path):
    write_by_hand(tmp_path / "net.sbn", ARRAYS, METADATA)
    assert sb.load(tmp_path / "net.sbn") == sb.from_edges({("a", "b"): 1.0})


SEALED = {  # the checksum is right, but what it seals is not a network
    "later version": (
        {},
        {"format_version": "5"},
        "FILE has format version 5 (made by sbnet 9.9); this sbnet reads up to version 4. Upgrade sbnet to read it",
    ),
    "no version": ({}, {"format_version": "new"}, "FILE is damaged: its format version reads 'new'"),
    "absurd version": ({}, {"format_version": "9" * 5000}, "FILE is damaged: its format version reads"),
    "other format": (
        {},
        {"format": "sbnet-posterior"},
        "FILE is a safetensors file, but not one that sbnet.write() wrote",
    ),
    "types": ({"weight": np.array([1])}, {}, "FILE holds arrays of unexpected types"),
    "wrapping": (
        {"indptr": np.array([0, 2**63 - 1, -2, -1, 0]), "parent": np.zeros(0, np.int64)},
        {},
        "FILE does not describe a network: indptr must not fall",
    ),
    "cycle": (
        {"parent": np.array([1])},
        {},
        "FILE does not describe a network: parents must precede their children",
    ),
    "not finite": ({"bias": np.array([0.0, np.nan])}, {}, "FILE does not describe a network: the bias of 'b' is nan"),
    "few names": (
        {},
        {"names": '["a"]'},
        "FILE does not describe a network: the graph has 2 variables, the network 1 name",
    ),
    "no names": ({}, {"names": "[]"}, "FILE does not describe a network: the network is empty"),
    "names not JSON": ({}, {"names": "a, b"}, "FILE does not describe a network: "),
    "names not a list": ({}, {"names": "3"}, "FILE does not describe a network: "),
    "names not text": ({}, {"names": "[1, 2]"}, "FILE does not describe a network: variable names are strings"),
    "names in one text": ({}, {"names": '"ab"'}, "FILE does not describe a network: "),
    "layers not numbers": ({}, {"layers": '["x"]'}, "FILE does not describe a network: "),
    "layers do not add up": ({}, {"layers": "[1, 2]"}, "FILE does not describe a network: layers (1, 2) do not add up"),
    "names too deep": ({}, {"names": "[" * 100_000}, "FILE does not describe a network: "),
}


@pytest.mark.parametrize("kind", SEALED)
def test_whole_files_that_hold_no_network_are_refused(tmp_path, kind):
    arrays, metadata, text = SEALED[kind]
    write_by_hand(tmp_path / "net.sbn", ARRAYS | arrays, METADATA | metadata)
    assert refused(tmp_path / "net.sbn").startswith(text)


@pytest.mark.parametrize("missing", ["names", "layers", "weight", "indptr"])
def test_files_with_a_part_missing_are_refused(tmp_path, missing):
    arrays = {key: value for key, value in ARRAYS.items() if key != missing}
    metadata = {key: value for key, value in METADATA.items() if key != missing}
    write_by_hand(tmp_path / "net.sbn", arrays, metadata)
    assert refused(tmp_path / "net.sbn") == f"FILE does not describe a network: it lacks '{missing}'"


def test_a_file_without_its_checksum_is_refused(tmp_path):
    (tmp_path / "net.sbn").write_bytes(safetensors.numpy.save(ARRAYS, metadata=METADATA))
    assert refused(tmp_path / "net.sbn") == "FILE is damaged: its contents do not match its checksum"


# --- one file for one network ---------------------------------------------------------------------------------------


def test_equal_networks_give_equal_files(tmp_path, network):
    for name in ("a.sbn", "b.sbn"):
        sb.save(network, tmp_path / name)
    assert (tmp_path / "a.sbn").read_bytes() == (tmp_path / "b.sbn").read_bytes()


@given(networks())
def test_files_are_what_the_reference_implementation_writes_but_for_the_order(tmp_path_factory, network):
    path = tmp_path_factory.getbasetemp() / "reference.sbn"
    sb.save(network, path)
    with safetensors.safe_open(path, "numpy") as file:
        metadata = file.metadata()
    arrays = safetensors.numpy.load_file(path)
    path.write_bytes(safetensors.numpy.save(arrays, metadata=metadata))
    assert sb.load(path) == network


# --- mixtures ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def mixture(tmp_path, network):
    """A mixture in a file, in parts."""
    sb.save(sb.NetworkMixture((network, network), network.names), tmp_path / "mixed.sbn")
    return hostile_files.opened((tmp_path / "mixed.sbn").read_bytes())


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("networks", "0000299999999", "does not say how many networks there are"),
        ("networks", "201", "does not say how many networks there are"),
        ("networks", "3", "does not describe a network: it lacks 'indptr'"),
        ("networks", "1", "has arrays that belong to none of its networks"),
        ("columns", "[[]]", "the names of its columns are not all texts"),
        ("columns", '[{"a": 1}]', "the names of its columns are not all texts"),
        ("columns", "[null]", "the names of its columns are not all texts"),
        ("columns", "{}", "'{}' is not a list"),
    ],
)
def test_mixtures_that_say_what_is_not_so_are_refused(tmp_path, mixture, key, text, message):
    mixture.metadata[key] = text
    (tmp_path / "mixed.sbn").write_bytes(mixture.sealed())
    assert message in refused(tmp_path / "mixed.sbn")


def test_a_mixture_that_could_not_be_read_again_is_not_saved(tmp_path, network):
    many = sb.NetworkMixture((network,) * 201, network.names)
    with pytest.raises(FileFormatError, match="can hold a mixture of 200 networks at most, not of 201"):
        sb.save(many, tmp_path / "mixed.sbn")
    most = sb.NetworkMixture(many.networks[1:], network.names)
    sb.save(most, tmp_path / "mixed.sbn")
    assert sb.load(tmp_path / "mixed.sbn") == most
