// Adds the first value of the dispatch to every element of a buffer, in place.
//
// bindings        @group(0) @binding(0) data: storage, read_write, array<f32>
// parameters      values: immediate data, vec4f
// features        immediate_address_space (a WGSL language feature)
// workgroup size  64 × 1 × 1; invocations past the end of data do nothing
// reference       rig.programs.reference: increment_by_value
//
// Every dispatch brings another value, so a sum that is right shows that each one saw its own.

@group(0) @binding(0) var<storage, read_write> data: array<f32>;
var<immediate> values: vec4f;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&data)) {
    data[id.x] += values.x;
  }
}
