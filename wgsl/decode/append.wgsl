// Writes a sequence's keys or values into the cache, at its position.
//
// bindings        @group(0) @binding(0) x: storage, read, array<f32>
//                 @group(0) @binding(1) position: storage, read, array<u32>
//                 @group(0) @binding(2) cache: storage, read_write, array<f32>; sequences × CONTEXT × WIDTH
// constants       WIDTH, CONTEXT
// workgroup size  64 × 1 × 1, a row of workgroups (x) a sequence (y)
// reference       rig.programs.decode.reference

override WIDTH: u32;
override CONTEXT: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> position: array<u32>;
@group(0) @binding(2) var<storage, read_write> cache: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < WIDTH) {
    cache[(id.y * CONTEXT + position[id.y]) * WIDTH + id.x] = x[id.y * WIDTH + id.x];
  }
}
