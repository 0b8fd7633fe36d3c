// address.js: the state stands in the address, so that a link shows what one sees.

function makeAddress(app) {
  const { trace, end } = app, { head, methods } = trace, s = app.state;
  const flags = { recorded: "recorded", raw: "raw", recursion: "recursion", table: "words" }; // in the address, in the state
  // Two processes may have had one number: such threads have their index behind it.
  const plain = t => t.pid + "." + t.tid, first = new Map(trace.threads.map(t => [plain(t), t])), twins = new Set(trace.threads.filter(t => first.get(plain(t)) !== t).map(plain));
  const own = t => plain(t) + (twins.has(plain(t)) ? "." + t.index : "");
  let timer = 0;
  app.remember = () => {
    clearTimeout(timer);
    timer = setTimeout(() => { try { history.replaceState(null, "", "#" + written()); } catch { /* a file:// page in a sandbox has no history */ } }, 150);
  };
  function written() {
    const p = new URLSearchParams(), set = (k, v) => { if (v) p.set(k, v); };
    set("view", s.view);
    set("threads", !s.threads.size && trace.threads.length ? "none" : s.threads.size === trace.threads.length && s.threads.size > 1 ? "all" : app.selectedThreads().map(own).join(","));
    if (s.from > 0 || s.to < end) set("time", s.from + "-" + s.to);
    if (s.kind !== "all") set("kind", s.kind);
    for (const k in flags) set(k, s[flags[k]] && "1");
    set("find", s.query); set("request", s.request); set("zoom", s.zoom); set("confidence", s.minConfidence);
    if (s.hows) p.set("evidence", [...s.hows].map(h => head.hows[h]).join(","));
    if (s.focus != null) set("focus", methods[s.focus]);
    if (s.method != null) set("method", methods[s.method]);
    for (const m of s.hidden) p.append("hide", m);
    for (const m of s.merged) p.append("merge", m);
    if (app.shown) set("sample", app.shown.thread.index + "." + app.shown.sample);
    return p;
  }
  app.recall = () => {
    const p = new URLSearchParams(location.hash.slice(1)), list = k => (p.get(k) || "").split(",").filter(Boolean), method = k => { const m = methods.indexOf(p.get(k)); return m < 0 ? null : m; };
    // named are modules. Links of old hold them in one, with commas between them; modules may have commas, too.
    const named = k => { const all = p.getAll(k), whole = all.length && new Set(methods.map(moduleOf)); return new Set(all.flatMap(v => whole.has(v) ? [v] : v.split(",").filter(Boolean))); };
    app.begin(); // what the address does not tell is as on a page that was just opened
    app.noDetails();
    if (VIEWS.some(([v]) => v === p.get("view"))) s.view = p.get("view");
    const request = +p.get("request") || 0, m = (p.get("time") || "").match(/^(\d+)-(\d+)$/), known = request && (m ? app.knows(request) : app.selectRequest(request));
    if (m) s.request = known ? request : 0;
    const wanted = new Set(list("threads")), found = wanted.has("all") ? trace.threads : trace.threads.filter(t => wanted.has(own(t)) || wanted.has(plain(t)));
    if (found.length || wanted.has("none")) s.threads = new Set(found);
    if (m && +m[2] > +m[1]) { s.from = Math.min(+m[1], Math.max(0, end - 1000)); s.to = Math.min(end, +m[2]); }
    s.kind = KINDS.some(([k]) => k === p.get("kind")) ? p.get("kind") : "all";
    for (const k in flags) s[flags[k]] = p.has(k);
    s.query = p.get("find") || "";
    s.minConfidence = Math.max(0, Math.min(100, +p.get("confidence") || 0));
    s.hows = p.has("evidence") ? new Set(list("evidence").map(h => head.hows.indexOf(h)).filter(h => h >= 0)) : null;
    s.focus = method("focus"); s.method = method("method"); s.hidden = named("hide"); s.merged = named("merge");
    const [t, i] = (p.get("sample") || "").split(".").map(Number), thread = trace.threads.find(x => x.index === t);
    if (thread && i >= 0 && i < thread.samples) app.explain(thread, i);
    else if (s.method != null && !request) app.explainMethod(s.method);
    app.sums(); // which forgets a zoom into frames that are others now
    s.zoom = Math.max(0, +p.get("zoom") || 0) | 0;
  };
}
