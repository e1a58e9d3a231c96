// What a page does beyond being read: a link to an eval or a node opens it, arrow keys move through the tree, the list of
// evals can be searched. Nothing is fetched and nothing is stored; without this script everything is still there to be read.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);

  // A link opens what it leads to.
  const open = () => {
    const found = byId(decodeURIComponent(location.hash.slice(1)));
    if (!(found instanceof HTMLDetailsElement)) return;
    found.hidden = false;
    found.open = true;
    found.scrollIntoView({ block: "start" });
    found.querySelector("summary").focus({ preventScroll: true });
  };
  addEventListener("hashchange", open);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    // The same address twice is no change.
    if (link && link.getAttribute("href") === location.hash) open();
  });
  open();

  // The tree: left to the parent, right to the first child, up and down among all of the same level. It may be drawn anew at
  // any time, so its marks are looked up when a key is pressed.
  const across = (mark) => mark.transform.baseVal.getItem(0).matrix.f;
  const besides = (marks, level, at, step) => {
    const same = marks.map((_, other) => other).filter((other) => level[other] === level[at]);
    same.sort((one, other) => across(marks[one]) - across(marks[other]));
    return same[same.indexOf(at) + step];
  };
  const target = (marks, at, key) => {
    const up = marks.map((mark) => ("up" in mark.dataset ? Number(mark.dataset.up) : -1));
    const level = [];
    up.forEach((parent) => level.push(parent < 0 ? 0 : level[parent] + 1));
    switch (key) {
      case "ArrowLeft": return up[at];
      case "ArrowRight": return up.indexOf(at);
      case "ArrowUp": return besides(marks, level, at, -1);
      case "ArrowDown": return besides(marks, level, at, 1);
      case "Home": return 0;
      default: return undefined;
    }
  };
  document.addEventListener("keydown", (event) => {
    const tree = event.target.closest("svg.tree");
    if (!tree) return;
    const marks = [...tree.querySelectorAll("a.mark")];
    const at = marks.indexOf(event.target.closest("a.mark"));
    const to = at < 0 ? undefined : target(marks, at, event.key);
    if (to === undefined) return;
    event.preventDefault();
    const mark = marks[to];
    if (!mark) return;
    marks.forEach((other) => other.setAttribute("tabindex", other === mark ? "0" : "-1"));
    mark.focus();
    mark.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  // A large tree is seen from its root.
  const box = byId("tree");
  const first = box && box.querySelector("a.mark");
  if (first) box.scrollTop = across(first) - box.clientHeight / 2;

  // The list of evals, by what is typed and by outcome.
  const form = document.querySelector("form.filter[hidden]");
  if (form) {
    const items = [...document.querySelectorAll("#evals details.item")];
    const texts = items.map((item) => item.querySelector("summary").textContent.toLowerCase());
    const filter = () => {
      const words = form.elements.find.value.toLowerCase().split(/\s+/).filter(Boolean);
      const boxes = form.querySelectorAll("input[name=outcome]:checked");
      const outcomes = new Set([...boxes].map((box) => box.value));
      let shown = 0;
      items.forEach((item, at) => {
        item.hidden = !outcomes.has(item.dataset.outcome) || !words.every((word) => texts[at].includes(word));
        shown += item.hidden ? 0 : 1;
      });
      form.querySelector("output").textContent = shown === items.length ? "" : `${shown} of ${items.length}`;
    };
    form.hidden = false;
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
  }
})();
