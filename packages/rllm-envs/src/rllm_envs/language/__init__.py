"""Environments of reading, knowing and following instructions, one file each."""
