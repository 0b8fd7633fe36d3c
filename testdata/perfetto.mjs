// Asks Perfetto's own trace processor about a trace: node perfetto.mjs DIR TRACE SQL...
// DIR holds its WebAssembly form with Perfetto's glue for a browser's worker, which is what this file plays.
// Writes the rows of each question as one line of JSON.
import { readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { runInThisContext } from "node:vm";

const [dir, trace, ...questions] = process.argv.slice(2);
console.log = console.warn = () => {}; // stdout is for rows

globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.location = { href: pathToFileURL(join(dir, "worker.js")).href };
globalThis.XMLHttpRequest = class {
  open(method, url) { this.url = url; }
  send() { this.status = 200; this.response = new Uint8Array(readFileSync(join(dir, "trace_processor.wasm"))); }
};
// The glue asks by a module of nothing but a memory whether there are 64 bit ones; only the 32 bit form is here.
const Module = WebAssembly.Module;
WebAssembly.Module = class extends Module {
  constructor(bytes) {
    if (bytes[8] === 5) throw new Error("no 64 bit memory");
    super(bytes);
  }
};
runInThisContext(readFileSync(join(dir, "engine_bundle.node.js"), "utf8"));
const { EngineBase } = await import(pathToFileURL(join(dir, "engine.mjs")));
class Engine extends EngineBase {
  constructor(port) {
    super();
    this.port = port;
    port.onmessage = (m) => this.onRpcResponseBytes(m.data);
  }
  rpcSendRequestBytes(data) { this.port.postMessage(data); }
}
const channel = new MessageChannel();
self.onmessage({ data: channel.port1 });
const engine = new Engine(channel.port2);
await new Promise((started) => setTimeout(started, 1500)); // the worker does not say when it is ready

await engine.parse(new Uint8Array(readFileSync(trace)));
await engine.notifyEof();
for (const question of questions) {
  const result = await engine.query(question);
  if (result.error()) throw new Error(result.error());
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(result.columns().map((c) => (typeof row.get(c) === "bigint" ? Number(row.get(c)) : row.get(c))));
  }
  let text = Buffer.from(JSON.stringify(rows) + "\n");
  while (text.length > 0) text = text.subarray(writeSync(1, text));
}
process.exit(0);
