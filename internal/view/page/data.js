// data.js reads what Go wrote into the page (see view.go): one JSON head, and columns of
// LEB128 numbers in base64. It touches no document, so that tests can run it.

const MANAGED = 0, EXTERNAL = 1, ON_CPU = 2, OFF_CPU = 3, UNKNOWN = 4; // sample types of profile.SampleType
const CUT = 8, JOINED = 16, FRESH = 32, HOW = 6; // bits of a sample's flags
const LOST = "[frames lost]";

// bytesOf decodes base64.
function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const s = atob(text), b = new Uint8Array(s.length);
  for (let i = 0; i < b.length; i++) b[i] = s.charCodeAt(i);
  return b;
}

// joined puts the parts of a column together.
function joined(parts) {
  if (parts.length === 1) return parts[0];
  const b = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) { b.set(p, at); at += p.length; }
  return b;
}

// column returns a function that reads the next number of a column.
function column(texts) {
  const b = joined(texts.map(bytesOf));
  let p = 0;
  return () => {
    let c = b[p++];
    if (c < 128) return c;
    let v = c & 127, m = 128;
    for (;;) { c = b[p++]; v += (c & 127) * m; if (!(c >= 128)) return v; m *= 128; } // behind the end there is nothing, too
  };
}

// load makes the trace of what get(name) returns: the texts of all parts by a name. Stacks are nodes of one tree, 0 its
// root, callers before callees; nodes of one caller that run the same method are one.
function load(get) {
  const head = JSON.parse(get("head")[0]);
  for (const [m, length] of head.modules) modules.set(head.methods[m], length);
  const tree = readTree(column(get("nodes")), head.nodes);
  const next = column(get("samples"));
  for (const t of head.threads) readSamples(t, next, tree.of);
  const slice = column(get("slices"));
  for (const t of head.tracks) readSlices(t, slice);
  const work = column(get("work"));
  for (const t of head.threads) readWork(t, work);
  delete tree.of;
  // Samples in which the sampler itself stops threads count as their callers'.
  const polls = new Set(head.polls);
  tree.unpolled = new Uint32Array(tree.size);
  for (let n = 1; n < tree.size; n++) tree.unpolled[n] = polls.size && tree.parent[n] && polls.has(tree.method[n]) ? tree.unpolled[tree.parent[n]] : n;
  const detail = detailsOf(get);
  return { head, tree, threads: head.threads.filter(t => t.samples), tracks: head.tracks.filter(t => t.slices), methods: head.methods, detail: (track, i) => detail(track.detail[i]) };
}

// detailsOf returns a function that finds what slices tell by its number; "" is 0. Each part is a list behind the number of
// its first one, and is read when it is asked for.
function detailsOf(get) {
  let parts = null, firsts;
  return k => {
    if (!k) return "";
    if (!parts) { parts = get("told"); firsts = parts.map(text => parseInt(text.slice(1, 20))); }
    const i = lower(firsts, k + 1) - 1;
    if (typeof parts[i] === "string") parts[i] = JSON.parse(parts[i]);
    return parts[i][1 + k - firsts[i]];
  };
}

function readTree(next, count) {
  const parent = new Uint32Array(count), method = new Uint32Array(count), of = new Uint32Array(count);
  let size = 1, slots = 1;
  while (slots < 2 * count) slots *= 2;
  const table = new Uint32Array(slots); // open addressing: node by caller and method
  for (let i = 1; i < count; i++) {
    const up = of[i - next()], m = next();
    let h = (Math.imul(up, 0x9e3779b1) ^ Math.imul(m, 0x85ebca6b)) >>> 0 & slots - 1;
    for (; table[h]; h = h + 1 & slots - 1) if (parent[table[h]] === up && method[table[h]] === m) break;
    if (!table[h]) { table[h] = size; parent[size] = up; method[size] = m; size++; }
    of[i] = table[h];
  }
  const { tree, place } = depthFirst(newTree(parent.slice(0, size), method.slice(0, size)));
  for (let i = 1; i < count; i++) of[i] = place[of[i]];
  return { ...tree, of };
}

// depthFirst numbers the nodes of a tree anew, each callee next to its caller, so that what a node calls stands
// between it and end[node]: sums over the tree go through memory in order. place is the new number of each node.
function depthFirst({ parent, method, first, next, size }) {
  const place = new Uint32Array(size), up = new Uint32Array(size), runs = new Uint32Array(size);
  for (let n = first[0], at = 1; n > 0; at++) {
    place[n] = at; up[at] = place[parent[n]]; runs[at] = method[n];
    if (first[n] >= 0) { n = first[n]; continue; }
    while (n && next[n] < 0) n = parent[n];
    n = n && next[n];
  }
  const tree = newTree(up, runs), end = tree.end = new Uint32Array(size);
  for (let i = size - 1; i >= 0; i--) { end[i] = Math.max(end[i], i + 1); if (i) end[up[i]] = Math.max(end[up[i]], end[i]); }
  return { tree, place };
}

// newTree adds depths and lists of callees (first, next; -1: none) to a tree of callers and methods.
// The root's method is none.
function newTree(parent, method) {
  const size = parent.length, depth = new Uint32Array(size), first = new Int32Array(size).fill(-1), next = new Int32Array(size).fill(-1);
  method[0] = -1 >>> 0;
  for (let i = 1; i < size; i++) depth[i] = depth[parent[i]] + 1;
  for (let i = size - 1; i > 0; i--) { next[i] = first[parent[i]]; first[parent[i]] = i; }
  return { parent, method, depth, first, next, size };
}

function readSamples(t, next, of) {
  const n = t.samples;
  t.start = new Float64Array(n); t.end = new Float64Array(n); t.stack = new Uint32Array(n); t.flags = new Uint16Array(n);
  if (t.repaired) { t.recorded = new Uint32Array(n); t.restored = new Uint16Array(n); t.above = new Uint16Array(n); t.confidence = new Uint8Array(n); }
  t.cuts = new Uint32Array(t.cut); // indices of what was cut
  for (let i = 0, at = 0, cut = 0; i < n; i++) {
    t.start[i] = at += next(); t.end[i] = at += next(); t.stack[i] = of[next()];
    const f = t.flags[i] = next();
    if (f & CUT) t.cuts[cut++] = i;
    if (f & FRESH) (t.fresh ||= new Uint16Array(n))[i] = next();
    if (f >> HOW) { t.restored[i] = next(); t.above[i] = next(); t.confidence[i] = next(); t.recorded[i] = of[next()]; }
  }
}

function readSlices(t, next) {
  const n = t.slices;
  t.title = t.name;
  t.start = new Float64Array(n); t.end = new Float64Array(n); t.name = new Uint32Array(n); t.thread = new Int32Array(n); t.detail = new Uint32Array(n); t.request = new Uint32Array(n);
  const bits = new Uint32Array(t.group === "counters" ? n : 0);
  if (bits.length) t.value = new Float32Array(bits.buffer);
  let at = 0;
  for (let i = 0; i < n; i++) { t.start[i] = at += next(); t.end[i] = at + next(); t.name[i] = next(); t.thread[i] = next() - 1; t.detail[i] = next(); t.request[i] = next(); if (t.value) bits[i] = next(); }
  // The longest so far tells how far back a slice may begin that still lasts.
  t.reach = new Float64Array(n);
  for (let i = 0, far = 0; i < n; i++) t.reach[i] = far = Math.max(far, t.end[i]);
}

// readWork reads which runs of a thread's samples were taken while it worked for which request.
function readWork(t, next) {
  const n = t.works;
  t.work = { first: new Uint32Array(n), samples: new Uint32Array(n), request: new Uint32Array(n) };
  for (let i = 0, at = 0; i < n; i++) { t.work.first[i] = at += next(); t.work.samples[i] = next(); t.work.request[i] = next(); }
}

// workFor yields these runs of a request: the first sample, and the one behind the last.
function* workFor(t, request) {
  const w = t.work;
  for (let i = w.request.indexOf(request); i >= 0; i = w.request.indexOf(request, i + 1)) yield [w.first[i], w.first[i] + w.samples[i]];
}

// wanted returns what tells of a sample of t whether a choice of kind and request holds it; null: all are.
function wanted(t, { kind, request }) {
  if (kind === "all" && !request) return null;
  const of = new Uint8Array(request ? t.samples : 0);
  if (request) for (const [a, b] of workFor(t, request)) of.fill(1, a, b);
  return i => (!request || of[i] === 1) && (kind === "all" || busy(t.flags[i]) === (kind === "cpu"));
}

// lower returns the first index of ascending a, from lo on, whose value is not below x.
function lower(a, x, lo = 0) { let hi = a.length; while (lo < hi) { const m = lo + hi >> 1; if (a[m] < x) lo = m + 1; else hi = m; } return lo; }

// busy says whether a sample was on a CPU, as far as the trace tells.
function busy(flags) { const k = flags & 7; return k === MANAGED || k === ON_CPU; }

function escapeText(s) { return s.replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]); }
function count(n) { return n.toLocaleString("en"); }
function many(n, what) { return count(n) + " " + what + (n === 1 ? "" : "s"); }
function duration(ns) {
  const a = Math.abs(ns);
  return a >= 1e10 ? count(+(ns / 1e9).toFixed(1)) + " s" : a >= 1e9 ? (ns / 1e9).toFixed(3) + " s" : a >= 1e6 ? (ns / 1e6).toFixed(a >= 1e8 ? 0 : 2) + " ms" : a >= 1e3 ? (ns / 1e3).toFixed(1) + " µs" : ns.toFixed(0) + " ns";
}
function percent(part, whole) { const p = whole ? 100 * part / whole : 0; return (p >= 99.95 || p === 0 ? p.toFixed(0) : p >= 10 ? p.toFixed(1) : p >= 0.01 ? p.toFixed(2) : "<0.01") + " %"; }
// moduleEnd is where the "!" behind the module of a name stands; -1: the name has none. Names of events hold any text, so
// what looks like no Module!Method is none, unless the trace says so (see view.go).
const modules = new Map(); // names of methods whose module looks like no module: how long it is
function moduleEnd(name) { const known = modules.get(name); return known != null ? known : /^[^! ("'<>]+![^ !=),;:"']/.test(name) ? name.indexOf("!") : -1; }
function plainName(name) { return name.slice(moduleEnd(name) + 1); }
function shortName(name) { const s = plainName(name), p = s.indexOf("("); return p > 0 ? s.slice(0, p) : s; }
function moduleOf(name) { return name.slice(0, Math.max(0, moduleEnd(name))); }
