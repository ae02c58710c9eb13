"""Modules over several devices."""
