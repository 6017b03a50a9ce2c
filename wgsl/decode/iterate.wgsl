// Steps of a linear congruential generator, each needing the one before it.
//
// bindings        @group(0) @binding(0) data: storage, read_write, array<u32>
// constants       STEPS
// workgroup size  64 × 1 × 1
// reference       rig.programs.reference: iterate
//
// Constants: Numerical Recipes, 3rd edition, section 7.1.

override STEPS: u32;

@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  var value = data[id.x];
  for (var i = 0u; i < STEPS; i++) {
    value = value * 1664525 + 1013904223;
  }
  data[id.x] = value;
}
