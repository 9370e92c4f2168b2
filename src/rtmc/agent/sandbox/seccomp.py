"""A filter of system calls for what namespaces and limits leave open.

Refused as if the kernel lacked them: memory that belongs to no process and so escapes every limit
(memfd, System V shared memory and messages), key rings, which are not divided by namespaces, and
parts of the kernel that seldom serve an agent but often an attacker (io_uring, bpf, userfaultfd,
perf). Sockets are of the families that a network namespace contains, or netlink: a virtual
machine's vsock, for one, reaches the host from any namespace.
"""

import errno
import platform
import struct
import sys
from typing import NamedTuple

__all__ = ["seccomp_filter"]

FAMILIES = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16}


class Machine(NamedTuple):
    """The numbers of one architecture (linux/audit.h, asm/unistd.h)."""

    audit: int
    socket: int
    socketpair: int
    refused: tuple[int, ...]


MACHINES = {
    # shmget msgget add_key request_key keyctl perf_event_open memfd_create bpf userfaultfd
    # io_uring_setup io_uring_enter io_uring_register memfd_secret
    "x86_64": Machine(
        0xC000003E, 41, 53, (29, 68, 248, 249, 250, 298, 319, 321, 323, 425, 426, 427, 447)
    ),
    "aarch64": Machine(
        0xC00000B7, 198, 199, (194, 186, 217, 218, 219, 241, 279, 280, 282, 425, 426, 427, 447)
    ),
}

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # where they are in struct seccomp_data
_X32 = 0x40000000  # system calls of the x32 interface start here: the same calls by other numbers


def seccomp_filter(machine: str | None = None) -> bytes | None:
    """Assemble the filter as the kernel takes it; None for an architecture not known here."""
    numbers = MACHINES.get(machine or platform.machine())
    if numbers is None or sys.byteorder != "little":
        return None
    refuse = (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, numbers.audit),
        refuse,
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        refuse,
    ]
    for number in numbers.refused:
        program += [(_EQUAL, 0, 1, number), refuse]
    program += [
        (_EQUAL, 2, 0, numbers.socket),
        (_EQUAL, 1, 0, numbers.socketpair),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
    ]
    for family in FAMILIES.values():
        program += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
    program.append((_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT))
    return b"".join(struct.pack("<HBBI", *line) for line in program)
