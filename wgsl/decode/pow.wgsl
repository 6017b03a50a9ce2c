// Squares every element.
//
// bindings        @group(0) @binding(0) x: storage, read, array<f32>
//                 @group(0) @binding(1) out: storage, read_write, array<f32>
// workgroup size  64 × 1 × 1; invocations past the end of out do nothing
// reference       rig.programs.decode.reference

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  if (i < arrayLength(&out)) {
    out[i] = x[i] * x[i];
  }
}
