-- acuse, data file version 1.
--
-- Instants (_at, _until) are unix milliseconds in UTC, 0 is none; durations (_us) are
-- microseconds; sizes are bytes. Bodies are kept bit for bit. The view "archive" shows
-- the deliveries with names for numbers:
--     sqlite3 acuse.db "SELECT * FROM archive LIMIT 10"

-- Sources, destinations and providers by number. Never deleted, never renumbered.
CREATE TABLE names (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- One row for every accepted event.
CREATE TABLE deliveries (
  id                INTEGER PRIMARY KEY,   -- the delivery number, given out by acuse
  source            INTEGER NOT NULL,      -- names.id
  provider          INTEGER NOT NULL,      -- names.id
  event_id          TEXT    NOT NULL CHECK (octet_length(event_id) <= 16384), -- '' while quarantined
  type              TEXT    NOT NULL,
  resource          TEXT    NOT NULL,
  version           TEXT    NOT NULL,
  unit              TEXT    NOT NULL,      -- of version: s, ms, rfc3339, int, string
  received_at       INTEGER NOT NULL,
  size              INTEGER NOT NULL,      -- of the event: the body, or the item of a batch
  digest            INTEGER NOT NULL,      -- first 8 bytes of the event's SHA-256
  slot              INTEGER NOT NULL,      -- which secret verified, from 1; 0 is none
  part              INTEGER NOT NULL,      -- item of a batch, from 0; -1 is the whole body
  payload           INTEGER NOT NULL,      -- payloads.id; 0 once retention removed it
  hold              INTEGER NOT NULL CHECK (hold IN (0, 1, 2)), -- 0: see its jobs, 1: quarantined, 2: it has no job
  quarantine        TEXT    NOT NULL,      -- why; '' unless quarantined
  made              INTEGER NOT NULL CHECK (made IN (0, 1)),    -- 1: acuse made the event id
  test              INTEGER NOT NULL CHECK (test IN (0, 1)),
  duplicates        INTEGER NOT NULL,
  last_duplicate_at INTEGER NOT NULL,
  body_differs      INTEGER NOT NULL,      -- duplicates whose body was another
  ack_us            INTEGER NOT NULL,
  remote            TEXT    NOT NULL,      -- address of the sender
  duplicate_of      INTEGER NOT NULL,      -- released, but its key was claimed: the delivery that has it; 0 is none
  copy_of           INTEGER NOT NULL,      -- resent as new: the delivery it was made from; 0 is none
  earlier           INTEGER NOT NULL       -- delivery that had the same event id before its dedup window ended; 0 is none
) STRICT;
CREATE INDEX deliveries_source    ON deliveries (source, id);
CREATE INDEX deliveries_received  ON deliveries (received_at);
CREATE INDEX deliveries_hold      ON deliveries (hold, id) WHERE hold <> 0;
CREATE INDEX deliveries_duplicate ON deliveries (id) WHERE duplicates > 0;

-- Requests as they came in. The items of a batch share one row, which has the number
-- of the first of them.
CREATE TABLE payloads (
  id      INTEGER PRIMARY KEY,
  method  TEXT NOT NULL,
  target  TEXT NOT NULL,                   -- path and query
  headers BLOB NOT NULL,                   -- JSON object of arrays, as text
  body    BLOB NOT NULL                    -- raw bytes
) STRICT;

-- Claimed event ids. A key may be claimed again once expires_at has come.
CREATE TABLE dedup (
  source     INTEGER NOT NULL,
  event_id   TEXT    NOT NULL,
  delivery   INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (source, event_id)
) STRICT, WITHOUT ROWID;

-- One delivery for one destination.
CREATE TABLE jobs (
  id          INTEGER PRIMARY KEY,
  delivery    INTEGER NOT NULL,
  destination INTEGER NOT NULL,            -- names.id
  state       INTEGER NOT NULL CHECK (state BETWEEN 1 AND 7), -- queued leased delivered dead cancelled superseded filtered
  due_at      INTEGER NOT NULL,            -- of a queued job
  since       INTEGER NOT NULL,            -- when it was queued first, or by the last resend: its age counts from here
  attempts    INTEGER NOT NULL,            -- over its whole life
  spent       INTEGER NOT NULL,            -- attempts since then
  lease_token INTEGER NOT NULL,            -- current fencing token: the id of the attempt; 0 is none
  lease_owner TEXT    NOT NULL,
  lease_until INTEGER NOT NULL,
  settled_at  INTEGER NOT NULL,
  reason      INTEGER NOT NULL CHECK (reason BETWEEN 0 AND 3), -- of a dead one: exhausted, refused, too old
  last_status INTEGER NOT NULL,
  last_class  TEXT    NOT NULL,
  last_error  TEXT    NOT NULL,
  last_us     INTEGER NOT NULL,            -- duration of the last attempt
  resend      INTEGER NOT NULL CHECK (resend IN (0, 1)),       -- a person queued it again
  passthrough INTEGER NOT NULL CHECK (passthrough IN (0, 1)),  -- with the original signature
  revived     INTEGER NOT NULL CHECK (revived IN (0, 1)),      -- a duplicate queued it again since the last resend
  key         TEXT    NOT NULL CHECK (key <> ''),              -- idempotency key of every attempt
  note        TEXT    NOT NULL             -- rule that filtered it
) STRICT;
CREATE UNIQUE INDEX jobs_pair  ON jobs (delivery, destination);
CREATE INDEX jobs_due   ON jobs (destination, due_at, id) WHERE state = 1;
CREATE INDEX jobs_lease ON jobs (lease_until)             WHERE state = 2;
CREATE INDEX jobs_ended ON jobs (state, delivery)         WHERE state >= 4;
CREATE INDEX jobs_dead  ON jobs (destination, reason, last_status, last_class, settled_at) WHERE state = 4;
CREATE INDEX jobs_resent ON jobs (delivery)               WHERE resend = 1;

-- One try of a job. Its id is the fencing token of the lease.
CREATE TABLE attempts (
  id             INTEGER PRIMARY KEY,
  job            INTEGER NOT NULL,
  n              INTEGER NOT NULL,         -- ordinal within the job, from 1
  started_at     INTEGER NOT NULL,
  outcome        INTEGER NOT NULL CHECK (outcome BETWEEN 1 AND 4), -- running succeeded failed interrupted
  status         INTEGER NOT NULL,         -- HTTP status or exit code; 0 is none
  maybe          INTEGER NOT NULL CHECK (maybe IN (0, 1)),  -- broke after the request was sent
  resend         INTEGER NOT NULL CHECK (resend IN (0, 1)),
  total_us       INTEGER NOT NULL,
  connect_us     INTEGER NOT NULL,
  tls_us         INTEGER NOT NULL,
  first_byte_us  INTEGER NOT NULL,
  owner          TEXT    NOT NULL,
  worker         TEXT    NOT NULL,
  class          TEXT    NOT NULL,
  error          TEXT    NOT NULL,
  answer_headers BLOB,
  answer_body    BLOB                      -- cut: 4 KiB, 64 KiB for the latest
) STRICT;
CREATE INDEX attempts_job ON attempts (job, id);

-- Highest numbers ever deleted, so that none is given out twice.
CREATE TABLE marks (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  delivery INTEGER NOT NULL,
  job      INTEGER NOT NULL,
  attempt  INTEGER NOT NULL
) STRICT;
INSERT INTO marks VALUES (1, 0, 0, 0);
CREATE TRIGGER deliveries_mark AFTER DELETE ON deliveries WHEN OLD.id > (SELECT delivery FROM marks)
BEGIN UPDATE marks SET delivery = OLD.id; END;
CREATE TRIGGER jobs_mark AFTER DELETE ON jobs WHEN OLD.id > (SELECT job FROM marks)
BEGIN UPDATE marks SET job = OLD.id; END;
CREATE TRIGGER attempts_mark AFTER DELETE ON attempts WHEN OLD.id > (SELECT attempt FROM marks)
BEGIN UPDATE marks SET attempt = OLD.id; END;

-- Refused requests: a bounded ring.
CREATE TABLE rejections (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  source   TEXT    NOT NULL,
  reason   TEXT    NOT NULL,
  digest   INTEGER NOT NULL,               -- first 8 bytes of the body's SHA-256
  detail   TEXT    NOT NULL,
  remote   TEXT    NOT NULL,
  first_at INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  count    INTEGER NOT NULL,
  status   INTEGER NOT NULL,               -- answered
  signed   INTEGER NOT NULL CHECK (signed IN (0, 1)),
  method   TEXT    NOT NULL,
  target   TEXT    NOT NULL,
  size     INTEGER NOT NULL,
  bytes    INTEGER NOT NULL,               -- kept: headers and body
  headers  BLOB    NOT NULL,
  body     BLOB                            -- NULL when it was not read
) STRICT;
CREATE UNIQUE INDEX rejections_same ON rejections (source, reason, digest);
CREATE INDEX rejections_age ON rejections (at);
CREATE INDEX rejections_next ON rejections (source, signed, at, bytes);

-- Refused requests by minute, repeats included; 7 days.
CREATE TABLE rejection_minutes (
  minute INTEGER PRIMARY KEY,              -- unix minute
  count  INTEGER NOT NULL
) STRICT;

CREATE TABLE notices (
  rule     TEXT    NOT NULL,
  subject  TEXT    NOT NULL,
  since    INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  sent_at  INTEGER NOT NULL,
  sent_end INTEGER NOT NULL CHECK (sent_end IN (0, 1)),
  count    INTEGER NOT NULL,
  text     TEXT    NOT NULL,
  error    TEXT    NOT NULL,
  PRIMARY KEY (rule, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
  name       TEXT    PRIMARY KEY,
  role       TEXT    NOT NULL,
  password   TEXT    NOT NULL,             -- argon2id, PHC form
  language   TEXT    NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
  id         TEXT    PRIMARY KEY,
  name       TEXT    NOT NULL,
  agent      TEXT    NOT NULL,
  hash       BLOB    NOT NULL UNIQUE,      -- SHA-256 of the token
  scopes     TEXT    NOT NULL,             -- JSON array
  created_at INTEGER NOT NULL,
  last_used  INTEGER NOT NULL,
  expires    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  id      TEXT    PRIMARY KEY,             -- digest of the cookie's value
  user    TEXT    NOT NULL,
  data    BLOB    NOT NULL,
  expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_expires ON sessions (expires);

CREATE TABLE settings (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What people and tokens did.
CREATE TABLE audit (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  at       INTEGER NOT NULL,
  by_name  TEXT    NOT NULL,
  by_from  TEXT    NOT NULL,               -- address; '' on the socket
  act      TEXT    NOT NULL,
  delivery INTEGER NOT NULL,               -- 0 is none
  subject  TEXT    NOT NULL,
  reason   TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_delivery ON audit (delivery, id) WHERE delivery <> 0;

-- For people: deliveries, newest first, with names, states and readable headers.
CREATE VIEW archive AS
SELECT d.id,
       s.name AS source,
       p.name AS provider,
       d.event_id, d.type, d.resource,
       CASE
         WHEN d.hold = 1 THEN 'quarantined'
         WHEN EXISTS (SELECT 1 FROM jobs WHERE delivery = d.id AND state = 4) THEN 'dead'
         WHEN EXISTS (SELECT 1 FROM jobs WHERE delivery = d.id AND state = 2) THEN 'leased'
         WHEN EXISTS (SELECT 1 FROM jobs WHERE delivery = d.id AND state = 1) THEN 'queued'
         WHEN EXISTS (SELECT 1 FROM jobs WHERE delivery = d.id AND state = 5) THEN 'cancelled'
         WHEN EXISTS (SELECT 1 FROM jobs WHERE delivery = d.id AND state = 6) THEN 'superseded'
         WHEN EXISTS (SELECT 1 FROM jobs WHERE delivery = d.id AND state = 7) THEN 'filtered'
         WHEN d.hold = 2 THEN CASE WHEN d.duplicate_of <> 0 THEN 'cancelled' ELSE 'filtered' END
         ELSE 'delivered'
       END AS state,
       strftime('%Y-%m-%dT%H:%M:%fZ', d.received_at / 1000.0, 'unixepoch') AS received_at,
       d.size, d.duplicates, d.quarantine,
       (SELECT group_concat(n.name || ':' || CASE j.state WHEN 1 THEN 'queued' WHEN 2 THEN 'leased' WHEN 3 THEN 'delivered'
          WHEN 4 THEN 'dead' WHEN 5 THEN 'cancelled' WHEN 6 THEN 'superseded' ELSE 'filtered' END, ' ')
        FROM jobs j JOIN names n ON n.id = j.destination WHERE j.delivery = d.id) AS jobs,
       y.method, y.target,
       CAST(y.headers AS TEXT) AS headers,
       y.body
FROM deliveries d
JOIN names s ON s.id = d.source
JOIN names p ON p.id = d.provider
LEFT JOIN payloads y ON y.id = d.payload
ORDER BY d.id DESC;
