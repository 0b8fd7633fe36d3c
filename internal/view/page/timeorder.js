// timeorder.js: the spans of the selected threads over time.

function makeTimeOrder(app) {
  const canvas = $("chart"), TOP = 30, cache = new Map(), { tree, methods } = app.trace;
  let scroll = 0, blocks = [], height = 0;

  // rowsOf returns the spans of a thread under what is believed of its repairs, of the kind and request that are
  // chosen, and deepOf how many rows that makes, which is known before they are laid out.
  function rowsOf(t) {
    const c = known(t);
    return c.rows ||= layOut(tree, t, app.state, app.trace.head.off);
  }
  function deepOf(t) {
    const c = known(t);
    if (c.deep == null) { c.deep = 0; const choice = app.state, holds = holdsOf(t); for (let i = 0; i < t.samples; i++) { if (holds && !holds(i)) continue; const d = tree.depth[stackOf(t, i, choice)]; if (d > c.deep) c.deep = d; } }
    return c.deep;
  }
  function known(t) {
    const key = [app.beliefs(), app.state.kind, app.state.request].join("/");
    let c = cache.get(t);
    if (!c || c.key !== key) cache.set(t, c = { key, rows: null, deep: null, holds: wanted(t, app.state) });
    return c;
  }
  const holdsOf = t => known(t).holds;

  function draw() { paint(canvasPaper(canvas)); }
  function paint(paper) {
    const { w, h } = paper, { from, to } = app.state, X = t => (t - from) / (to - from) * w, many = app.state.threads.size > 1, threads = app.selectedThreads();
    let y = TOP - scroll;
    blocks = [];
    for (const t of threads) {
      const deep = deepOf(t), high = deep * ROW + 12 + (many ? ROW : 0), top = y + (many ? ROW : 0);
      if (y + high > 0 && y < h) {
        if (many) paper.text(app.threadName(t), 6, y + ROW / 2, css("--dim"));
        const rows = rowsOf(t), edges = edgesOf(t, paper);
        blocks.push({ t, rows, top });
        gapsOf(paper, t, X, Math.max(TOP, top), Math.min(h, top + deep * ROW));
        for (let d = Math.max(0, Math.ceil((TOP - top) / ROW) - 1); d < rows.length && top + d * ROW < h; d++) if (top + d * ROW > TOP - ROW) row(paper, t, rows[d], top + d * ROW, edges);
        for (const [a, b, front, behind] of restoredRuns(t, app.state, from, to)) {
          const x = Math.max(0, X(a)), wide = Math.min(w, X(b)) - x;
          if (wide < 0.3) continue;
          const part = (d, n) => { const y0 = Math.max(TOP, top + d * ROW); if (n && top + (d + n) * ROW > y0) paper.hatch(x, y0, wide, Math.min(h, top + (d + n) * ROW - 1) - y0, "restored"); };
          part(0, front); part(front + 1, behind); // what stands between them is the bridge
        }
        if (app.shown && app.shown.thread === t && app.shown.sample >= 0) { const i = app.shown.sample; paper.frame(X(t.start[i]) - 1, Math.max(TOP, top), Math.max(4, X(t.end[i]) - X(t.start[i]) + 2), tree.depth[stackOf(t, i, app.state)] * ROW); }
      }
      y += high;
    }
    height = y + scroll;
    paper.rect(0, 0, w, TOP - 2, packed(css("--bg")));
    const line = packed(css("--line"));
    for (const [x, text] of ticks(from, to, w)) { paper.rect(x, 0, 1, 16, line); paper.text(text, x + 4, 8, css("--dim")); }
    for (const m of Object.values(app.marks).flat()) if (m.to >= from && m.from <= to) paper.hatch(X(m.from), 17, Math.max(2, X(m.to) - X(m.from)), 5, "loss");
    if (threads.length) cuts(paper, threads[0], X);
    if (threads.length && !threads.some(deepOf)) paper.text(app.nothing(), 12, 60, css("--dim"));
    if (!threads.length) paper.text("No thread is selected: click one above.", 12, 60, css("--dim"));
    return paper.done();
  }
  // gapsOf hatches where the thread has no sample because events were lost, and tells why there is none.
  function gapsOf(paper, t, X, y0, y1) {
    const { from, to } = app.state;
    for (let i = Math.max(1, lower(t.start, from)), x1 = 0; i < t.samples && t.end[i - 1] < to; i++) {
      const x0 = Math.max(x1, X(t.end[i - 1]));
      x1 = Math.min(paper.w, X(t.start[i]));
      if (x1 - x0 < 1 || y1 <= y0) continue;
      const lost = lossIn(app.trace, t, t.end[i - 1], t.start[i]);
      if (lost) paper.hatch(x0, y0, x1 - x0, y1 - y0, "loss");
      if (x1 - x0 < 8 * LOSS.length) continue; // no reason is shorter
      const why = lost ? LOSS : whyGap(app.trace, t, t.end[i - 1], t.start[i]);
      if (x1 - x0 > 8 * why.length) paper.text(why, x0 + 6, y0 + ROW / 2, css("--dim"));
    }
  }
  // edgesOf finds for each pixel the first sample that ends behind it.
  function edgesOf(t, paper) {
    const n = paper.width, edges = new Int32Array(n + 1), { from, to } = app.state;
    for (let x = 0, i = lower(t.end, from + 1e-6); x <= n; x++) edges[x] = i = lower(t.end, from + x / n * (to - from) + 1e-6, i);
    return edges;
  }
  // row paints the spans of one depth: of those that share a pixel the first.
  function row(paper, t, r, y, edges) {
    const { from, to } = app.state, { width } = paper, scale = width / (to - from), { first, last, node } = r, n = first.length, named = [];
    paper.row(y, ROW - 1, box => {
      let px = 0;
      for (let i = lower(last, edges[0]); i < n; i++) {
        const start = t.start[first[i]];
        if (start >= to) break;
        const a = Math.max(px, Math.round((start - from) * scale)), b = Math.min(width, Math.max(a + 1, Math.round((t.end[last[i]] - from) * scale)));
        if (a >= width) break;
        const m = tree.method[node[i]];
        box(a, b - a > 3 ? b - 1 : b, app.colour(m, app.found && !app.found.has(m)));
        if (b - a > 30 * paper.scale) named.push(m, a, b);
        px = b;
        if (b - a === 1) { const k = lower(last, edges[px], i + 1); i = Math.max(i, k - 1); }
      }
    });
    for (let k = 0; k < named.length; k += 3) {
      const a = named[k + 1] / paper.scale, b = named[k + 2] / paper.scale;
      if (methods[named[k]] === LOST) paper.hatch(a, y, b - a - 1, ROW - 1, "lost");
      paper.text(app.label(named[k], b - a - 8), a + 5, y + ROW / 2);
    }
  }
  // cuts marks below the axis when samples were cut, and what became of them: height tells it, too.
  function cuts(paper, t, X) {
    const { from, to } = app.state, holds = holdsOf(t), colours = { ok: packed(css("--ok")), bridge: packed(css("--bridge")), left: packed(css("--left")) };
    for (let c = lower(t.cuts, lower(t.end, from)), px = -1; c < t.cuts.length && t.start[t.cuts[c]] < to; c++) {
      const i = t.cuts[c], f = t.flags[i], how = f >> HOW ? app.trace.head.hows[(f >> HOW) - 1] : "", a = Math.max(px, Math.floor(X(t.start[i]))), b = Math.ceil(X(t.end[i]));
      if (b <= px || holds && !holds(i)) continue;
      const high = how === "bridge" ? 4 : how ? 6 : 2;
      paper.rect(a, TOP - 4 - high, Math.max(1, b - a), high, how === "bridge" ? colours.bridge : how ? colours.ok : colours.left); px = b;
    }
  }
  // at tells what lies below a point: thread, sample, span.
  function at(x, y) {
    const time = app.state.from + x / canvas.clientWidth * (app.state.to - app.state.from);
    for (const b of blocks) {
      const d = Math.floor((y - b.top) / ROW), t = b.t;
      if (d < 0 || d > deepOf(t)) continue;
      const s = lower(t.end, time + 1e-6), r = b.rows[d];
      if (s >= t.samples || t.start[s] > time) return { time, thread: t, gap: s };
      const i = r ? lower(r.last, s) : 0, holds = holdsOf(t);
      if (holds && !holds(s)) return { time, thread: t, left: s };
      return { time, thread: t, depth: d, sample: s, span: r && i < r.first.length && r.first[i] <= s ? { start: t.start[r.first[i]], end: t.end[r.last[i]], method: tree.method[r.node[i]] } : null };
    }
    return { time };
  }
  function scrollBy(d) { scroll = Math.max(0, Math.min(scroll + d, Math.max(0, height + 20 - canvas.clientHeight))); }
  // step goes to the next or previous sample of the selection.
  function step(d) {
    const t = app.shown && app.state.threads.has(app.shown.thread) ? app.shown.thread : app.selectedThreads()[0];
    if (!t) return;
    const first = lower(t.end, app.state.from + 1), last = t.samples - 1, holds = holdsOf(t);
    let i = app.shown && app.shown.thread === t ? app.shown.sample + d : first;
    while (holds && i >= 0 && i <= last && !holds(i)) i += d;
    if (i < 0 || i > last) return;
    app.explain(t, i);
    const span = app.state.to - app.state.from;
    if (t.start[i] < app.state.from || t.end[i] > app.state.to) app.select(t.start[i] - span / 2, t.start[i] + span / 2, true); else app.redraw();
  }
  let drag = null;
  return {
    draw,
    svg: () => paint(svgPaper(canvas.clientWidth, Math.max(200, Math.min(20000, TOP + app.selectedThreads().reduce((n, t) => n + (deepOf(t) + 2) * ROW, 0))))),
    spans: () => app.selectedThreads().reduce((n, t) => n + rowsOf(t).reduce((n, r) => n + r.n, 0), 0),
    wheel(e) {
      const { from, to } = app.state;
      if (e.shiftKey) { scrollBy(e.deltaY || e.deltaX); app.redraw(); }
      else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) app.move(e.deltaX / canvas.clientWidth * (to - from));
      else app.zoom(Math.exp(e.deltaY * 0.0015), e.offsetX / canvas.clientWidth);
    },
    down(e) { drag = { x: e.clientX, y: e.clientY, from: app.state.from, to: app.state.to, scroll, moved: false }; },
    move(e) {
      if (drag) {
        const dx = drag.x - e.clientX;
        if (Math.abs(dx) + Math.abs(drag.y - e.clientY) > 3) drag.moved = true;
        const d = dx / canvas.clientWidth * (drag.to - drag.from);
        scroll = 0; scrollBy(drag.scroll + drag.y - e.clientY);
        app.select(drag.from + d, drag.to + d, true);
        return;
      }
      const p = at(e.offsetX, e.offsetY);
      if (p.gap != null) app.tip(e, [app.threadName(p.thread), gapText(app.trace, p.thread, p.gap)]);
      else if (p.left != null) app.tip(e, [app.threadName(p.thread), "left out: " + app.sampleText(p.thread, p.left)]);
      else if (p.span) app.tip(e, [methods[p.span.method], duration(p.span.end - p.span.start) + " from " + duration(p.span.start) + ", frame " + (p.depth + 1), app.sampleText(p.thread, p.sample)]);
      else app.tip(null);
    },
    up(e) {
      const moved = drag && drag.moved; drag = null;
      if (moved) return;
      const p = at(e.offsetX, e.offsetY);
      if (p.span) { app.explain(p.thread, p.sample, p.span.method); app.redraw(); }
    },
    dbl(e) { const p = at(e.offsetX, e.offsetY); if (p.span) { const pad = (p.span.end - p.span.start) * 0.02; app.select(p.span.start - pad, p.span.end + pad); } },
    key(e) {
      const span = app.state.to - app.state.from;
      if (e.key === "ArrowLeft" || e.key === "a") app.move(-0.2 * span);
      else if (e.key === "ArrowRight" || e.key === "d") app.move(0.2 * span);
      else if (e.key === "ArrowUp" || e.key === "w") app.zoom(0.8, 0.5);
      else if (e.key === "ArrowDown" || e.key === "s") app.zoom(1.25, 0.5);
      else if (e.key === "PageDown" || e.key === "PageUp") { scrollBy((e.key === "PageDown" ? 0.8 : -0.8) * canvas.clientHeight); app.redraw(); }
      else if (e.key === "." || e.key === ",") step(e.key === "." ? 1 : -1);
      else return false;
      return true;
    },
  };
}
