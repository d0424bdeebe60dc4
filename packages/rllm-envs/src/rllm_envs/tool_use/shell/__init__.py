"""A small shell over files that exist only in memory."""
