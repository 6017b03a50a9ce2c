// First contents of buffers: the same numbers as rig/programs/fill.py makes.

/**
 * @typedef {{ kind: "constant", value: number } | { kind: "hash", seed: number, below: number }} WrittenFill
 * @typedef {{ kind: "weights", seed: number, scale: number, offset: number }} WeightFill
 * @typedef {WrittenFill | WeightFill} Fill
 */
/** @typedef {"f32" | "f16" | "i32" | "u32" | "u8x4"} Dtype */

/** What lies in a buffer, by type; of 16-bit floats the bits, since not every browser has an array of them. */
export const ARRAYS = { f32: Float32Array, f16: Uint16Array, i32: Int32Array, u32: Uint32Array, u8x4: Uint8Array };

/** @param {Dtype} dtype @param {number} elements */
export const bytes = (dtype, elements) => ARRAYS[dtype].BYTES_PER_ELEMENT * elements;

/**
 * A 32-bit integer hash with full avalanche (two multiplications, three shifts; the constants are those of the
 * "lowbias32" function of C. Wellons, 2018).
 *
 * @param {number} x
 */
export function hash32(x) {
  x = Math.imul(x ^ (x >>> 16), 0x7feb352d);
  x = Math.imul(x ^ (x >>> 15), 0x846ca68b);
  return (x ^ (x >>> 16)) >>> 0;
}

/** Bits of the 16-bit float nearest to x: by way of 32 bits, of which the upper ones are the same. @param {number} x */
export function half(x) {
  const bits = new Uint32Array(new Float32Array([x]).buffer)[0];
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x47800000) return sign | 0x7c00;
  if (magnitude < 0x38800000) return sign | Math.round(Math.abs(x) * 2 ** 24);
  // ties go to even
  return sign | ((magnitude - 0x38000000 + 0xfff + ((magnitude >>> 13) & 1)) >>> 13);
}

/**
 * @param {Dtype} dtype
 * @param {number} elements
 * @param {WrittenFill} fill  `hash`: element i is hash32(seed + i) modulo `below`
 */
export function contents(dtype, elements, fill) {
  const data = new ARRAYS[dtype](elements);
  const put = dtype === "f16" ? half : (/** @type {number} */ x) => x;
  if (fill.kind === "constant") return data.fill(put(fill.value));
  for (let i = 0; i < elements; i++) data[i] = put(hash32((fill.seed + i) >>> 0) % fill.below);
  return data;
}

/**
 * Fills buffers of weights on the device itself.
 *
 * @param {GPUDevice} device
 * @param {string} wgsl  wgsl/decode/weights.wgsl, or weights_f16.wgsl
 */
export function weightMaker(device, wgsl) {
  const module = device.createShaderModule({ label: "weights", code: wgsl });
  const pipeline = device.createComputePipeline({ label: "weights", layout: "auto", compute: { module, entryPoint: "main" } });
  /** @param {GPUBuffer} buffer @param {number} elements @param {WeightFill} fill */
  return (buffer, elements, fill) => {
    const bits = new Uint32Array(new Float32Array([fill.scale, fill.offset]).buffer);
    const values = device.createBuffer({ size: 16, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
    device.queue.writeBuffer(values, 0, Uint32Array.of(fill.seed, elements, ...bits));
    const bindGroup = device.createBindGroup({
      layout: pipeline.getBindGroupLayout(0),
      entries: [values, buffer].map((buffer, binding) => ({ binding, resource: { buffer } })),
    });
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bindGroup);
    pass.dispatchWorkgroups(Math.min(4096, Math.ceil(elements / 256)));
    pass.end();
    device.queue.submit([encoder.finish()]);
  };
}
