"""What stands behind ./run: standard library only, because it runs before anything is installed."""
