// How dispatches reach the GPU: the hot loop that every figure of the browser comes from.

/**
 * @typedef {object} Policy  group sizes in dispatches; null means all of them
 * @property {string} name
 * @property {number | null} dispatches_per_pass
 * @property {number | null} dispatches_per_command_buffer
 * @property {number | null} dispatches_per_submit
 * @property {"work_done" | "map"} waiter
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
 */

/**
 * Issues the whole batch: for each dispatch setPipeline, setBindGroup, dispatchWorkgroups; around them as many passes,
 * command buffers and submits as the policy says. Nothing here waits.
 *
 * @param {GPUDevice} device
 * @param {Batch} batch
 * @param {import("./span.js").PassStamps} stamps  descriptors of the first, the last and the only pass
 * @param {((encoder: GPUCommandEncoder) => void) | null} tail  encodes into the last command buffer, after its passes
 * @returns {{ submits: number, command_buffers: number, passes: number, dispatches: number }} as counted while issuing
 */
export function issue(device, batch, stamps, tail) {
  const { n, pipelines, bindGroups, x, y, z, perPass, perCommandBuffer, perSubmit } = batch;
  const queue = device.queue;
  // One array for all submits: queue.submit() copies it, and a new one each time is the executor's largest own cost.
  /** @type {GPUCommandBuffer[]} */
  const commandBuffers = [];
  let submits = 0, command_buffers = 0, passes = 0, i = 0;
  while (i < n) {
    const submitEnd = Math.min(n, i + perSubmit);
    let held = 0;
    while (i < submitEnd) {
      const bufferEnd = Math.min(submitEnd, i + perCommandBuffer);
      const encoder = device.createCommandEncoder();
      while (i < bufferEnd) {
        const passEnd = Math.min(bufferEnd, i + perPass);
        const descriptor = passEnd === n ? (i === 0 ? stamps.only : stamps.last) : i === 0 ? stamps.first : undefined;
        const pass = encoder.beginComputePass(descriptor);
        for (; i < passEnd; i++) {
          pass.setPipeline(pipelines[i]);
          pass.setBindGroup(0, bindGroups[i]);
          pass.dispatchWorkgroups(x[i], y[i], z[i]);
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
  return { submits, command_buffers, passes, dispatches: i };
}
