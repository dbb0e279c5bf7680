"""Ports that tests give to servers."""

import socket

from tests.ports import free_port


def test_no_port_is_given_twice_nor_while_something_listens_on_it() -> None:
    """A port next in turn that is taken is passed over, and none is one of the kernel's own."""
    first = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 1))
        taken.listen()
        later = [free_port() for _ in range(20)]
    assert first + 1 not in later
    assert len({first, *later}) == 21
    assert max(later) < 32_768
