// First contents of buffers: the same numbers as rig/programs/fill.py makes.

/** @typedef {{ kind: "constant", value: number } | { kind: "hash", seed: number, below: number }} Fill */
/** @typedef {"f32" | "i32" | "u32"} Dtype */

export const ARRAYS = { f32: Float32Array, i32: Int32Array, u32: Uint32Array };

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

/**
 * @param {Dtype} dtype
 * @param {number} elements
 * @param {Fill} fill  `hash`: element i is hash32(seed + i) modulo `below`
 */
export function contents(dtype, elements, fill) {
  const data = new ARRAYS[dtype](elements);
  if (fill.kind === "constant") return data.fill(fill.value);
  for (let i = 0; i < elements; i++) data[i] = hash32((fill.seed + i) >>> 0) % fill.below;
  return data;
}
