"""Bytes and times as people read them."""


def bytes_text(n: float) -> str:
    """1536 as "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(n) < 1024 or unit == "GiB":
            return f"{int(n)} B" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    raise AssertionError


def time_text(ns: float) -> str:
    """Nanoseconds with three digits and a unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.3g} {unit}" if abs(ns) / size < 1000 else f"{ns / size:.0f} {unit}"
    return f"{int(ns)} ns"


def memory_text(call) -> str:
    """What a call took from the allocator and gave back."""
    text = f"took {bytes_text(call.allocated)}"
    if call.allocated:
        again = "all" if call.reused == call.allocated else bytes_text(call.reused)
        text += f" ({again if call.reused else 'none'} reused)"
    return f"{text}, gave back {bytes_text(call.freed)}"


def loop_text(chunks: int, threads: int) -> str:
    """A parallel loop."""
    return f"in {chunks} chunk{'s' * (chunks != 1)} on {threads} thread{'s' * (threads != 1)}"


def signature_text(call) -> str:
    """The signature that the border chose for a call; empty where nothing had to be matched."""
    entrance = call.entrance
    if not call.outer or entrance is None or entrance.chosen < 0:
        return ""
    return f"chose {entrance.function}({entrance.signatures[entrance.chosen][0]})"
