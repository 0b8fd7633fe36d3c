// main.js: what is selected, and the views of it.

const VIEWS = [["flame", "Flame graph"], ["time", "Time order"], ["tree", "Top down"], ["inverted", "Inverted"], ["methods", "Methods"], ["around", "Callers, callees"], ["tracks", "Threads, tracks"], ["limits", "Damage, limits"]];
const IN_WORDS = { flame: "tree", time: "samples" }; // the tables that tell what a picture does

function start() {
  const trace = load(id => $(id).textContent), head = trace.head, end = Math.max(head.end, 1);
  for (const id of ["nodes", "samples", "slices", "work"]) $(id).remove();
  let colour = palette(trace.methods);
  const label = labels(trace.methods);
  const app = {
    trace, label, found: null, shown: null, // the sample that the panel explains
    colour: (m, faded) => colour(m, faded),
    state: { threads: new Set(), from: 0, to: end, view: "flame", kind: "all", recorded: false, raw: false, minConfidence: 0, hows: null, query: "", recursion: false, hidden: new Set(), merged: new Set(), focus: null, method: null, request: 0, zoom: 0, words: false },
    threadName: t => (t.name ? t.name + " (" + t.tid + ")" : "Thread " + t.tid) + (head.processes > 1 ? " of " + (t.process || t.pid) : ""),
    sliceName: (track, i) => head.names[track.name[i]],
    selectedThreads: () => trace.threads.filter(t => app.state.threads.has(t)),
    beliefs: () => [app.state.recorded, app.state.raw, app.state.minConfidence, app.state.hows ? [...app.state.hows].join() : "*"].join("/"),
    choice: () => ({ threads: app.selectedThreads(), from: app.state.from, to: app.state.to, kind: app.state.kind, recorded: app.state.recorded, raw: app.state.raw, minConfidence: app.state.minConfidence, hows: app.state.hows, request: app.state.request }),
    // marks are what is missing, in time: lanes of the overview by their name.
    marks: { "events lost": head.losses.map(l => ({ from: l.from, to: l.to, text: () => app.lossText(l) })), damage: head.damage.filter(d => d.at >= 0).map(d => ({ from: d.at, to: d.at, text: () => d.where + " at byte " + count(d.offset) + ": " + d.what + "; read up to " + duration(d.at) })) },
    lossOwner: l => l.thread < 0 ? "any thread" : app.threadName(head.threads[l.thread]),
    lossText: l => (l.events ? count(l.events) + (l.events === 1 ? " event" : " events") : "events") + " of " + app.lossOwner(l) + " lost between " + duration(l.from) + " and " + duration(l.to),
  };

  // sums are the selection added up, kept until something changes. What is summed next takes the place
  // of what was.
  const copyOf = (a, old) => { if (!old || old.length !== a.length) return a.slice(); old.set(a); return old; };
  let sumKey = "", sum = null, weighed = null, shapeKey = "", shape = null, shapeColour = null, shapeLabel = null, all = 0;
  app.sums = () => {
    const s = app.state, rule = [s.recursion, [...s.hidden].join(), [...s.merged].join(), s.focus].join("|"), choice = app.choice(), key = [choice.threads.map(t => t.index).join(), s.from, s.to, s.kind, s.request, app.beliefs(), rule, dark.matches].join("/");
    if (key === sumKey) return sum;
    if (rule !== shapeKey) {
      shape = s.recursion || s.hidden.size || s.merged.size || s.focus != null ? reshape(trace.tree, { recursion: s.recursion, hidden: s.hidden, merged: s.merged, focus: s.focus, methods: trace.methods }) : null;
      shapeColour = shape && palette(shape.names); shapeLabel = shape && labels(shape.names);
      if (shapeKey) views.flame.forget(); // its frames are others now
      shapeKey = rule;
    }
    const w = weighed = weigh(trace, choice, weighed), tree = shape ? shape.tree : trace.tree, names = shape ? shape.names : trace.methods;
    const self = shape ? carry(shape, w.self) : w.self, marked = head.hows.length ? totals(tree, shape ? carry(shape, w.marked) : copyOf(w.marked, sum && sum.marked)) : w.marked, total = totals(tree, copyOf(self, sum && sum.total));
    let methods = null;
    sum = { tree, names, self, total, marked, all: total[0], kids: kids(tree, total), colour: shape ? shapeColour : app.colour, label: shape ? shapeLabel : label, methods: () => methods ||= byMethod(tree, self, total, names.length) };
    sumKey = key;
    return sum;
  };
  app.everything = () => { if (!all) for (const t of trace.threads) for (let i = 0; i < t.samples; i++) if (app.state.kind === "all" || busy(t.flags[i]) === (app.state.kind === "cpu")) all += t.end[i] - t.start[i]; return all; };

  // What changes the selection.
  app.select = (from, to, keep) => {
    const span = Math.max(1000, Math.min(end, to - from));
    if (keep) { from = Math.max(0, Math.min(from, end - span)); to = from + span; }
    app.state.from = Math.round(Math.max(0, Math.min(from, end - 1000))); app.state.to = Math.round(Math.min(end, Math.max(to, app.state.from + 1000)));
    app.redraw();
  };
  app.move = d => app.select(app.state.from + d, app.state.to + d, true);
  app.zoom = (f, x) => { const t = app.state.from + x * (app.state.to - app.state.from); app.select(t - (t - app.state.from) * f, t + (app.state.to - t) * f); };
  app.show = view => { app.state.view = view; app.redraw(); };
  app.pick = (t, more) => {
    const s = app.state.threads;
    if (!more) s.clear();
    if (more && s.has(t)) s.delete(t); else s.add(t);
    app.say(app.threadName(t) + (s.has(t) ? " selected" : " taken away"));
    app.redraw();
  };
  // selectSlice selects the time of what a track shows, and the threads that it is about: that it happened
  // on, or that worked for the request.
  app.selectSlice = (track, i) => {
    const from = track.start[i], to = track.end[i], request = track.request[i], on = trace.threads.filter(t => t.index === track.thread[i] || request && t.work.some(w => w[2] === request && w[0] <= to && w[1] >= from));
    if (on.length) app.state.threads = new Set(on);
    app.state.request = 0;
    const pad = Math.max(1000, (to - from) * 0.02);
    app.select(from - pad, to + pad);
    const worked = request && trace.threads.some(t => t.work.some(w => w[2] === request));
    details([element("h3", {}, app.sliceName(track, i)), element("p", {}, track.title + ", " + duration(to - from) + " from " + duration(from)), trace.detail(track, i) ? element("p", {}, trace.detail(track, i)) : null,
      worked ? element("p", { class: "acts" }, action("Only the stacks of this request", () => { app.state.request = request; })) : request ? element("p", { class: "hint" }, "The trace does not tell which threads worked for it; the selection is its time.") : null]);
  };
  // selectRequest selects a request by its number in `tracefix http`.
  app.selectRequest = id => {
    for (const track of trace.tracks) { const i = track.request.indexOf(id); if (i >= 0) { app.selectSlice(track, i); if (trace.threads.some(t => t.work.some(w => w[2] === id))) app.state.request = id; return; } }
    app.say("No request has the number " + id + ".");
  };

  // Words about things.
  const TYPES = ["in managed code", "in native code or waiting", "on a CPU", "off the CPU", "unknown"];
  const HOWS = head.howTexts;
  app.say = text => { $("said").textContent = text; };
  app.kindText = (t, i) => TYPES[t.flags[i] & 7];
  app.sampleText = (t, i) => {
    const f = t.flags[i], how = f >> HOW;
    let s = "sample at " + duration(t.start[i]) + ": " + TYPES[f & 7] + ", " + count(trace.tree.depth[t.stack[i]]) + " frames";
    if (f & CUT) s += how ? "; was cut: " + count(t.restored[i]) + " frames restored, " + HOWS[how - 1] + (head.hows[how - 1] === "bridge" ? "" : ", confidence " + t.confidence[i] + " %") : "; cut";
    return s;
  };
  const pathOf = (tree, n) => { const path = []; for (; n; n = tree.parent[n]) path.push(n); return path.reverse(); };
  let copied = () => ""; // what the key c copies
  const copy = () => { const text = copied(); if (text) { const done = () => app.say("The stack was copied."); if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, () => byHand(text)); else byHand(text); } };
  function byHand(text) { const a = element("textarea", {}); a.value = text; document.body.append(a); a.select(); document.execCommand("copy"); a.remove(); app.say("The stack was copied."); }
  app.explain = (t, i) => {
    const f = t.flags[i], how = f >> HOW, bridge = how && head.hows[how - 1] === "bridge", path = pathOf(trace.tree, t.stack[i]), names = path.map(n => trace.methods[trace.tree.method[n]]);
    const rows = [element("h3", {}, "Sample at " + duration(t.start[i])), element("p", {}, app.threadName(t) + ", " + TYPES[f & 7] + ", stands for " + duration(t.end[i] - t.start[i]))];
    app.shown = { thread: t, sample: i };
    if (f & CUT) {
      const facts = [["Recorded", count(trace.tree.depth[how ? t.recorded[i] : t.stack[i]]) + " frames, cut"],
        ["Now", how ? count(trace.tree.depth[t.stack[i]]) + " frames, " + count(t.restored[i]) + " restored" + (t.above[i] ? " (" + count(t.above[i]) + " of them behind the bridge)" : "") : "left as it was recorded"]];
      if (how) facts.push(["Evidence", HOWS[how - 1]]);
      if (how && !bridge) facts.push(["Confidence", t.confidence[i] + " %"]);
      const seen = how ? witness(trace, t, i) : null;
      if (seen) facts.push(["Witness", element("span", {}, element("button", { onclick: () => { const { thread, sample } = seen; app.state.threads.add(thread); if (thread.start[sample] < app.state.from || thread.end[sample] > app.state.to) app.select(thread.start[sample] - 5e6, thread.end[sample] + 5e6); app.explain(thread, sample); app.redraw(); } }, "sample at " + duration(seen.thread.start[seen.sample])),
        " of " + (seen.thread === t ? "this thread" : app.threadName(seen.thread)) + ": the nearest that was recorded whole and has the same outer frames, down to " + shortName(trace.methods[trace.tree.method[seen.at]]) + "; " + count(seen.found) + " have them")]);
      else if (how && t.restored[i] > t.above[i]) facts.push(["Witness", "no stack that was recorded whole has just these outer frames: they were put together from several"]);
      rows.push(element("dl", {}, ...facts.flatMap(([k, v]) => [element("dt", {}, k), element("dd", {}, v)])));
    }
    copied = () => names.slice().reverse().join("\n");
    rows.push(element("button", { onclick: copy }, "Copy the stack (c)"), element("ol", { class: "stack" }, ...path.map((n, d) => {
      const front = how ? t.restored[i] - t.above[i] : 0, back = how && t.above[i] && d > front && d <= front + t.above[i];
      return element("li", { class: d < front || back ? "restored" : names[d] === LOST ? "lost" : null, title: d < front || back ? "restored: " + names[d] : names[d] }, element("button", { onclick: () => app.explainMethod(trace.tree.method[n]) }, shortName(names[d])));
    })));
    details(rows);
    remember();
  };
  app.explainMethod = (m, node) => {
    app.state.method = m; app.shown = null;
    const s = app.sums(), name = s.names[m], by = s.methods(), module = moduleOf(name), path = node ? pathOf(s.tree, node).map(n => s.names[s.tree.method[n]]) : [name];
    copied = () => path.slice().reverse().join("\n");
    details([element("h3", {}, name), node ? element("p", {}, "Here: " + duration(s.total[node]) + " in all (" + percent(s.total[node], s.all) + " of the selection, " + percent(s.total[node], app.everything()) + " of the trace), " + duration(s.self[node]) + " itself" + (s.marked[node] ? "; " + percent(s.marked[node], s.total[node]) + (app.state.recorded ? " of it is moved by the repair" : " of it restored") : "")) : null,
      element("p", {}, (node ? "Everywhere: " : "") + duration(by.total[m]) + " in all (" + percent(by.total[m], s.all) + " of the selection, " + percent(by.total[m], app.everything()) + " of the trace), " + duration(by.self[m]) + " itself"),
      element("p", { class: "acts" }, action("Callers and callees", () => { app.state.view = "around"; }), m < trace.methods.length ? action(app.state.focus === m ? "End focus" : "Focus", () => { app.state.focus = app.state.focus === m ? null : m; }) : null,
        module ? action("Hide " + module, () => app.state.hidden.add(module)) : null, module ? action("Merge " + module, () => app.state.merged.add(module)) : null, node ? element("button", { onclick: copy }, "Copy the stack (c)") : null)]);
    if (app.state.view === "around") app.redraw(); else remember();
  };
  app.explainNode = n => app.explainMethod(app.sums().tree.method[n], n);
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

  // Search: text, or /regular expression/. The hits are those of the selection.
  let hits = [], hit = -1, searched = "";
  const MOST_HITS = 200;
  function search(list) {
    const q = app.state.query.trim(), key = q && q + "\n" + (app.sums(), sumKey);
    if (key === searched) return;
    const hadQuery = searched && searched.split("\n")[0] === q, chosen = hits[hit];
    searched = key; app.found = null; hits = []; hit = -1;
    if (!q) { $("hits").textContent = ""; return; }
    let test = name => name.toLowerCase().includes(q.toLowerCase());
    const re = q.match(/^\/(.+?)\/?$/);
    if (re) { try { const r = new RegExp(re[1], "i"); test = name => r.test(name); } catch { $("hits").textContent = "not a regular expression"; return; } }
    const s = app.sums(), by = s.methods();
    app.found = new Set();
    s.names.forEach((n, m) => { if (test(n)) { app.found.add(m); if (by.total[m]) hits.push(m); } });
    hits.sort((a, b) => by.total[b] - by.total[a]);
    if (hadQuery) hit = hits.indexOf(chosen);
    // Time of stacks that hold any of them, each once.
    let time = 0; const inside = new Uint8Array(s.tree.size);
    for (let i = 1; i < s.tree.size; i++) { inside[i] = inside[s.tree.parent[i]] || (app.found.has(s.tree.method[i]) ? 1 : 0); if (inside[i]) time += s.self[i]; }
    $("hits").textContent = hits.length ? count(hits.length) + (hits.length === 1 ? " method, " : " methods, ") + duration(time) + ", " + percent(time, s.all) : "no such method here";
    if (list) details([element("h3", {}, hits.length > MOST_HITS ? "The first " + MOST_HITS + " hits" : "Hits"), element("ol", { class: "stack", id: "hitlist" }, ...hits.slice(0, MOST_HITS).map((m, k) => element("li", {}, element("button", { title: s.names[m], onclick: () => { hit = k; app.explainMethod(m); } }, shortName(s.names[m]), element("small", {}, " " + duration(by.total[m]) + ", " + percent(by.total[m], s.all))))))]);
  }
  function nextHit(step) { if (hits.length) { hit = (hit + step + hits.length) % hits.length; app.explainMethod(hits[hit]); $("hits").textContent = count(hit + 1) + " of " + count(hits.length) + ": " + shortName(app.sums().names[hits[hit]]); } }

  // Views, and drawing what is seen once a frame at most.
  const overview = makeOverview(app), views = { time: makeTimeOrder(app), flame: makeFlame(app), ...makeTables(app) };
  app.spans = views.time.spans; // how many the selected threads have
  const drawn = () => app.state.words && IN_WORDS[app.state.view] || app.state.view, onCanvas = () => drawn() === "time" || drawn() === "flame";
  let pending = false;
  app.redraw = () => { if (!pending) { pending = true; requestAnimationFrame(() => { pending = false; draw(); }); } };
  function draw() {
    const s = app.state;
    $("chart").hidden = !onCanvas(); $("table").hidden = onCanvas();
    for (const b of $("views").children) { b.setAttribute("aria-selected", b.value === s.view); b.tabIndex = b.value === s.view ? 0 : -1; }
    for (const b of $("kinds").children) b.setAttribute("aria-pressed", b.value === s.kind);
    $("words").hidden = !IN_WORDS[s.view]; $("words").setAttribute("aria-pressed", s.words);
    search();
    overview.draw();
    views[drawn()].draw();
    const threads = app.selectedThreads();
    $("selected").textContent = (threads.length === 1 ? app.threadName(threads[0]) : count(threads.length) + " threads") + ", " + duration(s.to - s.from) + " from " + duration(s.from);
    const rules = [];
    if (s.request) rules.push(["request " + s.request, () => { s.request = 0; }]);
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
      const s = app.state, p = new URLSearchParams(), set = (k, v) => { if (v) p.set(k, v === true ? "1" : v); };
      set("view", s.view);
      set("threads", s.threads.size === trace.threads.length && s.threads.size > 1 ? "all" : app.selectedThreads().map(t => t.pid + "." + t.tid).join(","));
      if (s.from > 0 || s.to < end) set("time", s.from + "-" + s.to);
      if (s.kind !== "all") set("kind", s.kind);
      set("find", s.query); set("recorded", s.recorded); set("raw", s.raw); set("recursion", s.recursion); set("table", s.words); set("request", s.request); set("zoom", s.zoom); set("confidence", s.minConfidence);
      if (s.hows) p.set("evidence", [...s.hows].map(h => head.hows[h]).join(","));
      if (s.focus != null) set("focus", trace.methods[s.focus]);
      if (s.method != null) set("method", trace.methods[s.method]);
      set("hide", [...s.hidden].join(",")); set("merge", [...s.merged].join(","));
      if (app.shown) set("sample", app.shown.thread.index + "." + app.shown.sample);
      try { history.replaceState(null, "", "#" + p); } catch { /* a file:// page in a sandbox has no history */ }
    }, 150);
  }
  function recall() {
    const p = new URLSearchParams(location.hash.slice(1)), s = app.state, list = k => (p.get(k) || "").split(",").filter(Boolean), method = k => { const m = trace.methods.indexOf(p.get(k)); return m < 0 ? null : m; };
    if (VIEWS.some(([v]) => v === p.get("view"))) s.view = p.get("view");
    const wanted = p.get("threads");
    if (wanted) {
      const found = wanted === "all" ? trace.threads : trace.threads.filter(t => wanted.split(",").includes(t.pid + "." + t.tid));
      if (found.length) s.threads = new Set(found);
    }
    const request = +p.get("request") || 0, m = (p.get("time") || "").match(/^(\d+)-(\d+)$/);
    s.request = request;
    if (request && !m) app.selectRequest(request);
    if (m && +m[2] > +m[1]) { s.from = Math.min(+m[1], Math.max(0, end - 1000)); s.to = Math.min(end, +m[2]); }
    if (["cpu", "wait"].includes(p.get("kind"))) s.kind = p.get("kind");
    s.query = p.get("find") || ""; s.recorded = p.has("recorded"); s.raw = p.has("raw"); s.recursion = p.has("recursion"); s.words = p.has("table");
    s.minConfidence = Math.max(0, Math.min(100, +p.get("confidence") || 0));
    s.hows = p.has("evidence") ? new Set(list("evidence").map(h => head.hows.indexOf(h)).filter(h => h >= 0)) : null;
    s.focus = method("focus"); s.method = method("method"); s.hidden = new Set(list("hide")); s.merged = new Set(list("merge"));
    const [t, i] = (p.get("sample") || "").split(".").map(Number), thread = trace.threads.find(x => x.index === t);
    if (thread && i >= 0 && i < thread.samples) app.explain(thread, i);
    else if (s.method != null && !request) app.explainMethod(s.method);
    app.sums(); // which forgets a zoom into frames that are others now
    s.zoom = Math.max(0, +p.get("zoom") || 0) | 0;
    $("find").value = s.query; $("recorded").checked = s.recorded; $("recursion").checked = s.recursion; $("raw").checked = s.raw;
    $("confidence").value = s.minConfidence; $("confidenceText").textContent = s.minConfidence + " %";
    $("hows").querySelectorAll("input").forEach((b, k) => { b.checked = !s.hows || s.hows.has(k); });
  }

  // Export of the selection.
  function save(name, type, content) { app.saved = { name, type, content }; const a = element("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) }); a.click(); setTimeout(() => URL.revokeObjectURL(a.href), 1000); }
  const stem = head.title.replace(/\.[^.]*$/, "") || "trace", picture = () => views[s2()].svg(), s2 = () => app.state.view === "time" ? "time" : "flame";
  app.exports = {
    folded: () => { const s = app.sums(); save(stem + ".folded", "text/plain", folded(s.tree, s.self, s.names)); },
    speedscope: () => { const s = app.sums(); save(stem + ".speedscope.json", "application/json", speedscopeOf(s.tree, s.self, s.names, head.title)); },
    svg: () => save(stem + ".svg", "image/svg+xml", picture()),
    png: () => {
      const svg = picture(), image = new Image(), size = svg.match(/width="([\d.]+)" height="([\d.]+)"/);
      image.onload = () => { const c = element("canvas", { width: size[1], height: size[2] }); c.getContext("2d").drawImage(image, 0, 0); c.toBlob(b => save(stem + ".png", "image/png", b)); };
      image.src = "data:image/svg+xml," + encodeURIComponent(svg);
    },
  };

  // The page around the views.
  $("title").textContent = head.title;
  $("facts").textContent = head.facts.join(" · ");
  if (head.notes.length) $("notes").replaceChildren(...head.notes.map(n => element("p", {}, "⚠ " + n)), element("button", { onclick: () => app.show("limits") }, "Show what is missing")); else $("notes").hidden = true;
  for (const [v, name] of VIEWS) $("views").append(element("button", { role: "tab", value: v, onclick: () => app.show(v) }, name));
  $("views").onkeydown = e => { const d = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0, i = VIEWS.findIndex(([v]) => v === app.state.view) + d; if (d && VIEWS[i]) { app.show(VIEWS[i][0]); $("views").children[i].focus(); e.stopPropagation(); } };
  for (const [k, name] of [["all", "All time"], ["cpu", "CPU"], ["wait", "Waiting"]]) $("kinds").append(element("button", { value: k, onclick: () => { app.state.kind = k; all = 0; app.redraw(); } }, name));
  if (head.hows.length) {
    $("recorded").onchange = e => { app.state.recorded = e.target.checked; app.redraw(); };
    $("confidence").oninput = e => { app.state.minConfidence = +e.target.value; $("confidenceText").textContent = e.target.value + " %"; app.redraw(); };
    head.hows.forEach((h, i) => $("hows").append(element("label", {}, element("input", { type: "checkbox", checked: true, onchange: () => {
      const on = [...$("hows").querySelectorAll("input")].flatMap((b, k) => b.checked ? [k] : []);
      app.state.hows = on.length === head.hows.length ? null : new Set(on); app.redraw();
    } }), " " + HOWS[i])));
  } else $("repair").hidden = true;
  $("raw").onchange = e => { app.state.raw = e.target.checked; app.redraw(); };
  $("polls").hidden = !head.polls.length;
  $("recursion").onchange = e => { app.state.recursion = e.target.checked; app.redraw(); };
  const turn = () => { app.state.words = !app.state.words; app.redraw(); };
  $("words").onclick = turn;
  $("allThreads").onclick = () => { app.state.threads = new Set(trace.threads); app.redraw(); };
  $("allTime").onclick = () => { app.state.request = 0; app.select(0, end); };
  $("export").onchange = e => { const f = app.exports[e.target.value]; e.target.value = ""; if (f) f(); };
  $("find").oninput = e => { app.state.query = e.target.value; search(true); app.redraw(); };
  $("help").onclick = () => $("keys").showModal();

  const chart = $("chart"), view = () => views[app.state.view];
  chart.addEventListener("wheel", e => { e.preventDefault(); view().wheel(e); }, { passive: false });
  chart.onpointerdown = e => { chart.setPointerCapture(e.pointerId); if (view().down) view().down(e); };
  chart.onpointermove = e => view().move(e);
  chart.onpointerup = e => view().up(e);
  chart.ondblclick = e => view().dbl(e);
  chart.onpointerleave = () => app.tip(null);
  addEventListener("keydown", e => {
    if (e.target === $("find")) { if (e.key === "Enter") nextHit(e.shiftKey ? -1 : 1); else if (e.key === "Escape") { e.target.value = ""; e.target.oninput(e); chart.focus(); } return; }
    if (e.target.tagName === "INPUT" && e.target.type !== "checkbox" || e.target.tagName === "SELECT" || e.ctrlKey || e.metaKey || e.altKey || $("keys").open) return;
    const n = +e.key;
    if (e.key === "?") $("keys").showModal();
    else if (e.key === "/") { e.preventDefault(); $("find").focus(); }
    else if (n >= 1 && n <= VIEWS.length) app.show(VIEWS[n - 1][0]);
    else if (e.key === "0") $("allTime").onclick();
    else if (e.key === "A") $("allThreads").onclick();
    else if (e.key === "n") nextHit(1); else if (e.key === "N") nextHit(-1);
    else if (e.key === "c") copy(); else if (e.key === "t") turn();
    else if (e.key === "k") { const kinds = ["all", "cpu", "wait"]; $("kinds").children[(kinds.indexOf(app.state.kind) + 1) % 3].onclick(); }
    else if (e.key === "o") { cursorToOverview(); e.preventDefault(); }
    else if (e.key === "r" && head.hows.length) { app.state.recorded = $("recorded").checked = !app.state.recorded; app.redraw(); }
    else if (e.key === "[" || e.key === "]") { const list = trace.threads, i = list.findIndex(t => app.state.threads.has(t)); if (list.length) app.pick(list[(i + (e.key === "]" ? 1 : list.length - 1)) % list.length]); }
    else if ((e.target === chart || e.target === document.body) && onCanvas() && view().key(e)) e.preventDefault();
  });
  const cursorToOverview = () => $("overview").focus();
  addEventListener("resize", app.redraw);
  addEventListener("hashchange", () => { recall(); app.redraw(); });
  dark.onchange = () => { hatches = {}; colour = palette(trace.methods); shapeKey = "-"; overview.forget(); app.redraw(); };

  // It opens on what matters: what of the user's process was cut most, else what worked most.
  const better = (a, b) => a.cut - b.cut || a.busy - b.busy || a.samples - b.samples, most = trace.threads.reduce((a, t) => !a || better(t, a) > 0 ? t : a, null);
  if (most) app.state.threads.add(most);
  if (!trace.threads.length) app.state.view = "tracks";
  recall();
  draw();
  performance.mark("drawn");
  window.tracefix = app; // for tests, and for who wants to look
}
start();
