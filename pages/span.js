// GPU span of a batch: the first pass's begin to the last pass's end, two timestamps whatever the count.

/** @typedef {{ first?: GPUComputePassDescriptor, last?: GPUComputePassDescriptor, only?: GPUComputePassDescriptor }} PassStamps */

/** Where the device has no timestamps: nothing is stamped and the span is null, not zero. */
export const NO_SPAN = { stamps: /** @type {PassStamps} */ ({}), read: async () => null };

/** @param {GPUDevice} device */
export function spanClock(device) {
  if (!device.features.has("timestamp-query")) return NO_SPAN;
  const querySet = device.createQuerySet({ type: "timestamp", count: 2 });
  const resolved = device.createBuffer({ size: 16, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
  const staging = device.createBuffer({ size: 16, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });
  /** @type {PassStamps} */
  const stamps = {
    first: { timestampWrites: { querySet, beginningOfPassWriteIndex: 0 } },
    last: { timestampWrites: { querySet, endOfPassWriteIndex: 1 } },
    only: { timestampWrites: { querySet, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 } },
  };

  /** Raw [begin, end] in nanoseconds, as decimal strings: they may exceed 2^53. Asked for outside any timed section. */
  async function read() {
    const encoder = device.createCommandEncoder();
    encoder.resolveQuerySet(querySet, 0, 2, resolved, 0);
    encoder.copyBufferToBuffer(resolved, 0, staging, 0, 16);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const raw = [...new BigUint64Array(staging.getMappedRange())].map(String);
    staging.unmap();
    return raw;
  }
  return { stamps, read };
}
