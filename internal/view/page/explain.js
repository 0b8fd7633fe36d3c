// explain.js: words about things, and the panel beside the views that explains one of them.

const TYPES = ["in managed code", "in native code or waiting", "on a CPU", "off the CPU", "unknown"];

function pathOf(tree, n) { const path = []; for (; n; n = tree.parent[n]) path.push(n); return path.reverse(); }

function makeExplain(app) {
  const { trace } = app, { tree, methods, head } = trace, state = app.state;
  app.shown = null; // the sample that the panel explains
  app.say = text => { $("said").textContent = text; };
  app.kindText = (t, i) => TYPES[t.flags[i] & 7];
  app.sliceName = (track, i) => head.names[track.name[i]];
  app.lossOwner = l => l.thread < 0 ? "any thread" : app.threadName(head.threads[l.thread]);
  app.sampleText = (t, i) => {
    const f = t.flags[i], how = f >> HOW;
    let s = "sample at " + duration(t.start[i]) + ": " + TYPES[f & 7] + ", " + count(tree.depth[t.stack[i]]) + " frames";
    if (f & CUT) s += how ? "; was cut: " + count(t.restored[i]) + " frames restored, " + head.howTexts[how - 1] + (head.hows[how - 1] === "bridge" ? "" : ", confidence " + t.confidence[i] + " %") : "; cut";
    return s;
  };
  // marks are what is missing, in time: lanes of the overview by their name.
  app.marks = {
    "events lost": head.losses.map(l => ({ from: l.from, to: l.to, text: () => (l.events ? many(l.events, "event") : "events") + " of " + app.lossOwner(l) + " lost between " + duration(l.from) + " and " + duration(l.to) })),
    damage: head.damage.filter(d => d.at >= 0 && d.at <= app.end).map(d => ({ from: d.at, to: d.at, text: () => d.where + " at byte " + count(d.offset) + ": " + d.what + "; read up to " + duration(d.at) })),
  };

  let copied = () => ""; // what copy copies
  app.copy = () => { const text = copied(); if (text) { const done = () => app.say("The stack was copied."); if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, () => byHand(text)); else byHand(text); } };
  function byHand(text) { const a = element("textarea", {}); a.value = text; document.body.append(a); a.select(); document.execCommand("copy"); a.remove(); app.say("The stack was copied."); }
  const copyButton = () => element("button", { onclick: app.copy }, "Copy the stack (c)");
  const action = (text, f) => element("button", { onclick: () => { f(); app.redraw(); } }, text);
  app.details = rows => { const on = $("details").contains(document.activeElement); $("details").replaceChildren(...rows.filter(Boolean)); if (on) $("details").focus(); };
  const hint = $("hint");
  app.noDetails = () => { app.shown = null; copied = () => ""; app.details([hint]); };

  // explain tells of a sample what was recorded, which evidence its repair has, how sure it is, and its stack.
  app.explain = (t, i) => {
    const f = t.flags[i], how = f >> HOW, path = pathOf(tree, t.stack[i]), names = path.map(n => methods[tree.method[n]]), restored = restoredAt(t, i);
    app.shown = { thread: t, sample: i };
    copied = () => names.slice().reverse().join("\n");
    app.details([element("h3", {}, "Sample at " + duration(t.start[i])), element("p", {}, app.threadName(t) + ", " + TYPES[f & 7] + ", stands for " + duration(t.end[i] - t.start[i])),
      f & CUT ? element("dl", {}, ...repairFacts(t, i).flatMap(([k, v]) => [element("dt", {}, k), element("dd", {}, v)])) : null,
      copyButton(), element("ol", { class: "stack" }, ...path.map((n, d) => element("li", { class: restored(d) ? "restored" : names[d] === LOST ? "lost" : null, title: (restored(d) ? "restored: " : "") + names[d] }, element("button", { onclick: () => app.explainMethod(tree.method[n]) }, shortName(names[d])))))]);
    app.remember();
  };
  // restoredAt tells of a depth of the sample's stack whether the repair put that frame there.
  function restoredAt(t, i) {
    if (!(t.flags[i] >> HOW)) return () => false;
    const behind = t.above[i], front = t.restored[i] - behind;
    return d => d < front || behind > 0 && d > front && d <= front + behind;
  }
  function repairFacts(t, i) {
    const how = t.flags[i] >> HOW, facts = [["Recorded", count(tree.depth[how ? t.recorded[i] : t.stack[i]]) + " frames, cut"]];
    if (!how) return [...facts, ["Now", "left as it was recorded"]];
    facts.push(["Now", count(tree.depth[t.stack[i]]) + " frames, " + count(t.restored[i]) + " restored" + (t.above[i] ? " (" + count(t.above[i]) + " of them behind the bridge)" : "")], ["Evidence", head.howTexts[how - 1]]);
    if (head.hows[how - 1] !== "bridge") facts.push(["Confidence", t.confidence[i] + " %"]);
    const seen = witness(trace, t, i);
    if (seen) facts.push(["Witness", element("span", {}, element("button", { onclick: () => goTo(seen) }, "sample at " + duration(seen.thread.start[seen.sample])),
      " of " + (seen.thread === t ? "this thread" : app.threadName(seen.thread)) + ": the nearest that was recorded whole and has the same outer frames, down to " + shortName(methods[tree.method[seen.at]]) + "; " + count(seen.found) + " have them")]);
    else if (t.restored[i] > t.above[i]) facts.push(["Witness", "no stack that was recorded whole has just these outer frames: they were put together from several"]);
    return facts;
  }
  function goTo({ thread, sample }) {
    state.threads.add(thread);
    if (thread.start[sample] < state.from || thread.end[sample] > state.to) app.select(thread.start[sample] - 5e6, thread.end[sample] + 5e6);
    app.explain(thread, sample);
    app.redraw();
  }

  // explainMethod tells of a method, and of the frame of it that was chosen.
  app.explainMethod = (m, node) => {
    state.method = m; app.shown = null;
    const s = app.sums(), name = s.names[m], by = s.methods(), module = moduleOf(name), path = node ? pathOf(s.tree, node).map(n => s.names[s.tree.method[n]]) : [name];
    const shares = (total, self) => duration(total) + " in all (" + percent(total, s.all) + " of the selection, " + percent(total, app.everything()) + " of the trace), " + duration(self) + " itself";
    const marked = node && s.marked(node) ? "; " + percent(s.marked(node), s.total(node)) + (state.recorded ? " of it is moved by the repair" : " of it restored") : "";
    copied = () => path.slice().reverse().join("\n");
    app.details([element("h3", {}, name), node ? element("p", {}, "Here: " + shares(s.total(node), s.self[node]) + marked) : null,
      element("p", {}, (node ? "Everywhere: " : "") + shares(by.total[m], by.self[m])),
      element("p", { class: "acts" }, action("Callers and callees", () => { state.view = "around"; }), m < methods.length ? action(state.focus === m ? "End focus" : "Focus", () => { state.focus = state.focus === m ? null : m; }) : null,
        module ? action("Hide " + module, () => state.hidden.add(module)) : null, module ? action("Merge " + module, () => state.merged.add(module)) : null, node ? copyButton() : null)]);
    if (state.view === "around") app.redraw(); else app.remember();
  };
  app.explainNode = n => app.explainMethod(app.sums().tree.method[n], n);

  // explainSlice tells of what a track shows; worked says that threads are known to have worked for it.
  app.explainSlice = (track, i, worked) => {
    const from = track.start[i], request = track.request[i];
    app.details([element("h3", {}, app.sliceName(track, i)), element("p", {}, track.title + ", " + duration(track.end[i] - from) + " from " + duration(from)), trace.detail(track, i) ? element("p", {}, trace.detail(track, i)) : null,
      worked ? element("p", { class: "acts" }, action("Only the stacks of this request", () => app.onlyRequest(request))) : request ? element("p", { class: "hint" }, "The trace does not tell which threads worked for it; the selection is its time.") : null]);
  };

  // tip shows lines beside the mouse, the first of them in bold; nothing takes it away.
  app.tip = (e, lines) => {
    const tip = $("tip");
    if (!e || !lines) { tip.style.display = "none"; return; }
    tip.replaceChildren(...lines.filter(Boolean).map((l, i) => element(i ? "small" : "b", {}, l)));
    tip.style.display = "block";
    tip.style.left = Math.max(4, Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = (e.clientY + 18 + tip.offsetHeight > innerHeight ? e.clientY - tip.offsetHeight - 8 : e.clientY + 18) + "px";
  };
}
