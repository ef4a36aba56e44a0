"""Checks before training: what is wrong with a table, a configuration or a first step, and what to do about it."""
