// Halves put together: each head of out is one of a, then the first half of one of b.
//
// bindings        @group(0) @binding(0) a: storage, read, array<f32>
//                 @group(0) @binding(1) b: storage, read, array<f32>
//                 @group(0) @binding(2) out: storage, read_write, array<f32>
// constants       HALF: elements of a half; STRIDE: of one head of b
// workgroup size  64 × 1 × 1; invocations past the end of out do nothing
// reference       rig.programs.decode.reference

override HALF: u32;
override STRIDE: u32;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.x;
  if (i < arrayLength(&out)) {
    let head = i / (2 * HALF);
    let at = i % (2 * HALF);
    if (at < HALF) {
      out[i] = a[head * HALF + at];
    } else {
      out[i] = b[head * STRIDE + at - HALF];
    }
  }
}
