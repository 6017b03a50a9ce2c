// RoPE of queries and keys: each element × cosine + its head's other half, negated once, × sine.
//
// bindings        @group(0) @binding(0) q: storage, read, array<f32>
//                 @group(0) @binding(1) cosines: storage, read, array<f32>
//                 @group(0) @binding(2) sines: storage, read, array<f32>
//                 @group(0) @binding(3) k: storage, read, array<f32>
//                 @group(0) @binding(4) q_out: storage, read_write, array<f32>
//                 @group(0) @binding(5) k_out: storage, read_write, array<f32>
// constants       DIM: elements of a head
// workgroup size  64 × 1 × 1; invocations past the end of both do nothing
// reference       rig.programs.decode.reference

override DIM: u32;

@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> cosines: array<f32>;
@group(0) @binding(2) var<storage, read> sines: array<f32>;
@group(0) @binding(3) var<storage, read> k: array<f32>;
@group(0) @binding(4) var<storage, read_write> q_out: array<f32>;
@group(0) @binding(5) var<storage, read_write> k_out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let at = id.x % DIM;
  let low = at < DIM / 2;
  let other = select(id.x - DIM / 2, id.x + DIM / 2, low);
  let sine = select(sines[at], -sines[at], low);
  if (id.x < arrayLength(&q)) {
    q_out[id.x] = q[id.x] * cosines[at] + q[other] * sine;
  }
  if (id.x < arrayLength(&k)) {
    k_out[id.x] = k[id.x] * cosines[at] + k[other] * sine;
  }
}
