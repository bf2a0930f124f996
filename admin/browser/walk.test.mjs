// The ways that people go: first run, login, list, open, resend, back; with a script
// and without one.
import { test, before, after } from "node:test";
import assert from "node:assert/strict";
import { accessible, login, noSidewaysScroll, shot, start, visitor } from "./lib.mjs";

let world;
before(async () => { world = await start(); });
after(() => world.end());

test("first run: the link once, then an account, then the first steps", async () => {
  const stranger = await visitor(world);
  await stranger.page.goto(world.info.empty + "/");
  assert.match(stranger.page.url(), /\/setup$/);
  assert.equal(await stranger.page.locator("form[action$='/setup']").count(), 0);
  const v = await visitor(world, { lang: "es", width: 390, height: 844 });
  await v.page.goto(world.info.setup);
  assert.equal(v.page.url(), world.info.empty + "/setup");
  await accessible(v.page);
  await shot(v.page, "setup");
  await v.page.fill("#name", "lucía");
  await v.page.fill("#password", "una contraseña larga");
  await v.page.click("[data-reveal]");
  assert.equal(await v.page.getAttribute("#password", "type"), "text");
  await v.page.click("form.card button.main");
  await v.page.waitForURL(world.info.empty + "/");
  await v.page.getByText("Primeros pasos").waitFor();
  await accessible(v.page);
  await noSidewaysScroll(v.page);
  await shot(v.page, "first-steps");
  await v.page.goto(world.info.empty + "/deliveries");
  await v.page.getByText("Aún no ha llegado nada.").waitFor();
  await stranger.page.goto(world.info.setup);
  await stranger.page.getByText(/wrong, used or older/).waitFor();
  await stranger.context.close();
  await v.context.close();
});

for (const kind of [{ width: 1280, lang: "en" }, { width: 390, height: 844, lang: "es" }]) {
  test(`without a script, ${kind.width} px, ${kind.lang}: list, filter, open, resend, back`, async () => {
    const words = kind.lang === "es" ? { resend: "Reenviar", result: /Entregado a app en el intento \d+/, back: "Entregas" }
      : { resend: "Resend", result: /Delivered to app on attempt \d+/, back: "Deliveries" };
    const v = await visitor(world, { ...kind, script: false });
    await login(world, v.page);
    await v.page.goto(world.info.full + "/deliveries");
    await v.page.fill("#q", "charge.refunded");
    await v.page.press("#q", "Enter");
    assert.match(v.page.url(), /q=charge\.refunded/);
    await v.page.locator("[data-rows] .c-type a").nth(kind.width === 390 ? 1 : 0).click();
    const opened = new URL(v.page.url()).pathname;
    await v.page.locator("#resend").click();
    assert.equal(new URL(v.page.url()).pathname, opened + "/resend");
    await noSidewaysScroll(v.page);
    await v.page.getByRole("button", { name: `${words.resend} ${kind.lang === "es" ? "a" : "to"} app` }).click();
    assert.equal(new URL(v.page.url()).pathname, opened);
    await v.page.getByRole("status").getByText(words.result).waitFor();
    await v.page.locator(".crumbs a").click();
    assert.match(v.page.url(), /q=charge\.refunded/);
    await v.context.close();
  });
}

test("keyboard: list, open, resend in a dialog, back to the same row", async () => {
  const v = await visitor(world);
  await login(world, v.page);
  await v.page.goto(world.info.full + "/deliveries?state=dead");
  const second = await v.page.locator("[data-rows] tr").nth(1).getAttribute("data-id");
  await v.page.keyboard.press("j");
  await v.page.keyboard.press("j");
  await v.page.keyboard.press("Enter");
  await v.page.waitForURL(new RegExp(`/deliveries/${second}`));
  await v.page.keyboard.press("r");
  const dialog = v.page.locator("dialog[open]");
  await dialog.waitFor();
  await accessible(v.page);
  await shot(v.page, "dialog");
  await v.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" }).catch(() => {});
  assert.equal(await v.page.locator("dialog[open]").count(), 0);
  assert.equal(await v.page.evaluate(() => document.activeElement.id), "resend");
  await v.page.keyboard.press("r");
  await v.page.locator("dialog[open] button.main").focus();
  await v.page.keyboard.press("Enter");
  await v.page.waitForURL(/resent=/);
  await v.page.getByRole("status").getByText(/Delivered to app on attempt \d+ \(200/).waitFor();
  await shot(v.page, "resent");
  await v.page.keyboard.press("Escape");
  await v.page.waitForURL(/\/deliveries\?state=dead/);
  await v.page.goto(world.info.full + "/deliveries");
  await v.page.keyboard.press("j");
  await v.page.keyboard.press("j");
  const row = await v.page.locator("tr.here").getAttribute("data-id");
  await v.page.keyboard.press("Enter");
  await v.page.waitForURL(new RegExp(`/deliveries/${row}`));
  await v.page.keyboard.press("Escape");
  await v.page.waitForURL(/\/deliveries$/);
  assert.equal(await v.page.locator("tr.here").getAttribute("data-id"), row);
  await v.page.keyboard.press("?");
  await v.page.locator("dialog[open]").getByText("go to the body").waitFor();
  await v.page.keyboard.press("Escape");
  await v.page.keyboard.press("/");
  assert.equal(await v.page.evaluate(() => document.activeElement.id), "q");
  assert.deepEqual(v.said, []);
  await v.context.close();
});

test("a resend that needs a reason says so in the dialog; a token is shown once", async () => {
  const v = await visitor(world, { lang: "es" });
  await login(world, v.page);
  await v.page.goto(`${world.info.full}/deliveries/${world.info.deliveries.paid}`);
  await v.page.click("#resend");
  await v.page.click("dialog summary");
  await v.page.check("dialog [name=as_new]");
  await v.page.click("dialog button.main");
  await v.page.locator("dialog [role=alert]").getByText("requiere un motivo").waitFor();
  await v.page.fill("dialog [name=reason]", "se perdió");
  await v.page.click("dialog button.main");
  await v.page.waitForURL(/resent=/);
  assert.doesNotMatch(v.page.url(), new RegExp(`/deliveries/${world.info.deliveries.paid}\\b`));
  await v.page.goto(world.info.full + "/settings/tokens");
  await v.page.fill("#name", "ci");
  await v.page.click("form.stack button.main");
  assert.match(await v.page.textContent("#secret"), /^acuse_|\w{20,}/);
  await accessible(v.page);
  await v.page.reload();
  assert.equal(await v.page.locator("#secret").count(), 0);
  await v.context.close();
});

test("dark stays dark: the theme is in the first answer", async () => {
  const v = await visitor(world, { script: false });
  await login(world, v.page);
  await v.page.goto(world.info.full + "/settings/account");
  await v.page.check("input[name=theme][value=dark]");
  await v.page.check("input[name=language][value=es]");
  await v.page.locator("form.stack", { has: v.page.locator("input[name=theme]") }).locator("button").click();
  assert.equal(await v.page.getAttribute("html", "data-theme"), "dark");
  assert.equal(await v.page.getAttribute("html", "lang"), "es");
  await v.context.close();
});
