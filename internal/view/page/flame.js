// flame.js: the flame graph of the selection: equal stacks are one, the largest first.

function makeFlame(app) {
  const canvas = $("chart"), TOP = 6;
  let boxes = [], scroll = 0, deepest = 0, cursor = 0;

  function draw() { paint(canvasPaper(canvas), scroll); }
  // paint draws the flame graph; its root is the frame that was chosen, below its callers.
  function paint(paper, scroll) {
    const sum = app.sums(), { tree, total, marked } = sum, { w, h } = paper, s = app.state;
    const levels = []; // boxes of a row stand together: start, end, colour
    boxes = []; deepest = 0;
    if (s.zoom >= tree.size || !total[s.zoom]) s.zoom = 0;
    if (cursor >= tree.size || !total[cursor]) cursor = 0;
    const whole = total[s.zoom];
    if (!whole) { paper.text("Nothing of this kind is in the selection.", 12, 30, css("--dim")); return paper.done(); }
    const path = [];
    for (let n = s.zoom; n; n = tree.parent[n]) path.push(n);
    path.reverse().forEach((n, d) => box(n, d, 0, w, d < path.length - 1));
    const stack = [];
    const push = (n, d, x, scale) => { let at = x; for (const k of sum.kids(n)) { const width = total[k] * scale; if (width < 0.7) break; stack.push([k, d, at, width]); at += width; } };
    push(s.zoom, path.length, 0, w / whole);
    while (stack.length) {
      const [n, d, x, width] = stack.pop();
      box(n, d, x, width, false);
      if (TOP + d * ROW - scroll <= h) push(n, d + 1, x, width / total[n]);
    }
    function box(n, d, x, width, above) {
      const y = TOP + d * ROW - scroll, m = tree.method[n];
      deepest = Math.max(deepest, d);
      if (y < -ROW || y > h) return;
      const wide = Math.max(0.5, width - (width > 3 ? 1 : 0)), part = marked[n] / total[n];
      const x0 = Math.max(0, Math.round(x * paper.scale));
      (levels[d] ||= []).push(x0, Math.min(paper.width, Math.max(x0 + 1, Math.round((x + wide) * paper.scale))), sum.colour(m, above || app.found && !app.found.has(m)));
      if (sum.names[m] === LOST) paper.hatch(x, y, wide, ROW - 1, "lost");
      if (part > 0 && width > 2) paper.hatch(x, y, Math.max(1, wide * part), ROW - 1, s.recorded ? "moved" : "restored");
      if (width > 30) paper.text(sum.label(m, width - 8), x + 5, y + ROW / 2);
      if (n === cursor) paper.frame(x, y, Math.max(3, wide), ROW - 1);
      boxes.push({ n, x, y, width });
    }
    levels.forEach((list, d) => paper.row(TOP + d * ROW - scroll, ROW - 1, fill => { for (let i = 0; i < list.length; i += 3) fill(list[i], list[i + 1], list[i + 2]); }));
    return paper.done();
  }
  const at = (x, y) => boxes.findLast(b => y >= b.y && y < b.y + ROW && x >= b.x && x < b.x + b.width);
  function choose(n) { cursor = n; if (n) app.explainNode(n); app.redraw(); }
  function zoomTo(n) { app.state.zoom = n; scroll = 0; choose(n); }
  function beside(d) { const sum = app.sums(), list = sum.kids(sum.tree.parent[cursor]), i = list.indexOf(cursor) + d; if (cursor && list[i]) choose(list[i]); }
  return {
    draw,
    svg: () => { draw(); return paint(svgPaper(1200, 2 * TOP + (deepest + 1) * ROW), 0); },
    wheel(e) { scroll = Math.max(0, Math.min(scroll + e.deltaY, Math.max(0, (deepest + 3) * ROW - canvas.clientHeight))); app.redraw(); },
    move(e) {
      const b = at(e.offsetX, e.offsetY), sum = app.sums();
      if (!b) { app.tip(null); return; }
      const t = sum.total[b.n], f = sum.marked[b.n];
      app.tip(e, [sum.names[sum.tree.method[b.n]], duration(t) + " in all, " + percent(t, sum.all) + " of the selection, " + percent(t, app.everything()) + " of the trace; " + duration(sum.self[b.n]) + " itself",
        f ? percent(f, t) + (app.state.recorded ? " of it the repair moves below other callers" : " of it stands in stacks in which this frame was restored") : null]);
    },
    up(e) { const b = at(e.offsetX, e.offsetY); zoomTo(b ? b.n : 0); },
    dbl() { zoomTo(0); },
    key(e) {
      const sum = app.sums();
      if (e.key === "ArrowDown") { const k = sum.kids(cursor || app.state.zoom)[0]; if (k) choose(k); }
      else if (e.key === "ArrowUp") choose(sum.tree.parent[cursor] || cursor);
      else if (e.key === "ArrowLeft" || e.key === "ArrowRight") beside(e.key === "ArrowLeft" ? -1 : 1);
      else if (e.key === "Enter") zoomTo(cursor);
      else if (e.key === "Backspace" || e.key === "u") zoomTo(sum.tree.parent[app.state.zoom] || 0);
      else if (e.key === "Escape") zoomTo(0);
      else if (e.key === "PageDown" || e.key === "PageUp") this.wheel({ deltaY: (e.key === "PageDown" ? 0.8 : -0.8) * canvas.clientHeight });
      else return false;
      return true;
    },
    forget() { app.state.zoom = cursor = 0; },
  };
}
