"""Runs the migrations on the connection that `schema.prepare` hands over, inside its transaction."""

from alembic import context

from jiyi.store.schema.columns import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
    transactional_ddl=False,
)
context.run_migrations()
