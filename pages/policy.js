// How dispatches reach the GPU: the hot loop that every figure of the browser comes from.

/**
 * @typedef {object} Policy  group sizes in dispatches, null means all of them; and modifiers, absent at their defaults
 * @property {string} name
 * @property {number | null} dispatches_per_pass
 * @property {number | null} dispatches_per_command_buffer
 * @property {number | null} dispatches_per_submit
 * @property {number | null} [dispatches_per_wait]
 * @property {"work_done" | "map"} [waiter]
 * @property {"cached" | "created"} [bind_groups]
 * @property {import("./deliver.js").Uniforms} [uniforms]
 * @property {"direct" | "indirect"} [workgroups]
 * @property {"js" | "wasm"} [caller]
 * @property {"none" | "idle" | "sustained"} [lead]
 * @property {"span" | "passes"} [stamps]
 * @property {keyof typeof DEPTHS} [depth]
 * @property {boolean} [staged]
 * @property {"device" | "stub"} [target]
 */

/**
 * @typedef {object} Batch  n dispatches under a policy, in flat arrays of length n
 * @property {number} n
 * @property {GPUComputePipeline[]} pipelines
 * @property {GPUBindGroup[]} bindGroups
 * @property {Uint32Array} x
 * @property {Uint32Array} y
 * @property {Uint32Array} z
 * @property {number} perPass
 * @property {number} perCommandBuffer
 * @property {number} perSubmit
 * @property {number} depth  of DEPTHS: a shallower one leaves out the layers below it
 * @property {((pass: GPUComputePassEncoder, i: number) => void) | null} bind  instead of a bind group that is cached
 * @property {((pass: GPUComputePassEncoder, i: number) => void) | null} go  instead of a direct dispatch
 * @property {import("./deliver.js").Delivery | null} deliver  values of the dispatches
 */

/** @typedef {{ submits: number, command_buffers: number, passes: number, dispatches: number }} Issued */

export const DEPTHS = { submit: 0, command_buffer: 1, compute_pass: 2, state: 3, dispatch: 4 };
const { command_buffer: COMMAND_BUFFER, compute_pass: PASS, state: STATE, dispatch: DISPATCH } = DEPTHS;

/**
 * Issues the whole batch: for each dispatch setPipeline, setBindGroup, dispatchWorkgroups; around them as many passes,
 * command buffers and submits as the policy says. Nothing here waits.
 *
 * @param {GPUDevice} device
 * @param {Batch} batch
 * @param {import("./span.js").PassStamps} stamps  which pass gets which timestamps
 * @param {((encoder: GPUCommandEncoder) => void) | null} tail  encodes into the last command buffer, after its passes
 * @returns {Issued} as counted while issuing
 */
export function issue(device, batch, stamps, tail) {
  const { n, pipelines, bindGroups, x, y, z, perPass, perCommandBuffer, perSubmit, depth, bind, go, deliver } = batch;
  const queue = device.queue;
  const each = stamps.each ?? null;
  // One array for all submits: queue.submit() copies it, and a new one each time is the executor's largest own cost.
  /** @type {GPUCommandBuffer[]} */
  const commandBuffers = [];
  let submits = 0, command_buffers = 0, passes = 0, dispatches = 0, i = 0;
  while (i < n) {
    const submitEnd = Math.min(n, i + perSubmit);
    let held = 0;
    if (depth < COMMAND_BUFFER) i = submitEnd;
    if (deliver !== null) deliver.fill(i, submitEnd);
    while (i < submitEnd) {
      const bufferEnd = Math.min(submitEnd, i + perCommandBuffer);
      const encoder = device.createCommandEncoder();
      if (deliver !== null && held === 0) deliver.copy(encoder, i, submitEnd);
      if (depth < PASS) i = bufferEnd;
      while (i < bufferEnd) {
        const passEnd = Math.min(bufferEnd, i + perPass);
        const descriptor = each !== null ? each[passes]
          : passEnd === n ? (i === 0 ? stamps.only : stamps.last) : i === 0 ? stamps.first : undefined;
        const pass = encoder.beginComputePass(descriptor);
        if (depth < STATE) i = passEnd;
        for (; i < passEnd; i++) {
          pass.setPipeline(pipelines[i]);
          if (bind === null) pass.setBindGroup(0, bindGroups[i]); else bind(pass, i);
          if (deliver !== null) deliver.bind(pass, i);
          if (depth < DISPATCH) continue;
          if (go === null) pass.dispatchWorkgroups(x[i], y[i], z[i]); else go(pass, i);
          dispatches++;
        }
        pass.end();
        passes++;
      }
      if (tail !== null && i === n) tail(encoder);
      commandBuffers[held++] = encoder.finish();
    }
    if (commandBuffers.length !== held) commandBuffers.length = held;
    queue.submit(commandBuffers);
    command_buffers += held;
    submits++;
  }
  return { submits, command_buffers, passes, dispatches };
}

/**
 * The same calls as one submit for each dispatch makes, but stage by stage over all of them, and the time of each stage:
 * what a call costs its caller, without a clock read in between.
 *
 * @param {GPUDevice} device
 * @param {Batch} batch
 * @param {(i: number) => GPUBindGroup} make  a new bind group for dispatch i
 * @param {() => number} now_us
 * @returns {{ issued: Issued, calls_us: Record<string, number> }}
 */
export function issueStaged(device, batch, make, now_us) {
  const { n, pipelines, x, y, z } = batch;
  const queue = device.queue;
  /** @type {Record<string, number>} */
  const calls_us = {};
  let before = now_us();
  /** @param {string} call @param {(i: number) => void} work */
  const stage = (call, work) => {
    for (let i = 0; i < n; i++) work(i);
    const after = now_us();
    calls_us[call] = after - before;
    before = after;
  };
  const groups = new Array(n), encoders = new Array(n), passes = new Array(n), buffers = new Array(n);
  stage("createBindGroup", (i) => { groups[i] = make(i); });
  stage("createCommandEncoder", (i) => { encoders[i] = device.createCommandEncoder(); });
  stage("beginComputePass", (i) => { passes[i] = encoders[i].beginComputePass(); });
  stage("setPipeline", (i) => { passes[i].setPipeline(pipelines[i]); });
  stage("setBindGroup", (i) => { passes[i].setBindGroup(0, groups[i]); });
  stage("dispatchWorkgroups", (i) => { passes[i].dispatchWorkgroups(x[i], y[i], z[i]); });
  stage("end", (i) => { passes[i].end(); });
  stage("finish", (i) => { buffers[i] = [encoders[i].finish()]; });
  stage("submit", (i) => { queue.submit(buffers[i]); });
  return { issued: { submits: n, command_buffers: n, passes: n, dispatches: n }, calls_us };
}
