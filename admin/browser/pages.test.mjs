// Every page, at every size, in both lights and languages: nothing scrolls sideways,
// the console stays silent, axe finds nothing.
import { test, before, after } from "node:test";
import assert from "node:assert/strict";
import { accessible, login, noSidewaysScroll, paths, shot, start, visitor } from "./lib.mjs";

let world;
before(async () => { world = await start(); });
after(() => world.end());

// A page of a status that is meant is told by the browser as an error; nothing else is.
const meant = /status of (403|404|409|422)/;

const kinds = [
  { width: 1280, theme: "light", lang: "en", axe: "" }, { width: 390, theme: "dark", lang: "es", axe: "", height: 844 },
  { width: 1280, theme: "dark", lang: "es", axe: "color-contrast" }, { width: 390, theme: "light", lang: "en", axe: "color-contrast", height: 844 },
  { width: 320, theme: "light", lang: "es", height: 640 }, { width: 900, theme: "light", lang: "en" },
];

for (const kind of kinds) {
  test(`pages at ${kind.width} px, ${kind.theme}, ${kind.lang}`, async () => {
    const v = await visitor(world, kind);
    await v.page.goto(world.info.full + "/login");
    await noSidewaysScroll(v.page);
    if (kind.axe !== undefined) await accessible(v.page, kind.axe);
    await v.page.goto(world.info.empty + "/setup");
    await noSidewaysScroll(v.page);
    if (kind.axe !== undefined) await accessible(v.page, kind.axe);
    await login(world, v.page);
    // The long and the odd ones are for the sizes; axe looks at each kind of page once.
    const sameKind = ["big", "deep", "long", "rtl", "empty", "raw", "leased", "two", "by-state"];
    for (const [name, path] of Object.entries(paths(world.info))) {
      await v.page.goto(world.info.full + path);
      assert.equal(await v.page.getAttribute("html", "lang"), kind.lang);
      await noSidewaysScroll(v.page);
      if (kind.axe !== undefined && !sameKind.includes(name)) await accessible(v.page, kind.axe);
      await shot(v.page, `${name}-${v.name}`);
    }
    assert.deepEqual(v.said.filter((s) => !meant.test(s)), []);
    await v.context.close();
  });
}

test("chips are told apart without colour", async () => {
  const v = await visitor(world);
  await login(world, v.page);
  await v.page.goto(world.info.full + "/deliveries");
  const chips = await v.page.$$eval(".chip", (list) => list.map((c) => [c.querySelector("use").getAttribute("href").split("#")[1], c.textContent.trim()]));
  for (const [icon, word] of chips) assert.ok(icon && word.length > 2, `${icon} ${word}`);
  await v.page.emulateMedia({ forcedColors: "active" });
  assert.equal(await v.page.$eval(".chip", (c) => getComputedStyle(c).borderTopStyle), "solid");
  await v.context.close();
});
