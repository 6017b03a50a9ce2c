// Attention of each query head over the cache, up to the step's position; HEADS / KV_HEADS heads share keys and values.
//
// bindings        @group(0) @binding(0) q: storage, read, array<f32>
//                 @group(0) @binding(1) k_cache: storage, read, array<f32>
//                 @group(0) @binding(2) v_cache: storage, read, array<f32>
//                 @group(0) @binding(3) position: storage, read, array<u32>
//                 @group(0) @binding(4) out: storage, read_write, array<f32>
// constants       HEADS, KV_HEADS, DIM, CONTEXT (at most 1024)
// workgroup size  64 × 1 × 1, a workgroup a head (x) and sequence (y)
// reference       rig.programs.decode.reference

override HEADS: u32;
override KV_HEADS: u32;
override DIM: u32;
override CONTEXT: u32;

@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> k_cache: array<f32>;
@group(0) @binding(2) var<storage, read> v_cache: array<f32>;
@group(0) @binding(3) var<storage, read> position: array<u32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

var<workgroup> scores: array<f32, CONTEXT>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let now = position[group.y];
  let query = (group.y * HEADS + group.x) * DIM;
  let width = KV_HEADS * DIM;
  let kv = group.y * CONTEXT * width + group.x / (HEADS / KV_HEADS) * DIM;
  for (var t = lane; t <= now; t += 64) {
    var dot = 0.0;
    for (var d = 0u; d < DIM; d++) {
      dot += q[query + d] * k_cache[kv + t * width + d];
    }
    scores[t] = dot * inverseSqrt(f32(DIM));
  }
  workgroupBarrier();
  var top = -3.4e38;
  for (var t = 0u; t <= now; t++) {
    top = max(top, scores[t]);
  }
  var weights = 0.0;
  for (var t = 0u; t <= now; t++) {
    weights += exp(scores[t] - top);
  }
  for (var d = lane; d < DIM; d += 64) {
    var sum = 0.0;
    for (var t = 0u; t <= now; t++) {
      sum += exp(scores[t] - top) * v_cache[kv + t * width + d];
    }
    out[query + d] = sum / weights;
  }
}
