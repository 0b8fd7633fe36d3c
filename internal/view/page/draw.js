// draw.js: what views draw on, colours, and the hatching that marks what a repair put back.

const $ = id => document.getElementById(id);
const ROW = 18, FONT = "12px system-ui, sans-serif";
const dark = matchMedia("(prefers-color-scheme: dark)");
function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

// Colours in pixels are 0xAABBGGRR, as the bytes of a canvas stand.
function packed(hex) { return (255 << 24 | parseInt(hex.slice(5, 7), 16) << 16 | parseInt(hex.slice(3, 5), 16) << 8 | parseInt(hex.slice(1, 3), 16)) >>> 0; }
function hexOf(c) { return "#" + [c & 255, c >> 8 & 255, c >> 16 & 255].map(v => v.toString(16).padStart(2, "0")).join(""); }
function ofHSL(h, s, l) {
  const f = n => { const k = (n + h / 30) % 12; return Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1)))); };
  return (255 << 24 | f(4) << 16 | f(8) << 8 | f(0)) >>> 0;
}
function mixed(a, b, part) { let c = 255 << 24; for (const k of [0, 8, 16]) c |= Math.round((a >> k & 255) * part + (b >> k & 255) * (1 - part)) << k; return c >>> 0; }

// Modules get one of these, as hue, saturation and lightness in percent: text stands on all of them, and
// they stay apart for people with deuteranopia (see colours_test.go).
const MODULE_COLOURS = { light: [[20, 45, 66], [50, 60, 78], [70, 60, 66], [150, 60, 74], [230, 60, 74], [290, 30, 84], [310, 45, 68], [340, 30, 68]],
  dark: [[0, 40, 22], [20, 55, 34], [200, 55, 32], [220, 55, 40], [230, 25, 20], [240, 55, 44], [250, 55, 22], [340, 25, 40]] };

// palette returns the colour of method m; of one module they differ a little. Faded ones are
// those that a search did not find.
function palette(names) {
  const plain = new Uint32Array(names.length), faded = new Uint32Array(names.length), list = MODULE_COLOURS[dark.matches ? "dark" : "light"], bg = packed(css("--bg"));
  return (m, fade) => {
    if (!plain[m]) {
      const name = names[m] || "", module = moduleOf(name) || name;
      let h = 0; for (let i = 0; i < module.length; i++) h = h * 31 + module.charCodeAt(i) >>> 0;
      let v = 0; for (let i = 0; i < name.length; i++) v = v * 33 + name.charCodeAt(i) >>> 0;
      const [hue, s, l] = list[((h ^ h >>> 13) >>> 0) % list.length];
      plain[m] = name === LOST ? packed(css("--bridge")) : ofHSL(hue, s / 100, (l + v % 7 - 3) / 100);
      faded[m] = mixed(plain[m], bg, 0.3);
    }
    return fade ? faded[m] : plain[m];
  };
}

// labels returns a function that gives as much of a method's name as fits: with its arguments,
// without, or its end.
function labels(names) {
  const ruler = document.createElement("canvas").getContext("2d"), known = [];
  ruler.font = FONT;
  return (m, room) => {
    if (room < 24) return "";
    let k = known[m];
    if (!k) {
      const s = plainName(names[m]), short = shortName(names[m]);
      k = known[m] = { s, short, wide: ruler.measureText(s).width, narrow: ruler.measureText(short).width };
    }
    if (k.wide <= room) return k.s;
    if (k.narrow <= room) return k.short;
    const chars = Math.floor(room * 0.94 / (k.narrow / k.short.length)) - 1;
    return chars > 1 ? "…" + k.short.slice(-chars) : "";
  };
}

// The kinds of hatching: their colour, and whether they rise or fall. Each is also told in words.
const HATCHES = { restored: ["--ok", 1], moved: ["--left", -1], lost: ["--bg", 1], loss: ["--left", 1] };

// canvasPaper is a canvas to draw on. Boxes are set as pixels, since tens of thousands of
// them are drawn in a frame; hatching and text come over them with done().
function canvasPaper(canvas, w = canvas.clientWidth, h = canvas.clientHeight) {
  const r = window.devicePixelRatio || 1, W = Math.max(1, Math.round(w * r)), H = Math.max(1, Math.round(h * r));
  if (canvas.width !== W || canvas.height !== H || !canvas.image) { canvas.width = W; canvas.height = H; canvas.image = new ImageData(W, H); }
  const g = canvas.getContext("2d"), px = new Uint32Array(canvas.image.data.buffer), over = [], texts = [], ink = css("--ink");
  px.fill(packed(css("--bg")));
  return {
    w, h, scale: r, width: W,
    // row paints boxes side by side: paint gets box(x0, x1, colour), in device pixels.
    row(y, high, paint) {
      const y0 = Math.max(0, Math.round(y * r)), y1 = Math.min(H, Math.round((y + high) * r));
      if (y1 <= y0) return;
      const at = y0 * W;
      paint((x0, x1, colour) => { if (x1 - x0 > 8) px.fill(colour, at + x0, at + x1); else for (let x = x0; x < x1; x++) px[at + x] = colour; });
      for (let k = y0 + 1; k < y1; k++) px.copyWithin(k * W, at, at + W);
    },
    rect(x, y, wide, high, colour) {
      const x0 = Math.max(0, Math.round(x * r)), x1 = Math.min(W, Math.max(x0 + 1, Math.round((x + wide) * r))), y1 = Math.min(H, Math.round((y + high) * r));
      for (let k = Math.max(0, Math.round(y * r)); k < y1 && x1 > x0; k++) px.fill(colour, k * W + x0, k * W + x1);
    },
    hatch(x, y, wide, high, kind) { over.push([x, y, wide, high, kind]); },
    frame(x, y, wide, high) { over.push([x, y, wide, high, ""]); },
    text(s, x, y, colour) { if (s) texts.push([s, x, y, colour || ink]); },
    done() {
      g.setTransform(1, 0, 0, 1, 0, 0);
      g.putImageData(canvas.image, 0, 0);
      g.setTransform(r, 0, 0, r, 0, 0);
      g.font = FONT; g.textBaseline = "middle";
      for (const [x, y, wide, high, kind] of over) {
        if (kind) { g.fillStyle = hatch(g, kind); g.fillRect(x, y, wide, high); } else { g.strokeStyle = ink; g.lineWidth = 2; g.strokeRect(x + 1, y + 1, Math.max(1, wide - 2), high - 2); }
      }
      for (const [s, x, y, colour] of texts) { g.fillStyle = colour; g.fillText(s, x, y); }
    },
  };
}

// svgPaper is the same as a picture that stands alone; done() returns its text.
function svgPaper(w, h) {
  const out = [], n = v => +v.toFixed(1), ink = css("--ink");
  const rect = (x, y, wide, high, paint) => { out.push(`<rect x="${n(x)}" y="${n(y)}" width="${n(wide)}" height="${n(high)}" ${paint}/>`); };
  const patterns = Object.entries(HATCHES).map(([k, [colour, up]]) => `<pattern id="${k}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(${45 * up})"><rect width="1.5" height="6" fill="${css(colour)}" opacity="0.6"/></pattern>`);
  return {
    w, h, scale: 1, width: Math.round(w),
    row(y, high, paint) { paint((x0, x1, colour) => rect(x0, y, x1 - x0, high, `fill="${hexOf(colour)}"`)); },
    rect(x, y, wide, high, colour) { rect(x, y, wide, high, `fill="${hexOf(colour)}"`); },
    hatch(x, y, wide, high, kind) { rect(x, y, wide, high, `fill="url(#${kind})"`); },
    frame() {},
    text(s, x, y, colour) { if (s) out.push(`<text x="${n(x)}" y="${n(y + 4)}" fill="${colour || ink}">${escapeText(s)}</text>`); },
    done() { return `<svg xmlns="http:` + `//www.w3.org/2000/svg" width="${w}" height="${h}" font-family="system-ui,sans-serif" font-size="12"><defs>${patterns.join("")}</defs><rect width="100%" height="100%" fill="${css("--bg")}"/>${out.join("")}</svg>`; },
  };
}

let hatches = {};
function hatch(g, kind) {
  if (hatches[kind]) return hatches[kind];
  const [colour, up] = HATCHES[kind], c = document.createElement("canvas"), k = c.getContext("2d");
  c.width = c.height = 8;
  if (up < 0) { k.translate(8, 0); k.scale(-1, 1); }
  k.strokeStyle = css(colour); k.lineWidth = 1.2; k.globalAlpha = 0.55;
  k.beginPath(); k.moveTo(-2, 10); k.lineTo(10, -2); k.moveTo(-2, 2); k.lineTo(2, -2); k.moveTo(6, 10); k.lineTo(10, 6); k.stroke();
  return hatches[kind] = g.createPattern(c, "repeat");
}

// sized returns the context of a canvas at the size it is shown in.
function sized(canvas) {
  const r = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== Math.round(w * r) || canvas.height !== Math.round(h * r)) { canvas.width = Math.round(w * r); canvas.height = Math.round(h * r); }
  const g = canvas.getContext("2d");
  g.setTransform(r, 0, 0, r, 0, 0);
  g.font = FONT; g.textBaseline = "middle";
  g.fillStyle = css("--bg"); g.fillRect(0, 0, w, h);
  return { g, w, h };
}

// ticks are the times that an axis names: pairs of a place and a text, which is empty where it does not fit.
function ticks(from, to, w) {
  const raw = Math.max((to - from) / Math.max(w / 110, 1), 1e-9), step = stepFrom(raw), out = [];
  for (let t = Math.ceil(from / step) * step; t < to && out.length < 200; t += step) { const x = Math.round((t - from) / (to - from) * w); out.push([x, x < w - 44 ? moment(t, step) : ""]); }
  return out;
}
// stepFrom returns the least round time from a time on: beyond 20 s rounds are those of a clock.
function stepFrom(raw) {
  if (raw > 864e11) return Math.ceil(raw / 864e11) * 864e11;
  if (raw > 2e10) return [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map(m => m * 6e10).find(s => s >= raw);
  const mag = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map(k => k * mag).find(s => s >= raw) || raw;
}
function moment(t, step) {
  if (step >= 6e10) { const m = Math.round(t / 6e10), h = Math.floor(m / 60); return h ? h + " h" + (m % 60 ? " " + String(m % 60).padStart(2, "0") : "") : m + " min"; }
  return step >= 1e9 ? (t / 1e9).toFixed(0) + " s" : step >= 1e7 ? (t / 1e9).toFixed(2) + " s" : step >= 1e6 ? (t / 1e6).toFixed(0) + " ms" : step >= 1e3 ? (t / 1e6).toFixed(3) + " ms" : (t / 1e3).toFixed(2) + " µs";
}

// keepingFocus draws what is in hosts anew. Where the element that had the focus is gone, its like gets it: of the same
// name and as far down; else what now stands in its place in the list, or the whole host.
function keepingFocus(hosts, draw) {
  const on = document.activeElement, host = hosts.find(h => h !== on && h.contains(on));
  if (!host) { draw(); return; }
  const list = () => [...host.querySelectorAll("button")], name = b => b.title + "\n" + b.textContent.replace(" ↓", "");
  const before = list(), at = before.indexOf(on), called = name(on), nth = before.slice(0, at).filter(b => name(b) === called).length;
  draw();
  if (host.contains(document.activeElement)) return;
  const now = list(), like = now.filter(b => name(b) === called), heir = like[nth] || like[0] || host.id === "rules" && now[Math.min(at, now.length - 1)];
  (heir || [host, $("table"), $("chart")].find(e => e.tabIndex >= 0 && !e.hidden)).focus({ preventScroll: true });
}

// element makes an element with attributes, listeners (on...) and children.
function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith("on")) e[k] = v; else if (v === true) e.setAttribute(k, ""); else if (v !== false && v != null) e.setAttribute(k, v);
  }
  e.append(...children.filter(c => c != null));
  return e;
}
