// Issuing from WebAssembly, as engines do that are compiled to it: every object is a handle, every call an import.

const BYTES_PER_DISPATCH = 20;
const PAGE_BYTES = 65536;

/** Assembled from issue.wat. @returns {Promise<WebAssembly.Module>} */
export const assembled = async () => WebAssembly.compileStreaming(fetch(new URL("issue.wasm", import.meta.url)));

/**
 * Prepares a plain batch; what it gives back issues it, as policy.js does.
 *
 * @param {WebAssembly.Module} module
 * @param {GPUDevice} device
 * @param {import("./policy.js").Batch} batch  of at least one dispatch
 * @param {import("./span.js").PassStamps} stamps
 * @param {((encoder: GPUCommandEncoder) => void) | null} tail
 * @returns {() => import("./policy.js").Issued}
 */
export function issuer(module, device, batch, stamps, tail) {
  const { n, pipelines, bindGroups, x, y, z, perPass, perCommandBuffer, perSubmit } = batch;
  const kept = [...new Set([...pipelines, ...bindGroups])];
  /** Objects by handle: what lives as long as the batch first, encoders and passes after it. @type {any[]} */
  const objects = [];
  /** @type {GPUCommandBuffer[]} */
  let held = [];
  let counted = { submits: 0, command_buffers: 0, passes: 0, dispatches: 0 };
  const descriptors = [undefined, stamps.first, stamps.last, stamps.only];
  const gpu = {
    createCommandEncoder: () => objects.push(device.createCommandEncoder()) - 1,
    beginComputePass: (/** @type {number} */ encoder, /** @type {number} */ stamped) => {
      counted.passes++;
      return objects.push(objects[encoder].beginComputePass(descriptors[stamped])) - 1;
    },
    setPipeline: (/** @type {number} */ pass, /** @type {number} */ pipeline) => objects[pass].setPipeline(objects[pipeline]),
    setBindGroup: (/** @type {number} */ pass, /** @type {number} */ group) => objects[pass].setBindGroup(0, objects[group]),
    dispatchWorkgroups: (/** @type {number} */ pass, /** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ z) => {
      counted.dispatches++;
      objects[pass].dispatchWorkgroups(x, y, z);
    },
    end: (/** @type {number} */ pass) => objects[pass].end(),
    finish: (/** @type {number} */ encoder, /** @type {number} */ last) => {
      if (last && tail !== null) tail(objects[encoder]);
      held.push(objects[encoder].finish());
    },
    submit: () => {
      device.queue.submit(held);
      counted.submits++;
      counted.command_buffers += held.length;
      held = [];
      objects.length = kept.length;
    },
  };
  const { memory, issue } = /** @type {{ memory: WebAssembly.Memory, issue: Function }} */ (
    /** @type {unknown} */ (new WebAssembly.Instance(module, { gpu }).exports));
  memory.grow(Math.max(0, Math.ceil((n * BYTES_PER_DISPATCH - memory.buffer.byteLength) / PAGE_BYTES)));
  const handles = new Map(kept.map((object, handle) => [object, handle]));
  const words = new Uint32Array(memory.buffer);
  for (let i = 0; i < n; i++) {
    words.set([Number(handles.get(pipelines[i])), Number(handles.get(bindGroups[i])), x[i], y[i], z[i]], i * 5);
  }
  return () => {
    objects.length = 0;
    objects.push(...kept);
    counted = { submits: 0, command_buffers: 0, passes: 0, dispatches: 0 };
    issue(n, perPass, perCommandBuffer, perSubmit);
    return counted;
  };
}
