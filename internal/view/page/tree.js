// tree.js sums up: time of a selection by stack, and trees and tables made of that. It
// touches no document.

// A choice is what of the samples counts: threads, time, kind ("cpu", "wait", "all"), and
// which repairs are believed: hows (numbers of evidence; null: all), minConfidence (percent),
// recorded (none at all), raw (samples in which the sampler stops threads stay as they are), and
// request (only what was done for it).

// stackOf returns the stack that sample i of thread t has under a choice.
function stackOf(t, i, choice) {
  const how = t.flags[i] >> HOW;
  if (!how) return t.stack[i];
  if (choice.recorded || t.confidence[i] < choice.minConfidence || choice.hows && !choice.hows.has(how - 1)) return t.recorded[i];
  return t.stack[i];
}

// weigh sums the time of a choice by node: self, and marked, what of it a repair restored: a node
// of marked is the innermost restored frame; all its callers are restored too. As recorded,
// marked is instead what the repair moves elsewhere. before may be what weigh returned for a
// choice that differs in its times only: then what is new is added and what is gone taken away.
function weigh(trace, choice, before) {
  const { from, to } = choice, key = [choice.kind, choice.recorded, choice.raw, choice.minConfidence, choice.hows ? [...choice.hows].join() : "*", choice.request, choice.threads.map(t => t.index).join()].join("/");
  const known = before && before.key === key && before.from < to && from < before.to;
  const w = known ? before : { self: new Float64Array(trace.tree.size), marked: new Float64Array(trace.tree.size) };
  if (!known) addTime(trace, choice, w, from, to, 1);
  else {
    addTime(trace, choice, w, Math.min(from, w.from), Math.max(from, w.from), from < w.from ? 1 : -1);
    addTime(trace, choice, w, Math.min(to, w.to), Math.max(to, w.to), to > w.to ? 1 : -1);
  }
  return Object.assign(w, { key, from, to });
}

// addTime adds the time between from and to; times are whole nanoseconds, so that what is added can be
// taken away again. What was done for a request are samples, each whole, that were taken in that time.
function addTime(trace, choice, w, from, to, sign) {
  if (from >= to) return;
  for (const t of choice.threads) {
    if (!choice.request) { addSamples(trace.tree, t, choice, w, from, to, sign, lower(t.end, from + 1e-6), lower(t.start, to)); continue; }
    const first = lower(t.start, from), behind = lower(t.start, to);
    for (const [a, b] of workFor(t, choice.request)) addSamples(trace.tree, t, choice, w, 0, Infinity, sign, Math.max(a, first), Math.min(b, behind));
  }
}

function addSamples(tree, t, choice, w, from, to, sign, first, behind) {
  const { start, end, flags, stack } = t, { self, marked } = w, kind = choice.kind;
  for (let i = first; i < behind; i++) {
    const f = flags[i];
    if (kind !== "all" && busy(f) !== (kind === "cpu")) continue;
    const time = sign * (Math.min(end[i], to) - Math.max(start[i], from));
    const s = f >> HOW ? stackOf(t, i, choice) : stack[i], at = choice.raw ? s : tree.unpolled[s];
    self[at] += time;
    if (!(f >> HOW)) continue;
    if (choice.recorded) { marked[at] += time; continue; }
    const front = t.restored[i] - t.above[i]; // behind a bridge: the rest
    if (front <= 0 || s !== stack[i]) continue;
    let a = at;
    while (tree.depth[a] > front) a = tree.parent[a];
    marked[a] += time;
  }
}

// totals returns how much a node has with its callees, of what the nodes have themselves. room is an array
// that is no more needed, if there is one. Times are whole nanoseconds, so differences of sums are exact.
function totals({ end, size }, self, room) {
  const before = room && room.length === size + 1 ? room : new Float64Array(size + 1);
  for (let i = 0, sum = 0; i < size; i++) before[i + 1] = sum += self[i];
  return Object.assign(n => before[end[n]] - before[n], { room: before });
}

// reshape makes another tree of one, and the node there for each node here (0: not in it).
// rule may hold: recursion (true: a method that calls itself is one frame), hidden (a set of modules
// whose frames go to their callers), merged (a set of modules whose neighbouring frames are one),
// focus (a method: stacks begin with its outermost frame; what lacks it goes), methods (names).
function reshape(tree, rule) {
  const size = tree.size, to = new Uint32Array(size), inside = new Uint8Array(size);
  const parent = [0], method = [-1 >>> 0], children = new Map();
  const modules = rule.methods.map(moduleOf), single = new Map(), names = rule.methods.slice();
  inside[0] = rule.focus == null ? 1 : 0;
  for (let i = 1; i < size; i++) {
    const up = tree.parent[i], base = to[up];
    let m = tree.method[i];
    inside[i] = inside[up] || (m === rule.focus ? 1 : 0);
    if (!inside[i]) continue;
    const module = modules[m];
    if (rule.hidden && rule.hidden.has(module)) { to[i] = base; continue; }
    if (rule.merged && rule.merged.has(module)) {
      if (!single.has(module)) { single.set(module, names.length); names.push("[" + module + "]"); }
      m = single.get(module);
      if (method[base] === m) { to[i] = base; continue; }
    }
    if (rule.recursion && method[base] === m) { to[i] = base; continue; }
    const key = base * 2097152 + m;
    let n = children.get(key);
    if (n === undefined) { n = parent.length; children.set(key, n); parent.push(base); method.push(m); }
    to[i] = n;
  }
  const { tree: out, place } = depthFirst(newTree(Uint32Array.from(parent), Uint32Array.from(method)));
  return { tree: out, to: to.map(n => place[n]), inside, names };
}

// carry brings an array by node of one tree to that of its reshaped one.
function carry(shape, a) {
  const out = new Float64Array(shape.tree.size);
  for (let i = 0; i < a.length; i++) if (a[i] && shape.inside[i]) out[shape.to[i]] += a[i];
  return out;
}

// kids returns for each node its callees that have time, more than least, the largest first.
function kids(tree, total) {
  return (n, least = 0) => {
    const out = [];
    for (let k = tree.first[n]; k >= 0; k = tree.next[k]) if (total(k) > least) out.push(k);
    return out.length > 1 ? out.sort((a, b) => total(b) - total(a) || a - b) : out;
  };
}

// outermost marks the nodes whose method none of their callers runs: only their totals
// add up to the total of a method.
function outermost(tree, methods) {
  if (tree.outermost) return tree.outermost;
  const { first, next } = tree, out = new Uint8Array(tree.size), open = new Uint32Array(methods), path = [];
  for (let n = first[0]; n >= 0;) {
    const m = tree.method[n];
    out[n] = open[m]++ === 0 ? 1 : 0;
    path.push(n);
    if (first[n] >= 0) { n = first[n]; continue; }
    for (n = -1; path.length && n < 0;) { const p = path.pop(); open[tree.method[p]]--; n = next[p]; }
  }
  return tree.outermost = out;
}

// byMethod returns self and total by method.
function byMethod(tree, self, total, methods) {
  const s = new Float64Array(methods), t = new Float64Array(methods), out = outermost(tree, methods);
  for (let i = 1; i < tree.size; i++) { s[tree.method[i]] += self[i]; if (out[i]) t[tree.method[i]] += total(i); }
  return { self: s, total: t };
}

// An inverted node holds [node, time] pairs: frames that are all of one method, and the time of
// what called from there on. invert opens it: its callers, the largest first.
function invert(tree, pairs) {
  const by = new Map();
  for (const [node, w] of pairs) {
    const m = node ? tree.method[node] : -1;
    let g = by.get(m);
    if (!g) by.set(m, g = { method: m, time: 0, pairs: [] });
    g.time += w;
    if (node) g.pairs.push([tree.parent[node], w]);
  }
  return [...by.values()].filter(g => g.method >= 0).sort((a, b) => b.time - a.time || a.method - b.method);
}

// selfPairs are what an inverted tree begins with.
function selfPairs(self) { const out = []; for (let i = 1; i < self.length; i++) if (self[i]) out.push([i, self[i]]); return out; }

// around tells who calls method m and whom it calls, as [method, time] rows; -1: nobody. A stack counts once for each of
// them, however often it holds the pair.
function around(tree, self, total, m) {
  const callers = new Map(), callees = new Map(), above = new Map(), below = new Map();
  // Nodes stand in the order of a walk, so a pair that stands before seen ends lies inside another of its kind.
  const add = (rows, seen, key, n) => { if (total(n) && !(n < seen.get(key))) { seen.set(key, tree.end[n]); rows.set(key, (rows.get(key) || 0) + total(n)); } };
  for (let n = 1; n < tree.size; n++) {
    const up = tree.parent[n];
    if (up && tree.method[up] === m) add(callees, below, tree.method[n], n);
    if (tree.method[n] !== m) continue;
    add(callers, above, up ? tree.method[up] : -1, n);
    if (self[n]) callees.set(-1, (callees.get(-1) || 0) + self[n]);
  }
  return [callers, callees].map(rows => [...rows].sort((a, b) => b[1] - a[1] || a[0] - b[0]));
}

// layOut cuts a thread into rows of spans, one row a depth: what stays open from one sample to
// the next is one span. Stacks are those of a choice, and samples those that it holds. Span i of a row lasts from the start of sample first[i]
// to the end of sample last[i], and is of node[i].
function layOut(tree, t, choice, off) {
  const { parent, method, depth } = tree, rows = [], holds = wanted(t, choice);
  let open = new Uint32Array(128), since = new Uint32Array(128), n = 0, before = 0;
  const close = (to, last) => { while (n > to) { n--; (rows[n] ||= newRow()).add(since[n], last, open[n]); } };
  for (let i = 0; i < t.samples; i++) {
    if (holds && !holds(i)) { close(0, i - 1); n = before = 0; continue; }
    const whole = stackOf(t, i, choice), s = choice.raw ? whole : tree.unpolled[whole], f = t.flags[i], d = depth[s];
    let k = 0; // frames that stay open
    if (f & JOINED) {
      if (s === before && !(f & FRESH) && method[s] !== off) continue;
      let a = before, b = s;
      while (depth[a] > depth[b]) a = parent[a];
      while (depth[b] > depth[a]) b = parent[b];
      while (a !== b) { a = parent[a]; b = parent[b]; }
      k = depth[a];
      if (a === s && method[s] === off) k--; // each time off the CPU is its own
      if (f & FRESH) k = Math.min(k, Math.max(0, d - t.fresh[i])); // these began with this sample
    }
    close(k, i - 1);
    if (d > open.length) { open = grown(open, 2 * d); since = grown(since, 2 * d); }
    for (let m = s, x = d - 1; x >= k; x--) { open[x] = m; since[x] = i; m = parent[m]; }
    n = d; before = s;
  }
  close(0, t.samples - 1);
  for (const r of rows) { r.first = r.first.slice(0, r.n); r.last = r.last.slice(0, r.n); r.node = r.node.slice(0, r.n); }
  return rows;
}
function grown(a, n) { const b = new Uint32Array(n); b.set(a); return b; }
function newRow() {
  return { n: 0, first: new Uint32Array(16), last: new Uint32Array(16), node: new Uint32Array(16), add(first, last, node) {
    if (this.n === this.first.length) for (const k of ["first", "last", "node"]) this[k] = grown(this[k], this.n + (this.n >> 1));
    this.first[this.n] = first; this.last[this.n] = last; this.node[this.n++] = node;
  } };
}

// restoredRuns lists the times between from and to in which frames stand that a repair put back:
// start, end, how many in front of a bridge, how many behind it. They begin and end with the repaired samples.
function restoredRuns(t, choice, from, to) {
  const runs = [], { cuts } = t, holds = wanted(t, choice);
  if (!t.restored) return runs;
  for (let c = lower(cuts, lower(t.end, from)); c < cuts.length && t.start[cuts[c]] < to; c++) {
    const i = cuts[c], n = t.restored[i], above = t.above[i];
    if (!n || stackOf(t, i, choice) !== t.stack[i] || holds && !holds(i)) continue;
    const last = runs[runs.length - 1];
    if (last && last[1] === t.start[i] && last[2] === n - above && last[3] === above) last[1] = t.end[i];
    else runs.push([t.start[i], t.end[i], n - above, above]);
  }
  return runs;
}

// witness finds what a repair can rest on: the sample nearest to sample i that was recorded whole and
// has the same outer frames, of the same thread if there is one, and how many samples have them.
// at is the innermost frame that they share.
function witness(trace, t, i) {
  const { tree } = trace, front = t.restored[i] - t.above[i];
  if (front <= 0) return null;
  let at = t.stack[i];
  while (tree.depth[at] > front) at = tree.parent[at];
  const inside = new Uint8Array(tree.size);
  inside[at] = 1;
  for (let n = at + 1; n < tree.size; n++) inside[n] = inside[tree.parent[n]];
  let best = null, far = Infinity, found = 0;
  for (const o of trace.threads) for (let k = 0; k < o.samples; k++) {
    if (!inside[o.stack[k]] || o.flags[k] & CUT) continue;
    found++;
    const d = Math.abs(o.start[k] - t.start[i]) + (o === t ? 0 : 1e15);
    if (d < far) { far = d; best = { thread: o, sample: k }; }
  }
  return best && { ...best, at, found };
}

// gaps lists the longest stretches between the samples of threads for which none speaks, and why.
function gaps(trace, threads, most) {
  const out = [];
  for (const t of threads) for (let i = 1; i < t.samples; i++) if (t.start[i] > t.end[i - 1]) out.push({ thread: t, from: t.end[i - 1], to: t.start[i] });
  out.sort((a, b) => b.to - b.from - (a.to - a.from) || a.from - b.from);
  const list = out.slice(0, most);
  for (const g of list) g.why = whyGap(trace, g.thread, g.from, g.to);
  return { list, all: out.length };
}
const LOSS = "events were lost";
function lossIn(trace, t, from, to) { return trace.head.losses.some(l => l.from < to && l.to > from && (l.thread < 0 || l.thread === t.index)); }
function whyGap(trace, t, from, to) {
  if (lossIn(trace, t, from, to)) return LOSS;
  const before = lower(t.end, from), kind = before < t.samples ? t.flags[before] & 7 : UNKNOWN;
  if (kind === ON_CPU || kind === OFF_CPU) return "the thread was not on a CPU"; // what samples the CPUs sees no other
  const seen = own => trace.threads.some(o => { const i = lower(o.start, from); return o !== t && (o.pid === t.pid) === own && i < o.samples && o.start[i] < to; });
  return seen(true) ? "the sampler saw other threads and not this one" : seen(false) ? "the sampler saw other processes and not this one" : "no thread was sampled";
}

// gapText tells why no sample of thread t speaks just before its sample i.
function gapText(trace, t, i) {
  if (i === 0) return "before the first sample of this thread";
  if (i >= t.samples) return "behind the last sample of this thread";
  return duration(t.start[i] - t.end[i - 1]) + " without a sample: " + whyGap(trace, t, t.end[i - 1], t.start[i]);
}

// unknown sums up what the samples leave open: rows of what, samples, time.
function unknown(trace) {
  const { hows } = trace.head, rows = [["cut, and left as recorded: the outer frames are missing", 0, 0], ["cut, and bridged: some frames between are not known", 0, 0], ["restored with less than 80 % confidence", 0, 0],
    ["in native code or waiting: the sampler does not tell which", 0, 0], ["the runtime could not tell what the thread did", 0, 0]];
  const add = (k, t, i) => { rows[k][1]++; rows[k][2] += t.end[i] - t.start[i]; };
  for (const t of trace.threads) for (let i = 0; i < t.samples; i++) {
    const f = t.flags[i], how = f >> HOW;
    if (f & CUT && !how) add(0, t, i);
    if (how && hows[how - 1] === "bridge") add(1, t, i);
    else if (how && t.confidence[i] < 80) add(2, t, i);
    if ((f & 7) === EXTERNAL) add(3, t, i); else if ((f & 7) === UNKNOWN) add(4, t, i);
  }
  return rows.filter(r => r[1]);
}

// folded writes a selection as folded stacks with self time in microseconds. Samples without a frame are time, too.
function folded(tree, self, names) {
  const lines = [];
  for (let i = 0; i < tree.size; i++) {
    const us = Math.round(self[i] / 1000);
    if (us <= 0) continue;
    const path = i ? [] : ["[no frames]"];
    for (let n = i; n; n = tree.parent[n]) path.push(names[tree.method[n]].replace(/;/g, ","));
    lines.push(path.reverse().join(";") + " " + us);
  }
  return lines.join("\n") + "\n";
}

// speedscopeOf writes a selection as a speedscope file of one sampled profile.
function speedscopeOf(tree, self, names, title) {
  const index = new Map(), frames = [], samples = [], weights = [];
  let end = 0;
  for (let i = 0; i < tree.size; i++) {
    if (self[i] <= 0) continue;
    const path = [];
    for (let n = i; n; n = tree.parent[n]) {
      const m = tree.method[n];
      if (!index.has(m)) { index.set(m, frames.length); frames.push({ name: names[m] }); }
      path.push(index.get(m));
    }
    samples.push(path.reverse()); weights.push(self[i]); end += self[i];
  }
  return JSON.stringify({ $schema: "https://www.speedscope.app/file-format-schema.json", shared: { frames }, name: title, exporter: "tracefix", profiles: [{ type: "sampled", name: title, unit: "nanoseconds", startValue: 0, endValue: end, samples, weights }] });
}
