// What an engineer writes who only wants to know how long n dispatches take. It shares nothing with pages/: own device,
// own buffer, own pipeline, own bind group, own loops, no timestamps, no error scopes, no flat arrays, no policies.

/** @typedef {{ wall_us: number, encode_us: number }} Timed */

/** @type {GPUDevice} */
let device;
/** @type {GPUBuffer} */
let buffer;
/** @type {GPUComputePipeline} */
let pipeline;
/** @type {GPUBindGroup} */
let bindGroup;
/** @type {string[]} */
const errors = [];

/**
 * @param {string} wgsl  its entry point is `main`, its only binding a storage buffer
 * @param {number} floats  how many of them the buffer holds, zero at first
 */
async function prepare(wgsl, floats) {
  const adapter = await navigator.gpu.requestAdapter();
  if (adapter === null) throw new Error("no adapter");
  device = await adapter.requestDevice();
  device.onuncapturederror = (event) => { errors.push(event.error.message); };
  device.lost.then((info) => { errors.push(`device lost: ${info.message}`); });
  buffer = device.createBuffer({ size: 4 * floats, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC });
  const module = device.createShaderModule({ code: wgsl });
  pipeline = device.createComputePipeline({ layout: "auto", compute: { module, entryPoint: "main" } });
  bindGroup = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [{ binding: 0, resource: { buffer } }],
  });
}

/** @param {number} n */
function onePass(n) {
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  for (let i = 0; i < n; i++) {
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bindGroup);
    pass.dispatchWorkgroups(1);
  }
  pass.end();
  device.queue.submit([encoder.finish()]);
}

/** @param {number} n */
function submitEach(n) {
  for (let i = 0; i < n; i++) {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bindGroup);
    pass.dispatchWorkgroups(1);
    pass.end();
    device.queue.submit([encoder.finish()]);
  }
}

/**
 * @param {"one_pass" | "submit_each"} policy
 * @param {number} n
 * @returns {Promise<Timed>}
 */
async function time(policy, n) {
  const issue = policy === "one_pass" ? onePass : submitEach;
  const begin = performance.now();
  issue(n);
  const submitted = performance.now();
  await device.queue.onSubmittedWorkDone();
  const done = performance.now();
  return { wall_us: 1000 * (done - begin), encode_us: 1000 * (submitted - begin) };
}

/** The buffer as it stands, and everything that went wrong so far. */
async function result() {
  const copy = device.createBuffer({ size: buffer.size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, copy, 0, buffer.size);
  device.queue.submit([encoder.finish()]);
  await copy.mapAsync(GPUMapMode.READ);
  const values = [...new Float32Array(copy.getMappedRange())];
  copy.destroy();
  return { values, errors };
}

/** @type {any} */ (globalThis).handwritten = { prepare, time, result };
