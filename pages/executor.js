// The page's one door: rig.call(json) runs one operation, in this realm or in a worker's, and answers with one JSON string.

import { call } from "./realm.js";

/** How the device was opened here, so that the worker's is opened likewise. */
let opening = "";

/** @type {((text: string) => Promise<string>) | null} */
let workers = null;

/** Starts the worker, with a device of its own, at the first call that is for it. */
async function worker() {
  if (workers !== null) return workers;
  const thread = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  /** @type {(answer: string) => void} */
  let answered;
  thread.onmessage = ({ data }) => answered(data);
  const ask = (/** @type {string} */ text) => new Promise((/** @type {(answer: string) => void} */ resolve, reject) => {
    answered = resolve;
    thread.onerror = ({ message }) => reject(new Error(`worker: ${message}`));
    thread.postMessage(text);
  });
  const opened = await ask(opening);
  if ("fault" in JSON.parse(opened)) return async () => opened;
  workers = ask;
  return ask;
}

/**
 * @param {string} text  {"op", "realm" ("main" if absent), ...the operation's request}
 * @returns {Promise<string>}  {"ok": answer} or {"fault": {"outcome", "detail"}}
 */
async function route(text) {
  const { op, realm } = JSON.parse(text);
  if (op === "open") opening = text;
  return realm === "worker" ? (await worker())(text) : call(text);
}

/** @type {any} */ (globalThis).rig = { call: route };
