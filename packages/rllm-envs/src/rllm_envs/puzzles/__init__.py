"""Games and planning puzzles that are played in several turns."""
