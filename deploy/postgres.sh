#!/bin/sh
# Runs once, when the database is made: an ordinary role for Jiyi, so that row-level security holds for it.
set -eu
psql --username postgres --set ON_ERROR_STOP=1 --set password="$JIYI_DB_PASSWORD" <<'SQL'
CREATE ROLE jiyi LOGIN PASSWORD :'password' NOSUPERUSER NOBYPASSRLS;
CREATE DATABASE jiyi OWNER jiyi ENCODING 'UTF8' TEMPLATE template0;
\connect jiyi
CREATE EXTENSION vector;
SQL
