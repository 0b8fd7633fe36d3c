// tables.js: the views in words: trees that open row by row, the table of methods, callers and
// callees. They are tables to a screen reader, too.

const MOST_ROWS = 1000;

function makeTables(app) {
  const host = $("table");

  const num = text => element("td", { class: "num" }, text);
  // bar is a time, what part of the selection it is, and what of the whole trace.
  function bar(part, whole) { return element("td", { class: "num" }, duration(part), element("small", {}, percent(part, whole)), element("small", { class: "all", title: "of the whole trace" }, percent(part, app.everything()))); }
  const note = "Percentages are of the selection, and behind them of the whole trace.";
  // table makes rows of items, the first of them; behind it stands how many there are, and what to do to see others.
  function table(caption, head, items, row = r => r, others) { return element("div", {}, element("table", {}, caption ? element("caption", {}, caption) : null, header(...head), element("tbody", {}, ...items.slice(0, MOST_ROWS).map(row))), cut(items.length, others)); }
  function cut(n, others) { return n > MOST_ROWS ? element("p", { class: "cut" }, "The first " + count(MOST_ROWS) + " of " + count(n) + (others ? "; " + others : "") + ".") : ""; }
  const time = (from, to) => element("td", { class: "num" }, element("button", { title: "select this time", onclick: () => app.select(from - 1e5, to + 1e5) }, duration(from)));
  function header(...names) { return element("thead", {}, element("tr", {}, ...names.map(n => element("th", { scope: "col" }, n)))); }
  function methodCell(sum, m, extra) {
    const name = sum.names[m], b = element("button", { class: "name" + (name === LOST ? " lost" : ""), title: name, onclick: () => app.explainMethod(m) }, shortName(name), element("small", {}, moduleOf(name)));
    return element("td", { class: app.found && app.found.has(m) ? "hit" : null }, element("div", { class: "cell" }, extra, b));
  }

  // openable makes a tree of rows; more(item) gives an item's children, time(item) how long it took.
  function openable(columns, roots, more, time, cells, depthLimit) {
    const body = element("tbody", {});
    const add = (items, depth, before) => {
      if (items.length > MOST_ROWS) {
        const rest = element("tr", {}, element("td", { colspan: columns.length, class: "hint" }, cut(items.length, "the others take less time")));
        rest.depth = depth;
        body.insertBefore(rest, before || null);
        before = rest;
      }
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
          // Where most goes one way it is followed at once, so that deep stacks need no hundred clicks.
          if (children.length && time(children[0]) > 0.5 * time(item) && depth < depthLimit) { const child = row.nextSibling; if (child && child.open) child.open(true); }
        };
        row.open = set;
        twist.onclick = () => set(twist.getAttribute("aria-expanded") !== "true");
        row.append(...cells(item, element("span", { style: "display:inline-block;width:" + Math.min(depth, 60) * 12 + "px" }), twist));
        body.insertBefore(row, before || null);
      }
    };
    add(roots, 0, null);
    host.replaceChildren(element("table", { role: "treegrid" }, element("caption", {}, note), header(...columns), body));
    if (body.firstChild && roots.length) body.firstChild.open(true);
  }

  function topDown() {
    const sum = app.sums();
    openable(["Method", "Total", "Self", app.state.recorded ? "Moved by the repair" : "Restored"], sum.kids(0), n => sum.kids(n), sum.total, (n, pad, twist) => [
      methodCell(sum, sum.tree.method[n], element("span", {}, pad, sum.kids(n).length ? twist : element("span", { class: "twist" }))),
      bar(sum.total(n), sum.all), bar(sum.self[n], sum.all), element("td", { class: "num" }, sum.marked(n) ? percent(sum.marked(n), sum.total(n)) : "")], 200);
  }
  function inverted() {
    const sum = app.sums(), roots = invert(sum.tree, selfPairs(sum.self));
    openable(["Method, and what calls it", "Time"], roots, g => invert(sum.tree, g.pairs), g => g.time, (g, pad, twist) => [
      methodCell(sum, g.method, element("span", {}, pad, g.pairs.some(([n]) => n) ? twist : element("span", { class: "twist" }))), bar(g.time, sum.all)], 200);
  }
  let order = "self";
  function methods() {
    const sum = app.sums(), by = sum.methods(), rows = [];
    for (let m = 0; m < by.total.length; m++) if (by.total[m] > 0 && (!app.found || app.found.has(m))) rows.push(m);
    rows.sort((a, b) => by[order][b] - by[order][a] || by.total[b] - by.total[a] || a - b);
    const head = element("thead", {}, element("tr", {}, ...[["self", "Self"], ["total", "Total"]].map(([k, n]) => element("th", { scope: "col", "aria-sort": order === k ? "descending" : "none" }, element("button", { onclick: () => { order = k; app.redraw(); } }, n + (order === k ? " ↓" : "")))), element("th", { scope: "col" }, "Method")));
    const body = element("tbody", {}, ...rows.slice(0, MOST_ROWS).map(m => element("tr", {}, bar(by.self[m], sum.all), bar(by.total[m], sum.all), methodCell(sum, m))));
    host.replaceChildren(element("table", {}, element("caption", {}, note), head, body), cut(rows.length, "search to see others"));
  }
  function beside() {
    const sum = app.sums(), m = app.state.method;
    if (m == null || m >= sum.names.length) { host.replaceChildren(element("p", {}, "Choose a method in another view, or search one.")); return; }
    const by = sum.methods(), [callers, callees] = around(sum.tree, sum.self, sum.total, m);
    const list = (title, rows, nobody) => element("section", {}, element("h3", {}, title), !rows.length ? element("p", { class: "hint" }, "None.") : table("", ["Time", "Method"], rows, ([k, w]) => element("tr", {}, bar(w, by.total[m]), k < 0 ? element("td", { class: "hint" }, nobody) : methodCell(sum, k)), "the others take less time"));
    host.replaceChildren(element("h2", {}, sum.names[m]), element("p", {}, duration(by.total[m]) + " in all, " + duration(by.self[m]) + " itself; " + percent(by.total[m], sum.all) + " of the selection. A stack counts once for each of its callers and callees."),
      element("div", { class: "pair" }, list("Callers", callers, "(no caller)"), list("Callees", callees, "(itself)")));
  }
  // bridged is how many of the repaired samples of a thread have a bridge.
  function bridged(t) {
    const how = app.trace.head.hows.indexOf("bridge") + 1;
    return t.bridged ??= how ? t.cuts.reduce((n, i) => n + (t.flags[i] >> HOW === how), 0) : 0;
  }
  // tracks lists threads, and sums up what of the tracks lies in the selected time, by name.
  function tracks() {
    const by = new Map(), { from, to } = app.state;
    for (const t of app.trace.tracks) if (!t.value) for (let i = lower(t.reach, from); i < t.slices && t.start[i] < to; i++) {
      if (t.end[i] < from) continue;
      const name = app.sliceName(t, i), key = t.group + "\0" + name, d = t.end[i] - t.start[i];
      let r = by.get(key);
      if (!r) by.set(key, r = { group: t.group || t.title, name, count: 0, time: 0, longest: -1, track: t, i });
      r.count++; r.time += d;
      if (d > r.longest) { r.longest = d; r.track = t; r.i = i; }
    }
    const q = app.state.query.trim().toLowerCase(), rows = [...by.values()].filter(r => !q || r.name.toLowerCase().includes(q)).sort((a, b) => b.time - a.time || b.count - a.count);
    const { threads } = app.trace, meters = app.trace.tracks.filter(t => t.value && (!q || t.title.toLowerCase().includes(q))).map(t => [t, meter(t, from, to)]).filter(([, m]) => m);
    host.replaceChildren(
      !threads.length ? element("p", { class: "hint" }, "The trace holds no CPU samples.") : table("Threads", ["Thread", "Samples", "On\u00a0a\u00a0CPU", "Cut", "Repaired", "Bridged"], threads, t => element("tr", {}, element("td", {}, element("button", { class: "name", "aria-pressed": app.state.threads.has(t), onclick: e => app.pick(t, e.ctrlKey || e.metaKey || e.shiftKey) }, app.threadName(t))),
        num(count(t.samples)), num(count(t.busy)), num(count(t.cut)), num(count(t.repaired - bridged(t))), num(count(bridged(t)))), "those that did most on a CPU; [ and ] go through all"),
      rows.length ? table("Tracks, in the selected time", ["Count", "Time", "Longest", "Track", "Name"], rows, r => element("tr", {}, num(count(r.count)), num(duration(r.time)),
        element("td", { class: "num" }, element("button", { title: "select its time", onclick: () => app.selectSlice(r.track, r.i) }, duration(r.longest))), element("td", {}, r.group), element("td", {}, r.name)), "select less time, or search to see others") : "",
      meters.length ? table("Counters, in the selected time", ["Least", "Mean", "Most", "Last", "Counter"], meters, ([t, m]) => element("tr", {}, ...[m.least, m.mean, m.most, m.last].map(v => num(count(+(Math.abs(v) < 1e4 ? v.toPrecision(4) : v.toFixed(0))))), element("td", {}, t.title)), "search to see others") : "");
  }
  // meter sums up what a counter showed between two times; null: nothing.
  function meter(t, from, to) {
    let least = Infinity, most = -Infinity, last = 0, sum = 0, time = 0;
    for (let i = lower(t.reach, from); i < t.slices && t.start[i] < to; i++) {
      const v = last = t.value[i], d = Math.min(t.end[i], to) - Math.max(t.start[i], from);
      if (d < 0) continue;
      least = Math.min(least, v); most = Math.max(most, v); sum += v * d; time += d;
    }
    return most < least ? null : { least, most, last, mean: time ? sum / time : last };
  }
  // samples are the time order in words.
  function samples() {
    const { from, to } = app.state, choice = app.choice(), { tree, methods } = app.trace, rows = [];
    let n = 0;
    for (const t of app.selectedThreads()) {
      const holds = wanted(t, choice);
      for (let i = lower(t.end, from + 1e-6); i < t.samples && t.start[i] < to; i++) if ((!holds || holds(i)) && n++ < MOST_ROWS) rows.push([t, i]);
    }
    const left = [choice.kind === "all" ? "" : KINDS.find(([k]) => k === choice.kind)[1], choice.request ? "request " + choice.request : ""].filter(Boolean).join(", ");
    host.replaceChildren(table("Samples of the selection" + (left && ": " + left), ["At", "Lasts", "Thread", "State", "Frames", "Repair", "Innermost method"], rows, ([t, i]) => {
      const s = stackOf(t, i, choice), how = t.flags[i] >> HOW;
      return element("tr", {}, time(t.start[i], t.end[i]), num(duration(t.end[i] - t.start[i])), element("td", {}, app.threadName(t)), element("td", {}, app.kindText(t, i)), num(count(tree.depth[s])),
        element("td", {}, how ? app.trace.head.howTexts[how - 1] : t.flags[i] & CUT ? "cut" : ""), element("td", {}, element("button", { class: "name", onclick: () => app.explain(t, i) }, s ? shortName(methods[tree.method[s]]) : "no stack")));
    }), cut(n, "select less time to see others"));
  }
  // limits tells what was lost, where the gaps are and why, and what could not be known.
  function limits() {
    const { head } = app.trace, found = gaps(app.trace, app.trace.threads, 100), total = app.trace.threads.reduce((n, t) => { for (let i = 0; i < t.samples; i++) n += t.end[i] - t.start[i]; return n; }, 0), open = unknown(app.trace);
    const none = text => element("p", { class: "hint" }, text);
    host.replaceChildren(
      element("h2", {}, "Lost while recording"),
      head.losses.length ? table(many(head.lost, "event") + " in " + many(head.losses.length, "gap") + "; what ran then may be missing above", ["At", "Within", "Events", "Of"], head.losses, l => element("tr", {}, time(l.from, l.to), num(duration(l.to - l.from)), num(l.events ? count(l.events) : "not told"), element("td", {}, app.lossOwner(l))), "the earliest") : none(head.lost ? count(head.lost) + " events were lost; the file does not tell when." : "The file tells of no lost events."),
      element("h2", {}, "Damage of the file"),
      head.damages ? table(many(head.damages, "place") + "; the page shows what could be saved" + (head.damages > head.damage.length ? "; the first " + count(head.damage.length) : ""), ["Read up to", "Byte", "Part", "What is wrong"], head.damage, d => element("tr", {}, d.at < 0 ? num("not told") : d.at > app.end ? num("behind all samples") : time(d.at, d.at), num(count(d.offset)), element("td", {}, d.where), element("td", {}, d.what))) : none("The file is whole."),
      element("h2", {}, "Gaps between samples"),
      found.all ? table(count(found.all) + " in all" + (found.all > 100 ? "; the 100 longest" : "") + ". Nothing is drawn there.", ["At", "Lasts", "Thread", "Why"], found.list, g => element("tr", {}, time(g.from, g.to), num(duration(g.to - g.from)), element("td", {}, app.threadName(g.thread)), element("td", {}, g.why))) : none("None: every thread was sampled from its first sample to its last."),
      element("h2", {}, "What could not be known"),
      open.length ? table("", ["Samples", "Time", "What"], open, ([what, n, t]) => element("tr", {}, num(count(n)), bar(t, total), element("td", {}, what))) : none("Nothing of the samples."),
      ...head.notes.map(n => element("p", {}, n)));
  }
  const words = f => ({ draw: f });
  return { tracks: words(tracks), tree: words(topDown), inverted: words(inverted), methods: words(methods), around: words(beside), samples: words(samples), limits: words(limits) };
}
