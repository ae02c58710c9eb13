"""Files of weights from the network, kept in a folder."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import uuid
from pathlib import Path
from urllib.parse import urlparse

__all__ = ["download_url_to_file", "get_dir", "load_state_dict_from_url", "set_dir"]

# The start of a file's SHA-256 in its name, as in resnet18-f37072fd.pth.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_chosen = None


def _get_torch_home():
    """$TORCH_HOME, or torch in the folder of caches."""
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir():
    """Where files are kept: what set_dir was given, or hub in $TORCH_HOME."""
    return _chosen if _chosen is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d):
    """Keep files in another folder."""
    global _chosen
    _chosen = os.path.expanduser(d)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Download an address to a file, which is there whole or not at all.

    Raises RuntimeError where its SHA-256 does not start with `hash_prefix`.
    """
    from urllib.request import Request, urlopen

    dst = os.path.expanduser(dst)
    part = f"{dst}.{uuid.uuid4().hex}.partial"
    digest = hashlib.sha256()
    try:
        request = Request(url, headers={"User-Agent": "lamina.hub"})
        with urlopen(request) as source, open(part, "wb") as target:
            while block := source.read(1 << 17):
                target.write(block)
                digest.update(block)
        if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(
                f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")'
            )
        shutil.move(part, dst)
    finally:
        Path(part).unlink(missing_ok=True)


def load_state_dict_from_url(
    url,
    model_dir=None,
    map_location=None,
    progress=True,
    check_hash=False,
    file_name=None,
    weights_only=True,
):
    """`lamina.load` of an address, whose file is kept in `model_dir`; checkpoints in the hub's folder if not given.

    With `check_hash` the start of the file's SHA-256 must be in its name.
    """
    import lamina

    folder = model_dir if model_dir is not None else os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress=progress)
    return lamina.load(path, map_location=map_location, weights_only=weights_only)
