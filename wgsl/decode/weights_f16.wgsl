// Fills a buffer of weights: element i is offset + scale × (hash32(seed + i) modulo 2048 - 1024) / 1024, as a
// 16-bit float, two in each word.
//
// bindings        @group(0) @binding(0) fill: uniform, seed, elements, and the bits of scale and offset
//                 @group(0) @binding(1) data: storage, read_write, array<u32>
// workgroup size  256 × 1 × 1
// reference       rig.programs.fill: weights
//
// The same numbers as rig/programs/fill.py makes: with a scale that is a power of two they are exact.

@group(0) @binding(0) var<uniform> fill: vec4u;
@group(0) @binding(1) var<storage, read_write> data: array<u32>;

fn hash32(value: u32) -> u32 {
  var x = (value ^ (value >> 16)) * 0x7feb352d;
  x = (x ^ (x >> 15)) * 0x846ca68b;
  return x ^ (x >> 16);
}

fn weight(i: u32) -> f32 {
  let whole = i32(hash32(fill.x + i) % 2048) - 1024;
  return bitcast<f32>(fill.w) + bitcast<f32>(fill.z) * (f32(whole) / 1024.0);
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  for (var i = id.x; i < fill.y / 2; i += groups.x * 256) {
    data[i] = pack2x16float(vec2f(weight(2 * i), weight(2 * i + 1)));
  }
}
