"""Keep a store in order: compress, expire, undo, erase and verify."""
