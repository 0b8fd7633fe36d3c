// overview.js: the whole recording on one axis: threads by what they did, and tracks. What is
// dragged here is the selection that everything below shows.

const LANE = 16, LABEL = 190, HEAD = 18, MOST_IMAGES = 300;

// clipped is as much of a text as fits; the number of a thread stays, and as much as can of the process behind it.
function clipped(g, text, width) {
  const fits = s => g.measureText(s).width <= width;
  if (text.length < 200 && fits(text)) return text;
  let [tail] = text.match(/ \(\d+\)( of .+)?$/) || [""], head = text.slice(0, text.length - tail.length).slice(0, 100), end = "";
  while (head.length > 4 && !fits(head + "…" + tail)) head = head.slice(0, -1);
  if (!fits(head + "…" + tail)) for (end = "…", tail = tail.slice(0, 100); tail && !fits(head + "…" + tail + end);) tail = tail.slice(0, -1);
  return head + "…" + tail + end;
}

function makeOverview(app) {
  const { trace } = app, canvas = $("overview"), end = Math.max(trace.head.end, 1);
  const box = $("lanes");
  let lanes = [], imageKey = "", cursor = -1, shown = false; // cursor: the lane that the keys are at
  box.onscroll = () => draw();

  // arrange puts tracks above threads, and counters below.
  function arrange() {
    lanes = [];
    const groups = new Map();
    trace.tracks.filter(t => !t.value).forEach(t => { const k = t.group || t.title; (groups.get(k) || groups.set(k, []).get(k)).push(t); });
    for (const [name, tracks] of groups) lanes.push({ kind: "track", name: tracks.length > 1 ? name + ", " + tracks.length + " tracks" : name, tracks });
    for (const [name, marks] of Object.entries(app.marks)) if (marks.length) lanes.push({ kind: "marks", name, marks });
    for (const t of trace.threads) lanes.push({ kind: "thread", thread: t, name: app.threadName(t) });
    for (const t of trace.tracks) if (t.value) lanes.push({ kind: "track", name: t.title, tracks: [t], most: t.value.reduce((a, v) => Math.max(a, v), 0) });
    $("allLanes").style.height = HEAD + lanes.length * LANE + 4 + "px";
    canvas.setAttribute("aria-label", "Overview of " + trace.threads.length + " threads and " + trace.tracks.length + " tracks. The view Threads and tracks tells the same in words. Up and down choose a lane, Enter selects it or what is next on it, left and right move the selected time, with shift they change its length.");
  }
  const X = (t, w) => LABEL + t / end * (w - LABEL);

  // imageOf draws a lane once for a size; only the selection is drawn anew. There may be thousands of lanes, of which
  // those that were seen last are kept.
  const images = new Map();
  function imageOf(lane, w) {
    let image = images.get(lane);
    if (image) images.delete(lane); else image = paint(lane, w);
    images.set(lane, image);
    if (images.size > MOST_IMAGES) images.delete(images.keys().next().value);
    return image;
  }
  function paint(lane, w) {
    const c = document.createElement("canvas"), paper = canvasPaper(c, w, LANE), width = Math.max(1, Math.floor(w - LABEL)), per = end / width, line = packed(css("--line")), bg = packed(css("--bg"));
    const colours = { cpu: packed(css("--cpu")), wait: packed(css("--wait")), cut: packed(css("--bridge")), track: mixed(packed(css("--accent")), bg, 0.7) };
    for (const [x] of ticks(0, end, w - LABEL)) paper.rect(LABEL + x, 0, 1, LANE, line);
    if (lane.kind === "thread") {
      const cpu = new Float64Array(width), seen = new Uint8Array(width), { start, end: ends, flags, cuts, samples } = lane.thread;
      for (let i = 0; i < samples; i++) {
        const on = busy(flags[i]), last = ends[i] / per;
        for (let x = Math.floor(start[i] / per); x < width && x < last; x++) { seen[x] |= 1; if (on) cpu[x] += Math.min(last, x + 1) - Math.max(start[i] / per, x); }
      }
      for (const i of cuts) seen[Math.min(width - 1, Math.floor(start[i] / per))] |= 2;
      for (let x = 0; x < width; x++) {
        if (seen[x] & 1) paper.rect(LABEL + x, LANE - 3, 1, 1.5, colours.wait);
        if (seen[x] & 2) paper.rect(LABEL + x, 1, 1, 2, colours.cut);
        if (cpu[x] > 0) { const high = Math.max(1.5, Math.min(1, cpu[x]) * (LANE - 4)); paper.rect(LABEL + x, LANE - 1.5 - high, 1, high, colours.cpu); }
      }
    } else if (lane.kind === "track") {
      for (const t of lane.tracks) for (let i = 0, px = -1; i < t.slices; i++) {
        const a = X(t.start[i], w), b = Math.max(a + 1, X(t.end[i], w));
        if (b <= px) continue;
        const high = t.value ? Math.max(1, t.value[i] / (lane.most || 1) * (LANE - 3)) : LANE - 6; // a counter is as high as its value
        paper.rect(Math.max(a, px), t.value ? LANE - 1 - high : 3, b - Math.max(a, px), high, colours.track); px = b;
      }
    } else for (const m of lane.marks) {
      paper.hatch(X(m.from, w), 2, Math.max(2, X(m.to, w) - X(m.from, w)), LANE - 4, "loss");
      paper.rect(X(m.from, w), 2, 1, LANE - 4, packed(css("--left")));
    }
    paper.done();
    c.image = null; // its pixels are on it
    return c;
  }

  // reveal scrolls to a lane.
  function reveal(k) {
    const y = HEAD + k * LANE;
    if (y < box.scrollTop + HEAD || y + LANE > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, y - box.clientHeight / 2);
  }
  function draw() {
    if (!shown) { shown = true; reveal(lanes.findIndex(l => l.kind === "thread" && app.state.threads.has(l.thread))); }
    canvas.style.height = box.clientHeight + "px"; // as much of the lanes as is seen
    const { g, w, h } = sized(canvas), ratio = window.devicePixelRatio || 1, key = [w, dark.matches, ratio].join();
    if (key !== imageKey) { images.clear(); imageKey = key; }
    const first = Math.floor(box.scrollTop / LANE);
    lanes.slice(first, first + Math.ceil(h / LANE) + 1).forEach((lane, i) => {
      const k = first + i, y = HEAD + k * LANE - box.scrollTop, on = lane.kind === "thread" && app.state.threads.has(lane.thread);
      g.drawImage(imageOf(lane, w), 0, y, w, LANE);
      if (k === cursor && document.activeElement === canvas) { g.strokeStyle = css("--accent"); g.strokeRect(1.5, y + 0.5, w - 3, LANE - 1); }
      if (on) { g.fillStyle = css("--accent"); g.globalAlpha = 0.16; g.fillRect(0, y, w, LANE); g.globalAlpha = 1; }
      g.fillStyle = on ? css("--ink") : css("--dim");
      g.fillText(lane.short ||= clipped(g, lane.name, LABEL - 12), 6, y + LANE / 2);
    });
    // The axis stays above the lanes.
    g.fillStyle = css("--bg"); g.fillRect(0, 0, w, HEAD);
    for (const [x, text] of ticks(0, end, w - LABEL)) { g.fillStyle = css("--line"); g.fillRect(LABEL + x, 0, 1, HEAD); g.fillStyle = css("--dim"); g.fillText(text, LABEL + x + 4, 8); }
    const a = X(app.state.from, w), b = X(app.state.to, w);
    g.fillStyle = css("--bg"); g.globalAlpha = 0.6; g.fillRect(LABEL, 0, a - LABEL, h); g.fillRect(b, 0, w - b, h); g.globalAlpha = 1;
    g.fillStyle = css("--accent"); g.fillRect(a - 1, 0, 2, h); g.fillRect(b - 1, 0, 2, h);
  }

  const laneAt = y => y < HEAD ? undefined : lanes[Math.floor((y - HEAD + box.scrollTop) / LANE)];
  const timeAt = x => Math.max(0, Math.min(end, (x - LABEL) / (canvas.clientWidth - LABEL) * end));
  // sliceAt finds what of a track lies below a point, within two pixels.
  function sliceAt(lane, x) {
    const t = timeAt(x), slack = 2 * end / Math.max(1, canvas.clientWidth - LABEL);
    for (const track of lane.tracks) for (let i = lower(track.reach, t - slack); i < track.slices && track.start[i] <= t + slack; i++) if (track.end[i] >= t - slack) return { track, i };
    return null;
  }
  function markAt(lane, x) { const t = timeAt(x), slack = 3 * end / Math.max(1, canvas.clientWidth - LABEL); return lane.marks.find(m => m.from <= t + slack && m.to >= t - slack); }
  function gapAt(t, x) { const at = timeAt(x), i = lower(t.end, at); return i >= t.samples || t.start[i] > at ? gapText(trace, t, i) : null; }
  // next selects what is next on a track, behind the start of the selection.
  function next(lane, step) {
    const all = lane.tracks.flatMap(track => { const i = step > 0 ? lower(track.start, lane.at == null ? app.state.from : lane.at + 1) : lower(track.start, lane.at == null ? app.state.from : lane.at) - 1; return i >= 0 && i < track.slices ? [{ track, i }] : []; });
    const best = all.sort((a, b) => step * (a.track.start[a.i] - b.track.start[b.i]))[0];
    if (best) { lane.at = best.track.start[best.i]; app.selectSlice(best.track, best.i); }
  }
  canvas.onkeydown = e => {
    const span = app.state.to - app.state.from, d = e.key === "ArrowRight" ? 0.1 * span : -0.1 * span, lane = lanes[cursor];
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { cursor = Math.max(0, Math.min(lanes.length - 1, cursor + (e.key === "ArrowDown" ? 1 : -1))); app.say(lanes[cursor].name); reveal(cursor); draw(); }
    else if ((e.key === "Enter" || e.key === " ") && lane) { if (lane.kind === "thread") app.pick(lane.thread, e.ctrlKey || e.shiftKey); else if (lane.kind === "track") next(lane, e.shiftKey ? -1 : 1); else app.show("limits"); }
    else if (e.key === "ArrowLeft" || e.key === "ArrowRight") { if (e.shiftKey) app.select(app.state.from, app.state.to + d); else app.move(d); }
    else if (e.key === "+" || e.key === "-") app.zoom(e.key === "+" ? 0.8 : 1.25, 0.5);
    else return;
    e.preventDefault(); e.stopPropagation();
  };
  canvas.onfocus = canvas.onblur = () => draw();
  let drag = null;
  canvas.onpointerdown = e => {
    const lane = laneAt(e.offsetY);
    if (e.offsetX < LABEL) { if (lane && lane.kind === "thread") app.pick(lane.thread, e.ctrlKey || e.metaKey || e.shiftKey); return; }
    drag = { x: e.offsetX, moved: false, lane }; canvas.setPointerCapture(e.pointerId);
  };
  canvas.onpointermove = e => {
    if (drag && Math.abs(e.offsetX - drag.x) > 3) {
      drag.moved = app.dragging = true;
      app.select(Math.min(timeAt(drag.x), timeAt(e.offsetX)), Math.max(timeAt(drag.x), timeAt(e.offsetX)));
      return;
    }
    const lane = laneAt(e.offsetY);
    if (lane && lane.kind === "track" && e.offsetX >= LABEL) { const s = sliceAt(lane, e.offsetX); if (s) { app.tip(e, [app.sliceName(s.track, s.i), duration(s.track.end[s.i] - s.track.start[s.i]) + " from " + duration(s.track.start[s.i]) + " on " + s.track.title, app.trace.detail(s.track, s.i)]); return; } }
    if (lane && lane.kind === "marks" && e.offsetX >= LABEL) { const m = markAt(lane, e.offsetX); app.tip(e, m && [m.text()]); return; }
    if (lane && lane.kind === "thread") { app.tip(e, [lane.name, count(lane.thread.samples) + " samples, " + count(lane.thread.busy) + " on a CPU" + (lane.thread.cut ? ", " + count(lane.thread.cut) + " were cut" : ""), e.offsetX >= LABEL ? gapAt(lane.thread, e.offsetX) : null]); return; }
    app.tip(null);
  };
  canvas.onpointercancel = () => { drag = null; if (app.dragging) { app.dragging = false; app.redraw(); } };
  canvas.onpointerup = e => {
    if (app.dragging) { app.dragging = false; app.redraw(); }
    if (drag && !drag.moved && drag.lane) {
      if (drag.lane.kind === "track") { const s = sliceAt(drag.lane, e.offsetX); if (s) app.selectSlice(s.track, s.i); }
      else if (drag.lane.kind === "marks") { const m = markAt(drag.lane, e.offsetX); if (m) { app.select(m.from - 1e6, m.to + 1e6); app.show("limits"); } }
      else if (drag.lane.kind === "thread") app.pick(drag.lane.thread, e.ctrlKey || e.metaKey || e.shiftKey);
    }
    drag = null;
  };
  canvas.onpointerleave = () => app.tip(null);
  canvas.ondblclick = () => app.select(0, end);
  arrange();
  return { draw, forget() { imageKey = ""; } };
}
