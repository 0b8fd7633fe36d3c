// flame.js: the flame graph of the selection: equal stacks are one, the largest first.

function makeFlame(app) {
  const canvas = $("chart"), TOP = 6;
  let root = 0, boxes = [], scroll = 0, deepest = 0;

  function draw() {
    const { g, w, h } = sized(canvas), sum = app.sums(), tree = sum.tree, ink = css("--ink"), isDark = dark.matches;
    boxes = []; deepest = 0;
    if (root >= tree.size || !sum.total[root]) root = 0;
    const whole = sum.total[root];
    if (!whole) { g.fillStyle = css("--dim"); g.fillText("Nothing of this kind is in the selection.", 12, 30); return; }
    const kidsOf = sum.kids, stripes = hatch(g, css("--ok")), lost = css("--bridge");
    const path = [];
    for (let n = root; n; n = tree.parent[n]) path.push(n);
    path.reverse();
    path.forEach((n, d) => box(n, d, 0, w, d < path.length - 1));
    const stack = [];
    const push = (n, d, x, scale) => { let at = x; for (const k of kidsOf(n)) { const width = sum.total[k] * scale; if (width < 0.5) break; stack.push([k, d, at, width]); at += width; } };
    push(root, path.length, 0, w / whole);
    while (stack.length) {
      const [n, d, x, width] = stack.pop();
      if (TOP + d * ROW - scroll > h) continue;
      box(n, d, x, width, false);
      push(n, d + 1, x, width / sum.total[n]);
    }
    function box(n, d, x, width, above) {
      const y = TOP + d * ROW - scroll;
      deepest = Math.max(deepest, d);
      if (y < -ROW) return;
      const m = tree.method[n], name = sum.names[m];
      g.fillStyle = name === LOST ? lost : fill(sum.colour(m), isDark, above || app.found && !app.found.has(m));
      g.fillRect(x, y, Math.max(0.5, width - (width > 2 ? 0.7 : 0)), ROW - 1);
      const part = sum.fixed[n] / sum.total[n];
      if (part > 0 && width > 2) { g.fillStyle = stripes; g.fillRect(x, y, Math.max(1, (width - 0.7) * part), ROW - 1); }
      label(g, name, x, y, width, ink);
      boxes.push({ n, x, y, width });
    }
  }
  const at = (x, y) => boxes.findLast(b => y >= b.y && y < b.y + ROW && x >= b.x && x < b.x + b.width);
  return {
    draw,
    wheel(e) { scroll = Math.max(0, Math.min(scroll + e.deltaY, Math.max(0, (deepest + 3) * ROW - canvas.clientHeight))); app.redraw(); },
    move(e) {
      const b = at(e.offsetX, e.offsetY), sum = app.sums();
      if (!b) { app.tip(null); return; }
      const t = sum.total[b.n], f = sum.fixed[b.n];
      app.tip(e, [sum.names[sum.tree.method[b.n]], duration(t) + " in all, " + percent(t, sum.all) + " of the selection, " + percent(t, app.everything()) + " of the trace; " + duration(sum.self[b.n]) + " itself",
        f ? percent(f, t) + " of it stands in stacks in which this frame was restored" : null]);
    },
    up(e) { const b = at(e.offsetX, e.offsetY); if (b) { root = b.n; app.explainMethod(app.sums().tree.method[b.n]); app.redraw(); } else { root = 0; app.redraw(); } },
    dbl(e) { root = 0; app.redraw(); },
    key(e) {
      if (e.key === "Backspace" || e.key === "u") { root = app.sums().tree.parent[root] || 0; app.redraw(); return true; }
      if (e.key === "PageDown" || e.key === "PageUp") { this.wheel({ deltaY: (e.key === "PageDown" ? 0.8 : -0.8) * canvas.clientHeight }); return true; }
      return false;
    },
    forget() { root = 0; },
  };
}
