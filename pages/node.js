// The same operations without a browser: in Node, on Dawn. Requests are lines on stdin, answers lines on stdout.
//   node pages/node.js PACKAGE [OPTION ...]    PACKAGE: the folder of npm's "webgpu"; options as its create() takes them

import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [home, ...options] = process.argv.slice(2);
const { create, globals } = await import(`${pathToFileURL(home).href}/index.js`);

// what a page has, and realm.js asks for
Object.assign(globalThis, globals);
Object.defineProperties(globalThis, {
  navigator: { value: { gpu: create(options) } },
  self: { value: globalThis },
  isSecureContext: { value: true },
  crossOriginIsolated: { value: true },
  fetch: {
    value: async (/** @type {URL} */ url) =>
      new Response(new Uint8Array(await readFile(url)), { headers: { "content-type": "application/wasm" } }),
  },
});

const { call } = await import("./realm.js");

for await (const line of createInterface({ input: process.stdin })) {
  // Dawn prints its warnings there too, without an end of line
  process.stdout.write(`\n${await call(line)}\n`);
}
process.exit(0); // Dawn would keep the process alive
