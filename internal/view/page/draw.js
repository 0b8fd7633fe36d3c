// draw.js: canvases, colours and the hatching that marks what a repair put back.

const $ = id => document.getElementById(id);
const ROW = 18;
const dark = matchMedia("(prefers-color-scheme: dark)");
function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }

// A palette follows from names: of one module the hue, of one method the lightness. The hues leave
// out what people with deuteranopia cannot tell apart; text stands on all of them.
function palette(names) {
  const cache = new Array(names.length);
  return m => {
    if (cache[m]) return cache[m];
    const name = names[m] || "", module = moduleOf(name) || name;
    let h = 0; for (const c of module) h = h * 31 + c.charCodeAt(0) >>> 0;
    let v = 0; for (let i = 0; i < name.length; i++) v = v * 33 + name.charCodeAt(i) >>> 0;
    return cache[m] = [[215, 45, 265, 190, 30, 240, 55, 290][h % 8] + (h >> 8) % 15 - 7, v % 11 - 5];
  };
}
function fill(colour, isDark, faded) {
  const [h, l] = colour;
  return `hsl(${h} ${isDark ? 36 : 58}% ${(isDark ? 32 : 80) + l}% / ${faded ? 0.28 : 1})`;
}

// sized returns the context of a canvas at the size it is shown in.
function sized(canvas, height) {
  const r = window.devicePixelRatio || 1, w = canvas.clientWidth, h = height || canvas.clientHeight;
  if (canvas.width !== Math.round(w * r) || canvas.height !== Math.round(h * r)) { canvas.width = Math.round(w * r); canvas.height = Math.round(h * r); }
  const g = canvas.getContext("2d");
  g.setTransform(r, 0, 0, r, 0, 0);
  g.font = "12px system-ui, sans-serif"; g.textBaseline = "middle";
  g.fillStyle = css("--bg"); g.fillRect(0, 0, w, h);
  return { g, w, h };
}

// hatch returns a pattern of stripes: restored frames are marked by it and not by colour alone.
let hatches = {};
function hatch(g, colour) {
  if (hatches[colour]) return hatches[colour];
  const c = document.createElement("canvas"); c.width = c.height = 8;
  const k = c.getContext("2d"); k.strokeStyle = colour; k.lineWidth = 1.2; k.globalAlpha = 0.5;
  k.beginPath(); k.moveTo(-2, 10); k.lineTo(10, -2); k.moveTo(-2, 2); k.lineTo(2, -2); k.moveTo(6, 10); k.lineTo(10, 6); k.stroke();
  return hatches[colour] = g.createPattern(c, "repeat");
}

// label draws a method's name into a box, as much of its end as fits.
function label(g, name, x, y, width, ink) {
  const room = width - 8;
  if (room < 24) return;
  let s = name.slice(name.indexOf("!") + 1);
  const chars = Math.floor(room / 6.3);
  if (s.length > chars) { const p = s.indexOf("("); if (p > 0) s = s.slice(0, p); }
  if (s.length > chars) s = "…" + s.slice(Math.max(0, s.length - chars + 1));
  g.fillStyle = ink; g.fillText(s, x + 5, y + ROW / 2, room);
}

// axis draws times over a canvas and returns nothing.
function axis(g, from, to, w, h) {
  const raw = Math.max((to - from) / Math.max(w / 110, 1), 1e-9), mag = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map(k => k * mag).find(s => s >= raw) || raw;
  g.strokeStyle = css("--line"); g.fillStyle = css("--dim"); g.beginPath();
  for (let t = Math.ceil(from / step) * step, n = 0; t < to && n < 200; t += step, n++) {
    const x = Math.round((t - from) / (to - from) * w) + 0.5;
    g.moveTo(x, 0); g.lineTo(x, h); g.fillText(moment(t, step), x + 4, 8);
  }
  g.stroke();
}
function moment(t, step) { return step >= 1e9 ? (t / 1e9).toFixed(0) + " s" : step >= 1e7 ? (t / 1e9).toFixed(2) + " s" : step >= 1e6 ? (t / 1e6).toFixed(0) + " ms" : step >= 1e3 ? (t / 1e6).toFixed(3) + " ms" : (t / 1e3).toFixed(2) + " µs"; }

// element makes an element with attributes, listeners (on...) and children.
function element(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith("on")) e[k] = v; else if (v === true) e.setAttribute(k, ""); else if (v !== false && v != null) e.setAttribute(k, v);
  }
  e.append(...children.filter(c => c != null));
  return e;
}
