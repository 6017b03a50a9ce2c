// RoPE's angles of the position that the step is at: position × THETA^(-i / HALF).
//
// bindings        @group(0) @binding(0) position: storage, read, array<u32>
//                 @group(0) @binding(1) out: storage, read_write, array<f32>; HALF elements
// constants       THETA, HALF
// workgroup size  64 × 1 × 1
// reference       rig.programs.decode.reference

override THETA: f32;
override HALF: u32;

@group(0) @binding(0) var<storage, read> position: array<u32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < HALF) {
    out[id.x] = f32(position[0]) * pow(THETA, -f32(id.x) / f32(HALF));
  }
}
