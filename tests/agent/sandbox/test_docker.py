"""Docker, up to the engine: a scripted client stands for it."""

import gc
import socket
import sys
import warnings

import pytest
from fake_docker import FakeDocker

from rtmc.agent.sandbox import Limits, init, open_sandbox
from rtmc.agent.sandbox.docker import Attached, options
from rtmc.agent.sandbox.hosted import BOOT_TEXT
from rtmc.errors import MissingExtraError, SandboxError

MIB = 1 << 20


def test_options():
    limits = Limits(memory=100 * MIB, disk=10 * MIB, processes=7)
    assert options(limits, workspace="/w", python="/opt/python", quota=False) == {
        "entrypoint": ["/opt/python", "-I", "-S", "-c", BOOT_TEXT],
        "command": [],
        "working_dir": "/w",
        "stdin_open": True,
        "tty": False,
        "network_mode": "none",
        "hostname": "sandbox",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "mem_limit": 120 * MIB,
        "memswap_limit": 120 * MIB,
        "pids_limit": 9,
        "shm_size": 10 * MIB,
        "tmpfs": {"/tmp": f"size={10 * MIB},mode=1777"},
        "labels": {"rtmc": "sandbox"},
    }
    with_quota = options(limits, workspace="/w", python="python3", quota=True)
    assert with_quota["storage_opt"] == {"size": str(10 * MIB)}


def test_the_sdk_knows_every_option():
    """Each goes into the request that the engine gets."""
    from docker.models.containers import _create_container_args

    given = options(Limits(), workspace="/w", python="python3", quota=True)
    request = _create_container_args({"image": "i", "version": "1.44", **given})
    host = request["host_config"]
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert host["PidsLimit"] == 130
    assert host["Memory"] == host["MemorySwap"]
    assert host["Tmpfs"].keys() == {"/tmp"}
    assert host["StorageOpt"].keys() == {"size"}
    assert request["stdin_open"]
    assert not request["tty"]


def test_the_container_goes_with_the_sandbox(tmp_path):
    client = FakeDocker("known")
    with open_sandbox(
        "docker", image="known", workspace=str(tmp_path), client=client, env={"A": "1"}
    ) as box:
        assert box.run("echo $FROM_IMAGE $A").output == "yes 1\n"
        assert box.workspace == str(tmp_path)
    (container,) = client.created
    assert container.removed


def test_no_such_image(tmp_path):
    with pytest.raises(SandboxError) as caught:
        open_sandbox("docker", image="r2e/none:1", client=FakeDocker("known"))
    assert str(caught.value) == (
        "Docker has no image r2e/none:1; get it with: docker pull r2e/none:1"
    )


@pytest.mark.parametrize(
    ("fails", "quota", "message"),
    [
        ("create", True, "Docker refused to start known: --storage-opt is supported only for xfs; "
         "leave quota off"),
        ("start", False, "Docker refused to start known: no space left on device"),
    ],
)  # fmt: skip
def test_docker_refuses(tmp_path, fails, quota, message):
    client = FakeDocker("known", fails)
    with pytest.raises(SandboxError) as caught:
        open_sandbox("docker", image="known", workspace=str(tmp_path), quota=quota, client=client)
    assert str(caught.value) == message
    assert all(container.removed for container in client.created)


def test_an_image_without_python(tmp_path):
    client = FakeDocker("known")
    with pytest.raises(SandboxError) as caught:
        open_sandbox(
            "docker", image="known", workspace=str(tmp_path), python="py", client=client
        )  # fmt: skip
    assert str(caught.value) == (
        "the first process in known did not start (exec: no such file); an image needs bash, tar "
        "and Python 3.6 or newer as 'py' (see python=)"
    )
    assert client.created[0].removed


def test_docker_is_not_running(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///no/such/socket")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the SDK leaves a socket open
        with pytest.raises(SandboxError) as caught:
            open_sandbox("docker", image="known")
        message = str(caught.value)
        del caught
        gc.collect()
    assert message.startswith("Docker is not running, or this user may not use it (")
    assert message.endswith(
        "start it (systemctl start docker) or join the group docker, or use the sandbox 'bwrap'"
    )


def test_the_sdk_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'rtmc\[docker\]'"):
        open_sandbox("docker", image="known")


def test_frames():
    """Bytes of stdout in any pieces; stderr aside."""
    ours, engine = socket.socketpair()
    channel = Attached(ours)
    frames = b"".join(
        bytes([kind, 0, 0, 0]) + len(data).to_bytes(4, "big") + data
        for kind, data in ((1, b"ab"), (2, b"oh"), (1, b""), (1, b"cdefg"), (2, b" no"))
    )
    engine.sendall(frames)
    engine.close()
    got = b""
    while data := channel.recv(3):
        got += data
    assert (got, channel.said) == (b"abcdefg", b"oh no")
    channel.close()


def test_the_program_inside_is_for_old_pythons():
    """R2E-Gym and SWE-bench have images with Python 3.6."""
    import ast
    import inspect

    tree = ast.parse(inspect.getsource(init), feature_version=(3, 6))
    loaded = {
        name.name
        for node in tree.body
        if isinstance(node, ast.Import)
        for name in node.names
    }  # fmt: skip
    assert loaded == {"_signal", "os", "resource", "select", "stat", "struct", "time"}
