// How the values of a dispatch reach its kernel: the ways that engines have, one class of them each.

/** @typedef {"none" | "write_buffer" | "write_slots" | "dynamic_offset" | "mapped_ring" | "immediates"} Uniforms */

/**
 * @typedef {object} Delivery  called by the hot loop
 * @property {(from: number, to: number) => void} fill  before the first command buffer of dispatches from..to
 * @property {(encoder: GPUCommandEncoder, from: number, to: number) => void} copy  in its first encoder, before any pass
 * @property {(pass: GPUComputePassEncoder, i: number) => void} bind  right before dispatch i
 * @property {() => Promise<unknown>} ready  before a timed section: what an earlier one used can be used again
 */

/**
 * @typedef {object} Carried  what a batch's dispatches carry, and where it goes
 * @property {GPUDevice} device
 * @property {Float32Array<ArrayBuffer>[]} values  of dispatch i, four each
 * @property {number} perSubmit
 * @property {(buffer: GPUBuffer) => GPUBindGroup} group  group 1 with this buffer in it
 * @property {boolean} created  bind groups are made anew at each dispatch
 */

/** Bytes of one dispatch's values, and the distance between two of them that any device takes. */
export const VALUE_BYTES = 16, SLOT_BYTES = 256;

const nothing = () => {};
const uniform = (/** @type {GPUDevice} */ device, /** @type {number} */ size) =>
  device.createBuffer({ size, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });

/**
 * @param {Uniforms} uniforms
 * @param {Carried} carried
 * @returns {Delivery}
 */
export function delivery(uniforms, carried) {
  return { none, write_buffer: slots, write_slots: slots, dynamic_offset, mapped_ring, immediates }[uniforms](carried);
}

/** Nothing is written: each different value has a buffer of its own, filled here. @param {Carried} carried @returns {Delivery} */
function none({ device, values, group, created }) {
  /** @type {Map<Float32Array, { buffer: GPUBuffer, group: GPUBindGroup }>} */
  const known = new Map();
  for (const value of values) {
    if (known.has(value)) continue;
    const buffer = uniform(device, VALUE_BYTES);
    device.queue.writeBuffer(buffer, 0, value);
    known.set(value, { buffer, group: group(buffer) });
  }
  const at = values.map((value) => /** @type {{ buffer: GPUBuffer, group: GPUBindGroup }} */ (known.get(value)));
  return {
    fill: nothing,
    copy: nothing,
    bind: (pass, i) => pass.setBindGroup(1, created ? group(at[i].buffer) : at[i].group),
    ready: async () => {},
  };
}

/** As many buffers as a submit has dispatches, each written before its dispatch. @param {Carried} carried @returns {Delivery} */
function slots({ device, values, perSubmit, group, created }) {
  const buffers = Array.from({ length: Math.min(perSubmit, values.length) }, () => uniform(device, VALUE_BYTES));
  const groups = buffers.map((buffer) => group(buffer));
  const { queue } = device;
  return {
    fill: nothing,
    copy: nothing,
    bind: (pass, i) => {
      const slot = i % perSubmit;
      queue.writeBuffer(buffers[slot], 0, values[i]);
      pass.setBindGroup(1, created ? group(buffers[slot]) : groups[slot]);
    },
    ready: async () => {},
  };
}

/**
 * What the ways have in common that bind one buffer, each dispatch at an offset: slots for a submit's dispatches, laying
 * their values into words as the buffer has them, and binding.
 *
 * @param {Carried} carried
 */
function slotted({ device, values, perSubmit, group, created }) {
  const size = Math.min(perSubmit, values.length) * SLOT_BYTES;
  const buffer = uniform(device, size);
  const shared = group(buffer);
  const offset = [0];
  return {
    size,
    buffer,
    /** @param {Float32Array} words @param {number} from @param {number} to */
    lay: (words, from, to) => {
      for (let i = from; i < to; i++) words.set(values[i], (i - from) * SLOT_BYTES / 4);
    },
    /** @param {GPUComputePassEncoder} pass @param {number} i */
    bind: (pass, i) => {
      offset[0] = (i % perSubmit) * SLOT_BYTES;
      pass.setBindGroup(1, created ? group(buffer) : shared, offset);
    },
  };
}

/** One write a submit, an offset a dispatch. @param {Carried} carried @returns {Delivery} */
function dynamic_offset(carried) {
  const { size, buffer, lay, bind } = slotted(carried);
  const staged = new Float32Array(size / 4);
  return {
    fill: (from, to) => {
      lay(staged, from, to);
      carried.device.queue.writeBuffer(buffer, 0, staged, 0, (to - from) * SLOT_BYTES / 4);
    },
    copy: nothing,
    bind,
    ready: async () => {},
  };
}

/** Written into mapped memory, copied by the submit's own commands. @param {Carried} carried @returns {Delivery} */
function mapped_ring(carried) {
  const { device, values, perSubmit } = carried;
  const { size, buffer, lay, bind } = slotted(carried);
  const ring = Array.from({ length: Math.ceil(values.length / perSubmit) }, () => device.createBuffer({
    size, usage: GPUBufferUsage.MAP_WRITE | GPUBufferUsage.COPY_SRC, mappedAtCreation: true,
  }));
  return {
    fill: (from, to) => {
      const mapped = ring[Math.floor(from / perSubmit)];
      lay(new Float32Array(mapped.getMappedRange()), from, to);
      mapped.unmap();
    },
    copy: (encoder, from, to) => {
      encoder.copyBufferToBuffer(ring[Math.floor(from / perSubmit)], 0, buffer, 0, (to - from) * SLOT_BYTES);
    },
    bind,
    ready: () => Promise.all(ring.map((mapped) => mapped.mapState === "mapped" || mapped.mapAsync(GPUMapMode.WRITE))),
  };
}

/** With the pass's own commands. @param {Carried} carried @returns {Delivery} */
function immediates({ values }) {
  return {
    fill: nothing,
    copy: nothing,
    // the types of the API don't know the call yet
    bind: (pass, i) => /** @type {any} */ (pass).setImmediates(0, values[i]),
    ready: async () => {},
  };
}
