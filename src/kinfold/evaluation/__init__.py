"""Embeddings → exact ranks, scores with intervals, and lists of neighbours, under a stated memory budget."""
