"""A version that is a string and compares like a version."""

import re

_FORM = re.compile(
    r"\s*v?(\d+(?:\.\d+)*)(?:[._-]?(a|alpha|b|beta|c|rc|pre|preview)[._-]?(\d*))?(.*)$", re.I
)


def _key(version):
    """Something that orders as PEP 440 orders versions, local parts left out of account."""
    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    found = _FORM.match(str(version))
    if not found:
        raise ValueError(f"invalid version: {version!r}")
    release = [int(n) for n in found[1].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    rest = found[4].partition("+")[0].lower()
    stage = (0, found[2][0].lower(), int(found[3] or 0)) if found[2] else (1, "", 0)
    if ".dev" in rest:
        stage = (-1, "", 0)
    local = str(version).partition("+")[2]
    return release, stage, "post" in rest, local


class TorchVersion(str):
    """A version string; ``<`` and its kin compare versions, with strings, tuples and versions of other packages."""

    def _compare(self, other, test):
        try:
            mine, theirs = _key(self), _key(other)
        except (ValueError, TypeError):
            return NotImplemented
        return test(mine, theirs)

    def __gt__(self, other):
        return self._compare(other, lambda a, b: a > b)

    def __lt__(self, other):
        return self._compare(other, lambda a, b: a < b)

    def __ge__(self, other):
        return self._compare(other, lambda a, b: a >= b)

    def __le__(self, other):
        return self._compare(other, lambda a, b: a <= b)

    def __eq__(self, other):
        return self._compare(other, lambda a, b: a == b)

    def __ne__(self, other):
        result = self.__eq__(other)
        return result if result is NotImplemented else not result

    __hash__ = str.__hash__


__all__ = ["TorchVersion"]
