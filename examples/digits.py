"""Trains networks on the digits and the text of examples/data; the program is in python/lamina/demo.

A network, its optimizer and its loop in tensors and gradients alone are in python/lamina/demo/digits.py, a hundred
lines; examples/cpp/digits.cpp is the same in C++.
"""

import sys
from pathlib import Path

from lamina.demo.__main__ import main

if __name__ == "__main__":
    data = Path(__file__).with_name("data") / "digits.csv.gz"
    sys.exit(main(["--data", str(data), *sys.argv[1:]]))
