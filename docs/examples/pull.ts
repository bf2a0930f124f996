// Works on the jobs of a pull destination. Node 18 or later, nothing to install; Node 22
// runs this file as it is (node pull.ts), older ones after tsc.
//
//     ACUSE_URL=http://127.0.0.1:8081 ACUSE_TOKEN=... node pull.ts agent
import { appendFileSync } from "node:fs";

type Job = { job: number; lease: string; attempt: number; event_id: string; idempotency_key: string; body_base64: string };
type Answer = { status: number; body: any };

const env = process.env;
const seconds = Number(env.LEASE_SECONDS ?? 60);
const rest = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));

// call returns the status and the answer; 0 when there was none.
async function call(path: string, body: object): Promise<Answer> {
  try {
    const answer = await fetch(`${env.ACUSE_URL}/api/v1/jobs/${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { Authorization: `Bearer ${env.ACUSE_TOKEN}`, "Content-Type": "application/json" },
      signal: AbortSignal.timeout(60_000),
    });
    return { status: answer.status, body: await answer.json() };
  } catch {
    return { status: 0, body: {} };
  }
}

// handle is your work. The key is the same at every attempt: whoever is asked to do
// something under it does it once. Hand lost on to fetch and the like.
async function handle(job: Job, body: Buffer, lost: AbortSignal): Promise<void> {
  appendFileSync(env.DONE_FILE ?? "done.txt", `${job.idempotency_key} ${job.attempt} ${body.length}\n`);
}

async function work(job: Job): Promise<void> {
  const lost = new AbortController();
  const renewing = setInterval(async () => {
    const { status } = await call(`${job.job}/renew`, { lease: job.lease, ttl_seconds: seconds });
    if (status >= 400 && status < 500) lost.abort(); // 409: another worker has the job by now
  }, (seconds * 1000) / 3);
  let act = "ack";
  const answer: { lease: string; error?: string } = { lease: job.lease };
  try {
    await handle(job, Buffer.from(job.body_base64, "base64"), lost.signal);
  } catch (problem) {
    act = "nack";
    answer.error = String(problem);
  }
  clearInterval(renewing);
  while (!lost.signal.aborted) {
    const { status } = await call(`${job.job}/${act}`, answer);
    if (status === 200) return console.log(act, job.event_id);
    if (status >= 400 && status < 500) break;
    await rest(1000); // the server is away: what is done must be told
  }
  console.log("lost", job.event_id);
}

async function main(): Promise<void> {
  for (;;) {
    const { status, body } = await call("lease", { destination: process.argv[2], ttl_seconds: seconds, wait_seconds: 30 });
    if ([401, 403, 404].includes(status)) throw new Error(`refused: ${status}`);
    for (const job of (body.jobs ?? []) as Job[]) await work(job);
    if (status !== 200) await rest(1000);
  }
}

main();
