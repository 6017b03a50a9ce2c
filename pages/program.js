// A program made real on a device: buffers, pipelines, bind groups; and its batches, compiled once each.

import { contents, ARRAYS } from "./fill.js";
import { Fault } from "./faults.js";

/**
 * @typedef {object} ProgramData  the JSON of rig.records.Program
 * @property {string} name
 * @property {{ name: string, dtype: import("./fill.js").Dtype, elements: number, fill: import("./fill.js").Fill }[]} buffers
 * @property {{ name: string, wgsl: string, constants: Record<string, number> }[]} kernels
 * @property {{ kernel: string, bindings: string[], workgroups: [number, number, number] }[]} dispatches
 * @property {string[]} outputs
 */

const STORAGE = () => GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;

export class LoadedProgram {
  /**
   * @param {GPUDevice} device
   * @param {ProgramData} data
   */
  static async load(device, data) {
    /** @type {Map<string, GPUBuffer>} */
    const buffers = new Map();
    for (const { name, elements } of data.buffers) {
      buffers.set(name, device.createBuffer({ label: name, size: elements * 4, usage: STORAGE() }));
    }
    /** @type {Map<string, GPUComputePipeline>} */
    const pipelines = new Map();
    for (const kernel of data.kernels) pipelines.set(kernel.name, await compile(device, kernel));
    const bindGroups = data.dispatches.map(({ kernel, bindings }) => device.createBindGroup({
      layout: known(pipelines, kernel).getBindGroupLayout(0),
      entries: bindings.map((name, binding) => ({ binding, resource: { buffer: known(buffers, name) } })),
    }));
    return new LoadedProgram(device, data, buffers, pipelines, bindGroups);
  }

  /**
   * @param {GPUDevice} device
   * @param {ProgramData} data
   * @param {Map<string, GPUBuffer>} buffers
   * @param {Map<string, GPUComputePipeline>} pipelines
   * @param {GPUBindGroup[]} bindGroups
   */
  constructor(device, data, buffers, pipelines, bindGroups) {
    this.device = device;
    this.data = data;
    this.buffers = buffers;
    this.pipelines = pipelines;
    this.bindGroups = bindGroups;
    /** Dispatches issued since the last reset. */
    this.issued = 0;
    /** @type {Map<string, import("./policy.js").Batch>} */
    this.batches = new Map();
    // The map waiter copies the first word of the first output behind the last dispatch, and maps that.
    this.probe = device.createBuffer({ size: 4, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  }

  /** Writes every buffer's first contents again. */
  reset() {
    for (const { name, dtype, elements, fill } of this.data.buffers) {
      this.device.queue.writeBuffer(known(this.buffers, name), 0, contents(dtype, elements, fill));
    }
    this.issued = 0;
  }

  /**
   * The first n dispatches of the program, its list begun again as often as it takes.
   *
   * @param {import("./policy.js").Policy} policy
   * @param {number} n
   * @returns {import("./policy.js").Batch}
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
   * @returns {import("./policy.js").Batch}
   */
  compileBatch(policy, n) {
    const list = this.data.dispatches;
    const at = Array.from({ length: n }, (_, i) => i % list.length);
    return {
      n,
      pipelines: at.map((k) => known(this.pipelines, list[k].kernel)),
      bindGroups: at.map((k) => this.bindGroups[k]),
      x: Uint32Array.from(at, (k) => list[k].workgroups[0]),
      y: Uint32Array.from(at, (k) => list[k].workgroups[1]),
      z: Uint32Array.from(at, (k) => list[k].workgroups[2]),
      perPass: policy.dispatches_per_pass ?? n,
      perCommandBuffer: policy.dispatches_per_command_buffer ?? n,
      perSubmit: policy.dispatches_per_submit ?? n,
    };
  }

  /** @param {GPUCommandEncoder} encoder */
  encodeProbe(encoder) {
    encoder.copyBufferToBuffer(known(this.buffers, this.data.outputs[0]), 0, this.probe, 0, 4);
  }

  /** Every output as plain numbers. @returns {Promise<Record<string, number[]>>} */
  async outputs() {
    /** @type {Record<string, number[]>} */
    const values = {};
    for (const { name, dtype, elements } of this.data.buffers.filter((buffer) => this.data.outputs.includes(buffer.name))) {
      const staging = this.device.createBuffer({ size: elements * 4, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
      const encoder = this.device.createCommandEncoder();
      encoder.copyBufferToBuffer(known(this.buffers, name), 0, staging, 0, elements * 4);
      this.device.queue.submit([encoder.finish()]);
      await staging.mapAsync(GPUMapMode.READ);
      values[name] = Array.from(new ARRAYS[dtype](staging.getMappedRange()));
      staging.destroy();
    }
    return values;
  }
}

/**
 * An error in the WGSL itself is caught by the open scopes, with its line; only a pipeline that fails is said here.
 *
 * @param {GPUDevice} device
 * @param {ProgramData["kernels"][number]} kernel
 */
async function compile(device, kernel) {
  const module = device.createShaderModule({ label: kernel.name, code: kernel.wgsl });
  try {
    return await device.createComputePipelineAsync({
      label: kernel.name,
      layout: "auto",
      compute: { module, entryPoint: "main", constants: kernel.constants },
    });
  } catch (error) {
    throw new Fault("validation_error", `${kernel.name}: ${error instanceof Error ? error.message : error}`);
  }
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
