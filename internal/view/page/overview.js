// overview.js: the whole recording on one axis: threads by what they did, and tracks. What is
// dragged here is the selection that everything below shows.

const LANE = 16, LABEL = 190, HEAD = 18;

// clipped is as much of a text as fits.
function clipped(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  let n = text.length;
  while (n > 1 && g.measureText(text.slice(0, n) + "…").width > width) n--;
  return text.slice(0, n) + "…";
}

function makeOverview(app) {
  const { trace } = app, canvas = $("overview"), end = Math.max(trace.head.end, 1);
  let lanes = [], image = null, imageKey = "";

  // arrange puts tracks above threads; of many threads the busiest come first.
  function arrange() {
    lanes = [];
    const groups = new Map();
    trace.tracks.forEach(t => { const k = t.group || t.name; (groups.get(k) || groups.set(k, []).get(k)).push(t); });
    for (const [name, tracks] of groups) lanes.push({ kind: "track", name: tracks.length > 1 ? name + " (" + tracks.length + ")" : name, tracks });
    if (trace.head.losses.length) lanes.push({ kind: "loss", name: "events lost" });
    for (const t of trace.threads) lanes.push({ kind: "thread", thread: t, name: app.threadName(t) });
    canvas.style.height = HEAD + lanes.length * LANE + 4 + "px";
    canvas.setAttribute("aria-label", "Overview of " + trace.threads.length + " threads and " + trace.tracks.length + " tracks; the table view tells the same in words");
  }
  const X = (t, w) => LABEL + t / end * (w - LABEL);

  // paint draws all lanes once for a size; only the selection is drawn anew.
  function paint(w, h, ratio) {
    const c = document.createElement("canvas"); c.width = Math.round(w * ratio); c.height = Math.round(h * ratio);
    const g = c.getContext("2d"); g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.font = "12px system-ui, sans-serif"; g.textBaseline = "middle";
    g.fillStyle = css("--bg"); g.fillRect(0, 0, w, h);
    g.save(); g.translate(LABEL, 0); axis(g, 0, end, w - LABEL, h); g.restore();
    const width = Math.max(1, Math.floor(w - LABEL)), colours = { cpu: css("--cpu"), wait: css("--wait"), cut: css("--bridge"), track: css("--accent"), loss: css("--left") };
    lanes.forEach((lane, k) => {
      const y = HEAD + k * LANE;
      if (lane.kind === "thread") {
        const cpu = new Float64Array(width), all = new Float64Array(width), per = end / width, t = lane.thread;
        for (let i = 0; i < t.samples; i++) {
          for (let x = Math.min(width - 1, Math.floor(t.start[i] / per)); x < width && x * per < t.end[i]; x++) {
            const part = (Math.min(t.end[i], (x + 1) * per) - Math.max(t.start[i], x * per)) / per;
            all[x] += part; if (busy(t.flags[i])) cpu[x] += part;
          }
        }
        for (let x = 0; x < width; x++) {
          if (!all[x]) continue;
          g.fillStyle = colours.wait; g.fillRect(LABEL + x, y + LANE - 3, 1, 1.5);
          if (cpu[x] > 0) { const hgt = Math.max(1.5, Math.min(1, cpu[x]) * (LANE - 3)); g.fillStyle = colours.cpu; g.fillRect(LABEL + x, y + LANE - 1.5 - hgt, 1, hgt); }
        }
      } else if (lane.kind === "track") {
        g.fillStyle = colours.track;
        for (const t of lane.tracks) for (let i = 0, px = -1; i < t.slices; i++) {
          const a = X(t.start[i], w), b = Math.max(a + 1, X(t.end[i], w));
          if (b <= px) continue;
          g.globalAlpha = 0.55; g.fillRect(Math.max(a, px), y + 3, b - Math.max(a, px), LANE - 6); px = b;
        }
        g.globalAlpha = 1;
      } else {
        g.fillStyle = hatch(g, colours.loss);
        for (const l of trace.head.losses) g.fillRect(X(l.from, w), y + 2, Math.max(2, X(l.to, w) - X(l.from, w)), LANE - 4);
      }
    });
    return c;
  }

  function draw() {
    const { g, w, h } = sized(canvas), ratio = window.devicePixelRatio || 1, key = [w, h, dark.matches, ratio].join();
    if (key !== imageKey) { image = paint(w, h, ratio); imageKey = key; }
    g.drawImage(image, 0, 0, w, h);
    lanes.forEach((lane, k) => {
      const y = HEAD + k * LANE, on = lane.kind === "thread" && app.state.threads.has(lane.thread);
      if (on) { g.fillStyle = css("--accent"); g.globalAlpha = 0.16; g.fillRect(0, y, w, LANE); g.globalAlpha = 1; }
      g.fillStyle = on ? css("--ink") : css("--dim");
      g.fillText(lane.short ||= clipped(g, lane.name, LABEL - 12), 6, y + LANE / 2);
    });
    const a = X(app.state.from, w), b = X(app.state.to, w);
    g.fillStyle = css("--bg"); g.globalAlpha = 0.6; g.fillRect(LABEL, 0, a - LABEL, h); g.fillRect(b, 0, w - b, h); g.globalAlpha = 1;
    g.fillStyle = css("--accent"); g.fillRect(a - 1, 0, 2, h); g.fillRect(b - 1, 0, 2, h);
  }

  const laneAt = y => lanes[Math.floor((y - HEAD) / LANE)];
  const timeAt = x => Math.max(0, Math.min(end, (x - LABEL) / (canvas.clientWidth - LABEL) * end));
  // sliceAt finds what of a track lies below a point, within two pixels.
  function sliceAt(lane, x) {
    const t = timeAt(x), slack = 2 * end / Math.max(1, canvas.clientWidth - LABEL);
    for (const track of lane.tracks) for (let i = lower(track.reach, t - slack); i < track.slices && track.start[i] <= t + slack; i++) if (track.end[i] >= t - slack) return { track, i };
    return null;
  }
  let drag = null;
  canvas.onpointerdown = e => {
    const lane = laneAt(e.offsetY);
    if (e.offsetX < LABEL) { if (lane && lane.kind === "thread") app.pick(lane.thread, e.ctrlKey || e.metaKey || e.shiftKey); return; }
    drag = { x: e.offsetX, moved: false, lane }; canvas.setPointerCapture(e.pointerId);
  };
  canvas.onpointermove = e => {
    if (drag && Math.abs(e.offsetX - drag.x) > 3) {
      drag.moved = true;
      app.select(Math.min(timeAt(drag.x), timeAt(e.offsetX)), Math.max(timeAt(drag.x), timeAt(e.offsetX)));
      return;
    }
    const lane = laneAt(e.offsetY);
    if (lane && lane.kind === "track" && e.offsetX >= LABEL) { const s = sliceAt(lane, e.offsetX); if (s) { app.tip(e, [app.sliceName(s.track, s.i), duration(s.track.end[s.i] - s.track.start[s.i]) + " from " + duration(s.track.start[s.i]) + " on " + s.track.name, app.trace.detail(s.track, s.i)]); return; } }
    if (lane && lane.kind === "thread") { app.tip(e, [lane.name, count(lane.thread.samples) + " samples, " + count(lane.thread.busy) + " on a CPU" + (lane.thread.cut ? ", " + count(lane.thread.cut) + " were cut" : "")]); return; }
    app.tip(null);
  };
  canvas.onpointerup = e => {
    if (drag && !drag.moved && drag.lane) {
      if (drag.lane.kind === "track") { const s = sliceAt(drag.lane, e.offsetX); if (s) app.selectSlice(s.track, s.i); }
      else if (drag.lane.kind === "thread") app.pick(drag.lane.thread, e.ctrlKey || e.metaKey || e.shiftKey);
    }
    drag = null;
  };
  canvas.onpointerleave = () => app.tip(null);
  canvas.ondblclick = () => app.select(0, end);
  arrange();
  return { draw, forget() { imageKey = ""; } };
}
