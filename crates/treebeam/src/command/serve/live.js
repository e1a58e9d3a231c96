
// What the pages of `treebeam serve` do beyond those of a report: they hear from the server what has changed, fetch that
// and nothing else, and put it in the place of what was there. Wishes are sent without leaving the page.
(() => {
  // The token was in the address only to get in; it is in a cookie by now.
  if (new URLSearchParams(location.search).has("token")) {
    const address = new URL(location.href);
    address.searchParams.delete("token");
    history.replaceState(null, "", address);
  }

  // What a reader was at is where it was, whatever is made anew around it. Each of these looks before, and puts back after.
  const all = (section, which) => [...section.querySelectorAll(which)];
  const scrolling = (section) => {
    const before = all(section, ".scroll, pre").map((each) => [each.scrollLeft, each.scrollTop]);
    return () => all(section, ".scroll, pre").forEach((each, at) => {
      if (before[at]) [each.scrollLeft, each.scrollTop] = before[at];
    });
  };
  // A text is the same if its file is; what is new is as it came.
  const opening = (section) => {
    const name = (each, at) => (each.querySelector("summary code") || { textContent: at }).textContent;
    const before = new Map(all(section, "details").map((each, at) => [name(each, at), each.open]));
    return () => all(section, "details").forEach((each, at) => {
      if (before.has(name(each, at))) each.open = before.get(name(each, at));
    });
  };
  // A link is known by where it leads, a button by what it asks for, all else by its number. Whoever was at one that is gone is
  // at the first one then, not at another one that stands there by chance.
  const focusing = (section) => {
    const found = () => all(section, "a[href], button, summary, [tabindex]");
    const name = (each) => each.getAttribute("href") || (each.form && each.form.getAttribute("action"));
    const held = document.activeElement;
    const at = found().indexOf(held);
    return () => {
      if (at < 0) return;
      const now = found();
      const again = [now[at], ...now].find((each) => each && name(each) === name(held)) || now[0];
      if (again) again.focus({ preventScroll: true });
    };
  };
  const known = new WeakMap();
  const put = (section, html) => {
    if (known.get(section) === html) return;
    known.set(section, html);
    const kept = [scrolling, opening, focusing].map((look) => look(section));
    section.innerHTML = html;
    kept.forEach((back) => back());
    // What cannot be asked for any more is not offered.
    const form = document.querySelector(".idea-form");
    if (form && section.id === "steering") form.hidden = section.querySelector("[data-over]") !== null;
  };

  // One part after the other; what changes meanwhile is fetched once more.
  const wanted = new Set();
  let fetching = false;
  const fetchAll = async () => {
    if (fetching) return;
    fetching = true;
    while (wanted.size) {
      const [section] = wanted;
      wanted.delete(section);
      try {
        const answer = await fetch(section.dataset.from);
        if (answer.ok) put(section, await answer.text());
      } catch {
        // The server is gone; when it is back, everything is asked for again.
      }
    }
    fetching = false;
  };
  const changed = (names) => {
    document.querySelectorAll("[data-live]").forEach((section) => {
      const about = section.dataset.live.split(" ");
      if (names.includes("*") || about.some((name) => names.includes(name))) wanted.add(section);
    });
    fetchAll();
  };
  document.querySelectorAll("[data-later]").forEach((section) => wanted.add(section));
  fetchAll();

  // What a command prints, as it comes.
  const MOST = 2000000;
  const log = document.getElementById("log");
  const print = ({ name, anew, without, text }) => {
    const low = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
    if (anew) {
      log.setAttribute("aria-label", name);
      document.querySelector("main .note code").textContent = name;
      document.querySelector("main .note .without").textContent = without;
    }
    log.textContent = ((anew ? "" : log.textContent) + text).slice(-MOST);
    if (low || anew) log.scrollTop = log.scrollHeight;
  };

  // News come as long as somebody looks. A browser opens few connections to one server: a page in the back leaves its own.
  const { events, version } = document.body.dataset;
  const live = document.querySelector(".live");
  let source = null;
  let seen = version;
  const say = (text, lost) => {
    live.textContent = text;
    live.classList.toggle("lost", lost);
  };
  const leave = () => {
    if (source) source.close();
    source = null;
  };
  const listen = () => {
    leave();
    source = new EventSource(seen ? `${events}?since=${encodeURIComponent(seen)}` : events);
    source.addEventListener("open", () => say("live", false));
    source.addEventListener("changed", (event) => {
      seen = event.lastEventId;
      changed(JSON.parse(event.data));
    });
    if (log) source.addEventListener("log", (event) => print(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      say("not connected: trying again", true);
      // It comes back by itself, unless it was refused.
      if (source && source.readyState === EventSource.CLOSED) setTimeout(() => { if (source) listen(); }, 1000);
    });
  };
  if (events) {
    document.addEventListener("visibilitychange", () => (document.hidden ? leave() : listen()));
    addEventListener("pagehide", leave);
    if (!document.hidden) listen();
  }

  // A wish: sent, and what came of it is said on this page. It is sent once; a button that was disabled meanwhile would lose
  // the keyboard.
  document.addEventListener("submit", async (event) => {
    const form = event.target.closest("form.wish");
    const said = document.querySelector("main > .said");
    if (!form || !said) return;
    event.preventDefault();
    if (form.hasAttribute("aria-busy")) return;
    form.setAttribute("aria-busy", "true");
    said.textContent = "…";
    try {
      const body = new URLSearchParams(new FormData(form));
      const answer = await fetch(form.action, { method: "POST", body });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const text = page.querySelector(".said, main p");
      said.textContent = text ? text.textContent : `the server said ${answer.status}`;
      if (answer.ok && form.querySelector("textarea")) form.reset();
    } catch {
      said.textContent = "the server is gone";
    }
    form.removeAttribute("aria-busy");
  });
})();
