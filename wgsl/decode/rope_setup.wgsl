// RoPE's cosines and sines of the position that the step is at, each half twice over.
//
// bindings        @group(0) @binding(0) position: storage, read, array<u32>
//                 @group(0) @binding(1) cosines: storage, read_write, array<f32>
//                 @group(0) @binding(2) sines: storage, read_write, array<f32>
// constants       THETA, HALF
// workgroup size  64 × 1 × 1
// reference       rig.programs.decode.reference

override THETA: f32;
override HALF: u32;

@group(0) @binding(0) var<storage, read> position: array<u32>;
@group(0) @binding(1) var<storage, read_write> cosines: array<f32>;
@group(0) @binding(2) var<storage, read_write> sines: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < 2 * HALF) {
    let angle = f32(position[0]) * pow(THETA, -f32(id.x % HALF) / f32(HALF));
    let near = angle - 6.283185307179586 * round(angle / 6.283185307179586);
    cosines[id.x] = cos(near);
    sines[id.x] = sin(near);
  }
}
