"""Instructions that a program can check, such as those of IFEval."""
