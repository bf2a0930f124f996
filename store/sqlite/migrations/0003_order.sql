-- acuse, data file version 3: order and versions.

ALTER TABLE jobs ADD COLUMN order_value   TEXT    NOT NULL DEFAULT '';  -- jobs of a destination with the same one go one at a time; '' is none
ALTER TABLE jobs ADD COLUMN order_strict  INTEGER NOT NULL DEFAULT 0 CHECK (order_strict IN (0, 1)); -- 1: blocks its order as a dead letter
ALTER TABLE jobs ADD COLUMN order_place   INTEGER NOT NULL DEFAULT 0;  -- delivery * 1048576; more: it went to the end
ALTER TABLE jobs ADD COLUMN order_turn    INTEGER NOT NULL DEFAULT 0 CHECK (order_turn IN (0, 1, 2)); -- 0: not in the order, 1: its turn, 2: waits; its due_at is then the largest number
ALTER TABLE jobs ADD COLUMN order_since   INTEGER NOT NULL DEFAULT 0;  -- when its turn came
ALTER TABLE jobs ADD COLUMN latest        INTEGER NOT NULL DEFAULT 0;  -- digest of source, resource, type and unit, where a newer version replaces it; 0 is none
ALTER TABLE jobs ADD COLUMN superseded_by INTEGER NOT NULL DEFAULT 0;  -- the delivery that did; 0 is none

-- One at a time: no two jobs of an order have their turn.
CREATE UNIQUE INDEX jobs_turn ON jobs (destination, order_value)       WHERE order_turn = 1;
CREATE INDEX jobs_line   ON jobs (destination, order_value, order_place) WHERE order_turn <> 0;
CREATE INDEX jobs_heads  ON jobs (order_since)                         WHERE order_turn = 1;
CREATE INDEX jobs_latest ON jobs (destination, latest, delivery)       WHERE state = 1 AND latest <> 0;
