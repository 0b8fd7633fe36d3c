// tables.js: the views in words: trees that open row by row, the table of methods, callers and
// callees. They are tables to a screen reader, too.

const MOST_ROWS = 1000;

function makeTables(app) {
  const host = $("table");

  function bar(part, whole) { return element("td", { class: "num" }, duration(part), element("small", {}, percent(part, whole))); }
  function header(...names) { return element("thead", {}, element("tr", {}, ...names.map(n => element("th", { scope: "col" }, n)))); }
  function methodCell(sum, m, extra) {
    const name = sum.names[m], b = element("button", { class: "name" + (name === LOST ? " lost" : ""), title: name, onclick: () => app.explainMethod(m) }, shortName(name), element("small", {}, moduleOf(name)));
    return element("td", { class: app.found && app.found.has(m) ? "hit" : null }, extra, b);
  }

  // openable makes a tree of rows; more(item) gives an item's children.
  function openable(columns, roots, more, cells, depthLimit) {
    const body = element("tbody", {});
    const add = (items, depth, before) => {
      for (const item of items.slice(0, MOST_ROWS)) {
        const twist = element("button", { class: "twist", "aria-expanded": "false", "aria-label": "open" }, "▸");
        const row = element("tr", { "aria-level": depth + 1 });
        row.depth = depth;
        const set = open => {
          twist.textContent = open ? "▾" : "▸"; twist.setAttribute("aria-expanded", open);
          let next = row.nextSibling;
          while (next && next.depth > depth) { const gone = next; next = next.nextSibling; gone.remove(); }
          if (!open) return;
          const children = more(item);
          add(children, depth + 1, next);
          // A single way on is followed at once, so that deep stacks need no hundred clicks.
          if (children.length === 1 && depth < depthLimit) { const child = row.nextSibling; if (child && child.open) child.open(true); }
        };
        row.open = set;
        twist.onclick = () => set(twist.getAttribute("aria-expanded") !== "true");
        row.append(...cells(item, element("span", { style: "display:inline-block;width:" + Math.min(depth, 60) * 12 + "px" }), twist));
        body.insertBefore(row, before || null);
      }
    };
    add(roots, 0, null);
    host.replaceChildren(element("table", { role: "treegrid" }, header(...columns), body));
    if (body.firstChild && roots.length) body.firstChild.open(true);
  }

  function topDown() {
    const sum = app.sums();
    openable(["Method", "Total", "Self", "Restored"], sum.kids(0), n => sum.kids(n), (n, pad, twist) => [
      methodCell(sum, sum.tree.method[n], element("span", {}, pad, sum.kids(n).length ? twist : element("span", { class: "twist" }))),
      bar(sum.total[n], sum.all), bar(sum.self[n], sum.all), element("td", { class: "num" }, sum.fixed[n] ? percent(sum.fixed[n], sum.total[n]) : "")], 200);
  }
  function inverted() {
    const sum = app.sums(), roots = invert(sum.tree, selfPairs(sum.self));
    openable(["Method, and what calls it", "Time"], roots, g => invert(sum.tree, g.pairs), (g, pad, twist) => [
      methodCell(sum, g.method, element("span", {}, pad, twist)), bar(g.time, sum.all)], 200);
  }
  let order = "self";
  function methods() {
    const sum = app.sums(), by = sum.methods(), rows = [];
    for (let m = 0; m < by.total.length; m++) if (by.total[m] > 0 && (!app.found || app.found.has(m))) rows.push(m);
    rows.sort((a, b) => by[order][b] - by[order][a] || by.total[b] - by.total[a] || a - b);
    const head = element("thead", {}, element("tr", {}, ...[["self", "Self"], ["total", "Total"]].map(([k, n]) => element("th", { scope: "col", "aria-sort": order === k ? "descending" : "none" }, element("button", { onclick: () => { order = k; app.redraw(); } }, n + (order === k ? " ↓" : "")))), element("th", { scope: "col" }, "Method")));
    const body = element("tbody", {}, ...rows.slice(0, MOST_ROWS).map(m => element("tr", {}, bar(by.self[m], sum.all), bar(by.total[m], sum.all), methodCell(sum, m))));
    host.replaceChildren(element("table", {}, head, body), rows.length > MOST_ROWS ? element("p", {}, "The first " + count(MOST_ROWS) + " of " + count(rows.length) + " methods; search to see others.") : "");
  }
  function around() {
    const sum = app.sums(), m = app.state.method;
    if (m == null || m >= sum.names.length) { host.replaceChildren(element("p", {}, "Choose a method in another view, or search one.")); return; }
    const by = sum.methods(), out = outermost(sum.tree, sum.names.length);
    const callers = invert(sum.tree, methodPairs(sum.tree, sum.total, out, m)), below = callees(sum.tree, sum.total, out, m);
    const list = (title, rows) => element("section", {}, element("h3", {}, title), element("table", {}, header("Time", "Method"), element("tbody", {}, ...rows.slice(0, MOST_ROWS).map(([k, w]) => element("tr", {}, bar(w, by.total[m]), methodCell(sum, k))))));
    host.replaceChildren(element("h2", {}, sum.names[m]), element("p", {}, duration(by.total[m]) + " in all, " + duration(by.self[m]) + " itself; " + percent(by.total[m], sum.all) + " of the selection"),
      element("div", { class: "pair" }, list("Callers", callers.map(c => [c.method, c.time])), list("Callees", below)));
  }
  // tracks sums up what of the tracks lies in the selected time, by name.
  function tracks() {
    const by = new Map(), { from, to } = app.state;
    for (const t of app.trace.tracks) for (let i = lower(t.reach, from); i < t.slices && t.start[i] < to; i++) {
      if (t.end[i] < from) continue;
      const name = app.sliceName(t, i), key = t.group + "\0" + name, d = t.end[i] - t.start[i];
      let r = by.get(key);
      if (!r) by.set(key, r = { group: t.group || t.name, name, count: 0, time: 0, longest: -1, track: t, i });
      r.count++; r.time += d;
      if (d > r.longest) { r.longest = d; r.track = t; r.i = i; }
    }
    const q = app.state.query.trim().toLowerCase(), rows = [...by.values()].filter(r => !q || r.name.toLowerCase().includes(q)).sort((a, b) => b.time - a.time || b.count - a.count);
    host.replaceChildren(rows.length ? element("table", {}, header("Count", "Time", "Longest", "Track", "Name"), element("tbody", {}, ...rows.slice(0, MOST_ROWS).map(r => element("tr", {},
      element("td", { class: "num" }, count(r.count)), element("td", { class: "num" }, duration(r.time)), element("td", { class: "num" }, element("button", { title: "select its time", onclick: () => app.selectSlice(r.track, r.i) }, duration(r.longest))),
      element("td", {}, r.group), element("td", {}, r.name))))) : element("p", {}, "No track has anything in the selected time."));
  }
  return { tracks: { draw: tracks }, tree: { draw: topDown }, inverted: { draw: inverted }, methods: { draw: methods }, around: { draw: around } };
}
