"""Single-turn tasks with exact answers."""
