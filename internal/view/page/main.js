// main.js: what is selected, and the views of it.

const VIEWS = [["flame", "Flame graph"], ["time", "Time order"], ["tree", "Top down"], ["inverted", "Inverted"], ["methods", "Methods"], ["around", "Callers, callees"], ["tracks", "Tracks"]];

function start() {
  const trace = load(id => $(id).textContent), head = trace.head, end = Math.max(head.end, 1);
  for (const id of ["nodes", "samples", "slices"]) $(id).remove();
  const colour = palette(trace.methods);
  const app = {
    trace, colour, found: null,
    state: { threads: new Set(), from: 0, to: end, view: "flame", kind: "all", recorded: false, raw: false, minConfidence: 0, hows: null, query: "", recursion: false, hidden: new Set(), merged: new Set(), focus: null, method: null },
    threadName: t => (t.name ? t.name + " (" + t.tid + ")" : "Thread " + t.tid) + (head.processes > 1 ? " of " + (t.process || t.pid) : ""),
    sliceName: (track, i) => head.names[track.name[i]],
    selectedThreads: () => trace.threads.filter(t => app.state.threads.has(t)),
    beliefs: () => [app.state.recorded, app.state.raw, app.state.minConfidence, app.state.hows ? [...app.state.hows].join() : "*"].join("/"),
    choice: () => ({ threads: app.selectedThreads(), from: app.state.from, to: app.state.to, kind: app.state.kind, recorded: app.state.recorded, raw: app.state.raw, minConfidence: app.state.minConfidence, hows: app.state.hows }),
  };

  // sums are the selection added up, kept until something changes.
  let sumKey = "", sum = null, shapeKey = "", shape = null, all = 0;
  app.sums = () => {
    const s = app.state, rule = [s.recursion, [...s.hidden].join(), [...s.merged].join(), s.focus].join("|"), key = [[...s.threads].map(t => t.tid + "." + t.pid).join(), s.from, s.to, s.kind, app.beliefs(), rule].join("/");
    if (key === sumKey) return sum;
    if (rule !== shapeKey) {
      shape = s.recursion || s.hidden.size || s.merged.size || s.focus != null ? reshape(trace.tree, { recursion: s.recursion, hidden: s.hidden, merged: s.merged, focus: s.focus, methods: trace.methods }) : null;
      shapeKey = rule;
    }
    const w = weigh(trace, app.choice()), tree = shape ? shape.tree : trace.tree, names = shape ? shape.names : trace.methods;
    const self = shape ? carry(shape, w.self) : w.self, fixed = totals(tree, shape ? carry(shape, w.fixed) : w.fixed), total = totals(tree, self.slice());
    let methods = null;
    sum = { tree, names, self, total, fixed, all: total[0], samples: w.samples, kids: kids(tree, total), colour: shape ? palette(names) : colour, methods: () => methods ||= byMethod(tree, self, total, names.length) };
    sumKey = key;
    return sum;
  };
  app.everything = () => { if (!all) for (const t of trace.threads) for (let i = 0; i < t.samples; i++) if (app.state.kind === "all" || busy(t.flags[i]) === (app.state.kind === "cpu")) all += t.end[i] - t.start[i]; return all; };

  // What changes the selection.
  app.select = (from, to, keep) => {
    let span = Math.max(1000, Math.min(end, to - from));
    if (keep) { from = Math.max(0, Math.min(from, end - span)); to = from + span; }
    app.state.from = Math.max(0, Math.min(from, end - 1000)); app.state.to = Math.min(end, Math.max(to, app.state.from + 1000));
    app.redraw();
  };
  app.move = d => app.select(app.state.from + d, app.state.to + d, true);
  app.zoom = (f, x) => { const t = app.state.from + x * (app.state.to - app.state.from); app.select(t - (t - app.state.from) * f, t + (app.state.to - t) * f); };
  app.pick = (t, more) => {
    const s = app.state.threads;
    if (!more) s.clear();
    if (more && s.has(t)) s.delete(t); else s.add(t);
    app.redraw();
  };
  app.selectSlice = (track, i) => {
    const t = trace.threads.find(t => t.index === track.thread[i]);
    if (t) { app.state.threads.clear(); app.state.threads.add(t); }
    const pad = Math.max(1000, (track.end[i] - track.start[i]) * 0.02);
    app.select(track.start[i] - pad, track.end[i] + pad);
    details([element("h3", {}, app.sliceName(track, i)), element("p", {}, track.name + ", " + duration(track.end[i] - track.start[i]) + " from " + duration(track.start[i])), trace.detail(track, i) ? element("p", {}, trace.detail(track, i)) : null]);
  };

  // Words about things.
  const TYPES = ["in managed code", "in native code or waiting", "on a CPU", "off the CPU", "unknown"];
  const HOWS = head.howTexts;
  app.sampleText = (t, i) => {
    const f = t.flags[i], how = f >> HOW;
    let s = "sample at " + duration(t.start[i]) + ": " + TYPES[f & 7] + ", " + trace.tree.depth[t.stack[i]] + " frames";
    if (f & CUT) s += how ? "; was cut: " + count(t.restored[i]) + " frames restored, " + HOWS[how - 1] + (head.hows[how - 1] === "bridge" ? "" : ", confidence " + t.confidence[i] + " %") : "; cut";
    return s;
  };
  app.explain = (t, i, m) => {
    const rows = [];
    if (i >= 0) {
      const f = t.flags[i], how = f >> HOW;
      rows.push(element("h3", {}, "Sample at " + duration(t.start[i])), element("p", {}, app.threadName(t) + ", " + TYPES[f & 7] + ", stands for " + duration(t.end[i] - t.start[i])));
      if (f & CUT) rows.push(element("dl", {}, ...[["Recorded", trace.tree.depth[how ? t.recorded[i] : t.stack[i]] + " frames, cut"],
        ["Now", how ? trace.tree.depth[t.stack[i]] + " frames, " + count(t.restored[i]) + " restored" + (t.above[i] ? " (" + t.above[i] + " of them behind the bridge)" : "") : "left as it was recorded"],
        how ? ["Evidence", HOWS[how - 1]] : null, how && head.hows[how - 1] !== "bridge" ? ["Confidence", t.confidence[i] + " %"] : null].filter(Boolean).flatMap(([k, v]) => [element("dt", {}, k), element("dd", {}, v)])));
      const list = element("ol", { class: "stack" }), path = [];
      for (let n = t.stack[i]; n; n = trace.tree.parent[n]) path.push(n);
      path.reverse().forEach((n, d) => {
        const front = how ? t.restored[i] - t.above[i] : 0, back = how && t.above[i] && d > front && d <= front + t.above[i];
        list.append(element("li", { class: d < front || back ? "restored" : trace.methods[trace.tree.method[n]] === LOST ? "lost" : null }, element("button", { onclick: () => app.explainMethod(trace.tree.method[n]) }, shortName(trace.methods[trace.tree.method[n]]))));
      });
      rows.push(element("button", { onclick: () => navigator.clipboard.writeText(path.map(n => trace.methods[trace.tree.method[n]]).reverse().join("\n")) }, "Copy the stack"), list);
    }
    details(rows, m);
  };
  app.explainMethod = m => {
    app.state.method = m;
    const s = app.sums(), name = s.names[m], by = s.methods(), module = moduleOf(name);
    details([element("h3", {}, name), element("p", {}, duration(by.total[m]) + " in all (" + percent(by.total[m], s.all) + " of the selection), " + duration(by.self[m]) + " itself"),
      element("p", { class: "acts" }, action("Callers and callees", () => { app.state.view = "around"; }), action(app.state.focus === m ? "End focus" : "Focus", () => { app.state.focus = app.state.focus === m ? null : m; }),
        module ? action("Hide " + module, () => app.state.hidden.add(module)) : null, module ? action("Merge " + module, () => app.state.merged.add(module)) : null)], m);
    if (app.state.view === "around") app.redraw();
  };
  function action(text, f) { return element("button", { onclick: () => { f(); app.redraw(); } }, text); }
  function details(rows) { $("details").replaceChildren(...rows.filter(Boolean)); }
  app.tip = (e, lines) => {
    const tip = $("tip");
    if (!e || !lines) { tip.style.display = "none"; return; }
    tip.replaceChildren(...lines.filter(Boolean).map((l, i) => element(i ? "small" : "b", {}, l)));
    tip.style.display = "block";
    tip.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = (e.clientY + 18 + tip.offsetHeight > innerHeight ? e.clientY - tip.offsetHeight - 8 : e.clientY + 18) + "px";
  };

  // Search: text, or /regular expression/.
  let hits = [], hit = -1;
  function search() {
    const q = app.state.query.trim();
    app.found = null; hits = []; hit = -1;
    if (q) {
      let test = name => name.toLowerCase().includes(q.toLowerCase());
      const re = q.match(/^\/(.+?)\/?$/);
      if (re) { try { const r = new RegExp(re[1], "i"); test = name => r.test(name); } catch { $("hits").textContent = "not a regular expression"; return; } }
      const s = app.sums(), by = s.methods();
      app.found = new Set();
      s.names.forEach((n, m) => { if (test(n)) { app.found.add(m); if (by.total[m]) hits.push(m); } });
      hits.sort((a, b) => by.total[b] - by.total[a]);
      // Time of stacks that hold any of them, each once.
      let time = 0; const inside = new Uint8Array(s.tree.size);
      for (let i = 1; i < s.tree.size; i++) { inside[i] = inside[s.tree.parent[i]] || (app.found.has(s.tree.method[i]) ? 1 : 0); if (inside[i]) time += s.self[i]; }
      $("hits").textContent = hits.length ? count(hits.length) + (hits.length === 1 ? " method, " : " methods, ") + duration(time) + ", " + percent(time, s.all) : "no such method here";
    } else $("hits").textContent = "";
  }
  function nextHit(step) { if (hits.length) { hit = (hit + step + hits.length) % hits.length; app.explainMethod(hits[hit]); $("hits").textContent = hit + 1 + " of " + count(hits.length) + ": " + shortName(app.sums().names[hits[hit]]); } }

  // Views, and drawing what is seen once a frame at most.
  const overview = makeOverview(app), tables = makeTables(app);
  const views = { time: makeTimeOrder(app), flame: makeFlame(app), ...tables };
  const onCanvas = () => app.state.view === "time" || app.state.view === "flame";
  let pending = false;
  app.redraw = () => { if (!pending) { pending = true; requestAnimationFrame(() => { pending = false; draw(); }); } };
  function draw() {
    const s = app.state;
    $("chart").hidden = !onCanvas(); $("table").hidden = onCanvas();
    for (const b of $("views").children) b.setAttribute("aria-selected", b.value === s.view);
    for (const b of $("kinds").children) b.setAttribute("aria-pressed", b.value === s.kind);
    overview.draw();
    views[s.view].draw();
    const lasting = s.to - s.from, threads = app.selectedThreads();
    $("selected").textContent = (threads.length === 1 ? app.threadName(threads[0]) : count(threads.length) + " threads") + ", " + duration(lasting) + " from " + duration(s.from);
    const rules = [];
    if (s.focus != null) rules.push(["focus: " + shortName(trace.methods[s.focus]), () => { s.focus = null; }]);
    for (const m of s.hidden) rules.push(["hidden: " + m, () => s.hidden.delete(m)]);
    for (const m of s.merged) rules.push(["merged: " + m, () => s.merged.delete(m)]);
    $("rules").replaceChildren(...rules.map(([t, f]) => element("button", { title: "take back", onclick: () => { f(); app.redraw(); } }, t + " ×")));
    remember();
  }

  // The state stands in the address, so that a link shows what one sees.
  let timer = 0;
  function remember() {
    clearTimeout(timer);
    timer = setTimeout(() => {
      const s = app.state, p = new URLSearchParams();
      p.set("view", s.view);
      p.set("threads", s.threads.size === trace.threads.length && s.threads.size > 1 ? "all" : app.selectedThreads().map(t => t.pid + "." + t.tid).join(","));
      if (s.from > 0 || s.to < end) p.set("time", Math.round(s.from) + "-" + Math.round(s.to));
      if (s.kind !== "all") p.set("kind", s.kind);
      if (s.query) p.set("find", s.query);
      if (s.recorded) p.set("recorded", "1");
      if (s.raw) p.set("raw", "1");
      if (s.recursion) p.set("recursion", "1");
      if (s.minConfidence) p.set("confidence", s.minConfidence);
      try { history.replaceState(null, "", "#" + p); } catch { /* a file:// page in a sandbox has no history */ }
    }, 150);
  }
  function recall() {
    const p = new URLSearchParams(location.hash.slice(1)), s = app.state;
    if (VIEWS.some(([v]) => v === p.get("view"))) s.view = p.get("view");
    const wanted = p.get("threads");
    if (wanted) {
      const list = wanted === "all" ? trace.threads : trace.threads.filter(t => wanted.split(",").includes(t.pid + "." + t.tid));
      if (list.length) s.threads = new Set(list);
    }
    const m = (p.get("time") || "").match(/^(\d+)-(\d+)$/);
    if (m && +m[2] > +m[1]) { s.from = Math.min(+m[1], end - 1000); s.to = Math.min(end, +m[2]); }
    if (["cpu", "wait"].includes(p.get("kind"))) s.kind = p.get("kind");
    s.query = p.get("find") || ""; s.recorded = p.has("recorded"); s.raw = p.has("raw"); s.recursion = p.has("recursion");
    s.minConfidence = Math.max(0, Math.min(100, +p.get("confidence") || 0));
  }

  // Export of the selection.
  function save(name, type, content) { const a = element("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) }); a.click(); setTimeout(() => URL.revokeObjectURL(a.href), 1000); }
  const stem = head.title.replace(/\.[^.]*$/, "") || "trace";
  const exports = {
    folded: () => { const s = app.sums(); save(stem + ".folded", "text/plain", folded(s.tree, s.self, s.names)); },
    speedscope: () => { const s = app.sums(); save(stem + ".speedscope.json", "application/json", speedscopeOf(s.tree, s.self, s.names, head.title)); },
    png: () => $("chart").toBlob(b => save(stem + ".png", "image/png", b)),
    svg: () => save(stem + ".svg", "image/svg+xml", flameSVG(app)),
  };

  // The page around the views.
  if (!trace.tracks.length) VIEWS.pop(); // the last one shows tracks
  $("title").textContent = head.title;
  $("facts").textContent = head.facts.join(" · ");
  if (head.notes.length) $("notes").replaceChildren(...head.notes.map(n => element("p", {}, "⚠ " + n))); else $("notes").hidden = true;
  for (const [v, name] of VIEWS) $("views").append(element("button", { role: "tab", value: v, onclick: () => { app.state.view = v; app.redraw(); } }, name));
  for (const [k, name] of [["all", "All time"], ["cpu", "CPU"], ["wait", "Waiting"]]) $("kinds").append(element("button", { value: k, onclick: () => { app.state.kind = k; all = 0; search(); app.redraw(); } }, name));
  const believe = () => { search(); app.redraw(); };
  if (head.hows.length) {
    $("recorded").onchange = e => { app.state.recorded = e.target.checked; believe(); };
    $("confidence").oninput = e => { app.state.minConfidence = +e.target.value; $("confidenceText").textContent = e.target.value + " %"; believe(); };
    head.hows.forEach((h, i) => $("hows").append(element("label", {}, element("input", { type: "checkbox", checked: true, onchange: () => {
      const on = [...$("hows").querySelectorAll("input")].flatMap((b, k) => b.checked ? [k] : []);
      app.state.hows = on.length === head.hows.length ? null : new Set(on); believe();
    } }), HOWS[i])));
  } else $("repair").hidden = true;
  $("raw").onchange = e => { app.state.raw = e.target.checked; believe(); };
  $("polls").hidden = !head.polls.length;
  $("recursion").onchange = e => { app.state.recursion = e.target.checked; app.redraw(); };
  $("allThreads").onclick = () => { app.state.threads = new Set(trace.threads); app.redraw(); };
  $("allTime").onclick = () => app.select(0, end);
  $("export").onchange = e => { const f = exports[e.target.value]; e.target.value = ""; if (f) f(); };
  $("find").oninput = e => { app.state.query = e.target.value; search(); app.redraw(); };
  $("help").onclick = () => $("keys").showModal();

  const chart = $("chart");
  chart.addEventListener("wheel", e => { e.preventDefault(); const v = views[app.state.view]; if (v.wheel) v.wheel(e); }, { passive: false });
  chart.onpointerdown = e => { chart.setPointerCapture(e.pointerId); const v = views[app.state.view]; if (v.down) v.down(e); };
  chart.onpointermove = e => views[app.state.view].move(e);
  chart.onpointerup = e => { const v = views[app.state.view]; if (v.up) v.up(e); };
  chart.ondblclick = e => views[app.state.view].dbl(e);
  chart.onpointerleave = () => app.tip(null);
  addEventListener("keydown", e => {
    if (e.target === $("find")) { if (e.key === "Enter") nextHit(e.shiftKey ? -1 : 1); else if (e.key === "Escape") { e.target.value = ""; e.target.oninput(e); chart.focus(); } return; }
    if (e.target.tagName === "INPUT" || e.target.tagName === "SELECT" || e.ctrlKey || e.metaKey || e.altKey) return;
    const n = +e.key;
    if (e.key === "?") $("keys").showModal();
    else if (e.key === "/") { e.preventDefault(); $("find").focus(); }
    else if (n >= 1 && n <= VIEWS.length) { app.state.view = VIEWS[n - 1][0]; app.redraw(); }
    else if (e.key === "0") app.select(0, end);
    else if (e.key === "n") nextHit(1); else if (e.key === "N") nextHit(-1);
    else if (e.key === "r" && head.hows.length) { app.state.recorded = $("recorded").checked = !app.state.recorded; believe(); }
    else if (e.key === "[" || e.key === "]") { const list = trace.threads, i = list.findIndex(t => app.state.threads.has(t)); if (list.length) app.pick(list[(i + (e.key === "]" ? 1 : list.length - 1)) % list.length]); }
    else if (e.target === chart || e.target === document.body) { const v = views[app.state.view]; if (v.key && v.key(e)) e.preventDefault(); }
  });
  addEventListener("resize", app.redraw);
  addEventListener("hashchange", () => { recall(); search(); app.redraw(); });
  dark.onchange = () => { hatches = {}; overview.forget(); app.redraw(); };

  // It opens on what matters: what of the busiest process was cut most, else what worked most.
  const most = trace.threads.reduce((a, t) => !a || t.cut - a.cut || t.busy - a.busy || t.samples - a.samples > 0 ? (a && (t.cut < a.cut || t.cut === a.cut && (t.busy < a.busy || t.busy === a.busy && t.samples <= a.samples)) ? a : t) : a, null);
  if (most) app.state.threads.add(most);
  if (!trace.threads.length) app.state.view = "tracks";
  recall();
  $("find").value = app.state.query; $("recorded").checked = app.state.recorded; $("recursion").checked = app.state.recursion; $("raw").checked = app.state.raw;
  $("confidence").value = app.state.minConfidence; $("confidenceText").textContent = app.state.minConfidence + " %";
  search();
  draw();
  window.tracefix = app; // for tests, and for who wants to look
}

// flameSVG draws the flame graph of the selection as a picture that stands alone.
function flameSVG(app) {
  const s = app.sums(), W = 1200, out = [], stack = [[0, -1, 0, W]];
  let deepest = 0;
  while (stack.length) {
    const [n, d, x, w] = stack.pop();
    if (n) {
      deepest = Math.max(deepest, d);
      const name = s.names[s.tree.method[n]], [h, l] = s.colour(s.tree.method[n]), chars = Math.floor((w - 6) / 6.6);
      out.push(`<g><title>${escapeText(name)} (${duration(s.total[n])}, ${percent(s.total[n], s.all)})</title><rect x="${x.toFixed(1)}" y="${d * ROW}" width="${Math.max(0.3, w - 0.5).toFixed(1)}" height="${ROW - 1}" fill="hsl(${h},58%,${80 + l}%)"/>${chars > 3 ? `<text x="${(x + 4).toFixed(1)}" y="${d * ROW + 13}">${escapeText(shortName(name).slice(0, chars))}</text>` : ""}</g>`);
    }
    let at = x;
    for (const k of s.kids(n)) { const width = s.total[k] / s.total[n] * w; if (width < 0.3) break; stack.push([k, d + 1, at, width]); at += width; }
  }
  return `<svg xmlns="http:` + `//www.w3.org/2000/svg" width="${W}" height="${(deepest + 1) * ROW}" font-family="sans-serif" font-size="11">${out.join("")}</svg>`;
}
start();
