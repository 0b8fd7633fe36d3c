// save.js: export of the selection as a file.

function makeExports(app) {
  const { head } = app.trace, stem = head.title.replace(/\.[^.]*$/, "") || "trace";
  function save(name, type, content) {
    app.saved = { name, type, content };
    const a = element("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  }
  const picture = () => app.views[app.state.view === "time" ? "time" : "flame"].svg();
  app.exports = {
    folded: () => { const s = app.sums(); save(stem + ".folded", "text/plain", folded(s.tree, s.self, s.names)); },
    speedscope: () => { const s = app.sums(); save(stem + ".speedscope.json", "application/json", speedscopeOf(s.tree, s.self, s.names, head.title)); },
    svg: () => save(stem + ".svg", "image/svg+xml", picture()),
    png: () => {
      const svg = picture(), image = new Image(), size = svg.match(/width="([\d.]+)" height="([\d.]+)"/);
      // Browsers have no canvas that is larger; what is taller becomes smaller, as a whole.
      const scale = Math.min(1, 32767 / size[1], 32767 / size[2]), [width, height] = [size[1], size[2]].map(v => Math.max(1, Math.floor(v * scale)));
      image.onload = () => { const c = element("canvas", { width, height }); c.getContext("2d").drawImage(image, 0, 0, width, height); c.toBlob(b => save(stem + ".png", "image/png", b)); };
      image.src = "data:image/svg+xml," + encodeURIComponent(svg);
    },
  };
}
