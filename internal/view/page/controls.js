// controls.js: the header, the bar, and the keys.

const VIEWS = [["flame", "Flame graph"], ["time", "Time order"], ["tree", "Top down"], ["inverted", "Inverted"], ["methods", "Methods"], ["around", "Callers, callees"], ["tracks", "Threads, tracks"], ["limits", "Damage, limits"]];
const KINDS = [["all", "All time"], ["cpu", "CPU"], ["wait", "Waiting"]];
const IN_WORDS = { flame: "tree", time: "samples" }; // the tables that tell what a picture does
const AS_RUN = "Time order shows stacks as they ran";
const SWITCHES = ["recorded", "raw", "recursion"]; // boxes to check, of the same name in the state

function makeControls(app) {
  const { trace } = app, { head } = trace, state = app.state, chart = $("chart"), view = () => app.views[state.view];
  const drawn = () => state.words && IN_WORDS[state.view] || state.view;
  app.drawnView = () => app.views[drawn()];
  app.onCanvas = () => ["time", "flame"].includes(drawn());

  // What stands there for good.
  $("title").textContent = head.title;
  $("facts").textContent = head.facts.join(" · ");
  if (head.notes.length) $("notes").replaceChildren(element("button", { onclick: () => app.show("limits") }, "Show what is missing"), ...head.notes.map(n => element("p", {}, "⚠ " + n))); else $("notes").hidden = true;
  if (!trace.threads.length) $("hint").textContent = "Click anything on a track to select its time.";
  for (const [v, name] of VIEWS) $("views").append(element("button", { role: "tab", value: v, onclick: () => app.show(v) }, name));
  $("views").onkeydown = e => { const d = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0, i = VIEWS.findIndex(([v]) => v === state.view) + d; if (d && VIEWS[i]) { app.show(VIEWS[i][0]); $("views").children[i].focus(); e.stopPropagation(); } };
  const setKind = k => { state.kind = k; app.redraw(); };
  for (const [k, name] of KINDS) $("kinds").append(element("button", { value: k, onclick: () => setKind(k) }, name));
  for (const id of SWITCHES) $(id).onchange = e => { state[id] = e.target.checked; app.redraw(); };
  $("repair").hidden = !head.hows.length;
  $("polls").hidden = !head.polls.length;
  $("confidence").oninput = e => { state.minConfidence = +e.target.value; app.redraw(); };
  const evidence = head.howTexts.map(text => element("input", { type: "checkbox", onchange: chooseEvidence }));
  $("hows").append(...evidence.map((box, i) => element("label", {}, box, " " + head.howTexts[i])));
  function chooseEvidence() {
    const on = evidence.flatMap((box, k) => box.checked ? [k] : []);
    state.hows = on.length === evidence.length ? null : new Set(on);
    app.redraw();
  }
  const turn = () => { state.words = !state.words; app.redraw(); };
  $("words").onclick = turn;
  $("allThreads").onclick = app.pickAll;
  $("allTime").onclick = app.selectAll;
  $("export").onchange = e => { const f = app.exports[e.target.value]; e.target.value = ""; if (f) f(); };
  $("find").oninput = e => { state.query = e.target.value; app.search(true); app.redraw(); };
  $("help").onclick = () => $("keys").showModal();

  // The menu of evidence closes by Escape and by a click elsewhere.
  const menu = document.querySelector("#repair details");
  menu.onkeydown = e => { if (e.key === "Escape" && menu.open) { menu.open = false; menu.firstElementChild.focus(); e.stopPropagation(); } };
  addEventListener("pointerdown", e => { if (!menu.contains(e.target)) menu.open = false; });

  // What follows the state.
  app.drawControls = () => {
    $("chart").hidden = !app.onCanvas(); $("table").hidden = app.onCanvas();
    for (const b of $("views").children) { b.setAttribute("aria-selected", b.value === state.view); b.tabIndex = b.value === state.view ? 0 : -1; }
    for (const b of $("kinds").children) b.setAttribute("aria-pressed", b.value === state.kind);
    for (const id of SWITCHES) $(id).checked = state[id];
    const asRun = state.view === "time"; // there stacks are what they were: what makes other trees of them does not act
    $("recursion").disabled = asRun;
    $("recursion").parentNode.title = asRun ? AS_RUN : "";
    if (document.activeElement !== $("find")) $("find").value = state.query;
    $("confidence").value = state.minConfidence; $("confidenceText").textContent = state.minConfidence + " %";
    evidence.forEach((box, k) => { box.checked = !state.hows || state.hows.has(k); });
    $("words").hidden = !IN_WORDS[state.view]; $("words").setAttribute("aria-pressed", state.words);
    const threads = app.selectedThreads();
    $("selected").textContent = (threads.length === 1 ? app.threadName(threads[0]) : many(threads.length, "thread")) + ", " + duration(state.to - state.from) + " from " + duration(state.from);
    const rules = [];
    if (state.request) rules.push(["request " + state.request, () => { state.request = 0; }]);
    if (state.focus != null) rules.push(["focus: " + shortName(trace.methods[state.focus]), () => { state.focus = null; }, asRun]);
    for (const m of state.hidden) rules.push(["hidden: " + m, () => state.hidden.delete(m), asRun]);
    for (const m of state.merged) rules.push(["merged: " + m, () => state.merged.delete(m), asRun]);
    $("rules").replaceChildren(...rules.map(([t, f, idle]) => element("button", { class: idle ? "idle" : null, title: (idle ? AS_RUN + ". Click: " : "") + "take back", onclick: () => { f(); app.redraw(); } }, t + (idle ? " (not in time order)" : "") + " ×")));
  };

  chart.addEventListener("wheel", e => { e.preventDefault(); view().wheel(e); }, { passive: false });
  chart.onpointerdown = e => { chart.setPointerCapture(e.pointerId); if (view().down) view().down(e); };
  chart.onpointermove = e => view().move(e);
  chart.onpointerup = e => view().up(e);
  chart.ondblclick = e => view().dbl(e);
  chart.onpointerleave = () => app.tip(null);

  const keys = {
    "?": () => $("keys").showModal(), "/": () => $("find").focus(), t: turn, c: app.copy, o: () => $("overview").focus(),
    0: app.selectAll, A: app.pickAll, "[": () => app.pickNext(-1), "]": () => app.pickNext(1), n: () => app.nextHit(1), N: () => app.nextHit(-1),
    k: () => setKind(KINDS[(KINDS.findIndex(([k]) => k === state.kind) + 1) % KINDS.length][0]),
    r: () => { if (head.hows.length) { state.recorded = !state.recorded; app.redraw(); } },
  };
  VIEWS.forEach(([v], i) => { keys[i + 1] = () => app.show(v); });
  function inSearch(e) {
    if (e.key === "Enter") app.nextHit(e.shiftKey ? -1 : 1);
    else if (e.key === "Escape") { e.target.value = ""; e.target.oninput(e); chart.focus(); }
  }
  addEventListener("keydown", e => {
    const { target } = e;
    if (target === $("find")) { inSearch(e); return; }
    if (target.tagName === "INPUT" && target.type !== "checkbox" || target.tagName === "SELECT" || e.ctrlKey || e.metaKey || e.altKey || $("keys").open) return;
    if (Object.hasOwn(keys, e.key)) { keys[e.key](); e.preventDefault(); }
    else if ((target === chart || target === document.body) && app.onCanvas() && view().key(e)) e.preventDefault();
  });
  addEventListener("resize", app.redraw);
  addEventListener("hashchange", () => { app.recall(); app.redraw(); });
}
