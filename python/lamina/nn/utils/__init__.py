"""Helpers around parameters and modules."""
