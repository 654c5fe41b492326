"""Python's textbook filters, and the crawlers' filter in Redis, behind the protocol
of ../program.go. Written from their descriptions, with only the standard library:

    python3 textbooks.py md5          k times MD5(number + key), a list of 0 and 1
    python3 textbooks.py sha256-md5   SHA-256 and MD5, a string of bits
    python3 textbooks.py setbit PORT  SETBIT and GETBIT on a Redis at that port
"""

import hashlib
import json
import math
import platform
import socket
import struct
import sys


def keys(path):
    with open(path, "rb") as file:
        data = file.read()
    at = 4
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        yield data[at + 4 : at + 4 + length]
        at += 4 + length


class MD5Filter:
    """m = 1.44 n log2(1/p) and k = ln 2 m/n, both truncated."""

    about = "own program, hashlib"

    def __init__(self, job):
        self.bits = int(1.44 * job.n * (math.log(1 / job.p) / math.log(2)))
        self.probes = int(math.log(2) * (self.bits / job.n))
        self.array = [0] * self.bits

    def positions(self, key):
        for number in range(self.probes):
            digest = hashlib.md5(str(number).encode() + key).digest()
            yield int.from_bytes(digest, "big") % self.bits

    def add(self, key):
        for at in self.positions(key):
            self.array[at] = 1

    def contains(self, key):
        return all(self.array[at] for at in self.positions(key))

    def write(self, path):
        with open(path, "w") as file:
            json.dump(self.array, file)

    def read(self, path):
        with open(path) as file:
            self.array = json.load(file)


class SHA256MD5Filter:
    """Two hashes, read as little-endian integers; bit 0 is the string's last."""

    about = "own program, hashlib"

    def __init__(self, job):
        self.bits = job.m
        self.value = 0

    def mask(self, key):
        mask = 0
        for digest in hashlib.sha256(key).digest(), hashlib.md5(key).digest():
            mask |= 1 << int.from_bytes(digest, "little") % self.bits
        return mask

    def add(self, key):
        self.value |= self.mask(key)

    def contains(self, key):
        mask = self.mask(key)
        return self.value & mask == mask

    def write(self, path):
        with open(path, "w") as file:
            file.write(f"{self.value:0{self.bits}b}")

    def read(self, path):
        with open(path) as file:
            self.value = int(file.read(), 2)


class SetbitFilter:
    """position = for each c of the key: r = factor r + c; r mod m.

    The crawlers' filter takes code points, and the factors 1, 2, 3 and so on. The
    copies of the Java class take UTF-16 units and its seeds.
    """

    redis = None  # the connection
    about = ""

    def __init__(self, job):
        self.bits, self.is_java = job.m, job.variant == "seeds"
        self.factors = ((3, 5, 7, 11, 13, 31, 37, 61) if self.is_java else range(1, 256))[: job.k]
        self.call([b"DEL", b"filter"])

    @classmethod
    def connect(cls, port):
        cls.redis = socket.create_connection(("127.0.0.1", port)).makefile("rwb")
        (info,) = cls.call([b"INFO", b"server"])
        version = info.split(b"redis_version:")[1].split(b"\r\n")[0].decode()
        cls.about = f"own program, Redis {version}"

    @classmethod
    def call(cls, *commands):
        """Sends the commands together and returns their replies."""
        for command in commands:
            cls.redis.write(b"*%d\r\n" % len(command))
            cls.redis.write(b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in command))
        cls.redis.flush()
        return [cls.reply() for _ in commands]

    @classmethod
    def reply(cls):
        line = cls.redis.readline().rstrip()
        if line.startswith(b"$"):
            length = int(line[1:])
            return cls.redis.read(length + 2)[:-2] if length >= 0 else b""
        if line.startswith(b"-"):
            raise RuntimeError(line.decode())
        return line

    def positions(self, key):
        text = key.decode("utf-8")
        units = [ord(c) for c in text]
        if self.is_java:
            units = [unit for (unit,) in struct.iter_unpack("<H", text.encode("utf-16-le"))]
        for factor in self.factors:
            r = 0
            for unit in units:
                r = (r * factor + unit) & (self.bits - 1)
            yield b"%d" % r

    def add(self, key):
        self.call(*([b"SETBIT", b"filter", at, b"1"] for at in self.positions(key)))

    def contains(self, key):
        return all(bit == b":1" for bit in self.call(*([b"GETBIT", b"filter", at] for at in self.positions(key))))

    def write(self, path):
        with open(path, "wb") as file:
            file.write(self.call([b"GET", b"filter"])[0])

    def read(self, path):
        with open(path, "rb") as file:
            self.call([b"SET", b"filter", file.read()])


class Job:
    def __init__(self, line):
        self.verb, self.dir, self.variant, n, p, m, k = line.rstrip("\n").split("\t")
        self.n, self.p, self.m, self.k = int(n), float(p), int(m), int(k)


def run(kind, job):
    filter = kind(job)
    if job.verb == "make":
        for key in keys(f"{job.dir}/keys"):
            filter.add(key)
        filter.write(f"{job.dir}/filter")
    else:
        filter.read(f"{job.dir}/filter")
    with open(f"{job.dir}/answers", "w") as file:
        file.write("".join("01"[filter.contains(key)] for key in keys(f"{job.dir}/probes")))


def main():
    kind = {"md5": MD5Filter, "sha256-md5": SHA256MD5Filter, "setbit": SetbitFilter}[sys.argv[1]]
    if kind is SetbitFilter:
        kind.connect(int(sys.argv[2]))
    print(f"{kind.about}, Python {platform.python_version()}", flush=True)
    for line in sys.stdin:
        try:
            run(kind, Job(line))
            print("ok", flush=True)
        except Exception as error:
            print(repr(error).replace("\n", " "), flush=True)


main()
