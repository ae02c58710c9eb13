"""The zip archives that hold checkpoints: stored records, aligned, with checksums.

A reader of our own, because every number in a file has to be checked against the file before anything is
allocated, and because records are mapped or read straight into storages.
"""

import os
import struct
import zlib

ALIGNMENT = 64
_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64 = struct.Struct("<4sIQI")
_MAX32, _MAX16 = 0xFFFFFFFF, 0xFFFF
_UTF8 = 0x800


def _failed(text):
    return RuntimeError(f"PytorchStreamReader failed reading zip archive: {text}")


class Record:
    """Where one record lies."""

    __slots__ = ("name", "method", "crc", "packed", "size", "header", "start")

    def __init__(self, name, method, crc, packed, size, header):
        self.name, self.method, self.crc = name, method, crc
        self.packed, self.size, self.header = packed, size, header
        self.start = -1  # of its bytes; found at the first look


class Reader:
    """The records of an archive in `source`, a file open for reading or a bytes-like object."""

    def __init__(self, source):
        self._view = memoryview(source).cast("B") if _is_buffer(source) else None
        self._file = None if self._view is not None else source
        if self._view is not None:
            self.length = len(self._view)
        else:
            self._base = source.tell()
            source.seek(0, os.SEEK_END)
            self.length = source.tell() - self._base
        self.records = {}
        self._read_directory()
        names = list(self.records)
        if not names:
            raise _failed("it is empty")
        self.name = names[0].partition("/")[0]

    def read_at(self, start, n):
        """`n` bytes from `start`. Raises RuntimeError where the archive is shorter."""
        if start < 0 or n < 0 or start + n > self.length:
            raise _failed("invalid header or archive is corrupted")
        if self._view is not None:
            return self._view[start : start + n]
        self._file.seek(self._base + start)
        data = self._file.read(n)
        if len(data) != n:
            raise _failed("file read failed")
        return data

    def _read_directory(self):
        tail = min(self.length, _END.size + _MAX16)
        if tail < _END.size:
            raise _failed("failed finding central directory")
        data = bytes(self.read_at(self.length - tail, tail))
        at = data.rfind(b"PK\x05\x06")
        if at < 0 or len(data) - at < _END.size:
            raise _failed("failed finding central directory")
        _, _, _, _, count, size, offset, _ = _END.unpack_from(data, at)
        end = self.length - tail + at
        if count == _MAX16 or size == _MAX32 or offset == _MAX32:
            if end < _LOCATOR64.size:
                raise _failed("failed finding central directory")
            magic, _, where, _ = _LOCATOR64.unpack(
                self.read_at(end - _LOCATOR64.size, _LOCATOR64.size)
            )
            if magic != b"PK\x06\x07":
                raise _failed("failed finding central directory")
            fields = _END64.unpack(self.read_at(where, _END64.size))
            if fields[0] != b"PK\x06\x06":
                raise _failed("failed finding central directory")
            count, size, offset = fields[7], fields[8], fields[9]
        if offset + size > self.length or count * _CENTRAL.size > size:
            raise _failed("invalid header or archive is corrupted")
        directory = bytes(self.read_at(offset, size))
        at = 0
        for _ in range(count):
            if at + _CENTRAL.size > size:
                raise _failed("invalid header or archive is corrupted")
            (magic, _, _, flags, method, _, _, crc, packed, full, n, extra, comment, _, _, _,
             header) = _CENTRAL.unpack_from(directory, at)  # fmt: skip
            if magic != b"PK\x01\x02" or at + _CENTRAL.size + n + extra + comment > size:
                raise _failed("invalid header or archive is corrupted")
            at += _CENTRAL.size
            try:
                name = directory[at : at + n].decode("utf-8")
            except UnicodeDecodeError:
                raise _failed("a name is no text") from None
            more = directory[at + n : at + n + extra]
            full, packed, header = _wide(more, full, packed, header)
            at += n + extra + comment
            if flags & 1:
                raise _failed("encrypted records are not supported")
            if header + _LOCAL.size + packed > self.length:
                raise _failed("a record leaves the file")
            if method == 0 and packed != full:
                raise _failed("invalid header or archive is corrupted")
            if name in self.records:
                raise _failed(f"two records are named {name!r}")
            self.records[name] = Record(name, method, crc, packed, full, header)
        # Records that share bytes could ask for the file's size many times over.
        ordered = sorted(self.records.values(), key=lambda r: r.header)
        for first, second in zip(ordered, ordered[1:]):
            if first.header + _LOCAL.size + first.packed > second.header:
                raise _failed("records overlap")
        total = sum(r.size for r in ordered if r.method != 0)
        # Checkpoints are stored as they are; the source in a TorchScript archive is compressed text.
        is_script = any(n.count("/") == 1 and n.endswith("/constants.pkl") for n in self.records)
        if total > (64 if is_script else 2) * self.length + 4096:
            raise _failed(
                f"compressed records would take {total} bytes; the archive has {self.length}"
            )

    def record(self, name):
        """The record of a name below the archive's folder. Raises RuntimeError where there is none."""
        found = self.records.get(f"{self.name}/{name}")
        if found is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        return found

    def __contains__(self, name):
        return f"{self.name}/{name}" in self.records

    def start_of(self, record):
        """Where the bytes of a stored record begin."""
        if record.start < 0:
            local = bytes(self.read_at(record.header, _LOCAL.size))
            fields = _LOCAL.unpack(local)
            if fields[0] != b"PK\x03\x04":
                raise _failed(f"failed reading file {record.name}: invalid local header")
            start = record.header + _LOCAL.size + fields[9] + fields[10]
            if start + record.packed > self.length:
                raise _failed(f"failed reading file {record.name}: it leaves the archive")
            record.start = start
        return record.start

    def bytes_of(self, name):
        """The whole of a record."""
        record = self.record(name)
        data = self.read_at(self.start_of(record), record.packed)
        if record.method == 8:
            data = self._inflated(record, data)
        elif record.method != 0:
            raise _failed(f"failed reading file {name}: unknown compression {record.method}")
        self._check(record, data)
        return bytes(data)

    def read_into(self, record, target):
        """Fill `target`, a writable buffer of the record's size."""
        target = memoryview(target).cast("B")
        if record.method != 0:
            data = self._inflated(record, self.read_at(self.start_of(record), record.packed))
            target[:] = data
        elif self._view is not None:
            start = self.start_of(record)
            target[:] = self._view[start : start + record.size]
        else:
            self._file.seek(self._base + self.start_of(record))
            self._fill(record, target)
        self._check(record, target)

    def _fill(self, record, target):
        at = 0
        while at < len(target):
            if hasattr(self._file, "readinto"):
                n = self._file.readinto(target[at:])
            else:
                data = self._file.read(min(len(target) - at, 1 << 24))
                n = len(data)
                target[at : at + n] = data
            if not n:
                raise _failed(f"failed reading file {record.name}: file read failed")
            at += n

    def _inflated(self, record, data):
        if record.method != 8:
            raise _failed(f"failed reading file {record.name}: unknown compression {record.method}")
        machine = zlib.decompressobj(-15)
        try:
            out = machine.decompress(data, record.size + 1)
        except zlib.error as error:
            raise _failed(f"failed reading file {record.name}: {error}") from None
        if len(out) != record.size:
            raise _failed(f"failed reading file {record.name}: its size is not what it should be")
        return out

    def _check(self, record, data):
        if record.crc and zlib.crc32(data) != record.crc:
            raise _failed(f"failed reading file {record.name}: bad CRC32, the file is damaged")


def _is_buffer(source):
    try:
        memoryview(source)
    except TypeError:
        return False
    return True


def _wide(extra, full, packed, header):
    """Sizes and offset, where they are in the zip64 field."""
    at = 0
    while at + 4 <= len(extra):
        tag, n = struct.unpack_from("<2H", extra, at)
        field = extra[at + 4 : at + 4 + n]
        at += 4 + n
        if tag != 1:
            continue
        values = [v for (v,) in struct.iter_unpack("<Q", field[: len(field) // 8 * 8])]
        try:
            if full == _MAX32:
                full = values.pop(0)
            if packed == _MAX32:
                packed = values.pop(0)
            if header == _MAX32:
                header = values.pop(0)
        except IndexError:
            raise _failed("invalid header or archive is corrupted") from None
    return full, packed, header


class Writer:
    """Writes an archive into `file`; `name` is the folder of all records."""

    def __init__(self, file, name, checksums=True, alignment=ALIGNMENT):
        self._file, self.name, self._checksums = file, name, checksums
        self._alignment = alignment
        self._at = 0
        self._directory = []
        self._sum = 0

    def _write(self, data):
        self._file.write(data)
        self._at += len(data)

    def write_record(self, name, data, size=None, skip=False):
        """One record of the bytes of `data`; with `skip` of `size` bytes that are not written."""
        view = memoryview(b"" if skip else data).cast("B") if size != 0 else memoryview(b"")
        size = len(view) if size is None else size
        crc = zlib.crc32(view) if self._checksums and not skip else 0
        self._sum = zlib.crc32(struct.pack("<QI", size, crc), self._sum)
        full_name = f"{self.name}/{name}".encode()
        header = self._at
        wide = size >= _MAX32 or header >= _MAX32
        extra = struct.pack("<2H2Q", 1, 16, size, size) if wide else b""
        start = header + _LOCAL.size + len(full_name) + len(extra)
        padding = (-start - 4) % self._alignment
        extra += b"FB" + struct.pack("<H", padding) + b"Z" * padding
        shown = _MAX32 if wide else size
        self._write(
            _LOCAL.pack(b"PK\x03\x04", 45 if wide else 0, _UTF8, 0, 0, 33, crc, shown, shown,
                        len(full_name), len(extra))
        )  # fmt: skip
        self._write(full_name + extra)
        if skip:
            self._skip(size)
        else:
            for at in range(0, size, 1 << 28):
                self._write(view[at : at + (1 << 28)])
        self._directory.append((full_name, crc, size, header))

    def _skip(self, size):
        if hasattr(self._file, "seek") and hasattr(self._file, "truncate"):
            self._at += size
            self._file.seek(size, os.SEEK_CUR)
            if self._file.tell() > 0:
                self._file.truncate()
            return
        for at in range(0, size, 1 << 20):
            self._write(bytes(min(1 << 20, size - at)))

    def finish(self):
        """The format's own records and the directory."""
        self.write_record("version", b"3\n")
        digits = str(self._sum * 2654435761 % 10**20).zfill(20)
        self.write_record(".data/serialization_id", (digits + digits[::-1]).encode())
        begin = self._at
        for name, crc, size, header in self._directory:
            wide = size >= _MAX32 or header >= _MAX32
            extra = struct.pack("<2H3Q", 1, 24, size, size, header) if wide else b""
            shown, where = (_MAX32, _MAX32) if wide else (size, header)
            self._write(
                _CENTRAL.pack(b"PK\x01\x02", 45 if wide else 0, 45 if wide else 0, _UTF8, 0, 0, 33,
                              crc, shown, shown, len(name), len(extra), 0, 0, 0, 0, where)
            )  # fmt: skip
            self._write(name + extra)
        size, count = self._at - begin, len(self._directory)
        end = self._at
        self._write(_END64.pack(b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, begin))
        self._write(_LOCATOR64.pack(b"PK\x06\x07", 0, end, 1))
        self._write(
            _END.pack(b"PK\x05\x06", 0, 0, min(count, _MAX16), min(count, _MAX16),
                      min(size, _MAX32), min(begin, _MAX32), 0)
        )  # fmt: skip
