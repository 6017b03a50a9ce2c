// What the GPU's own clock says: two timestamps around all passes of a batch, or two around each.

/**
 * @typedef {object} PassStamps  descriptors of the first, the last and the only pass, or of each
 * @property {GPUComputePassDescriptor} [first]
 * @property {GPUComputePassDescriptor} [last]
 * @property {GPUComputePassDescriptor} [only]
 * @property {GPUComputePassDescriptor[]} [each]
 */

/**
 * @typedef {object} StampClock
 * @property {PassStamps} stamps
 * @property {() => Promise<string[] | null>} read  raw nanoseconds as decimal strings, begin and end in turn: they may
 *   exceed 2^53. Asked for outside any timed section.
 */

/** Where the device has no timestamps: nothing is stamped and there is no time, not a zero. @type {StampClock} */
export const NO_STAMPS = { stamps: {}, read: async () => null };

/** First pass's begin to last pass's end, two timestamps whatever the count. @param {GPUDevice} device */
export function spanClock(device) {
  return clock(device, 2, (querySet) => ({
    first: { timestampWrites: { querySet, beginningOfPassWriteIndex: 0 } },
    last: { timestampWrites: { querySet, endOfPassWriteIndex: 1 } },
    only: { timestampWrites: { querySet, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 } },
  }));
}

/** Begin and end of every pass. @param {GPUDevice} device @param {number} passes */
export function passClock(device, passes) {
  return clock(device, 2 * passes, (querySet) => ({
    each: Array.from({ length: passes }, (_, p) => ({
      timestampWrites: { querySet, beginningOfPassWriteIndex: 2 * p, endOfPassWriteIndex: 2 * p + 1 },
    })),
  }));
}

/**
 * @param {GPUDevice} device
 * @param {number} count  timestamps
 * @param {(querySet: GPUQuerySet) => PassStamps} describe
 * @returns {StampClock}
 */
function clock(device, count, describe) {
  if (!device.features.has("timestamp-query")) return NO_STAMPS;
  const querySet = device.createQuerySet({ type: "timestamp", count });
  const size = 8 * count;
  const resolved = device.createBuffer({ size, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
  const staging = device.createBuffer({ size, usage: GPUBufferUsage.COPY_DST | GPUBufferUsage.MAP_READ });

  async function read() {
    const encoder = device.createCommandEncoder();
    encoder.resolveQuerySet(querySet, 0, count, resolved, 0);
    encoder.copyBufferToBuffer(resolved, 0, staging, 0, size);
    device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const raw = Array.from(new BigUint64Array(staging.getMappedRange()), String);
    staging.unmap();
    return raw;
  }
  return { stamps: describe(querySet), read };
}
