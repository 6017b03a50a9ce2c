// Adds two buffers, RMSNorm of the sum, logits of that, and the best of each BLOCK of them, of each sequence.
//
// bindings        @group(0) @binding(0) a: storage, read, array<f32>
//                 @group(0) @binding(1) b: storage, read, array<f32>
//                 @group(0) @binding(2) norm_weight: storage, read, array<f32>
//                 @group(0) @binding(3) weight: storage, read, array<f32>
//                 @group(0) @binding(4) sum: storage, read_write, array<f32>
//                 @group(0) @binding(5) logits: storage, read_write, array<f32>
//                 @group(0) @binding(6) best_logit: storage, read_write, array<f32>
//                 @group(0) @binding(7) best_token: storage, read_write, array<u32>
// constants       ROWS, COLS, BLOCK, EPS; LANES
// workgroup size  LANES × 1 × 1, a workgroup BLOCK rows (x) and sequence (z)
// reference       rig.programs.decode.reference
//
// Every workgroup adds and normalises for itself; the first one writes the sum. Each lane reads of normed only what it
// wrote.

override ROWS: u32;
override COLS: u32;
override BLOCK: u32;
override EPS: f32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> norm_weight: array<f32>;
@group(0) @binding(3) var<storage, read> weight: array<f32>;
@group(0) @binding(4) var<storage, read_write> sum: array<f32>;
@group(0) @binding(5) var<storage, read_write> logits: array<f32>;
@group(0) @binding(6) var<storage, read_write> best_logit: array<f32>;
@group(0) @binding(7) var<storage, read_write> best_token: array<u32>;

var<workgroup> normed: array<f32, COLS>;
var<workgroup> partial: array<f32, LANES>;

// the sum over the workgroup, to all of it
fn total(value: f32, lane: u32) -> f32 {
  partial[lane] = value;
  workgroupBarrier();
  var sum = 0.0;
  for (var i = 0u; i < LANES; i++) {
    sum += partial[i];
  }
  workgroupBarrier();
  return sum;
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
  let base = group.z * COLS;
  var squares = 0.0;
  for (var i = lane; i < COLS; i += LANES) {
    let added = a[base + i] + b[base + i];
    normed[i] = added;
    squares += added * added;
  }
  let scale = inverseSqrt(total(squares, lane) / f32(COLS) + EPS);
  let writes = group.x == 0 && group.y == 0;
  for (var i = lane; i < COLS; i += LANES) {
    if (writes) {
      sum[base + i] = normed[i];
    }
    normed[i] *= scale * norm_weight[i];
  }
  var best = -3.4e38;
  var at = 0u;
  for (var k = 0u; k < BLOCK && group.x * BLOCK + k < ROWS; k++) {
    let row = group.x * BLOCK + k;
    var products = 0.0;
    for (var i = lane; i < COLS; i += LANES) {
      products += weight[row * COLS + i] * normed[i];
    }
    let dot = total(products, lane);
    if (lane == 0) {
      logits[group.z * ROWS + row] = dot;
    }
    if (dot > best) {
      best = dot;
      at = row;
    }
  }
  if (lane == 0) {
    best_logit[group.z * groups.x + group.x] = best;
    best_token[group.z * groups.x + group.x] = at;
  }
}
