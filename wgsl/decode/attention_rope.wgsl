// Attention as in attention_append.wgsl, of queries and keys without RoPE, which it applies.
//
// bindings        @group(0) @binding(0) q: storage, read, array<f32>
//                 @group(0) @binding(1) k: storage, read, array<f32>
//                 @group(0) @binding(2) position: storage, read, array<u32>
//                 @group(0) @binding(3) v: storage, read, array<f32>
//                 @group(0) @binding(4) k_cache: storage, read_write, array<f32>
//                 @group(0) @binding(5) v_cache: storage, read_write, array<f32>
//                 @group(0) @binding(6) out: storage, read_write, array<f32>
// constants       HEADS, KV_HEADS, DIM, CONTEXT, THETA
// workgroup size  64 × 1 × 1, a workgroup a head (x) and sequence (y)
// reference       rig.programs.decode.reference
//
// The first of the heads that share keys and values writes them.

override HEADS: u32;
override KV_HEADS: u32;
override DIM: u32;
override CONTEXT: u32;
override THETA: f32;

@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> k: array<f32>;
@group(0) @binding(2) var<storage, read> position: array<u32>;
@group(0) @binding(3) var<storage, read> v: array<f32>;
@group(0) @binding(4) var<storage, read_write> k_cache: array<f32>;
@group(0) @binding(5) var<storage, read_write> v_cache: array<f32>;
@group(0) @binding(6) var<storage, read_write> out: array<f32>;

var<workgroup> scores: array<f32, CONTEXT>;
var<workgroup> query: array<f32, DIM>;
var<workgroup> key: array<f32, DIM>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let now = position[group.y];
  let head = (group.y * HEADS + group.x) * DIM;
  let shared_by = HEADS / KV_HEADS;
  let width = KV_HEADS * DIM;
  let own = group.y * width + group.x / shared_by * DIM;
  let kv = group.y * CONTEXT * width + group.x / shared_by * DIM;
  let writes = group.x % shared_by == 0;
  for (var d = lane; d < DIM; d += 64) {
    let half = DIM / 2;
    let angle = f32(now) * pow(THETA, -f32(d % half) / f32(half));
    let near = angle - 6.283185307179586 * round(angle / 6.283185307179586);
    let other = select(d - half, d + half, d < half);
    let sine = select(sin(near), -sin(near), d < half);
    query[d] = q[head + d] * cos(near) + q[head + other] * sine;
    key[d] = k[own + d] * cos(near) + k[own + other] * sine;
    if (writes) {
      k_cache[kv + now * width + d] = key[d];
      v_cache[kv + now * width + d] = v[own + d];
    }
  }
  workgroupBarrier();
  for (var t = lane; t <= now; t += 64) {
    var dot = 0.0;
    for (var d = 0u; d < DIM; d++) {
      // the last one is not read back: another workgroup may be the one that writes it
      if (t == now) {
        dot += query[d] * key[d];
      } else {
        dot += query[d] * k_cache[kv + t * width + d];
      }
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
    var sum = exp(scores[now] - top) * v[own + d];
    for (var t = 0u; t < now; t++) {
      sum += exp(scores[t] - top) * v_cache[kv + t * width + d];
    }
    out[head + d] = sum / weights;
  }
}
