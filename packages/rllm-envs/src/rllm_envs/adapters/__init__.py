"""Environments over the games and generators of other libraries, one file each."""
