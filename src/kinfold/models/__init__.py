"""Models: trunk, pooling, head, and the embedder made of them; saved as one folder."""
