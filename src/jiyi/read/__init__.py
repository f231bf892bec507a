"""Reading: queries, search, ranking, and the context for a prompt."""
