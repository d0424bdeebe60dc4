"""What the fork server reports of a child that has ended, and a session of a program."""

import struct

REPORT = struct.Struct("=iddq")
"""Wait status, seconds in user and in system mode, greatest resident memory in bytes."""

FRAME = struct.Struct("=qI")
"""Before each program of a session: its number, and the length of its source."""

SESSION_REPORT = struct.Struct("=qiddq")
"""After it: its number, and what ``REPORT`` has."""
