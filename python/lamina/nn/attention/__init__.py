"""Which way attention is computed."""
