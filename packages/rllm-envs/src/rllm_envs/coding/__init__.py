"""Environments in which an agent writes programs."""
