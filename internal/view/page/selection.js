// selection.js: what is selected of a trace, and its sums. Everything that is drawn follows from it.

// opening is the thread to begin with: of the user's process, which ran most managed code, the thread that was
// cut most of those that did much; if none was cut, the busiest.
function opening(threads) {
  const ran = new Map(), sum = t => [t.managed, t.busy, t.samples], most = (list, by) => list.reduce((a, t) => !a || differ(by(t), by(a)) > 0 ? t : a, null);
  for (const t of threads) ran.set(t.pid, sum(t).map((v, k) => v + (ran.get(t.pid) || [0, 0, 0])[k]));
  const process = most([...ran.keys()], p => ran.get(p)), own = threads.filter(t => t.pid === process), busiest = most(own, sum);
  return most(own.filter(t => 10 * t.managed >= busiest.managed), t => [t.cut, ...sum(t)]);
}
function differ(a, b) { for (let k = 0; k < a.length; k++) if (a[k] !== b[k]) return a[k] - b[k]; return 0; }

function makeSelection(app) {
  const { trace, label } = app, end = app.end;
  const state = app.state = { threads: new Set(), from: 0, to: end, view: "flame", kind: "all", recorded: false, raw: false, minConfidence: 0, hows: null, query: "", recursion: false, hidden: new Set(), merged: new Set(), focus: null, method: null, request: 0, zoom: 0, words: false };
  const first = opening(trace.threads);
  app.begin = () => Object.assign(state, { threads: new Set(first ? [first] : []), from: 0, to: end, view: first ? "flame" : "tracks", request: 0 });
  app.begin();

  app.selectedThreads = () => trace.threads.filter(t => state.threads.has(t));
  app.beliefs = () => [state.recorded, state.raw, state.minConfidence, state.hows ? [...state.hows].join() : "*"].join("/");
  app.choice = () => ({ threads: app.selectedThreads(), from: state.from, to: state.to, kind: state.kind, recorded: state.recorded, raw: state.raw, minConfidence: state.minConfidence, hows: state.hows, request: state.request });

  // sums are the selection added up, kept until something changes. What is summed next takes the place
  // of what was.
  let sumKey = "", sum = null, weighed = null, shapeKey = "", shape = null, shapeColour = null, shapeLabel = null;
  app.sums = () => {
    const s = state, rule = JSON.stringify([s.recursion, [...s.hidden], [...s.merged], s.focus]), choice = app.choice(), key = [choice.threads.map(t => t.index).join(), s.from, s.to, s.kind, s.request, app.beliefs(), rule, dark.matches].join("/");
    if (key === sumKey) return sum;
    if (rule !== shapeKey) {
      shape = s.recursion || s.hidden.size || s.merged.size || s.focus != null ? reshape(trace.tree, { recursion: s.recursion, hidden: s.hidden, merged: s.merged, focus: s.focus, methods: trace.methods }) : null;
      shapeColour = shape && palette(shape.names); shapeLabel = shape && labels(shape.names);
      if (shapeKey) app.views.flame.forget(); // its frames are others now
      shapeKey = rule;
    }
    const w = weighed = weigh(trace, choice, weighed), tree = shape ? shape.tree : trace.tree, names = shape ? shape.names : trace.methods;
    const brought = a => shape ? carry(shape, a) : a, self = brought(w.self), total = totals(tree, self, sum && sum.total.room), marked = trace.head.hows.length ? totals(tree, brought(w.marked), sum && sum.marked.room) : () => 0;
    let methods = null;
    sum = { tree, names, self, total, marked, all: total(0), kids: kids(tree, total), colour: shape ? shapeColour : app.colour, label: shape ? shapeLabel : label, methods: () => methods ||= byMethod(tree, self, total, names.length), key };
    sumKey = key;
    return sum;
  };
  app.repaint = () => { shapeKey = "-"; }; // colours are others now
  // everything is the time of all samples of the chosen kind.
  const everything = {};
  app.everything = () => everything[state.kind] ||= trace.threads.reduce((sum, t) => { for (let i = 0; i < t.samples; i++) if (state.kind === "all" || busy(t.flags[i]) === (state.kind === "cpu")) sum += t.end[i] - t.start[i]; return sum; }, 0);

  app.select = (from, to, keep) => {
    const span = Math.max(1000, Math.min(end, to - from));
    if (keep) { from = Math.max(0, Math.min(from, end - span)); to = from + span; }
    state.from = Math.round(Math.max(0, Math.min(from, end - 1000))); state.to = Math.round(Math.min(end, Math.max(to, state.from + 1000)));
    app.redraw();
  };
  app.nothing = () => state.request ? "No sample of this kind was taken while the selected threads worked for request " + state.request + "." : "Nothing of this kind is in the selection.";
  app.selectAll = () => { state.request = 0; app.select(0, end); };
  app.move = d => app.select(state.from + d, state.to + d, true);
  app.zoom = (f, x) => { const t = state.from + x * (state.to - state.from); app.select(t - (t - state.from) * f, t + (state.to - t) * f); };
  app.show = view => { state.view = view; app.redraw(); };
  app.pick = (t, more) => {
    const s = state.threads;
    if (!more) s.clear();
    if (more && s.has(t)) s.delete(t); else s.add(t);
    app.say(app.threadName(t) + (s.has(t) ? " selected" : " taken away"));
    app.redraw();
  };
  app.pickAll = () => { state.threads = new Set(trace.threads); app.redraw(); };
  app.pickNext = step => { const list = trace.threads, i = list.findIndex(t => state.threads.has(t)); if (list.length) app.pick(list[(i + list.length + step) % list.length]); };
  const worked = request => trace.threads.some(t => t.work.request.includes(request));
  // onlyRequest shows what was done for a request: all samples of all threads that worked for it, also those in the
  // middle of which it ended.
  app.onlyRequest = request => {
    let { from, to } = state;
    for (const t of trace.threads) for (const [a, b] of workFor(t, request)) if (a < b) { from = Math.min(from, t.start[a]); to = Math.max(to, t.end[b - 1]); }
    state.threads = new Set(trace.threads.filter(t => t.work.request.includes(request)));
    app.select(from, to);
    state.request = request;
  };
  // selectSlice selects the time of what a track shows, and the threads that it is about: that it happened
  // on, or that worked for the request.
  app.selectSlice = (track, i) => {
    const from = track.start[i], to = track.end[i], request = track.request[i], on = trace.threads.filter(t => t.index === track.thread[i] || request && t.work.request.includes(request));
    if (on.length) state.threads = new Set(on);
    state.request = 0;
    const pad = Math.max(1000, (to - from) * 0.02);
    app.select(from - pad, to + pad);
    app.explainSlice(track, i, request && worked(request));
  };
  const sliceOf = id => { for (const track of trace.tracks) { const i = track.request.indexOf(id); if (i >= 0) return [track, i]; } return null; };
  // knows says whether the page can show what was done for a request, and tells it if it cannot.
  app.knows = id => {
    if (worked(id)) return true;
    if (!sliceOf(id)) {
      const text = "No request of this page has the number " + id + ".";
      app.details([element("h3", {}, "Request " + id), element("p", {}, text + " The link may be of another trace, or the page has a part of the time only.")]);
      app.say(text);
    }
    return false;
  };
  // selectRequest selects a request by its number in `tracefix http`.
  app.selectRequest = id => {
    const at = sliceOf(id), known = app.knows(id);
    if (at) app.selectSlice(...at);
    if (known) app.onlyRequest(id);
  };
}
