"""The schema of 0.1.0, at which later migrations start. Fresh stores are created from `tables.py` and stamped."""

revision = "0003"  # 0001 and 0002 were part of no release
down_revision = None


def upgrade() -> None:
    """Nothing is older."""


def downgrade() -> None:
    """Nothing is older."""
