-- acuse, data file version 2: what retention needs to find.

-- 1: its delivery is gone; the key goes when it expires.
ALTER TABLE dedup ADD COLUMN loose INTEGER NOT NULL DEFAULT 0 CHECK (loose IN (0, 1));
CREATE INDEX dedup_loose ON dedup (expires_at) WHERE loose = 1;

-- The deliveries that share the payload of another one: items of a batch, copies.
CREATE INDEX deliveries_shared ON deliveries (payload) WHERE payload <> id AND payload <> 0;
