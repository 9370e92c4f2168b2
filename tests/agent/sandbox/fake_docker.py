"""A scripted Docker client: its engine runs a container's first process on this machine."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
from typing import IO, Any

from docker.errors import APIError, ImageNotFound


class Stream:
    """What ``attach_socket`` gives: a wrapper with the socket inside."""

    def __init__(self, inner: socket.socket) -> None:
        self._sock = inner

    def close(self) -> None:
        self._sock.close()


class FakeContainer:
    def __init__(self, options: dict[str, Any], fails: str = "") -> None:
        self.options, self.fails = options, fails
        self.removed = False
        self.process: subprocess.Popen[bytes] | None = None

    def attach_socket(self, params: dict[str, int]) -> Stream:
        assert params == {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        assert self.process is None, "attached too late: output may be lost"
        ours, self.engine = socket.socketpair()
        return Stream(ours)

    def start(self) -> None:
        if self.fails == "start":
            raise APIError("500", explanation="no space left on device")
        program = [sys.executable, *self.options["entrypoint"][1:]]
        if self.options["entrypoint"][0] != "python3":
            program = ["sh", "-c", "echo 'exec: no such file' >&2"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            program,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            cwd=self.options["working_dir"],
            env={"PATH": os.environ["PATH"], "FROM_IMAGE": "yes"},
        )
        assert self.process.stdin is not None
        pumps = [
            threading.Thread(target=self._feed, args=(self.process.stdin,), daemon=True),
            threading.Thread(target=self._frame, args=(1, self.process.stdout), daemon=True),
            threading.Thread(target=self._frame, args=(2, self.process.stderr), daemon=True),
        ]
        for pump in pumps:
            pump.start()
        self.finish = threading.Thread(target=self._finish, args=(pumps,), daemon=True)
        self.finish.start()

    def _feed(self, stdin: IO[bytes]) -> None:
        with stdin, contextlib.suppress(BrokenPipeError):
            while data := self.engine.recv(65536):
                stdin.write(data)
                stdin.flush()

    def _frame(self, kind: int, stream: IO[bytes]) -> None:
        with stream:
            while data := os.read(stream.fileno(), 1000):
                frame = bytes([kind, 0, 0, 0]) + len(data).to_bytes(4, "big") + data
                for at in range(0, len(frame), 999):  # frames do not come whole
                    self.engine.sendall(frame[at : at + 999])

    def _finish(self, pumps: list[threading.Thread]) -> None:
        for pump in pumps[1:]:
            pump.join()
        self.engine.shutdown(socket.SHUT_WR)
        pumps[0].join()
        self.engine.close()

    def remove(self, force: bool) -> None:
        assert force
        self.removed = True
        if self.process is not None:
            self.process.wait(timeout=30)  # its standard input has ended
            self.finish.join(timeout=30)
        else:
            self.engine.close()


class FakeDocker:
    """The client: ``containers.create`` knows one image."""

    def __init__(self, image: str, fails: str = "") -> None:
        self.image, self.fails = image, fails
        self.containers = self
        self.created: list[FakeContainer] = []

    def create(self, image: str, **options: Any) -> FakeContainer:
        if image != self.image:
            raise ImageNotFound("404")
        if self.fails == "create":
            raise APIError("500", explanation="--storage-opt is supported only for xfs")
        self.created.append(FakeContainer(options, self.fails))
        return self.created[-1]
