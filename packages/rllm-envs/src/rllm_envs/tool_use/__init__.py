"""Tasks in which the agent calls tools."""
