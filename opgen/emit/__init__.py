"""One module per output. Each takes the operators and returns files by path."""
