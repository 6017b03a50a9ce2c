// A program made real on a device: buffers, pipelines, bind groups; and its batches, compiled once each.

import { delivery, VALUE_BYTES } from "./deliver.js";
import { bytes, contents, weightMaker } from "./fill.js";
import { Fault } from "./faults.js";
import { DEPTHS } from "./policy.js";
import { passClock } from "./span.js";

/**
 * @typedef {object} Kernel
 * @property {string} name
 * @property {string} wgsl
 * @property {Record<string, number>} [constants]
 * @property {number[]} [read_only]
 * @property {"none" | "uniform" | "immediate"} [parameters]
 */

/** @typedef {{ kernel: string, bindings: string[], workgroups: [number, number, number], values?: number[] }} Dispatch */

/**
 * @typedef {object} ProgramData  the JSON of rig.records.Program
 * @property {string} name
 * @property {{ name: string, dtype: import("./fill.js").Dtype, elements: number, fill: import("./fill.js").Fill }[]} buffers
 * @property {Kernel[]} kernels
 * @property {Dispatch[]} dispatches
 * @property {string[]} outputs
 */

/**
 * @typedef {object} Compiled  a batch with what a sample of it needs
 * @property {import("./policy.js").Batch[]} batches  one, or one for each wait
 * @property {import("./span.js").StampClock | null} passes  begin and end of every pass, where the policy wants them
 * @property {(i: number) => GPUBindGroup} make  a new bind group for dispatch i
 * @property {boolean} settled  what it is made of has reached the GPU
 * @property {(() => import("./policy.js").Issued) | null} wasm  its loop in WebAssembly, once it has been wanted
 */

const STORAGE = () => GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;

/** With its values at a fixed place, or at an offset that each dispatch brings. */
const STATIC = "static", DYNAMIC = "dynamic";

export class LoadedProgram {
  /**
   * @param {GPUDevice} device
   * @param {ProgramData} data
   * @param {Record<string, string>} weights  by type, WGSL that fills buffers of weights
   * @param {Map<string, GPUBuffer>} shared  buffers that no program writes, by what is in them; those made here are added
   */
  static async load(device, data, weights, shared) {
    const makers = new Map(Object.entries(weights).map(([dtype, wgsl]) => [dtype, weightMaker(device, wgsl)]));
    const changed = written(data);
    /** @type {Map<string, GPUBuffer>} */
    const buffers = new Map();
    for (const { name, dtype, elements, fill } of data.buffers) {
      const content = JSON.stringify([dtype, elements, fill]);
      const held = changed.has(name) ? undefined : shared.get(content);
      const buffer = held ?? device.createBuffer({ label: name, size: bytes(dtype, elements), usage: STORAGE() });
      buffers.set(name, buffer);
      if (fill.kind === "weights") {
        const make = makers.get(dtype);
        if (make === undefined || changed.has(name)) throw new Fault("not_supported", `${name}: weights are made once and never written`);
        if (held === undefined) make(buffer, elements, fill);
      }
      if (!changed.has(name)) shared.set(content, buffer);
    }
    /** @type {Map<string, GPUComputePipeline>} */
    const pipelines = new Map();
    for (const kernel of data.kernels) {
      const bindings = data.dispatches.find((dispatch) => dispatch.kernel === kernel.name)?.bindings.length ?? 0;
      for (const offsets of kernel.parameters === "uniform" ? [STATIC, DYNAMIC] : [STATIC]) {
        pipelines.set(`${kernel.name} ${offsets}`, await compile(device, kernel, bindings, offsets === DYNAMIC));
      }
    }
    return new LoadedProgram(device, data, buffers, pipelines);
  }

  /**
   * @param {GPUDevice} device
   * @param {ProgramData} data
   * @param {Map<string, GPUBuffer>} buffers
   * @param {Map<string, GPUComputePipeline>} pipelines  by kernel and kind of offset
   */
  constructor(device, data, buffers, pipelines) {
    this.device = device;
    this.data = data;
    this.buffers = buffers;
    this.pipelines = pipelines;
    this.described = data.dispatches.map((_, k) => this.describe(k));
    this.bindGroups = this.described.map((descriptor) => device.createBindGroup(descriptor));
    this.values = data.dispatches.map(({ values }) => Float32Array.from({ length: VALUE_BYTES / 4 }, (_, i) => values?.[i] ?? 0));
    this.carries = data.kernels.some((kernel) => (kernel.parameters ?? "none") !== "none");
    /** Dispatches issued since the last reset. */
    this.issued = 0;
    /** @type {Map<string, Compiled>} */
    this.batches = new Map();
    // The map waiter copies the first word of the first output behind the last dispatch, and maps that.
    this.probe = device.createBuffer({ size: 4, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  }

  /** Group 0 of the k-th dispatch of the list. @param {number} k @returns {GPUBindGroupDescriptor} */
  describe(k) {
    const { kernel, bindings } = this.data.dispatches[k];
    return {
      layout: known(this.pipelines, `${kernel} ${STATIC}`).getBindGroupLayout(0),
      entries: bindings.map((name, binding) => ({ binding, resource: { buffer: known(this.buffers, name) } })),
    };
  }

  /** Writes every buffer's first contents again. */
  reset() {
    for (const { name, dtype, elements, fill } of this.data.buffers) {
      if (fill.kind !== "weights") this.device.queue.writeBuffer(known(this.buffers, name), 0, contents(dtype, elements, fill));
    }
    this.issued = 0;
  }

  /**
   * The first n dispatches of the program, its list begun again as often as it takes.
   *
   * @param {import("./policy.js").Policy} policy
   * @param {number} n
   * @returns {Compiled}
   */
  batch(policy, n) {
    const key = JSON.stringify([policy, n]);
    let batch = this.batches.get(key);
    if (batch === undefined) {
      batch = this.compileBatch(policy, n);
      this.batches.set(key, batch);
    }
    return batch;
  }

  /**
   * @param {import("./policy.js").Policy} policy
   * @param {number} n
   * @returns {Compiled}
   */
  compileBatch(policy, n) {
    const { length } = this.data.dispatches;
    const at = Array.from({ length: n }, (_, i) => i % length);
    const perWait = policy.dispatches_per_wait ?? Math.max(n, 1);
    const waits = Math.max(1, Math.ceil(n / perWait));
    const batches = Array.from({ length: waits }, (_, k) => this.compilePart(policy, at.slice(k * perWait, (k + 1) * perWait)));
    const make = this.maker(at);
    const passes = policy.stamps === "passes" ? passClock(this.device, passesOf(batches[0])) : null;
    return { batches, passes, make, settled: false, wasm: null };
  }

  /**
   * @param {import("./policy.js").Policy} policy
   * @param {number[]} at  which dispatches of the list
   * @returns {import("./policy.js").Batch}
   */
  compilePart(policy, at) {
    const list = this.data.dispatches, n = at.length;
    const perPass = policy.dispatches_per_pass ?? n, perSubmit = policy.dispatches_per_submit ?? n;
    const uniforms = policy.uniforms ?? "none";
    const offsets = uniforms === "dynamic_offset" || uniforms === "mapped_ring" ? DYNAMIC : STATIC;
    const created = policy.bind_groups === "created";
    const make = this.maker(at);
    return {
      n,
      pipelines: at.map((k) => known(this.pipelines, `${list[k].kernel} ${offsets}`)),
      bindGroups: at.map((k) => this.bindGroups[k]),
      x: Uint32Array.from(at, (k) => list[k].workgroups[0]),
      y: Uint32Array.from(at, (k) => list[k].workgroups[1]),
      z: Uint32Array.from(at, (k) => list[k].workgroups[2]),
      perPass,
      perCommandBuffer: policy.dispatches_per_command_buffer ?? n,
      perSubmit,
      depth: DEPTHS[policy.depth ?? "dispatch"],
      bind: created
        ? (/** @type {GPUComputePassEncoder} */ pass, /** @type {number} */ i) => pass.setBindGroup(0, make(i))
        : null,
      go: policy.workgroups === "indirect" ? this.indirect(at) : null,
      deliver: this.carries && n > 0 ? this.delivery(uniforms, at, perSubmit, offsets, created) : null,
    };
  }

  /** Makes a new bind group for the i-th of `at`. @param {number[]} at */
  maker(at) {
    return (/** @type {number} */ i) => this.device.createBindGroup(this.described[at[i]]);
  }

  /** @param {number[]} at */
  indirect(at) {
    const sizes = Uint32Array.from(this.data.dispatches.flatMap(({ workgroups }) => workgroups));
    const buffer = this.device.createBuffer({ size: sizes.byteLength, usage: GPUBufferUsage.INDIRECT | GPUBufferUsage.COPY_DST });
    this.device.queue.writeBuffer(buffer, 0, sizes);
    return (/** @type {GPUComputePassEncoder} */ pass, /** @type {number} */ i) =>
      pass.dispatchWorkgroupsIndirect(buffer, 12 * at[i]);
  }

  /**
   * @param {import("./deliver.js").Uniforms} uniforms
   * @param {number[]} at
   * @param {number} perSubmit
   * @param {string} offsets
   * @param {boolean} created
   */
  delivery(uniforms, at, perSubmit, offsets, created) {
    const { device } = this;
    const kernel = this.data.dispatches[0].kernel;
    const layout = uniforms === "immediates" ? null : known(this.pipelines, `${kernel} ${offsets}`).getBindGroupLayout(1);
    const group = (/** @type {GPUBuffer} */ buffer) => device.createBindGroup({
      layout: /** @type {GPUBindGroupLayout} */ (layout),
      entries: [{ binding: 0, resource: { buffer, size: VALUE_BYTES } }],
    });
    return delivery(uniforms, { device, values: at.map((k) => this.values[k]), perSubmit, group, created });
  }

  /** @param {GPUCommandEncoder} encoder */
  encodeProbe(encoder) {
    encoder.copyBufferToBuffer(known(this.buffers, this.data.outputs[0]), 0, this.probe, 0, 4);
  }

  /** What stands in every output, its bytes in base64. @returns {Promise<Record<string, string>>} */
  async outputs() {
    const wanted = this.data.buffers.filter((buffer) => this.data.outputs.includes(buffer.name));
    const sizes = wanted.map(({ dtype, elements }) => bytes(dtype, elements));
    const starts = sizes.map((_, i) => sizes.slice(0, i).reduce((sum, size) => sum + size + (-size & 7), 0));
    const size = starts[starts.length - 1] + sizes[sizes.length - 1];
    const staging = this.device.createBuffer({ size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
    const encoder = this.device.createCommandEncoder();
    wanted.forEach(({ name }, i) => encoder.copyBufferToBuffer(known(this.buffers, name), 0, staging, starts[i], sizes[i]));
    this.device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const mapped = staging.getMappedRange();
    const values = wanted.map(({ name, dtype, elements }, i) => [name, base64(new Uint8Array(mapped, starts[i], bytes(dtype, elements)))]);
    staging.destroy();
    return Object.fromEntries(values);
  }
}

/** @param {Uint8Array} data */
function base64(data) {
  let text = "";
  for (let i = 0; i < data.length; i += 0x8000) text += String.fromCharCode(...data.subarray(i, i + 0x8000));
  return btoa(text);
}

/** Names of the buffers that some dispatch may write. @param {ProgramData} data */
function written({ kernels, dispatches }) {
  const readOnly = new Map(kernels.map(({ name, read_only }) => [name, read_only ?? []]));
  return new Set(dispatches.flatMap(({ kernel, bindings }) => bindings.filter((_, i) => !readOnly.get(kernel)?.includes(i))));
}

/** @param {import("./policy.js").Batch} batch */
function passesOf({ n, perPass, perCommandBuffer, perSubmit }) {
  let passes = 0;
  for (let i = 0; i < n; passes++) {
    i = Math.min(n, i + perPass, i - (i % perCommandBuffer) + perCommandBuffer, i - (i % perSubmit) + perSubmit);
  }
  return passes;
}

/**
 * An error in the WGSL itself is caught by the open scopes, with its line; only a pipeline that fails is said here.
 * A layout is spelled out only where values come by a uniform buffer: no other can have a dynamic offset.
 *
 * @param {GPUDevice} device
 * @param {Kernel} kernel
 * @param {number} bindings
 * @param {boolean} dynamic
 */
async function compile(device, kernel, bindings, dynamic) {
  const module = device.createShaderModule({ label: kernel.name, code: kernel.wgsl });
  try {
    return await device.createComputePipelineAsync({
      label: kernel.name,
      layout: kernel.parameters === "uniform" ? layout(device, kernel, bindings, dynamic) : "auto",
      compute: { module, entryPoint: "main", constants: kernel.constants ?? {} },
    });
  } catch (error) {
    throw new Fault("validation_error", `${kernel.name}: ${error instanceof Error ? error.message : error}`);
  }
}

/**
 * @param {GPUDevice} device
 * @param {Kernel} kernel
 * @param {number} bindings
 * @param {boolean} dynamic
 */
function layout(device, kernel, bindings, dynamic) {
  const visibility = GPUShaderStage.COMPUTE;
  /** @param {number} binding @returns {GPUBufferBindingType} */
  const access = (binding) => (kernel.read_only?.includes(binding) ? "read-only-storage" : "storage");
  const storage = Array.from({ length: bindings }, (_, binding) => ({ binding, visibility, buffer: { type: access(binding) } }));
  const values = { binding: 0, visibility, buffer: { type: /** @type {const} */ ("uniform"), hasDynamicOffset: dynamic } };
  const bindGroupLayouts = [storage, [values]].map((entries) => device.createBindGroupLayout({ entries }));
  return device.createPipelineLayout({ bindGroupLayouts });
}

/**
 * @template T
 * @param {Map<string, T>} map
 * @param {string} name
 * @returns {T}
 */
function known(map, name) {
  const value = map.get(name);
  if (value === undefined) throw new Fault("validation_error", `the program names '${name}' but does not define it`);
  return value;
}
