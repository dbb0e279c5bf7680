"""Recognizes errors caused by a lack of memory."""

import errno

_NO_MEMORY = ("Cannot allocate memory", "failed to map segment", "can't start new thread")


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that the system had too little memory."""
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    kinds = (OSError, ImportError, RuntimeError)
    return isinstance(error, kinds) and any(words in str(error) for words in _NO_MEMORY)
