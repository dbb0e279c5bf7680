"""What an engine's failure is told as: one line of the user's message, not a page of frames."""


def one_line(error: BaseException, characters: int) -> str:
    """Return an error's text in one line of at most `characters`, the middle left out.

    An engine wraps the text of a failed task in its own, frame by frame: what failed stands at the
    start, and why at the end.
    """
    text = " ".join(str(error).split()) or type(error).__name__
    if len(text) <= characters:
        return text
    start = characters // 3
    return f"{text[:start]} … {text[start + 3 - characters :]}"
