"""Writes oldest.tar: the format of PyTorch's first releases, which nothing writes any more.

A tar of `storages`, `tensors` and `pickle`; PyTorch still reads it with weights_only=False.
"""

import io
import pickle
import struct
import tarfile
from pathlib import Path


def global_(module, name):
    return f"c{module}\n{name}\n".encode()


def build():
    storages = io.BytesIO()
    storages.write(pickle.dumps(1, 2))
    key = pickle.dumps("s0", 2)[2:-1]
    location = pickle.dumps("cpu", 2)[2:-1]
    storages.write(b"\x80\x02(" + key + location + global_("torch", "FloatStorage") + b"t.")
    storages.write(struct.pack("<q", 6) + struct.pack("<6f", *range(6)))
    storages.write(pickle.dumps([], 2))
    tensors = io.BytesIO()
    tensors.write(pickle.dumps(2, 2))
    for number, (offset, sizes, strides) in enumerate([(0, (2, 3), (3, 1)), (3, (3,), (1,))]):
        ident = pickle.dumps(number, 2)[2:-1]
        tensors.write(b"\x80\x02(" + ident + key + global_("torch", "FloatTensor") + b"t.")
        tensors.write(struct.pack("<i", len(sizes)) + bytes(4))
        tensors.write(struct.pack(f"<{len(sizes)}q", *sizes))
        tensors.write(struct.pack(f"<{len(sizes)}q", *strides))
        tensors.write(struct.pack("<q", offset))
    content = b"\x80\x02}(X\x05\x00\x00\x00wholeX\x01\x00\x00\x000QX\x03\x00\x00\x00rowX\x01\x00\x00\x001Qu."
    return {"storages": storages.getvalue(), "tensors": tensors.getvalue(), "pickle": content,
            "sys_info": pickle.dumps({"protocol_version": 1000, "little_endian": True}, 2)}  # fmt: skip


if __name__ == "__main__":
    path = Path(__file__).parent / "oldest.tar"
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as tar:
        for name, data in build().items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
