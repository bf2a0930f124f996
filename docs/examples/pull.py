#!/usr/bin/env python3
"""Works on the jobs of a pull destination. Python 3.8 or later, nothing to install.

    ACUSE_URL=http://127.0.0.1:8081 ACUSE_TOKEN=... python3 pull.py agent
"""
import base64, json, os, sys, threading, time, urllib.error, urllib.request

LEASE = int(os.environ.get("LEASE_SECONDS", "60"))


def call(path, body):
    """Returns the status and the answer; 0 when there was none."""
    request = urllib.request.Request(
        os.environ["ACUSE_URL"] + "/api/v1/jobs/" + path, json.dumps(body).encode(),
        {"Authorization": "Bearer " + os.environ["ACUSE_TOKEN"], "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, {}
    except OSError:
        return 0, {}


def handle(job, body, lost):
    """Your work. The key is the same at every attempt: whoever is asked to do something
    under it does it once. Look at lost.is_set() in long work, and stop."""
    with open(os.environ.get("DONE_FILE", "done.txt"), "a") as f:
        f.write(f"{job['idempotency_key']} {job['attempt']} {len(body)}\n")


def keep(job, ended, lost):
    """Renews the lease at a third of it, until the work ended or the lease is lost."""
    while not ended.wait(LEASE / 3):
        status, _ = call(f"{job['job']}/renew", {"lease": job["lease"], "ttl_seconds": LEASE})
        if 400 <= status < 500:  # 409: another worker has the job by now
            lost.set()
            return


def work(job):
    ended, lost = threading.Event(), threading.Event()
    keeper = threading.Thread(target=keep, args=(job, ended, lost), daemon=True)
    keeper.start()
    act, answer = "ack", {"lease": job["lease"]}
    try:
        handle(job, base64.b64decode(job["body_base64"]), lost)
    except Exception as problem:
        act, answer["error"] = "nack", str(problem)
    ended.set()
    while not lost.is_set():
        status, _ = call(f"{job['job']}/{act}", answer)
        if status == 200:
            return print(act, job["event_id"], flush=True)
        if 400 <= status < 500:
            break
        time.sleep(1)  # the server is away: what is done must be told
    print("lost", job["event_id"], flush=True)


while True:
    status, answer = call("lease", {"destination": sys.argv[1], "ttl_seconds": LEASE, "wait_seconds": 30})
    if status in (401, 403, 404):
        sys.exit(f"refused: {status}")
    for job in answer.get("jobs", []):
        work(job)
    if status != 200:
        time.sleep(1)
