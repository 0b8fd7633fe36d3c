// main.js puts the page together: the trace, what is selected of it, the views, and what people do.

// withNumber is the name of a thread with its number, which the names of some formats hold already.
function withNumber(name, tid) { return !name ? "Thread " + tid : name.split(/\D+/).includes("" + tid) ? name : name + " (" + tid + ")"; }

// processNamer returns how the process of a thread is called: with its number where two have one name.
// A number does not tell: programs have one after another, or one at once where a trace has names in place of it.
function processNamer(threads) {
  const numbers = new Map();
  for (const t of threads) numbers.set(t.process, (numbers.get(t.process) || new Set()).add(t.pid));
  return t => !t.process ? "" + t.pid : numbers.get(t.process).size > 1 ? t.process + " (" + t.pid + ")" : t.process;
}

function start() {
  const parts = name => [...document.querySelectorAll("script." + name)];
  const trace = load(name => parts(name).map(e => e.textContent)), { head } = trace;
  for (const name of ["nodes", "samples", "slices", "work"]) parts(name).forEach(e => e.remove());
  trace.threads.sort((a, b) => b.busy - a.busy || b.samples - a.samples || a.index - b.index); // what worked stands first, everywhere
  let colour = palette(trace.methods);
  const processName = processNamer(trace.threads);
  const app = {
    trace, end: Math.max(head.end, 1), label: labels(trace.methods),
    colour: (m, faded) => colour(m, faded),
    threadName: t => withNumber(t.name, t.tid) + (head.processes > 1 ? " of " + processName(t) : ""),
  };
  let pending = false;
  app.redraw = () => { if (!pending) { pending = true; requestAnimationFrame(() => { pending = false; draw(); }); } }; // once a frame at most
  makeSelection(app);
  makeExplain(app);
  makeSearch(app);
  makeAddress(app);
  makeExports(app);
  const overview = makeOverview(app);
  app.views = { time: makeTimeOrder(app), flame: makeFlame(app), ...makeTables(app) };
  app.spans = app.views.time.spans; // how many the selected threads have
  makeControls(app);
  // While somebody drags, tables wait until that ends or pauses: to make them takes longer than a frame.
  let waiting = 0;
  function draw() {
    clearTimeout(waiting);
    keepingFocus([$("table"), $("rules")], () => {
      app.drawControls();
      overview.draw();
      if (app.dragging && !app.onCanvas()) waiting = setTimeout(() => keepingFocus([$("table")], drawView), 250); else drawView();
    });
    app.remember();
  }
  function drawView() {
    app.search();
    app.drawnView().draw();
  }
  dark.onchange = () => { hatches = {}; colour = palette(trace.methods); app.repaint(); overview.forget(); app.redraw(); };
  app.recall();
  draw();
  performance.mark("drawn");
  window.tracefix = app; // for tests, and for who wants to look
}
start();
