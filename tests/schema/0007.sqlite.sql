-- Schema 0007: with the secrets of the store. It does not change any more.
CREATE TABLE messages (
    user_id VARCHAR(256) NOT NULL,
    id VARCHAR(26) NOT NULL,
    external_id VARCHAR(256),
    session_id VARCHAR(256),
    agent_id VARCHAR(256),
    group_id VARCHAR(256),
    role VARCHAR(64) NOT NULL,
    speaker VARCHAR(256),
    text TEXT NOT NULL,
    sent_at BIGINT NOT NULL,
    dedupe_hash VARCHAR(32),
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_messages PRIMARY KEY (user_id, id)
);

CREATE UNIQUE INDEX uq_messages_dedupe ON messages (user_id, dedupe_hash);

CREATE INDEX ix_messages_session ON messages (user_id, session_id, id);

CREATE TABLE units (
    user_id VARCHAR(256) NOT NULL,
    id VARCHAR(26) NOT NULL,
    session_id VARCHAR(256),
    group_id VARCHAR(256),
    subject TEXT,
    summary TEXT NOT NULL,
    narrative TEXT NOT NULL,
    participants JSON NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_units PRIMARY KEY (user_id, id)
);

CREATE INDEX ix_units_session ON units (user_id, session_id, id);

CREATE TABLE memories (
    user_id VARCHAR(256) NOT NULL,
    id VARCHAR(26) NOT NULL,
    memory_key VARCHAR(256) NOT NULL,
    agent_id VARCHAR(256),
    group_id VARCHAR(256),
    session_id VARCHAR(256),
    memory_type VARCHAR(64) NOT NULL,
    layer VARCHAR(16) NOT NULL,
    content TEXT NOT NULL,
    summary TEXT NOT NULL,
    data JSON NOT NULL,
    metadata JSON NOT NULL,
    importance DOUBLE NOT NULL,
    confidence DOUBLE NOT NULL,
    tags JSON NOT NULL,
    dedupe_hash VARCHAR(64),
    near_hash BIGINT NOT NULL,
    status VARCHAR(16) NOT NULL,
    version INTEGER NOT NULL,
    occurred_at BIGINT NOT NULL,
    valid_from BIGINT NOT NULL,
    valid_to BIGINT,
    superseded_by VARCHAR(26),
    expires_at BIGINT,
    access_count INTEGER NOT NULL,
    last_accessed_at BIGINT,
    source VARCHAR(64) NOT NULL,
    trust DOUBLE NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    slot VARCHAR(32),
    CONSTRAINT pk_memories PRIMARY KEY (user_id, id)
);

CREATE INDEX ix_memories_slot ON memories (user_id, slot);

CREATE INDEX ix_memories_session ON memories (user_id, session_id);

CREATE UNIQUE INDEX uq_memories_key ON memories (user_id, memory_key);

CREATE TABLE synonyms (
    user_id VARCHAR(256) NOT NULL,
    keyword VARCHAR(256) NOT NULL,
    synonym VARCHAR(256) NOT NULL,
    similarity DOUBLE NOT NULL,
    CONSTRAINT pk_synonyms PRIMARY KEY (user_id, keyword, synonym)
);

CREATE TABLE recalls (
    user_id VARCHAR(256) NOT NULL,
    id VARCHAR(26) NOT NULL,
    "query" TEXT NOT NULL,
    memory_ids JSON NOT NULL,
    recalled_at BIGINT NOT NULL,
    session_id VARCHAR(256),
    agent_id VARCHAR(256),
    CONSTRAINT pk_recalls PRIMARY KEY (user_id, id)
);

CREATE TABLE jobs (
    user_id VARCHAR(256) NOT NULL,
    id VARCHAR(26) NOT NULL,
    kind VARCHAR(32) NOT NULL,
    state VARCHAR(16) NOT NULL,
    idempotency_key VARCHAR(256),
    request_hash VARCHAR(32),
    created INTEGER NOT NULL,
    problems JSON NOT NULL,
    attempts INTEGER NOT NULL,
    leased_until BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    session_id VARCHAR(256),
    payload JSON,
    not_before BIGINT,
    leased_by VARCHAR(64),
    CONSTRAINT pk_jobs PRIMARY KEY (user_id, id)
);

CREATE INDEX ix_jobs_due ON jobs (not_before);

CREATE UNIQUE INDEX uq_jobs_idempotency ON jobs (user_id, idempotency_key);

CREATE TABLE llm_usage (
    user_id VARCHAR(256) NOT NULL,
    hour BIGINT NOT NULL,
    calls INTEGER NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    CONSTRAINT pk_llm_usage PRIMARY KEY (user_id, hour)
);

CREATE TABLE changes (
    seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    user_id VARCHAR(256) NOT NULL,
    memory_id VARCHAR(26) NOT NULL,
    action VARCHAR(16) NOT NULL,
    changed_at BIGINT NOT NULL
);

CREATE INDEX ix_changes_user ON changes (user_id, seq);

CREATE TABLE api_keys (
    id VARCHAR(26) NOT NULL,
    name VARCHAR(256) NOT NULL,
    key_hash VARCHAR(64) NOT NULL,
    scopes JSON NOT NULL,
    all_users BOOLEAN NOT NULL,
    user_ids JSON NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    CONSTRAINT pk_api_keys PRIMARY KEY (id),
    CONSTRAINT uq_api_keys_key_hash UNIQUE (key_hash)
);

CREATE TABLE audit (
    id VARCHAR(26) NOT NULL,
    at BIGINT NOT NULL,
    key_id VARCHAR(26),
    action VARCHAR(32) NOT NULL,
    target VARCHAR(256),
    detail TEXT,
    CONSTRAINT pk_audit PRIMARY KEY (id)
);

CREATE TABLE files (
    user_id VARCHAR(256) NOT NULL,
    path VARCHAR(1024) NOT NULL,
    checksum VARCHAR(64) NOT NULL,
    synced_at BIGINT NOT NULL,
    seen BIGINT,
    CONSTRAINT pk_files PRIMARY KEY (user_id, path)
);

CREATE TABLE file_entries (
    user_id VARCHAR(256) NOT NULL,
    workspace VARCHAR(26) NOT NULL,
    memory_id VARCHAR(26) NOT NULL,
    path VARCHAR(1024) NOT NULL,
    version INTEGER NOT NULL,
    digests JSON NOT NULL,
    CONSTRAINT pk_file_entries PRIMARY KEY (user_id, workspace, memory_id)
);

CREATE TABLE unit_messages (
    user_id VARCHAR(256) NOT NULL,
    message_id VARCHAR(26) NOT NULL,
    unit_id VARCHAR(26) NOT NULL,
    CONSTRAINT pk_unit_messages PRIMARY KEY (user_id, message_id),
    CONSTRAINT fk_unit_messages_units FOREIGN KEY(user_id, unit_id) REFERENCES units (user_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_unit_messages_messages FOREIGN KEY(user_id, message_id) REFERENCES messages (user_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_unit_messages_unit ON unit_messages (user_id, unit_id);

CREATE TABLE memory_sources (
    user_id VARCHAR(256) NOT NULL,
    memory_id VARCHAR(26) NOT NULL,
    message_id VARCHAR(26) NOT NULL,
    span_start INTEGER,
    span_end INTEGER,
    CONSTRAINT pk_memory_sources PRIMARY KEY (user_id, memory_id, message_id),
    CONSTRAINT fk_memory_sources_memories FOREIGN KEY(user_id, memory_id) REFERENCES memories (user_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_memory_sources_messages FOREIGN KEY(user_id, message_id) REFERENCES messages (user_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_memory_sources_message ON memory_sources (user_id, message_id);

CREATE TABLE embeddings (
    user_id VARCHAR(256) NOT NULL,
    memory_id VARCHAR(26) NOT NULL,
    part SMALLINT NOT NULL,
    model VARCHAR(128) NOT NULL,
    dimension INTEGER NOT NULL,
    vector BLOB NOT NULL,
    CONSTRAINT pk_embeddings PRIMARY KEY (user_id, memory_id, part),
    CONSTRAINT fk_embeddings_memories FOREIGN KEY(user_id, memory_id) REFERENCES memories (user_id, id) ON DELETE CASCADE
);

CREATE TABLE terms (
    user_id VARCHAR(256) NOT NULL,
    memory_id VARCHAR(26) NOT NULL,
    length INTEGER NOT NULL,
    asks DOUBLE NOT NULL,
    kind VARCHAR(32) DEFAULT '' NOT NULL,
    salience DOUBLE DEFAULT '1' NOT NULL,
    hashes BLOB NOT NULL,
    counts BLOB NOT NULL,
    keyword_hashes BLOB NOT NULL,
    keyword_weights BLOB NOT NULL,
    words_version SMALLINT DEFAULT '0' NOT NULL,
    CONSTRAINT pk_terms PRIMARY KEY (user_id, memory_id),
    CONSTRAINT fk_terms_memories FOREIGN KEY(user_id, memory_id) REFERENCES memories (user_id, id) ON DELETE CASCADE
);

CREATE TABLE keywords (
    user_id VARCHAR(256) NOT NULL,
    memory_id VARCHAR(26) NOT NULL,
    keyword VARCHAR(256) NOT NULL,
    weight DOUBLE NOT NULL,
    source VARCHAR(16) NOT NULL,
    CONSTRAINT pk_keywords PRIMARY KEY (user_id, memory_id, keyword),
    CONSTRAINT fk_keywords_memories FOREIGN KEY(user_id, memory_id) REFERENCES memories (user_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_keywords_keyword ON keywords (user_id, keyword);

CREATE TABLE relations (
    user_id VARCHAR(256) NOT NULL,
    memory_id VARCHAR(26) NOT NULL,
    target_id VARCHAR(26) NOT NULL,
    relation_type VARCHAR(16) NOT NULL,
    strength DOUBLE NOT NULL,
    created_at BIGINT NOT NULL,
    CONSTRAINT pk_relations PRIMARY KEY (user_id, memory_id, target_id, relation_type),
    CONSTRAINT fk_relations_memories FOREIGN KEY(user_id, memory_id) REFERENCES memories (user_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_relations_target FOREIGN KEY(user_id, target_id) REFERENCES memories (user_id, id) ON DELETE CASCADE
);

CREATE INDEX ix_relations_target ON relations (user_id, target_id);

CREATE TABLE revisions (
    user_id VARCHAR(256) NOT NULL,
    memory_id VARCHAR(26) NOT NULL,
    version INTEGER NOT NULL,
    action VARCHAR(16) NOT NULL,
    actor VARCHAR(256) NOT NULL,
    reason TEXT,
    "before" JSON,
    changed_at BIGINT NOT NULL,
    CONSTRAINT pk_revisions PRIMARY KEY (user_id, memory_id, version),
    CONSTRAINT fk_revisions_memories FOREIGN KEY(user_id, memory_id) REFERENCES memories (user_id, id) ON DELETE CASCADE
);

CREATE TABLE job_memories (
    user_id VARCHAR(256) NOT NULL,
    job_id VARCHAR(26) NOT NULL,
    position INTEGER NOT NULL,
    memory_id VARCHAR(26) NOT NULL,
    CONSTRAINT pk_job_memories PRIMARY KEY (user_id, job_id, position),
    CONSTRAINT fk_job_memories_memories FOREIGN KEY(user_id, memory_id) REFERENCES memories (user_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_job_memories_jobs FOREIGN KEY(user_id, job_id) REFERENCES jobs (user_id, id) ON DELETE CASCADE
)
 WITHOUT ROWID;

CREATE INDEX ix_job_memories_memory ON job_memories (user_id, memory_id);

CREATE TABLE engines (
    name VARCHAR(32) NOT NULL,
    model VARCHAR(128) NOT NULL,
    seen BIGINT NOT NULL,
    owner VARCHAR(64),
    leased_until BIGINT,
    problem TEXT,
    CONSTRAINT pk_engines PRIMARY KEY (name)
);

CREATE TABLE engine_users (
    user_id VARCHAR(256) NOT NULL,
    engine VARCHAR(32) NOT NULL,
    applied BIGINT,
    load_from BIGINT NOT NULL,
    loaded_id VARCHAR(26),
    memories INTEGER NOT NULL,
    erase BOOLEAN NOT NULL,
    CONSTRAINT pk_engine_users PRIMARY KEY (user_id, engine)
);

CREATE INDEX ix_engine_users_engine ON engine_users (engine, erase);

CREATE TABLE packed_indexes (
    user_id VARCHAR(256) NOT NULL,
    name VARCHAR(64) NOT NULL,
    seen BIGINT NOT NULL,
    data BLOB NOT NULL,
    CONSTRAINT pk_packed_indexes PRIMARY KEY (user_id, name)
);

CREATE UNIQUE INDEX uq_memories_dedupe ON memories (user_id, dedupe_hash, (CASE WHEN (status = 'active' AND valid_to IS NULL) THEN '' ELSE id END));

CREATE INDEX ix_memories_superseded ON memories (user_id, superseded_by) WHERE superseded_by IS NOT NULL;

CREATE INDEX ix_memories_recalled ON memories (user_id, last_accessed_at) WHERE last_accessed_at IS NOT NULL;

CREATE TABLE secrets (
    name VARCHAR(64) NOT NULL,
    value BLOB NOT NULL,
    CONSTRAINT pk_secrets PRIMARY KEY (name)
);
