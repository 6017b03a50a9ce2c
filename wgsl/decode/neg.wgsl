// The negative of the second half of every head.
//
// bindings        @group(0) @binding(0) x: storage, read, array<f32>
//                 @group(0) @binding(1) out: storage, read_write, array<f32>
// constants       HALF: half a head's elements
// workgroup size  64 × 1 × 1; invocations past the end of out do nothing
// reference       rig.programs.decode.reference

override HALF: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  if (i < arrayLength(&out)) {
    out[i] = -x[i / HALF * 2 * HALF + HALF + i % HALF];
  }
}
