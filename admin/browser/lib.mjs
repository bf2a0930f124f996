// What every browser test shares: the dashboard under test, a browser, and what is
// looked at on each page.
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";
import { AxeBuilder } from "@axe-core/playwright";

const admin = fileURLToPath(new URL("..", import.meta.url));
const executablePath = process.env.CHROMIUM || "/usr/bin/chromium";

// start serves a full and an empty dashboard and opens a browser; end() stops both.
export async function start() {
  const server = spawn(process.env.ACUSE_HARNESS_BIN, [], {
    cwd: admin, env: { ...process.env, ACUSE_HARNESS: "127.0.0.1:0" }, stdio: ["pipe", "pipe", "inherit"],
  });
  const line = await new Promise((resolve, reject) => {
    let text = "";
    server.on("exit", (code) => reject(new Error(`the dashboard ended with ${code}`)));
    server.stdout.on("data", (d) => { text += d; if (text.includes("\n")) resolve(text); });
  });
  const info = JSON.parse(line);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  return { info, browser, async end() { await browser.close(); server.removeAllListeners("exit"); server.stdin.end(); } };
}

// visitor is a browser of its own; what its console says is kept in said.
export async function visitor(world, { width = 1280, height = 900, theme = "light", lang = "en", script = true } = {}) {
  const context = await world.browser.newContext({
    viewport: { width, height }, colorScheme: theme, locale: lang, javaScriptEnabled: script, permissions: script ? ["clipboard-write", "clipboard-read"] : [],
  });
  context.setDefaultTimeout(10000);
  const page = await context.newPage();
  const said = [];
  page.on("console", (m) => said.push(`${page.url()}: ${m.text()}`));
  page.on("pageerror", (e) => said.push(`${page.url()}: ${e.message}`));
  return { context, page, said, name: [width, theme, lang, script ? "script" : "plain"].join("-") };
}

export async function login(world, page) {
  await page.goto(world.info.full + "/login");
  await page.fill("#name", world.info.name);
  await page.fill("#password", world.info.password);
  await page.click("form button.main");
  await page.waitForURL(world.info.full + "/");
}

export async function noSidewaysScroll(page) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 0, `${page.url()} is ${wide} px too wide`);
}

// accessible looks at everything that axe knows, or only at the contrast: what a page
// is made of does not change with its colours.
export async function accessible(page, only) {
  const axe = new AxeBuilder({ page });
  const found = await (only ? axe.withRules([only]) : axe.withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"])).analyze();
  const lines = found.violations.map((v) => `${v.id}: ${v.help}\n  ${v.nodes.slice(0, 3).map((n) => n.html + "\n    " + n.failureSummary.replaceAll("\n", " ")).join("\n  ")}`);
  assert.equal(lines.length, 0, `${page.url()}\n${lines.join("\n")}`);
}

export async function shot(page, name) {
  if (!process.env.SHOTS) return;
  mkdirSync(process.env.SHOTS, { recursive: true });
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: `${process.env.SHOTS}/${name}.png`, fullPage: true });
}

// paths are the pages to look at, by name.
export function paths(info) {
  const d = info.deliveries;
  return {
    overview: "/", deliveries: "/deliveries", "filtered-empty": "/deliveries?q=nothing", "by-state": "/deliveries?state=dead&span=24h",
    delivered: `/deliveries/${d.paid}`, failing: `/deliveries/${d.retry}`, "dead-one": `/deliveries/${d.dead}`, two: `/deliveries/${d.two}`, leased: `/deliveries/${d.leased}`,
    quarantined: `/deliveries/${d.quarantined}`, hostile: `/deliveries/${d.xss}`, raw: `/deliveries/${d.broken}?body=raw`, broken: `/deliveries/${d.broken}`,
    big: `/deliveries/${d.big}`, deep: `/deliveries/${d.deep}`, binary: `/deliveries/${d.binary}`, long: `/deliveries/${d.long}`, empty: `/deliveries/${d.empty}`, rtl: `/deliveries/${d.rtl}`,
    resend: `/deliveries/${d.retry}/resend`, cancel: `/deliveries/${d.retry}/cancel`, selected: `/resend?id=${d.dead}&id=${d.two}`, dead: "/dead",
    rejections: "/rejections", "rejections-of-one": "/rejections?source=stripe", "rejections-none": "/rejections?source=sensor", recheck: "/rejections/recheck?source=stripe",
    ...Object.fromEntries(info.rejections.map((id, i) => [`rejection-${i + 1}`, `/rejections/${id}`])),
    sources: "/sources", source: "/sources/stripe", "source-token": "/sources/bot", "source-unsigned": "/sources/sensor", capture: "/sources/notion", destinations: "/destinations", destination: "/destinations/app", account: "/settings/account",
    tokens: "/settings/tokens", about: "/settings/about", keyboard: "/keyboard", "not-found": "/nowhere",
  };
}
