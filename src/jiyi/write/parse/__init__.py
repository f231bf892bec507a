"""Division of messages into statements."""
