// What can be done in one realm (the page's own, or a worker's): operations on its device, a JSON string in and out.

import { now_us, tick_us, within } from "./clock.js";
import { openDevice } from "./device.js";
import { Fault, Watch } from "./faults.js";
import { issue, issueStaged } from "./policy.js";
import { LoadedProgram } from "./program.js";
import { NO_STAMPS, spanClock } from "./span.js";
import { stub } from "./stub.js";
import { assembled, issuer } from "./wasm.js";

/** A burst comes after so long a rest. */
const IDLE_MS = 40;

/** @typedef {{ device: GPUDevice, watch: Watch, span: ReturnType<typeof spanClock> }} Gpu */

/** @type {Gpu | null} */
let gpu = null;
/** @type {Map<string, LoadedProgram>} */
const programs = new Map();
/** Buffers that no program writes. @type {Map<string, GPUBuffer>} */
const shared = new Map();
/** @type {Promise<WebAssembly.Module> | null} */
let loop = null;

/** @returns {Gpu} */
function opened() {
  if (gpu === null) throw new Fault("not_supported", "no device: open comes first");
  return gpu;
}

/** @param {string} name */
function loaded(name) {
  const program = programs.get(name);
  if (program === undefined) throw new Fault("not_supported", `program '${name}' is not loaded`);
  return program;
}

/** Where the page stands, asked before anything of WebGPU. */
function surroundings() {
  return {
    secure: isSecureContext,
    isolated: self.crossOriginIsolated,
    visibility: globalThis.document?.visibilityState ?? "visible",
    has_api: Boolean(navigator.gpu),
    tick_us: tick_us(),
  };
}

/** @param {Parameters<typeof openDevice>[0]} wanted */
async function open(wanted) {
  const { device, adapter } = await openDevice(wanted);
  const watch = new Watch(device);
  gpu = { device, watch, span: await watch.guard(() => spanClock(device)).catch(() => NO_STAMPS) };
  return { adapter, has_span: gpu.span !== NO_STAMPS };
}

/** @param {{ program: import("./program.js").ProgramData, weights?: Record<string, string> }} request */
async function load({ program, weights }) {
  const { device, watch } = opened();
  programs.set(program.name, await watch.guard(() => LoadedProgram.load(device, program, weights ?? {}, shared)));
  return {};
}

/** @param {{ program: string }} request */
async function reset({ program }) {
  const { watch } = opened();
  await watch.guard(() => loaded(program).reset());
  return {};
}

/** @param {{ program: string }} request */
async function outputs({ program }) {
  const values = await opened().watch.guard(() => loaded(program).outputs());
  return { issued: loaded(program).issued, values };
}

/** Whether the device validates: an invalid call, and whether an error came of it. */
async function validates() {
  const { device } = opened();
  device.pushErrorScope("validation");
  device.createBuffer({ size: 16, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.STORAGE });
  return { validates: (await device.popErrorScope()) !== null };
}

/**
 * One sample. The clock is read right before the first call (t0), at the return of the last submit (t1), and when the
 * wait has answered (t2). Scopes are opened before t0; they, the timestamps and the unmapping are asked for after t2.
 *
 * @param {{ program: string, policy: import("./policy.js").Policy, n: number, limit_ms: number }} request
 */
async function time({ program: name, policy, n, limit_ms }) {
  const { device, watch, span } = opened();
  const program = loaded(name);
  const compiled = program.batch(policy, n);
  const { batches, passes, make } = compiled;
  const stubbed = policy.target === "stub";
  const target = stubbed ? stub : device;
  const clock = stubbed || batches.length > 1 ? NO_STAMPS : passes ?? span;
  const map = policy.waiter === "map";
  const tail = map ? (/** @type {GPUCommandEncoder} */ encoder) => program.encodeProbe(encoder) : null;
  const wait = stubbed ? async () => {}
    : map ? () => program.probe.mapAsync(GPUMapMode.READ) : () => device.queue.onSubmittedWorkDone();
  const late = () => new Fault("timeout", `GPU still busy after ${limit_ms / 1000} s, device not lost`);
  if (policy.caller === "wasm") compiled.wasm ??= issuer(await (loop ??= assembled()), device, batches[0], clock.stamps, tail);
  const { wasm } = compiled;

  /** @param {import("./policy.js").Batch} batch */
  const part = async (batch) => {
    await batch.deliver?.ready();
    const t0 = now_us();
    const staged = policy.staged ? issueStaged(device, batch, make, now_us) : null;
    const issued = staged ? staged.issued : wasm ? wasm() : issue(target, batch, clock.stamps, tail);
    const t1 = now_us();
    await within(wait(), limit_ms, late);
    const t2 = now_us();
    if (!stubbed) program.issued += issued.dispatches;
    if (map) program.probe.unmap();
    return { issued, wall_us: t2 - t0, encode_us: t1 - t0, calls_us: staged?.calls_us ?? null };
  };

  const once = async () => {
    const first = await part(batches[0]);
    const counted = /** @type {(keyof typeof first.issued)[]} */ (Object.keys(first.issued));
    for (const batch of batches.slice(1)) {
      const next = await part(batch);
      for (const what of counted) first.issued[what] += next.issued[what];
      first.encode_us += next.encode_us;
      first.wall_us += next.wall_us;
    }
    return first;
  };

  const timed = async () => {
    // buffers and bind groups just made are work for the GPU process, and none of the sample's
    if (!compiled.settled) await within(device.queue.onSubmittedWorkDone(), limit_ms, late);
    compiled.settled = true;
    if (policy.lead === "idle") await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    if (policy.lead === "sustained") await once();
    const sample = await once();
    // without a stamped pass, what stands in the query set is an earlier sample's
    const stamped = sample.issued.passes > 0 && !policy.staged;
    return { ...sample, stamps_ns: stamped ? await within(clock.read(), limit_ms, late) : null };
  };
  return await watch.guard(timed);
}

const OPERATIONS = { surroundings, open, load, reset, outputs, time, validates };

/**
 * @param {string} text  {"op": one of OPERATIONS, ...its request}
 * @returns {Promise<string>}  {"ok": answer} or {"fault": {"outcome", "detail"}}
 */
export async function call(text) {
  const request = JSON.parse(text);
  try {
    const operation = /** @type {(request: any) => unknown} */ (OPERATIONS[/** @type {keyof typeof OPERATIONS} */ (request.op)]);
    return JSON.stringify({ ok: await operation(request) });
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    const lost = gpu !== null && gpu.watch.lost !== null;
    const outcome = lost ? "device_lost" : error instanceof Fault ? error.outcome : "validation_error";
    return JSON.stringify({ fault: { outcome, detail: (lost ? gpu?.watch.lost : detail) || String(error) } });
  }
}
