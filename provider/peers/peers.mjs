// Speaks with a running acuse as provider and as app at once. scripts/peers starts it:
// it prints the sources it needs, reads where acuse is, and prints one result a line.
import http from "node:http";
import readline from "node:readline";
import { createRequire } from "node:module";
import crypto from "node:crypto";
import { schemes, wrong } from "./schemes.mjs";

const wanted = process.argv.slice(2);
const names = Object.keys(schemes).filter((n) => wanted.length === 0 || wanted.includes(n));
const secrets = Object.fromEntries(names.map((n) => [n, schemes[n].secret()]));
const versions = createRequire(import.meta.url)("./package-lock.json").packages;

// The app: it says 503 to the first attempt of an event and 204 to the second, after the
// library has judged both.
const seen = new Map(); // name -> attempts
const waiting = new Map(); // name -> resolve
const app = http.createServer((req, res) => {
  const parts = [];
  req.on("data", (b) => parts.push(b));
  req.on("end", async () => {
    const name = req.url.slice(1), r = { headers: req.headers, body: Buffer.concat(parts).toString("utf8") };
    const list = seen.get(name) ?? [];
    seen.set(name, list);
    list.push({ key: req.headers["idempotency-key"], good: await judge(name, r, secrets[name]), forged: await judge(name, r, wrong(name, secrets[name])), stamp: schemes[name].stamp?.(r.headers) });
    res.writeHead(list.length > 1 ? 204 : 503).end();
    if (list.length > 1) waiting.get(name)?.();
  });
});

async function judge(name, r, secret) {
  try {
    return Boolean(await schemes[name].verify(r, secret));
  } catch {
    return false;
  }
}

const lower = (h) => Object.fromEntries(Object.entries(h).map(([k, v]) => [k.toLowerCase(), v]));
const post = (url, r) => fetch(url, { method: "POST", headers: r.headers, body: r.body });

async function run(acuse, name) {
  const s = schemes[name], id = "peer_" + crypto.randomUUID(), url = `${acuse}/in/${name}`;
  const r = s.make(id);
  await s.sign(r, secrets[name], id);
  if (!(await judge(name, { headers: lower(r.headers), body: r.body }, secrets[name]))) return "the library does not take what was signed for it";
  const bad = { ...r, body: s.tamper ? s.tamper(r.body) : r.body.replace(/e/, "3") };
  if (bad.body === r.body) return "nothing was changed in the body";
  const refused = await post(url, bad);
  if (refused.status !== 401) return `acuse answered ${refused.status} to an altered body`;
  const came = new Promise((done) => waiting.set(name, done));
  const taken = await post(url, r);
  if (taken.status !== 200 && taken.status !== 204) return `acuse answered ${taken.status}: ${await taken.text()}`;
  const late = await Promise.race([came, new Promise((done) => setTimeout(done, 20000, "late"))]);
  if (late) return `the app got ${seen.get(name)?.length ?? 0} attempts within 20 s`;
  const [first, second] = seen.get(name);
  if (!first.good || !second.good) return `the library refuses attempt ${first.good ? 2 : 1}`;
  if (first.forged || second.forged) return "the library takes another secret";
  if (!first.key || first.key !== second.key) return "the idempotency key changed";
  if (s.stamp && !(Number(second.stamp) > Number(first.stamp))) return `the retry was not signed afresh: ${first.stamp}, ${second.stamp}`;
  return "";
}

app.listen(0, "127.0.0.1", async () => {
  console.log(JSON.stringify({ app: `http://127.0.0.1:${app.address().port}`, sources: secrets }));
  const { value: acuse } = await readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]().next();
  await Promise.all(names.map(async (name) => {
    const error = await run(acuse, name).catch((e) => e.message);
    const s = schemes[name];
    console.log(JSON.stringify({ name, library: `${s.library} ${versions["node_modules/" + s.library].version}`, signs: s.own ? "the library" : "node:crypto, judged by it", fresh: s.passed ? "passed through" : "signed afresh", error }));
  }));
  process.exit(0);
});
