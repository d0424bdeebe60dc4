"""What the fork server reports of a child that has ended."""

import struct

REPORT = struct.Struct("=iddq")
"""Wait status, seconds in user and in system mode, greatest resident memory in bytes."""
