"""Training of the reader: one small model that makes three judgements (answers, changes, supports)."""
