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
