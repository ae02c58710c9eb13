"""Trains a classifier on the digits of examples/data; the program is in python/lamina/demo.

The network, the optimizer and the loop are in python/lamina/demo/digits.py, a hundred lines of
tensors and gradients; examples/cpp/digits.cpp is the same in C++.
"""

import sys
from pathlib import Path

from lamina.demo.__main__ import main

if __name__ == "__main__":
    data = Path(__file__).with_name("data") / "digits.csv.gz"
    sys.exit(main(["--data", str(data), *sys.argv[1:]]))
