// tree.js sums up: time of a selection by stack, and trees and tables made of that. It
// touches no document.

// A choice is what of the samples counts: threads, time, kind ("cpu", "wait", "all"), and
// which repairs are believed: hows (numbers of evidence; null: all), minConfidence (percent),
// recorded (none at all), and raw (samples in which the sampler stops threads stay as they are).

// stackOf returns the stack that sample i of thread t has under a choice.
function stackOf(t, i, choice) {
  const how = t.flags[i] >> HOW;
  if (!how) return t.stack[i];
  if (choice.recorded || t.confidence[i] < choice.minConfidence || choice.hows && !choice.hows.has(how - 1)) return t.recorded[i];
  return t.stack[i];
}

// weigh sums the time of a choice by node: self, and fixed, what of it a repair restored.
// A node of fixed is the innermost restored frame; all its callers are restored too.
function weigh(trace, choice) {
  const tree = trace.tree, self = new Float64Array(tree.size), fixed = new Float64Array(tree.size);
  let samples = 0;
  for (const t of choice.threads) {
    for (let i = Math.max(0, lower(t.end, choice.from)); i < t.samples && t.start[i] < choice.to; i++) {
      if (choice.kind !== "all" && busy(t.flags[i]) !== (choice.kind === "cpu")) continue;
      const w = Math.min(t.end[i], choice.to) - Math.max(t.start[i], choice.from);
      if (w <= 0) continue;
      samples++;
      const s = stackOf(t, i, choice), at = choice.raw ? s : tree.unpolled[s];
      self[at] += w;
      const front = t.flags[i] >> HOW ? t.restored[i] - t.above[i] : 0; // behind a bridge: the rest
      if (front > 0 && s === t.stack[i]) {
        let a = at;
        while (tree.depth[a] > front) a = tree.parent[a];
        fixed[a] += w;
      }
    }
  }
  return { self, fixed, samples };
}

// totals adds to every node what its callees have, in place, and returns the array.
function totals(tree, a) {
  for (let i = a.length - 1; i > 0; i--) a[tree.parent[i]] += a[i];
  return a;
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
  const out = newTree(Uint32Array.from(parent), Uint32Array.from(method));
  return { tree: out, to, inside, names };
}

// carry brings an array by node of one tree to that of its reshaped one.
function carry(shape, a) {
  const out = new Float64Array(shape.tree.size);
  for (let i = 0; i < a.length; i++) if (a[i] && shape.inside[i]) out[shape.to[i]] += a[i];
  return out;
}

// kids returns for each node its callees that have time, the largest first.
function kids(tree, total) {
  const first = new Int32Array(tree.size).fill(-1), next = new Int32Array(tree.size).fill(-1);
  for (let i = tree.size - 1; i > 0; i--) if (total[i] > 0) { next[i] = first[tree.parent[i]]; first[tree.parent[i]] = i; }
  return n => {
    const out = [];
    for (let k = first[n]; k >= 0; k = next[k]) out.push(k);
    return out.sort((a, b) => total[b] - total[a] || a - b);
  };
}

// outermost marks the nodes whose method none of their callers runs: only their totals
// add up to the total of a method.
function outermost(tree, methods) {
  const out = new Uint8Array(tree.size), open = new Uint32Array(methods), path = [];
  const first = new Int32Array(tree.size).fill(-1), next = new Int32Array(tree.size).fill(-1);
  for (let i = tree.size - 1; i > 0; i--) { next[i] = first[tree.parent[i]]; first[tree.parent[i]] = i; }
  for (let n = first[0]; n >= 0;) {
    const m = tree.method[n];
    out[n] = open[m]++ === 0 ? 1 : 0;
    path.push(n);
    if (first[n] >= 0) { n = first[n]; continue; }
    for (n = -1; path.length && n < 0;) { const p = path.pop(); open[tree.method[p]]--; n = next[p]; }
  }
  return out;
}

// byMethod returns self and total by method.
function byMethod(tree, self, total, methods) {
  const s = new Float64Array(methods), t = new Float64Array(methods), out = outermost(tree, methods);
  for (let i = 1; i < tree.size; i++) { s[tree.method[i]] += self[i]; if (out[i]) t[tree.method[i]] += total[i]; }
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

// callersOf are the inverted nodes above the outermost frames of a method, and calleesOf the
// tree below all of them as [method, time] rows.
function methodPairs(tree, total, out, m) { const p = []; for (let i = 1; i < tree.size; i++) if (tree.method[i] === m && out[i] && total[i]) p.push([tree.parent[i], total[i]]); return p; }
function callees(tree, total, out, m) {
  const by = new Map();
  for (let i = 1; i < tree.size; i++) {
    const up = tree.parent[i];
    if (up && tree.method[up] === m && total[i] && tree.method[i] !== m) by.set(tree.method[i], (by.get(tree.method[i]) || 0) + total[i]);
  }
  return [...by].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
}

// spans cuts a thread into rows of spans, one row a depth: what stays open from one sample to
// the next is one span. Stacks are those of a choice.
function spans(tree, t, choice, off) {
  const rows = [], open = [], path = [];
  const row = d => rows[d] || (rows[d] = { n: 0, start: new Float64Array(16), end: new Float64Array(16), method: new Uint32Array(16) });
  const close = (to, at) => {
    while (open.length > to) {
      const o = open.pop(), r = row(open.length);
      if (r.n === r.start.length) for (const k of ["start", "end", "method"]) { const b = new r[k].constructor(2 * r.n); b.set(r[k]); r[k] = b; }
      r.start[r.n] = o.start; r.end[r.n] = at; r.method[r.n++] = o.method;
    }
  };
  let last = 0, before = -1;
  for (let i = 0; i < t.samples; i++) {
    const whole = stackOf(t, i, choice), s = choice.raw ? whole : tree.unpolled[whole], away = (t.flags[i] & 7) === OFF_CPU, joined = t.flags[i] & JOINED;
    if (joined && s === before && !away && !(t.flags[i] & FRESH)) { last = t.end[i]; continue; }
    path.length = 0;
    for (let n = s; n; n = tree.parent[n]) path.push(tree.method[n]);
    path.reverse();
    let k = 0;
    const shared = path.length - (t.flags[i] & FRESH ? t.fresh[i] : 0); // the others began with this sample
    if (joined) while (k < open.length && k < shared && open[k].method === path[k] && path[k] !== off) k++; // each time off the CPU is its own
    close(k, last);
    for (let d = k; d < path.length; d++) open.push({ start: t.start[i], method: path[d] });
    last = t.end[i];
    before = away ? -1 : s;
  }
  close(0, last);
  for (const r of rows) for (const k of ["start", "end", "method"]) r[k] = r[k].subarray(0, r.n);
  return rows;
}

// folded writes a selection as folded stacks with self time in microseconds.
function folded(tree, self, names) {
  const lines = [];
  for (let i = 1; i < tree.size; i++) {
    const us = Math.round(self[i] / 1000);
    if (us <= 0) continue;
    const path = [];
    for (let n = i; n; n = tree.parent[n]) path.push(names[tree.method[n]].replace(/;/g, ","));
    lines.push(path.reverse().join(";") + " " + us);
  }
  return lines.join("\n") + "\n";
}

// speedscopeOf writes a selection as a speedscope file of one sampled profile.
function speedscopeOf(tree, self, names, title) {
  const index = new Map(), frames = [], samples = [], weights = [];
  let end = 0;
  for (let i = 1; i < tree.size; i++) {
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
