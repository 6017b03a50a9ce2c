// A device whose calls do nothing: what issuing to it takes is the caller's own language.

const pass = { setPipeline() {}, setBindGroup() {}, dispatchWorkgroups() {}, end() {} };
const commandBuffer = {};
const encoder = { beginComputePass: () => pass, finish: () => commandBuffer };

export const stub = /** @type {GPUDevice} */ (/** @type {unknown} */ ({ createCommandEncoder: () => encoder, queue: { submit() {} } }));
