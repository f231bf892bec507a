"""The areas of a `Memory`: jobs, keys, synonyms, workspace, maintenance, transfer, sessions, usage."""
