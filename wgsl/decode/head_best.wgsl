// Logits, and the best of each BLOCK of them, of each sequence.
//
// bindings        @group(0) @binding(0) x: storage, read, array<f32>
//                 @group(0) @binding(1) weight: storage, read, array<f32>
//                 @group(0) @binding(2) logits: storage, read_write, array<f32>
//                 @group(0) @binding(3) best_logit: storage, read_write, array<f32>; one a workgroup
//                 @group(0) @binding(4) best_token: storage, read_write, array<u32>
// constants       ROWS, COLS, BLOCK; LANES
// workgroup size  LANES × 1 × 1, a workgroup BLOCK rows (x) and sequence (z)
// reference       rig.programs.decode.reference

override ROWS: u32;
override COLS: u32;
override BLOCK: u32;
override LANES: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> logits: array<f32>;
@group(0) @binding(3) var<storage, read_write> best_logit: array<f32>;
@group(0) @binding(4) var<storage, read_write> best_token: array<u32>;

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
  var best = -3.4e38;
  var at = 0u;
  for (var k = 0u; k < BLOCK && group.x * BLOCK + k < ROWS; k++) {
    let row = group.x * BLOCK + k;
    var sum = 0.0;
    for (var i = lane; i < COLS; i += LANES) {
      sum += weight[row * COLS + i] * x[group.z * COLS + i];
    }
    let dot = total(sum, lane);
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
