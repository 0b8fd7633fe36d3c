// timeorder.js: the spans of the selected threads over time.

function makeTimeOrder(app) {
  const canvas = $("chart"), TOP = 30, cache = new Map();
  let scroll = 0, blocks = [];

  // rowsOf returns the spans of a thread under what is believed of its repairs.
  function rowsOf(t) {
    const key = app.beliefs();
    let c = cache.get(t);
    if (!c || c.key !== key) cache.set(t, c = { key, rows: spans(app.trace.tree, t, app.choice(), app.trace.head.off) });
    return c.rows;
  }
  function draw() {
    const { g, w, h } = sized(canvas), { from, to } = app.state, scale = w / (to - from), X = t => (t - from) * scale;
    const ink = css("--ink"), lost = css("--bridge"), isDark = dark.matches, stripes = hatch(g, css("--ok")), many = app.state.threads.size > 1;
    let y = TOP - scroll;
    blocks = [];
    for (const t of app.selectedThreads()) {
      const rows = rowsOf(t), height = rows.length * ROW + 12 + (many ? ROW : 0);
      if (y + height > 0 && y < h) {
        let top = y;
        if (many) { g.fillStyle = css("--dim"); g.fillText(app.threadName(t), 6, y + ROW / 2); top += ROW; }
        blocks.push({ t, rows, top });
        for (let d = Math.max(0, Math.floor(-top / ROW)); d < rows.length && top + d * ROW < h; d++) row(g, rows[d], top + d * ROW, X, w, ink, lost, isDark);
        restored(g, t, top, X, w, stripes);
      }
      y += height;
    }
    app.height = y + scroll;
    g.fillStyle = css("--bg"); g.fillRect(0, 0, w, TOP - 2);
    axis(g, from, to, w, 16);
    if (app.selectedThreads().length) cuts(g, app.selectedThreads()[0], X, TOP);
    else { g.fillStyle = css("--dim"); g.fillText("No thread is selected: click one above.", 12, 60); }
  }
  function row(g, r, y, X, w, ink, lost, isDark) {
    const { from, to } = app.state, names = app.trace.methods;
    let px = -1;
    for (let i = lower(r.end, from); i < r.start.length && r.start[i] < to; i++) {
      let a = Math.max(0, X(r.start[i])), b = Math.min(w, X(r.end[i]));
      if (b - px < 0.6) { i = Math.max(i, lower(r.end, from + (px + 0.6) * (to - from) / w) - 1); continue; } // nothing of it would be seen
      a = Math.max(a, px); px = b;
      const m = r.method[i], faded = app.found && !app.found.has(m);
      g.fillStyle = names[m] === LOST ? lost : fill(app.colour(m), isDark, faded);
      g.fillRect(a, y, Math.max(0.6, b - a - (b - a > 3 ? 1 : 0)), ROW - 1);
      if (names[m] === LOST && b - a > 3) { g.fillStyle = hatch(g, css("--bg")); g.fillRect(a, y, b - a - 1, ROW - 1); }
      if (b - a > 32) label(g, names[m], a, y, b - a, ink);
    }
  }
  // restored hatches, for the very time of each repaired sample, the frames that were put back.
  function restored(g, t, top, X, w, stripes) {
    if (!t.restored) return;
    const choice = app.choice();
    g.fillStyle = stripes;
    for (let i = lower(t.end, app.state.from), px = -1; i < t.samples && t.start[i] < app.state.to; i++) {
      const n = t.restored[i];
      if (!n || stackOf(t, i, choice) !== t.stack[i]) continue;
      let k = i;
      while (k + 1 < t.samples && t.restored[k + 1] === n && t.start[k + 1] === t.end[k] && stackOf(t, k + 1, choice) === t.stack[k + 1]) k++;
      const a = Math.max(X(t.start[i]), px, 0), b = Math.min(w, X(t.end[k]));
      i = k;
      if (b - a < 0.5) continue;
      const front = n - t.above[i];
      if (front > 0) g.fillRect(a, top, b - a, front * ROW - 1);
      if (t.above[i]) g.fillRect(a, top + (front + 1) * ROW, b - a, t.above[i] * ROW - 1); // behind the bridge
      px = b;
    }
  }
  // cuts marks below the axis when samples were cut, and what became of them.
  function cuts(g, t, X, TOP) {
    const colours = { ok: css("--ok"), bridge: css("--bridge"), left: css("--left") };
    for (let i = lower(t.end, app.state.from), px = -1; i < t.samples && t.start[i] < app.state.to; i++) {
      const f = t.flags[i];
      if (!(f & CUT)) continue;
      const how = f >> HOW ? app.trace.head.hows[(f >> HOW) - 1] : "", a = Math.floor(X(t.start[i])), b = Math.ceil(X(t.end[i]));
      if (b <= px) continue;
      const high = how === "bridge" ? 4 : how ? 6 : 2; // height tells it, too
      g.fillStyle = how === "bridge" ? colours.bridge : how ? colours.ok : colours.left;
      g.fillRect(Math.max(a, px), TOP - 4 - high, Math.max(1, b - Math.max(a, px)), high); px = b;
    }
  }
  // at tells what lies below a point: thread, sample, span.
  function at(x, y) {
    const t = app.state.from + x / canvas.clientWidth * (app.state.to - app.state.from);
    for (const b of blocks) {
      const d = Math.floor((y - b.top) / ROW);
      if (d < 0 || d >= b.rows.length) continue;
      const r = b.rows[d], i = lower(r.end, t), s = lower(b.t.end, t);
      return { time: t, thread: b.t, depth: d, row: i < r.start.length && r.start[i] <= t ? r : null, i, sample: s < b.t.samples && b.t.start[s] <= t ? s : -1 };
    }
    return { time: t };
  }
  function clampScroll() { scroll = Math.max(0, Math.min(scroll, Math.max(0, (app.height || 0) + 20 - canvas.clientHeight))); }
  let drag = null;
  return {
    draw,
    wheel(e) {
      const { from, to } = app.state;
      if (e.shiftKey) { scroll += e.deltaY || e.deltaX; clampScroll(); app.redraw(); }
      else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) { const d = e.deltaX / canvas.clientWidth * (to - from); app.move(d); }
      else app.zoom(Math.exp(e.deltaY * 0.0015), e.offsetX / canvas.clientWidth);
    },
    down(e) { drag = { x: e.clientX, y: e.clientY, from: app.state.from, to: app.state.to, scroll, moved: false }; },
    move(e) {
      if (drag) {
        const dx = drag.x - e.clientX;
        if (Math.abs(dx) + Math.abs(drag.y - e.clientY) > 3) drag.moved = true;
        const d = dx / canvas.clientWidth * (drag.to - drag.from);
        scroll = drag.scroll + drag.y - e.clientY; clampScroll();
        app.select(drag.from + d, drag.to + d, true);
        return;
      }
      const p = at(e.offsetX, e.offsetY);
      if (!p.row) { app.tip(null); return; }
      app.tip(e, [app.trace.methods[p.row.method[p.i]], duration(p.row.end[p.i] - p.row.start[p.i]) + " from " + duration(p.row.start[p.i]) + ", frame " + (p.depth + 1), p.sample >= 0 ? app.sampleText(p.thread, p.sample) : null]);
    },
    up(e) {
      const moved = drag && drag.moved; drag = null;
      if (moved) return;
      const p = at(e.offsetX, e.offsetY);
      if (p.row) app.explain(p.thread, p.sample, p.row.method[p.i]);
    },
    dbl(e) { const p = at(e.offsetX, e.offsetY); if (p.row) { const a = p.row.start[p.i], b = p.row.end[p.i], pad = (b - a) * 0.02; app.select(a - pad, b + pad); } },
    key(e) {
      if (e.key === "ArrowLeft" || e.key === "a") app.move(-0.2 * (app.state.to - app.state.from));
      else if (e.key === "ArrowRight" || e.key === "d") app.move(0.2 * (app.state.to - app.state.from));
      else if (e.key === "ArrowUp" || e.key === "w") app.zoom(0.8, 0.5);
      else if (e.key === "ArrowDown" || e.key === "s") app.zoom(1.25, 0.5);
      else if (e.key === "PageDown") { scroll += canvas.clientHeight * 0.8; clampScroll(); app.redraw(); }
      else if (e.key === "PageUp") { scroll -= canvas.clientHeight * 0.8; clampScroll(); app.redraw(); }
      else return false;
      return true;
    },
    forget() { cache.clear(); },
  };
}
