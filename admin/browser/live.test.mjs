// What moves by itself, and what must not.
import { test, before, after } from "node:test";
import assert from "node:assert/strict";
import { login, start, visitor } from "./lib.mjs";

let world;
before(async () => { world = await start(); });
after(() => world.end());

const arrive = (n) => fetch(`${world.info.full}/harness/arrive?n=${n}`);

test("a new row comes in at the top; with something selected it waits behind a counter", async () => {
  const v = await visitor(world);
  await login(world, v.page);
  await v.page.goto(world.info.full + "/deliveries");
  await v.page.locator(".live.on").waitFor();
  await arrive("a");
  await v.page.locator("[data-rows] tr", { hasText: "evt_live_a" }).waitFor();
  await v.page.locator("[data-rows] tr", { hasText: "evt_live_a" }).locator(".chip.ok").waitFor();
  await v.page.locator("[data-rows] input[name=id]").nth(3).check();
  const before = await v.page.locator("[data-rows] tr").first().getAttribute("data-id");
  await arrive("b");
  await v.page.locator("[data-new]", { hasText: "1 new" }).waitFor();
  assert.equal(await v.page.locator("[data-rows] tr").first().getAttribute("data-id"), before);
  assert.ok(await v.page.locator("[data-rows] input[name=id]").nth(3).isChecked());
  assert.deepEqual(v.said, []);
  await v.context.close();
});

test("focus and selection stay while a row changes", async () => {
  const v = await visitor(world);
  await login(world, v.page);
  await v.page.goto(world.info.full + "/deliveries");
  await v.page.locator(".live.on").waitFor();
  const id = world.info.deliveries.dead;
  const row = v.page.locator(`tr[data-id="${id}"]`);
  await row.locator("a").focus();
  await row.locator("input[name=id]").check();
  await row.locator("a").focus();
  const token = await v.page.evaluate(async ([base, id]) => (await fetch(`${base}/api/v1/deliveries/${id}/resend`, { method: "POST" })).status, [world.info.full, id]);
  assert.equal(token, 202);
  await row.locator(".chip.ok").waitFor();
  assert.ok(await row.locator("input[name=id]").isChecked());
  assert.equal(await v.page.evaluate(() => document.activeElement.closest("tr")?.dataset.id), String(id));
  await v.context.close();
});

test("a hidden page closes its stream and opens it again", async () => {
  const v = await visitor(world);
  await login(world, v.page);
  await v.page.goto(world.info.full + "/deliveries");
  await v.page.locator(".live.on").waitFor();
  const opened = [];
  v.page.on("request", (r) => { if (r.url().endsWith("/events")) opened.push(r); });
  const ended = v.page.waitForEvent("requestfailed", (r) => r.url().endsWith("/events"));
  const hide = (on) => v.page.evaluate((on) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => on });
    document.dispatchEvent(new Event("visibilitychange"));
  }, on);
  await hide(true);
  await ended;
  const again = v.page.waitForRequest((r) => r.url().endsWith("/events"));
  await hide(false);
  await again;
  assert.equal(opened.length, 1);
  await v.page.locator("[data-toggle]").click();
  await v.page.locator(".live.pause").getByText("Paused").waitFor();
  await v.context.close();
});
