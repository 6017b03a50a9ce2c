// The token of the highest logit, and its row of the table, of each sequence; weights are 16-bit floats, two in each word.
//
// bindings        @group(0) @binding(0) table: storage, read, array<u32>
//                 @group(0) @binding(1) logits: storage, read, array<f32>
//                 @group(0) @binding(2) positions: storage, read_write, array<u32>
//                 @group(0) @binding(3) tokens: storage, read_write, array<u32>
//                 @group(0) @binding(4) x: storage, read_write, array<f32>
// constants       HIDDEN, VOCABULARY; CONTEXT: tokens after which a sequence begins again
// workgroup size  SCAN × 1 × 1 (a power of two), a workgroup a sequence
// reference       rig.programs.decode.reference
//
// Of equal logits the first one wins. The step's first dispatch: it also moves the position on.

override SCAN: u32;
override HIDDEN: u32;
override VOCABULARY: u32;
override CONTEXT: u32;

@group(0) @binding(0) var<storage, read> table: array<u32>;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read_write> positions: array<u32>;
@group(0) @binding(3) var<storage, read_write> tokens: array<u32>;
@group(0) @binding(4) var<storage, read_write> x: array<f32>;

var<workgroup> best: array<f32, SCAN>;
var<workgroup> at: array<u32, SCAN>;

@compute @workgroup_size(SCAN)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let position = (positions[group.x] + 1) % CONTEXT;
  best[lane] = -3.4e38;
  at[lane] = 0;
  for (var i = lane; i < VOCABULARY; i += SCAN) {
    let logit = logits[group.x * VOCABULARY + i];
    if (logit > best[lane]) {
      best[lane] = logit;
      at[lane] = i;
    }
  }
  workgroupBarrier();
  for (var half = SCAN / 2; half > 0; half /= 2) {
    if (lane < half) {
      let other = lane + half;
      if (best[other] > best[lane] || (best[other] == best[lane] && at[other] < at[lane])) {
        best[lane] = best[other];
        at[lane] = at[other];
      }
    }
    workgroupBarrier();
  }
  // a sequence begins with a token of its own
  let token = select(at[0], (7 * group.x + 1) % VOCABULARY, position == 0);
  for (var i = lane; i < HIDDEN; i += SCAN) {
    x[group.x * HIDDEN + i] = unpack2x16float(table[(token * HIDDEN + i) / 2])[i % 2];
  }
  if (lane == 0) {
    positions[group.x] = position;
    tokens[group.x * CONTEXT + position] = token;
  }
}
