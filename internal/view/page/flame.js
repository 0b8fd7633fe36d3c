// flame.js: the flame graph of the selection: equal stacks are one, the largest first.

function makeFlame(app) {
  const canvas = $("chart"), TOP = 6;
  let scroll = 0, deepest = 0, cursor = 0;

  // levels yields the rows of the graph over a width: what was chosen takes all of it, its callers
  // stand above it, and what is narrower than a pixel is left out. A row is [node, x, width, ...].
  function* levels(sum, w) {
    const { tree, total } = sum, path = [];
    for (let n = app.state.zoom; n; n = tree.parent[n]) path.push(n);
    while (path.length > 1) yield [path.pop(), 0, w];
    const scale = w / total(app.state.zoom), least = 1 / scale;
    let row = app.state.zoom ? [app.state.zoom, 0, w] : below([0, 0, w]);
    function below(row) {
      const out = [];
      for (let i = 0; i < row.length; i += 3) {
        let x = row[i + 1];
        for (const k of sum.kids(row[i], least)) { const wide = total(k) * scale; out.push(k, x, wide); x += wide; }
      }
      return out;
    }
    for (; row.length; row = below(row)) yield row;
  }
  // checked returns the sums of the selection, once what was chosen is part of them.
  function checked() {
    const sum = app.sums(), gone = n => n >= sum.tree.size || !sum.total(n);
    if (gone(app.state.zoom)) app.state.zoom = 0;
    if (gone(cursor)) cursor = 0;
    return sum;
  }
  function draw() { paint(canvasPaper(canvas), scroll); }
  function paint(paper, scroll) {
    const sum = checked();
    deepest = 0;
    if (!sum.all) { paper.text(app.nothing(), 12, 30, css("--dim")); return paper.done(); }
    for (const row of levels(sum, paper.w)) {
      const y = TOP + deepest++ * ROW - scroll;
      if (y > paper.h) break;
      if (y > -ROW) paintRow(paper, sum, row, y);
    }
    return paper.done();
  }
  function paintRow(paper, { tree, total, marked, names, colour, label }, row, y) {
    const s = app.state, above = tree.depth[row[0]] < tree.depth[s.zoom];
    paper.row(y, ROW - 1, fill => {
      for (let i = 0; i < row.length; i += 3) {
        const m = tree.method[row[i]], x = row[i + 1], width = row[i + 2], wide = width - (width > 3 ? 1 : 0), from = Math.round(x * paper.scale);
        fill(from, Math.min(paper.width, Math.max(from + 1, Math.round((x + wide) * paper.scale))), colour(m, above || app.found && !app.found.has(m)));
      }
    });
    for (let i = 0; i < row.length; i += 3) {
      const n = row[i], x = row[i + 1], width = row[i + 2], wide = Math.max(1, width - 1), m = tree.method[n], part = marked(n) / total(n);
      if (n === cursor) paper.frame(x, y, Math.max(3, wide), ROW - 1);
      if (width <= 2) continue;
      if (names[m] === LOST) paper.hatch(x, y, wide, ROW - 1, "lost");
      if (part > 0) paper.hatch(x, y, Math.max(1, wide * part), ROW - 1, s.recorded ? "moved" : "restored");
      if (width > 30) paper.text(label(m, width - 8), x + 5, y + ROW / 2);
    }
  }
  // at finds the node below a point of the canvas; 0: none.
  function at(x, y) {
    let d = Math.floor((y + scroll - TOP) / ROW);
    for (const row of levels(checked(), canvas.clientWidth)) {
      if (d-- > 0) continue;
      for (let i = 0; i < row.length; i += 3) if (x >= row[i + 1] && x < row[i + 1] + row[i + 2]) return row[i];
      break;
    }
    return 0;
  }
  function choose(n) { cursor = n; if (n) app.explainNode(n); app.redraw(); }
  function zoomTo(n) { app.state.zoom = n; scroll = 0; choose(n); }
  function beside(d) { const sum = app.sums(), list = sum.kids(sum.tree.parent[cursor]), i = list.indexOf(cursor) + d; if (cursor && list[i]) choose(list[i]); }
  return {
    draw,
    svg: () => paint(svgPaper(1200, 2 * TOP + [...levels(checked(), 1200)].length * ROW), 0),
    wheel(e) { scroll = Math.max(0, Math.min(scroll + e.deltaY, Math.max(0, (deepest + 3) * ROW - canvas.clientHeight))); app.redraw(); },
    move(e) {
      const n = at(e.offsetX, e.offsetY), sum = app.sums();
      if (!n) { app.tip(null); return; }
      const t = sum.total(n), f = sum.marked(n);
      app.tip(e, [sum.names[sum.tree.method[n]], duration(t) + " in all, " + percent(t, sum.all) + " of the selection, " + percent(t, app.everything()) + " of the trace; " + duration(sum.self[n]) + " itself",
        f ? percent(f, t) + (app.state.recorded ? " of it the repair moves below other callers" : " of it stands in stacks in which this frame was restored") : null]);
    },
    up(e) { zoomTo(at(e.offsetX, e.offsetY)); },
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
