"""Trains a small classifier on real handwritten digits: `python -m lamina.demo`."""
