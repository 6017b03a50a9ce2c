// Fills a buffer of weights: element i is offset + scale × (hash32(seed + i) modulo 2048 - 1024) / 1024.
//
// bindings        @group(0) @binding(0) fill: uniform, seed, elements, and the bits of scale and offset
//                 @group(0) @binding(1) data: storage, read_write, array<f32>
// workgroup size  256 × 1 × 1
// reference       rig.programs.fill: weights
//
// The same numbers as rig/programs/fill.py makes: with a scale that is a power of two they are exact.

@group(0) @binding(0) var<uniform> fill: vec4u;
@group(0) @binding(1) var<storage, read_write> data: array<f32>;

fn hash32(value: u32) -> u32 {
  var x = (value ^ (value >> 16)) * 0x7feb352d;
  x = (x ^ (x >> 15)) * 0x846ca68b;
  return x ^ (x >> 16);
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  for (var i = id.x; i < fill.y; i += groups.x * 256) {
    let whole = i32(hash32(fill.x + i) % 2048) - 1024;
    data[i] = bitcast<f32>(fill.w) + bitcast<f32>(fill.z) * (f32(whole) / 1024.0);
  }
}
