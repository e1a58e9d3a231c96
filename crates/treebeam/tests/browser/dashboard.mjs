// The pages of `treebeam serve` in a real browser, while a run goes on: node dashboard.mjs PACKAGES BROWSER URL REPORT.
// Each step waits for what it needs to see. The last line says what was seen; what goes wrong ends it with an error.
import { createRequire } from "node:module";
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as rest } from "node:timers/promises";

const [packages, executablePath, address, report] = process.argv.slice(2);
const require = createRequire(`${packages}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core"), "utf8");
const base = address.replace(/\?.*/, "");
const problems = [];

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const open = async (colorScheme, width) => {
  const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(120000);
  page.on("console", (message) => { if (message.type() === "error") problems.push(message.text()); });
  page.on("pageerror", (error) => problems.push(String(error)));
  return page;
};
const must = (holds, what) => { if (!holds) throw new Error(what); };
// axe is put in past the policy of the page.
const judge = async (page, what) => {
  const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`);
  const serious = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  must(serious.length === 0, `${what}: ${JSON.stringify(serious.map(({ id, nodes }) => [id, nodes[0].html]))}`);
};

// The dashboard: live, and without its token in the address.
const page = await open("light", 1200);
await page.goto(address);
await page.locator(".live", { hasText: "live" }).waitFor();
must(!page.url().includes("token"), page.url());
await page.evaluate(() => { window.stayed = true; });

// Three others who look on: at all runs, at a node, and at the evals while they type.
const beside = async (path) => {
  const other = await open("light", 1200);
  await other.goto(address);
  await other.goto(new URL(path, address).href);
  await other.locator(".live", { hasText: "live" }).waitFor();
  await other.evaluate(() => { window.stayed = true; });
  return other;
};
const list = await beside("/");
const root = await beside(`${base}/at/n0000`);
const evals = await beside(`${base}/evals`);
await evals.getByLabel("Find").fill("not sent");

// Where no script runs, the buttons do the same; the page has to be asked for again.
const plain = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
await plain.goto(address);
for (const [name, said] of [["Pause", "is paused"], ["Go on", "goes on"]]) {
  const wish = plain.getByRole("button", { name, exact: true });
  for (let looks = 0; (await wish.count()) === 0; looks += 1) {
    must(looks < 300, `there is no button ${name}`);
    await rest(100);
    await plain.goto(base);
  }
  await wish.click();
  await plain.locator("main .said", { hasText: said }).waitFor();
}
await plain.close();

// Paused, and back, by the keyboard, which stays among the buttons; a page that is looked at is told.
const button = (name) => page.getByRole("button", { name, exact: true });
const holding = (what) => page.evaluate((of) => document.activeElement[of], what);
await button("Pause").focus();
await page.keyboard.press("Enter");
await button("Go on").waitFor();
must((await holding("textContent")) === "Go on", `the keyboard is at ${await holding("nodeName")}`);
await page.locator("main > .said", { hasText: "is paused" }).waitFor();

// An idea, added while it is paused.
await page.getByText("Add an idea").click();
await page.getByLabel("What is worth trying?").fill("Widen the <b>window\n\nLike a Zephyr.");
await button("Add it").click();
await page.locator("main > .said", { hasText: "the idea" }).waitFor();
await button("Go on").click();
await button("Stop after this depth").click();
await button("Do not stop after it").waitFor();
await page.locator("main > .said", { hasText: "stops after depth 0" }).waitFor();
await page.locator("#tree").focus();
console.log("steered");

// The depth comes to its end, and the run stops there, until somebody goes on.
await page.locator("#steering", { hasText: "Stopped after depth 0" }).waitFor();
must((await page.locator(".steering button").count()) === 0, "nobody is there to be steered");
await page.locator("#tree a.mark[href$='/at/n0001']").waitFor();
must((await holding("id")) === "tree", `the keyboard is at ${await holding("nodeName")}`);
console.log("stopped");

// The idea is evaluated, the run ends, and the page that never was loaded again says so.
await page.locator("#steering", { hasText: "Over." }).waitFor();
await page.locator("#evals a.row", { hasText: "Widen the <b>window" }).filter({ hasNotText: "open" }).first().waitFor();
must(await page.evaluate(() => window.stayed), "the page was loaded again");
await page.locator(".idea-form").waitFor({ state: "hidden" });
await list.locator("td", { hasText: "stopped" }).waitFor();
for (const other of [root, evals]) {
  await other.locator("a.row", { hasText: "Widen the <b>window" }).filter({ hasNotText: "open" }).waitFor();
}
must((await evals.getByLabel("Find").inputValue()) === "not sent", "what was typed is gone");
for (const other of [list, root, evals]) {
  must(await other.evaluate(() => window.stayed), `${other.url()} was loaded again`);
  await judge(other, other.url());
  await other.close();
}
await judge(page, "the dashboard");

// The tree: an eval is opened by a click, a node by the keyboard.
await page.locator("svg.tree a.mark").first().focus();
await page.keyboard.press("ArrowRight");
const held = await page.evaluate(() => document.activeElement.getAttribute("href"));
must(/\/at\/[en]\d{4}$/.test(held), `the keyboard is at ${held}`);
await page.keyboard.press("Enter");
await page.waitForURL(`**${held}`);
await page.goto(base);
await page.locator("svg.tree a.mark[href*='/at/e'] > :is(circle, path, rect)").first().click();
await page.waitForURL("**/at/e*");
await page.goto(`${base}/at/e0001`);
await page.locator(".diff .ins").first().waitFor();
await page.locator("svg.paired").first().waitFor();
await judge(page, "an eval");

// What the sweep of the root printed, and what a validation finds.
await page.goto(`${base}/at/n0000`);
await page.getByText("its log").click();
await page.getByText("Log of n0000").waitFor();
await judge(page, "a log");
await page.goto(`${base}/validation`);
await judge(page, "a validation");

// A search over the whole text of ideas.
await page.goto(`${base}/evals`);
await page.locator(".live", { hasText: "live" }).waitFor();
await page.getByLabel("Find").fill("ZEPHYR widen");
await button("Search").click();
await page.getByText(/^1 of \d+ evals with/).waitFor();
await page.locator("a.row", { hasText: "Widen the <b>window" }).waitFor();
must((await page.getByLabel("Find").inputValue()) === "ZEPHYR widen", "the search forgot what it was for");
await judge(page, "a search");

// Two of them, side by side.
await page.goto(`${base}/compare?first=n0000`);
await page.getByLabel("with").fill("e0001");
await button("Compare").click();
await page.getByText("e0001 against n0000").waitFor();
await judge(page, "a comparison");

// In the dark, and on a phone, nothing is wider than the screen.
for (const [scheme, width] of [["dark", 1200], ["light", 390]]) {
  const other = await open(scheme, width);
  await other.goto(address);
  await other.locator(".live", { hasText: "live" }).waitFor();
  await judge(other, `${scheme}, ${width}`);
  const wide = await other.evaluate(() => document.documentElement.scrollWidth);
  must(wide <= width, `${wide} wide on a screen of ${width}`);
  await other.close();
}

// The report on disk has the same figures.
const tiles = (where) => where.locator(".tiles").innerText();
await page.goto(base);
const shown = await tiles(page);
for (let looks = 0; !existsSync(report); looks += 1) {
  must(looks < 2400, "there is no report");
  await rest(50);
}
for (const [scheme, width] of [["light", 1200], ["dark", 1200], ["light", 390]]) {
  const still = await open(scheme, width);
  await still.goto(`file://${report}#e0001`);
  must((await tiles(still)) === shown, `the report says ${await tiles(still)}, the page ${shown}`);
  // The address names an eval, so that is open.
  await still.locator("#e0001 .diff .ins").first().waitFor();
  await still.locator("#e0001 svg.paired").first().waitFor();
  await judge(still, `the report, ${scheme}, ${width}`);
  const wide = await still.evaluate(() => document.documentElement.scrollWidth);
  must(wide <= width, `the report is ${wide} wide on a screen of ${width}`);
  // Another one: it is open, and at the top, whatever is drawn on the way.
  await still.goto(`file://${report}#n0001`);
  await still.locator("#n0001 .page").waitFor();
  const { y } = await still.locator("#n0001").boundingBox();
  must(y > 0 && y < 100, `what the address names is at ${y}`);
  await still.close();
}
must(problems.length === 0, problems.join("\n"));
await browser.close();
console.log("seen");
