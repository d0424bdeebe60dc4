"""Grade programs by running them against tests, in the sandbox."""
