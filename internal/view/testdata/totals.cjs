// totals.cjs runs the page's program without a browser: node totals.js PAGE FOLDER. It prints what
// the page sums up for all threads and all time.
const fs = require("fs"), [page, folder] = process.argv.slice(2);
const html = fs.readFileSync(page, "utf8");
const get = name => [...html.matchAll(new RegExp(`<script type="[^"]*" class="${name}">([^]*?)</script>`, "g"))].map(m => m[1]);
const program = ["data.js", "tree.js"].map(f => fs.readFileSync(folder + "/" + f, "utf8")).join("");
const api = new Function(program + "; return { load, weigh, totals, byMethod, reshape, carry, invert, selfPairs, layOut, workFor, restoredRuns, folded, kids, around, stackOf, speedscopeOf }")();
const trace = api.load(get), end = trace.head.end;
const choice = (kind, more) => ({ threads: trace.threads, from: 0, to: end + 1, kind, recorded: false, raw: true, minConfidence: 0, hows: null, ...more });
const out = { kinds: {}, checks: [] };
const near = (a, b) => Math.abs(a - b) <= 1e-6 * Math.max(1, Math.abs(a), Math.abs(b));
function check(what, ok) { if (!ok) out.checks.push(what); }

for (const [kind, raw] of [["cpu", true], ["wait", true], ["charged", false]]) {
  const w = api.weigh(trace, choice(raw ? kind : "cpu", { raw })), total = api.totals(trace.tree, w.self);
  const by = api.byMethod(trace.tree, w.self, total, trace.methods.length), rows = {};
  trace.methods.forEach((m, i) => { if (by.total[i]) { const r = rows[m] ||= [0, 0]; r[0] += by.self[i]; r[1] += by.total[i]; } });
  out.kinds[kind] = rows;
}
const w = api.weigh(trace, choice("all")), total = api.totals(trace.tree, w.self), all = total(0);
// An inverted tree holds the same time as the tree, at each level of what has callers.
check("inverted", near(api.invert(trace.tree, api.selfPairs(w.self)).reduce((a, g) => a + g.time, 0) + w.self[0], all));
// Children never have more than their caller, and with its own time exactly as much.
const kidsOf = api.kids(trace.tree, total);
for (let n = 0; n < trace.tree.size; n++) if (total(n) && !near(kidsOf(n).reduce((a, k) => a + total(k), 0) + w.self[n], total(n))) { check("node " + n + " adds up", false); break; }
// Reshaping moves time and loses none, but for a focus.
const first = trace.methods[trace.tree.method[1]] || "", name = first.slice(0, Math.max(0, first.indexOf("!")));
for (const rule of [{ recursion: true }, { hidden: new Set([name]) }, { merged: new Set([name]) }]) {
  const shape = api.reshape(trace.tree, { ...rule, methods: trace.methods });
  check("reshape " + Object.keys(rule)[0], near(api.carry(shape, w.self).reduce((a, b) => a + b, 0), all));
}
const by = api.byMethod(trace.tree, w.self, total, trace.methods.length);
for (let m = 0; m < trace.methods.length; m += 1 + Math.floor(trace.methods.length / 50)) {
  const shape = api.reshape(trace.tree, { focus: m, methods: trace.methods });
  check("focus " + trace.methods[m], near(api.carry(shape, w.self).reduce((a, b) => a + b, 0), by.total[m]));
}
// Who calls a method and whom it calls, without the sampler's stops, as top --method tells.
out.around = {};
const charged = api.weigh(trace, choice("all", { raw: false })), chargedTotal = api.totals(trace.tree, charged.self);
for (let m = 0; m < trace.methods.length; m++) {
  const [callers, callees] = api.around(trace.tree, charged.self, chargedTotal, m).map(rows => Object.fromEntries(rows.map(([k, t]) => [k < 0 ? "" : trace.methods[k], t])));
  out.around[trace.methods[m]] = { callers, callees };
}
// What was done for each request, on a CPU and not, and that its spans in time order last as long.
out.requests = {};
for (const request of new Set(trace.threads.flatMap(t => [...t.work.request]))) {
  const sum = kind => api.weigh(trace, choice(kind, { request })).self.reduce((a, b) => a + b, 0);
  out.requests[request] = [sum("cpu"), sum("wait")];
  let drawn = 0, rootless = 0;
  for (const t of trace.threads) {
    const [row] = api.layOut(trace.tree, t, choice("all", { request }), trace.head.off);
    for (let i = 0; row && i < row.n; i++) drawn += t.end[row.last[i]] - t.start[row.first[i]];
    for (const [a, b] of api.workFor(t, request)) for (let i = a; i < b; i++) if (!t.stack[i]) rootless += t.end[i] - t.start[i];
  }
  check("spans of request " + request, near(drawn + rootless, sum("all")));
}
// Of spans the innermost time is that of the samples.
let spanned = 0, sampled = 0;
for (const t of trace.threads) {
  const rows = api.layOut(trace.tree, t, choice("all"), trace.head.off), start = (r, i) => t.start[r.first[i]], end = (r, i) => t.end[r.last[i]];
  if (rows[0]) for (let i = 0; i < rows[0].n; i++) spanned += end(rows[0], i) - start(rows[0], i);
  for (let i = 0; i < t.samples; i++) if (t.stack[i]) sampled += t.end[i] - t.start[i];
  for (const r of rows) for (let i = 1; i < r.n; i++) if (start(r, i) < end(r, i - 1)) { check("spans of one row overlap", false); break; }
}
// What a selection gains and loses when its times move is what it would be if added up anew.
let kept = null;
for (const [from, to] of [[0, end], [end * 0.2, end * 0.9], [end * 0.3, end * 0.5], [end * 0.25, end * 0.6], [end * 0.7, end * 0.8], [end * 0.1, end * 0.75]].map(r => r.map(Math.round))) {
  const at = choice("all", { from, to, raw: false }), fresh = api.weigh(trace, at);
  kept = api.weigh(trace, at, kept);
  check("moved to " + from, fresh.self.every((v, i) => v === kept.self[i]) && fresh.marked.every((v, i) => v === kept.marked[i]));
}
// Restored runs are the repaired samples and nothing else, to the nanosecond.
out.runs = [];
for (const t of trace.threads) for (const [a, b, front, behind] of api.restoredRuns(t, choice("all"), 0, end + 1)) out.runs.push([t.pid, t.tid, a, b, front, behind]);
out.spanned = spanned; out.sampled = sampled;
// As recorded, no stack is deeper, and nothing of the time is lost.
const before = api.weigh(trace, choice("all", { recorded: true }));
check("as recorded", near(before.self.reduce((a, b) => a + b, 0), all));
out.restored = w.marked.reduce((a, b) => a + b, 0);
out.moved = before.marked.reduce((a, b) => a + b, 0);
// Exports hold the selection.
const lines = api.folded(trace.tree, w.self, trace.methods).trim().split("\n");
check("folded", lines.every(l => / \d+$/.test(l)));
const s = JSON.parse(api.speedscopeOf(trace.tree, w.self, trace.methods, "t"));
check("speedscope", near(s.profiles[0].weights.reduce((a, b) => a + b, 0), all - w.self[0]));
out.slices = trace.tracks.map(t => [t.name, t.slices, t.start[0]]);
process.stdout.write(JSON.stringify(out));
