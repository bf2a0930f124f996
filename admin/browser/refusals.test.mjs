// The ways of a person whose events are refused or do not come: a test event, the list
// of rejections, one of them, another secret, and a secret that comes in a handshake.
// In both languages, on a desk and on a phone.
import { test, before, after } from "node:test";
import assert from "node:assert/strict";
import { accessible, login, noSidewaysScroll, shot, start, visitor } from "./lib.mjs";

let world;
before(async () => { world = await start(); });
after(() => world.end());

const words = {
  en: { test: "Send a test event", delivered: /^delivered to app, 204/, failed: /^failed to app, attempt 1: Connection refused/, recheck: "Check with another secret", check: "Check",
    would: "5 kept requests were checked. 2 would verify.", deliver: "Deliver 2", done: "1 delivery was accepted. 1 was known already.", wrong: "This cannot be a secret of the source",
    open: "Open the window for 10 minutes", close: "Close the window", came: "A secret came from 203.0.113.24.", confirm: "Confirm: it becomes a secret of this source", confirmed: "Confirmed." },
  es: { test: "Enviar un evento de prueba", delivered: /^entregado a app, 204/, failed: /^falló a app, intento 1: Conexión rechazada/, recheck: "Probar con otro secreto", check: "Comprobar",
    would: "Se comprobaron 5 peticiones guardadas. 2 pasarían.", deliver: "Entregar 2", done: "Se aceptó 1 entrega. 1 ya se conocía.", wrong: "No puede ser un secreto de la fuente",
    open: "Abrir la ventana durante 10 minutos", close: "Cerrar la ventana", came: "Llegó un secreto desde 203.0.113.24.", confirm: "Confirmar: pasa a ser un secreto de esta fuente", confirmed: "Confirmado." },
};

const kinds = [
  { width: 1280, lang: "en", theme: "light" }, { width: 390, height: 844, lang: "es", theme: "dark" },
  { width: 320, height: 640, lang: "es", theme: "light", script: false },
];

// looked is what holds of each page on the way.
async function looked(v, name) {
  await noSidewaysScroll(v.page);
  if (v.script) await accessible(v.page);
  await shot(v.page, `way-${name}-${v.name}`);
}

for (const kind of kinds) {
  const say = words[kind.lang];
  async function enter() {
    const v = Object.assign(await visitor(world, kind), { script: kind.script !== false });
    await login(world, v.page);
    return v;
  }

  test(`a test event tells its steps, ${kind.width} px, ${kind.lang}`, async () => {
    const v = await enter();
    await v.page.goto(world.info.full + "/sources/stripe");
    await v.page.check("#deliver");
    await v.page.getByRole("button", { name: say.test }).click();
    await v.page.waitForURL(/\?test=/);
    const steps = (await v.page.locator("#test ol li").allInnerTexts()).map((s) => s.replace(/\s+/g, " ").trim());
    assert.equal(steps.length, 6);
    assert.match(steps[3], say.failed);
    assert.match(steps[5], say.delivered);
    await looked(v, "test-event");
    assert.deepEqual(v.said, []);
    await v.context.close();
  });

  test(`another secret lets in what it verifies, ${kind.width} px, ${kind.lang}`, async () => {
    const v = await enter();
    await v.page.goto(world.info.full + "/rejections?source=stripe");
    await v.page.locator("table.rej a").first().click();
    await v.page.getByRole("link", { name: say.recheck }).click();
    await v.page.fill("#secret", "case-SECRET-*");
    await v.page.getByRole("button", { name: say.check, exact: true }).click();
    await v.page.getByRole("alert").getByText(say.wrong).waitFor();
    assert.equal(await v.page.inputValue("#secret"), "");
    await looked(v, "recheck-wrong");
    await v.page.fill("#secret", "case-SECRET-G\n");
    await v.page.getByRole("button", { name: say.check, exact: true }).click();
    await v.page.waitForURL(/\?look=/);
    await v.page.getByRole("status").getByText(say.would).waitFor();
    assert.doesNotMatch(await v.page.content(), /SECRET-G/);
    await looked(v, "recheck-found");
    await v.page.getByRole("button", { name: say.deliver }).click();
    await v.page.waitForURL(/\/rejections\?source=stripe/);
    await v.page.getByText(say.done).waitFor();
    await looked(v, "recheck-done");
    assert.deepEqual(v.said.filter((s) => !/status of 422/.test(s)), []);
    await v.context.close();
  });

  test(`a secret from a handshake is shown, then confirmed, ${kind.width} px, ${kind.lang}`, async () => {
    const v = await enter();
    await v.page.goto(world.info.full + "/sources/notion");
    await looked(v, "capture-closed");
    await v.page.getByRole("button", { name: say.open }).click();
    await v.page.getByRole("button", { name: say.close }).waitFor();
    await looked(v, "capture-open");
    assert.equal((await fetch(world.info.full + "/harness/handshake")).status, 204);
    await v.page.reload();
    await v.page.getByText(say.came).waitFor();
    await looked(v, "capture-came");
    await v.page.getByRole("button", { name: say.confirm }).click();
    await v.page.getByRole("status").getByText(say.confirmed).waitFor();
    assert.doesNotMatch(await v.page.content(), /secret_tMrl/);
    assert.deepEqual(v.said, []);
    await v.context.close();
  });
}
