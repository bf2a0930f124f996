// Makes admin/static/icons.svg from the icons of lucide-static (ISC):
//   npm ci --prefix admin/browser && node admin/browser/icons.mjs
import { readFileSync, writeFileSync } from "node:fs";

const here = new URL(".", import.meta.url);
const names = JSON.parse(readFileSync(new URL("icons.json", here), "utf8"));
const lines = ['<svg xmlns="http://www.w3.org/2000/svg">'];
for (const ours of Object.keys(names).sort()) {
  const file = readFileSync(new URL(`node_modules/lucide-static/icons/${names[ours]}.svg`, here), "utf8");
  const inner = file.match(/<svg[^>]*>(.*)<\/svg>/s)[1].replace(/\s*\n\s*/g, "").replaceAll(" />", "/>");
  lines.push(`<symbol id="${ours}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" ` +
    `stroke-linecap="round" stroke-linejoin="round">${inner}</symbol>`);
}
writeFileSync(new URL("../static/icons.svg", here), lines.join("\n") + "\n</svg>\n");
