"""Kinfold: image embeddings that keep working on classes never seen."""
