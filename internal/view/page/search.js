// search.js finds methods: text, or /regular expression/. The hits are those of the selection.

const MOST_HITS = 200;

function makeSearch(app) {
  let hits = [], hit = -1, searched = "";
  app.found = null; // methods that the search finds; null: nothing is searched

  // tester returns what tells whether a name is found; null: it is no regular expression.
  function tester(q) {
    const re = q.match(/^\/(.+?)\/?$/);
    if (!re) return name => name.toLowerCase().includes(q.toLowerCase());
    try { const r = new RegExp(re[1], "i"); return name => r.test(name); } catch { return null; }
  }
  // search looks anew if the words or the selection have changed; list shows the hits in the panel.
  app.search = list => {
    const q = app.state.query.trim(), sum = app.sums(), key = q && q + "\n" + sum.key;
    if (key === searched) return;
    const again = searched && searched.split("\n")[0] === q, chosen = hits[hit];
    searched = key; app.found = null; hits = []; hit = -1;
    const test = q && tester(q);
    if (!test) { $("hits").textContent = q ? "not a regular expression" : ""; return; }
    const by = sum.methods();
    app.found = new Set();
    sum.names.forEach((n, m) => { if (test(n)) { app.found.add(m); if (by.total[m]) hits.push(m); } });
    hits.sort((a, b) => by.total[b] - by.total[a]);
    if (again) hit = hits.indexOf(chosen);
    $("hits").textContent = hits.length ? many(hits.length, "method") + ", " + duration(timeOf(sum)) + ", " + percent(timeOf(sum), sum.all) : "no such method here";
    if (list) app.details([element("h3", {}, hits.length > MOST_HITS ? "The first " + MOST_HITS + " hits" : "Hits"), element("ol", { class: "stack", id: "hitlist" }, ...hits.slice(0, MOST_HITS).map((m, k) => element("li", {}, element("button", { title: sum.names[m], onclick: () => { hit = k; app.explainMethod(m); } }, shortName(sum.names[m]), element("small", {}, " " + duration(by.total[m]) + ", " + percent(by.total[m], sum.all))))))]);
  };
  // timeOf is that of stacks that hold any of what was found, each once.
  function timeOf({ tree, self }) {
    const inside = new Uint8Array(tree.size);
    let time = 0;
    for (let i = 1; i < tree.size; i++) { inside[i] = inside[tree.parent[i]] || (app.found.has(tree.method[i]) ? 1 : 0); if (inside[i]) time += self[i]; }
    return time;
  }
  app.nextHit = step => {
    if (!hits.length) return;
    hit = hit < 0 && step < 0 ? hits.length - 1 : (hit + step + hits.length) % hits.length;
    app.explainMethod(hits[hit]);
    $("hits").textContent = count(hit + 1) + " of " + count(hits.length) + ": " + shortName(app.sums().names[hits[hit]]);
  };
}
