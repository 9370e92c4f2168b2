"""Be a Python with pytest loaded, by asking the sandbox's first process for a fork of it.

This is ``pytest`` in a warm sandbox, and what its ``python`` becomes for ``-m pytest``. The fork
gets this process's arguments, directory, variables, files and limits; whoever ends this ends it.
Where no fork can be had, or it would differ from a Python of one's own, one is started.

It is a script of its own inside, and knows nothing of rtmc.
"""

import _socket
import os
import resource
import sys

ADDRESS = b"\0rtmc-warm"
AS_IN_THE_FORK = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONHASHSEED"}
LIMITS = ("AS", "CORE", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "STACK")


def ask(argv):
    """Have a fork run this; give its exit code, None where there is no fork to have."""
    kinds = [getattr(resource, "RLIMIT_" + name) for name in LIMITS]
    limits = [(kind, resource.getrlimit(kind)) for kind in kinds]
    umask = os.umask(0)
    os.umask(umask)
    try:
        request = repr((argv, os.getcwd(), dict(os.environ), umask, limits)).encode()
        fds = b"".join(fd.to_bytes(4, sys.byteorder) for fd in range(3))
        fork = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        fork.connect(ADDRESS)
        fork.sendall(len(request).to_bytes(4, "big"))
        fork.sendmsg([request[:1]], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, fds)])
        fork.sendall(request[1:])
    except OSError:
        return None
    try:
        return int(fork.recv(16) or 137)
    except OSError:
        return 137


def main():
    """Ask, or start a Python."""
    strange = {name for name in os.environ if name.startswith("PYTHON")} - AS_IN_THE_FORK
    code = None if strange else ask(sys.argv)
    if code is None:
        folder, name = os.path.split(sys.argv[0])
        module = ["-m", "pytest"] if name == "pytest" else []
        os.execv(os.path.join(folder, "plain"), ["python", *module, *sys.argv[1:]])
    os._exit(code)


if __name__ == "__main__":
    main()
