"""Where files are written: only a regular file is ever replaced, and what cannot be written is refused at once."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import sbnet as sb
from sbnet.cli import main
from sbnet.errors import ParameterError, SBNetError, TargetError
from sbnet.files import atomic

LAWN = sb.from_edges({("rain", "wet"): 2.0, ("sprinkler", "wet"): 1.5})
ROWS = np.array([[1.0], [0.0]])
NOBODY = 65534


def by_save(path):
    sb.save(LAWN, path)


def by_fit(path):
    sb.fit(LAWN, ROWS, epochs=1, checkpoint=path, threads=1, rng=0)


@pytest.fixture
def by_command(tmp_path_factory, capsys):
    network = tmp_path_factory.mktemp("network") / "lawn.sbn"
    sb.save(LAWN, network)

    def run(path):
        """The command; its one line of complaint as an error."""
        status = main(["infer", str(network), "wet=1", "--out", os.fsdecode(path)])
        complaint = capsys.readouterr().err
        if status:
            assert status == 2
            assert complaint.count("\n") == 1
            raise TargetError(complaint)

    return run


@pytest.fixture(params=["save", "fit", "command"])
def write(request):
    """Each of the ways to have a file written."""
    if request.param == "command":
        return request.getfixturevalue("by_command")
    return by_save if request.param == "save" else by_fit


@pytest.fixture
def no_work(monkeypatch):
    """Learning and inference that must not begin."""

    def fail(*_, **__):
        raise AssertionError("work has begun")

    monkeypatch.setattr("sbnet.learning.gradients.map_blocks", fail)
    monkeypatch.setattr("sbnet.learning.sources.read_many", fail)
    monkeypatch.setattr("sbnet.cli.infer.infer", fail)
    monkeypatch.setattr("sbnet.cli.models.read", fail)


# --- what is not a regular file -------------------------------------------------------------------------------------


def pipe(path):
    os.mkfifo(path)


def folder(path):
    path.mkdir()


def device(path):
    """A copy of /dev/null, so that nothing is lost should it be replaced."""
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root can make a device")


def listener(path):
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(path.parent):
        server.bind(path.name)


KINDS = {pipe: "a pipe", folder: "a folder", device: "a device", listener: "a socket"}


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("through", ["directly", "by a link"])
def test_nothing_but_a_regular_file_is_replaced(tmp_path, write, no_work, make, through):
    path = real = tmp_path / "target"
    make(real)
    if through == "by a link":
        path = tmp_path / "link"
        path.symlink_to("target")
    before = os.lstat(real)
    with pytest.raises(TargetError) as caught:
        write(path)
    assert f"{path} is {KINDS[make]}, not a regular file; " in str(caught.value)
    after = os.lstat(real)
    assert (before.st_ino, before.st_mode, before.st_rdev) == (after.st_ino, after.st_mode, after.st_rdev)
    assert {item.name for item in tmp_path.iterdir()} == {"target", path.name}


def test_the_errors_of_targets_are_what_a_programmer_expects(tmp_path):
    for expected in (SBNetError, OSError, ValueError):
        with pytest.raises(expected, match="is a folder, not a regular file; give the name of a regular file, or one"):
            sb.save(LAWN, tmp_path)


def test_standard_output_is_named_as_the_way_out(tmp_path, by_command, no_work):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TargetError, match="leave --out away to write to standard output"):
        by_command(tmp_path / "pipe")
    assert not os.path.exists("-")


def test_standard_output_by_the_name_of_its_device(tmp_path):
    sb.save(LAWN, tmp_path / "lawn.sbn")
    command = [sys.executable, "-m", "sbnet", "infer", str(tmp_path / "lawn.sbn"), "--out", "/dev/stdout"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "sbnet: error: /dev/stdout is a pipe, not a regular file; leave --out away to write to standard output\n"
    )


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc")
def test_a_file_that_has_lost_its_name_is_refused(tmp_path):
    with open(tmp_path / "gone", "w") as file:
        os.unlink(tmp_path / "gone")
        with pytest.raises(TargetError, match="leads to a file that has no name any more"):
            sb.save(LAWN, f"/proc/self/fd/{file.fileno()}")
    assert list(tmp_path.iterdir()) == []


def test_the_report_is_refused_before_the_experiments(tmp_path, capsys):
    (tmp_path / "index.html").mkdir()
    assert main(["reproduce", "figure5", "--quick", "--out", str(tmp_path)]) == 2
    assert "index.html is a folder, not a regular file; " in capsys.readouterr().err


# --- names ----------------------------------------------------------------------------------------------------------


def test_names_may_be_bytes(tmp_path):
    path = os.fsencode(tmp_path / "net.sbn")
    sb.save(LAWN, path)
    assert sb.load(path) == LAWN
    by_fit(path)


@pytest.mark.parametrize("name", ["", "a\0b", b"\0"])
def test_names_that_no_file_can_have(name):
    for call in (lambda: sb.save(LAWN, name), lambda: sb.load(name), lambda: by_fit(name)):
        with pytest.raises(ParameterError, match="cannot be the name of a file"):
            call()


@pytest.mark.parametrize("name", [1, None, 1.5, True])
def test_handles_and_others_are_no_names(name):  # 1 would be standard output
    for call in (lambda: sb.save(LAWN, name), lambda: sb.load(name)):
        with pytest.raises(TypeError, match=f"the name of a file is {name}; give a text or a path"):
            call()


def test_a_name_that_ends_like_a_folder_is_no_file(tmp_path):
    with pytest.raises(TargetError, match="net.sbn/ names a folder, not a regular file; "):
        sb.save(LAWN, f"{tmp_path}/net.sbn/")
    assert list(tmp_path.iterdir()) == []


# --- links ----------------------------------------------------------------------------------------------------------


def test_a_chain_of_links_is_followed_and_stays(tmp_path, write):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "real").write_bytes(b"old")
    (tmp_path / "second").symlink_to("data/real")
    (tmp_path / "first").symlink_to(tmp_path / "second")
    write(tmp_path / "first")
    assert os.readlink(tmp_path / "first") == str(tmp_path / "second")
    assert os.readlink(tmp_path / "second") == "data/real"
    assert (tmp_path / "data" / "real").read_bytes() not in (b"old", b"")
    assert {item.name for item in tmp_path.rglob("*")} == {"data", "real", "first", "second"}


def test_a_link_into_another_file_system(tmp_path):
    elsewhere = Path(tempfile.mkdtemp(dir="/dev/shm")) if os.path.isdir("/dev/shm") else None
    if elsewhere is None or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is only one file system")
    try:
        (tmp_path / "link").symlink_to(elsewhere / "net.sbn")
        for _ in range(2):  # a new file, and its replacement
            sb.save(LAWN, tmp_path / "link")
            assert sb.load(elsewhere / "net.sbn") == LAWN
        assert (tmp_path / "link").is_symlink()
    finally:
        shutil.rmtree(elsewhere)


def test_links_that_lead_nowhere(tmp_path, no_work):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "lost").symlink_to("none/net.sbn")
    for name, code in (("loop", errno.ELOOP), ("lost", errno.ENOENT)):
        for write in (by_save, by_fit):
            with pytest.raises(OSError, match=name) as caught:
                write(tmp_path / name)
            assert caught.value.errno == code
            assert caught.value.filename == str(tmp_path / name)


def test_another_name_of_the_same_file_keeps_the_old_contents(tmp_path):
    (tmp_path / "net.sbn").write_bytes(b"old")
    os.link(tmp_path / "net.sbn", tmp_path / "other.sbn")
    sb.save(LAWN, tmp_path / "net.sbn")
    assert sb.load(tmp_path / "net.sbn") == LAWN
    assert (tmp_path / "other.sbn").read_bytes() == b"old"


# --- permissions ----------------------------------------------------------------------------------------------------


@pytest.fixture
def public():
    """A folder that any user can reach."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@contextlib.contextmanager
def as_nobody():
    """Without the rights of root, whom no permission stops."""
    if os.geteuid():
        yield
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def owned(path, mode):
    """Give a file or folder to the user of :func:`as_nobody`."""
    if not os.geteuid():
        os.chown(path, NOBODY, NOBODY)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("existing", [True, False])
def test_a_folder_that_must_not_be_written_is_refused_at_once(public, no_work, existing):
    place = public / "place"
    place.mkdir()
    if existing:
        (place / "net.sbn").write_bytes(b"old")
        owned(place / "net.sbn", 0o644)
    owned(place, 0o555)
    for write in (by_save, by_fit):
        with as_nobody(), pytest.raises(PermissionError) as caught:
            write(place / "net.sbn")
        assert str(caught.value) == f"[Errno 13] Permission denied: '{place / 'net.sbn'}'"
    assert [file.read_bytes() for file in place.iterdir()] == [b"old"] * existing


def test_a_file_that_must_not_be_written_is_refused_though_it_could_be_replaced(public, no_work):
    owned(public, 0o755)
    (public / "net.sbn").write_bytes(b"old")
    owned(public / "net.sbn", 0o444)
    for write in (by_save, by_fit):
        with as_nobody(), pytest.raises(PermissionError, match="net.sbn"):
            write(public / "net.sbn")
    assert (public / "net.sbn").read_bytes() == b"old"


def test_a_folder_that_can_be_written_but_not_read(public):
    owned(public, 0o333)
    with as_nobody():
        sb.save(LAWN, public / "net.sbn")
    assert sb.load(public / "net.sbn") == LAWN


def test_the_owner_stays(tmp_path):
    if os.geteuid():
        pytest.skip("only root can give files away")
    path = tmp_path / "net.sbn"
    path.write_bytes(b"old")
    os.chown(path, NOBODY, NOBODY)
    sb.save(LAWN, path)
    assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY, NOBODY)


def test_a_private_file_is_never_open_to_others_on_the_way(tmp_path, monkeypatch):
    path, modes = tmp_path / "net.sbn", []
    path.write_bytes(b"old")
    path.chmod(0o600)
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (modes.append(os.fstat(handle).st_mode & 0o777), real(handle)))
    sb.save(LAWN, path)
    assert modes[0] == 0o600


# --- before the work begins -----------------------------------------------------------------------------------------


class Refusing:
    """The system, which makes no new files beside the target: a disk that is mounted to be read only."""

    def __init__(self, code):
        self.code = code

    def __getattr__(self, name):
        return getattr(os, name)

    def open(self, path, flags, *mode):
        if flags & os.O_CREAT:
            raise OSError(self.code, os.strerror(self.code), path)
        return os.open(path, flags, *mode)


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG])
def test_a_target_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch, write, no_work, code):
    path = tmp_path / "target"
    monkeypatch.setattr(atomic, "os", Refusing(code))
    with pytest.raises(OSError) as caught:
        write(path)
    assert str(path) in str(caught.value)
    assert os.strerror(code) in str(caught.value)
    assert ".sbnet-" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_look_leaves_no_trace(tmp_path):
    path = tmp_path / "target"
    atomic.check_target(path)
    assert list(tmp_path.iterdir()) == []
    path.write_bytes(b"old")
    before = path.stat()
    atomic.check_target(path)
    assert path.stat() == before
    assert [item.name for item in tmp_path.iterdir()] == ["target"]


def test_a_missing_folder_is_said_of_the_target(tmp_path, by_command, no_work):
    with pytest.raises(FileNotFoundError) as caught:
        sb.save(LAWN, tmp_path / "none" / "net.sbn")
    assert caught.value.filename == str(tmp_path / "none" / "net.sbn")
    with pytest.raises(TargetError, match=r"none/out.csv cannot be written: the folder .*none"):
        by_command(tmp_path / "none" / "out.csv")


def test_a_disk_that_is_full_for_real(tmp_path):
    path = tmp_path / "net.sbn"
    sb.save(LAWN, path)
    large = sb.layered((100, 100), rng=0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(OSError) as caught:
            sb.save(large, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert sb.load(path) == LAWN
    assert [item.name for item in tmp_path.iterdir()] == ["net.sbn"]
